//! Places and shares, without a service around them.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::*;

/// Waiting longer than this means that the test hangs.
const LIMIT: Duration = Duration::from_millis(20);

const LOCAL: ClientId = ClientId::Local;

fn admission(at_work: usize, time: Duration) -> AdmissionControl {
    AdmissionControl::new(AdmissionLimits { at_work, of_key: at_work, open: at_work, time })
}

/// Work that ends on a signal and reports that it runs.
fn work() -> (oneshot::Sender<()>, Arc<AtomicBool>, impl Future<Output = u8> + Send + 'static) {
    let (go, told) = oneshot::channel();
    let done = Arc::new(AtomicBool::new(false));
    let says = Arc::clone(&done);
    let work = async move {
        told.await.unwrap();
        says.store(true, Ordering::Relaxed);
        7
    };
    (go, done, work)
}

#[tokio::test]
async fn write_completes_after_its_caller_left() {
    for leaves in [true, false] {
        let places = admission(1, LIMIT);
        let (go, done, work) = work();
        let mut call = Box::pin(places.see_through(LOCAL, work));
        if leaves {
            assert!(futures_util::poll!(&mut call).is_pending());
        } else {
            let told = call.as_mut().await.unwrap_err();
            assert!(told.message().contains("continues in the background"), "{told}");
        }
        drop(call);
        // Its place is taken until it is done.
        let refused = places.work(LOCAL, async {}).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
        assert!(!done.load(Ordering::Relaxed));
        go.send(()).unwrap();
        places.finish().await;
        assert!(done.load(Ordering::Relaxed));
        places.work(LOCAL, async {}).await.unwrap();
    }
}

#[tokio::test]
async fn read_is_cancelled_with_its_caller() {
    let places = admission(1, LIMIT);
    let (go, _, work) = work();
    let told = places.work(LOCAL, work).await.unwrap_err();
    assert!(told.message().contains("timed out"), "{told}");
    assert!(go.is_closed());
    places.finish().await;
}

#[tokio::test]
async fn refused_work_does_not_start() {
    let places = admission(1, LIMIT);
    let (go, _, first) = work();
    let (_second_go, second_done, second) = work();
    let mut held = Box::pin(places.see_through(LOCAL, first));
    assert!(futures_util::poll!(&mut held).is_pending());
    let refused = places.see_through(LOCAL, second).await.unwrap_err();
    assert!(refused.message().contains("nothing was done"), "{refused}");
    assert!(!second_done.load(Ordering::Relaxed));
    go.send(()).unwrap();
    drop(held);
    places.finish().await;
    assert_eq!(AdmissionControl::boundless().see_through(LOCAL, async { 7 }).await.unwrap(), 7);
}

#[tokio::test]
async fn a_call_that_panics_is_told_so() {
    let places = AdmissionControl::boundless();
    let told: Result<()> = places.see_through(LOCAL, async { panic!("on purpose") }).await;
    assert_eq!(told.unwrap_err().kind(), ErrorKind::Internal);
    places.finish().await;
}

#[tokio::test]
async fn spare_work_never_waits_for_capacity() {
    let places = admission(1, Duration::from_secs(60));
    assert_eq!(places.spare(async { 7 }).await.unwrap(), Some(7));
    let within = async { places.spare(async { 7 }).await.unwrap() };
    assert_eq!(places.work(LOCAL, within).await.unwrap(), None);
    let never = admission(1, Duration::ZERO).spare(std::future::pending::<()>()).await;
    assert_eq!(never.unwrap_err().kind(), ErrorKind::Unavailable);
}

fn key(id: &str) -> ClientId {
    ClientId::Key(id.parse().unwrap())
}

#[tokio::test]
async fn a_key_has_no_more_than_its_share() {
    let limits = AdmissionLimits { at_work: 4, of_key: 2, open: 4, time: Duration::from_secs(60) };
    let places = AdmissionControl::new(limits);
    let (greedy, other) = (key("0000000000000001"), key("0000000000000002"));
    let never = || Box::pin(places.work(greedy, std::future::pending::<()>()));
    let mut held: Vec<_> = (0..4).map(|_| never()).collect();
    for call in &mut held {
        assert!(futures_util::poll!(call).is_pending());
    }
    let refused = places.work(greedy, async {}).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RateLimited, "{refused}");
    // Two of its calls are at work and two wait for these, not for the places of others.
    for client in [other, LOCAL] {
        assert!(futures_util::poll!(Box::pin(places.work(client, async {}))).is_ready());
    }
    held.clear();
    places.work(greedy, async {}).await.unwrap();
}

#[tokio::test]
async fn requests_of_a_key_that_stay_open_leave_places_to_the_others() {
    let places = admission(4, LIMIT);
    let (greedy, other) = (key("0000000000000001"), key("0000000000000002"));
    let held = (places.open(greedy).unwrap(), places.open(greedy).unwrap());
    let refused = places.open(greedy).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::RateLimited, "{refused}");
    let _more = (places.open(other).unwrap(), places.open(other).unwrap());
    let refused = places.open(LOCAL).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    drop(held);
    places.open(greedy).unwrap();
}
