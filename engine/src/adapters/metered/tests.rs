//! What is measured passes the tables that everything passes, and what was measured is told.

use metrics_exporter_prometheus::PrometheusBuilder;
use throughline_testkit::conformance;
use throughline_testkit::memory::MemoryStore;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_metered_store_conforms() {
    conformance::store(async || MeteredStore(Arc::new(MemoryStore::new())), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_metered_index_conforms() {
    conformance::vector_index(async || MeteredIndex(Arc::new(MemoryStore::new())), &[]).await;
}

/// What Prometheus sees of some work.
fn measured(work: impl AsyncFnOnce()) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(work()));
    recorder.handle().render()
}

#[test]
fn records_calls_errors_and_reads_of_recall() {
    let told = measured(async || {
        let memory = Arc::new(MemoryStore::new());
        let (store, index) = (metered(memory.clone()), metered_index(memory));
        let scope = Scope::new("acme", "mara", None).unwrap();
        let space = VectorSpace { id: "space".into(), dimensions: 2 };
        for _ in 0..2 {
            store.postings(&scope, Namespace::Message, &[TermId::of("gate")], 9).await.unwrap();
        }
        let items = [VectorItem { key: UnitKey::fact(1), vector: vec![1.0, 0.0] }];
        index.upsert(&scope, Namespace::Fact, &space, &items, 1).await.unwrap();
        let hits = index.search(&scope, Namespace::Fact, &space, &[1.0, 0.0], 9, &[]).await;
        assert_eq!(hits.unwrap().len(), 1);
        index.search(&scope, Namespace::Fact, &space, &[1.0], 9, &[]).await.unwrap_err();
    });
    for line in [
        "throughline_store_seconds_count{operation=\"postings\"} 2",
        "throughline_recall_list_postings_sum{namespace=\"message\"} 0",
        "throughline_index_seconds_count{operation=\"upsert\"} 1",
        "throughline_index_seconds_count{operation=\"search\"} 2",
        "throughline_index_errors_total{operation=\"search\",code=\"invalid_input\"} 1",
        "throughline_recall_hits_sum{namespace=\"fact\"} 1",
    ] {
        assert!(told.contains(line), "{line} in\n{told}");
    }
    assert!(!told.contains("mara") && !told.contains("acme"), "{told}");
}

#[test]
fn cancelled_call_is_measured() {
    static SECONDS: Key = Key::from_static_name(STORE_SECONDS);
    let told = measured(async || {
        let never = std::future::pending::<Result<()>>();
        let waits = measure(&SECONDS, STORE_ERRORS, "waits", never);
        tokio::time::timeout(Duration::from_millis(1), waits).await.unwrap_err();
    });
    assert!(told.contains("throughline_store_seconds_count 1"), "{told}");
    assert!(!told.contains(STORE_ERRORS), "{told}");
}
