//! The table of the `FileSearch` port.

use std::sync::Arc;

use throughline_core::ErrorKind;
use throughline_core::ports::{FileSearch, SearchableFile};

use super::runner::{Scenario, scenarios};

pub(super) const TABLE: &[Scenario<dyn FileSearch>] = scenarios!["file_search":
    finds_passage_with_name_of_its_file,
    finds_at_most_as_many_as_asked_for_best_first,
    empty_store_finds_nothing,
    stores_are_apart,
    files_are_added_to_those_that_are_there,
    unknown_stores_are_not_found,
    too_many_files_are_refused,
    deleted_stores_are_gone_and_may_be_deleted_again,
    deletes_all_stores_of_a_label,
    labels_are_letters_digits_and_hyphens,
    names_are_unique_and_of_a_length,
    ids_of_deleted_stores_are_not_given_again,
];

type Port = Arc<dyn FileSearch>;

fn file(name: &str, text: &str) -> SearchableFile {
    SearchableFile { name: name.to_owned(), text: text.to_owned() }
}

fn harbour() -> Vec<SearchableFile> {
    vec![
        file("harbour/ferry times.md", "The ferry leaves the harbour at nine."),
        file("harbour/bread.md", "Rye bread is baked on Saturdays."),
        file("src/ünïcode.rs", "fn gull() {} // a gull"),
    ]
}

async fn finds_passage_with_name_of_its_file(files: Port) {
    let store = files.create("test-1").await.unwrap();
    files.add(&store, harbour()).await.unwrap();
    let hits = files.search(&store, "When does the ferry leave the harbour?", 3).await.unwrap();
    assert_eq!(hits[0].file, "harbour/ferry times.md");
    assert!(hits[0].text.contains("at nine"), "{hits:?}");
    let hits = files.search(&store, "gull", 1).await.unwrap();
    assert_eq!(hits[0].file, "src/ünïcode.rs");
}

async fn finds_at_most_as_many_as_asked_for_best_first(files: Port) {
    let store = files.create("test-1").await.unwrap();
    files.add(&store, harbour()).await.unwrap();
    let hits = files.search(&store, "the ferry on Saturdays", 1).await.unwrap();
    assert_eq!(hits.len(), 1);
    let hits = files.search(&store, "the ferry leaves on Saturdays", 50).await.unwrap();
    assert!(hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)), "{hits:?}");
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score), "{hits:?}");
}

async fn empty_store_finds_nothing(files: Port) {
    let store = files.create("test-1").await.unwrap();
    assert_eq!(files.search(&store, "ferry", 3).await.unwrap(), []);
    files.add(&store, Vec::new()).await.unwrap();
    assert_eq!(files.search(&store, "ferry", 3).await.unwrap(), []);
}

async fn stores_are_apart(files: Port) {
    let (one, other) =
        (files.create("test-1").await.unwrap(), files.create("test-1").await.unwrap());
    assert_ne!(one, other);
    files.add(&one, vec![file("same.md", "The canary sings.")]).await.unwrap();
    files.add(&other, vec![file("same.md", "The heron fishes.")]).await.unwrap();
    let hits = files.search(&other, "canary heron", 10).await.unwrap();
    assert!(hits.iter().all(|hit| !hit.text.contains("canary")), "{hits:?}");
    files.delete(&one).await.unwrap();
    assert_eq!(files.search(&other, "heron", 10).await.unwrap().len(), 1);
}

async fn files_are_added_to_those_that_are_there(files: Port) {
    let store = files.create("test-1").await.unwrap();
    files.add(&store, vec![file("a.md", "The canary sings.")]).await.unwrap();
    files.add(&store, vec![file("b.md", "The heron fishes.")]).await.unwrap();
    for (question, name) in [("canary", "a.md"), ("heron", "b.md")] {
        assert_eq!(files.search(&store, question, 1).await.unwrap()[0].file, name);
    }
}

async fn unknown_stores_are_not_found(files: Port) {
    for id in ["none", "../vector_stores", ""] {
        let kinds = [
            files.search(id, "ferry", 3).await.unwrap_err().kind(),
            files.add(id, vec![file("a.md", "text")]).await.unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::NotFound; 2], "{id:?}");
    }
}

async fn too_many_files_are_refused(files: Port) {
    let store = files.create("test-1").await.unwrap();
    let many = (0..=files.max_files()).map(|n| file(&format!("{n}.md"), "text")).collect();
    let error = files.add(&store, many).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains(&files.max_files().to_string()), "{error}");
}

async fn deleted_stores_are_gone_and_may_be_deleted_again(files: Port) {
    let store = files.create("test-1").await.unwrap();
    files.add(&store, harbour()).await.unwrap();
    files.delete(&store).await.unwrap();
    assert_eq!(files.search(&store, "ferry", 3).await.unwrap_err().kind(), ErrorKind::NotFound);
    files.delete(&store).await.unwrap();
    files.delete("never-there").await.unwrap();
}

async fn deletes_all_stores_of_a_label(files: Port) {
    let gone = [files.create("gone-1").await.unwrap(), files.create("gone-2").await.unwrap()];
    let stays = files.create("stays-1").await.unwrap();
    files.add(&gone[0], harbour()).await.unwrap();
    assert_eq!(files.delete_labelled("gone-").await.unwrap(), 2);
    assert_eq!(files.delete_labelled("gone-").await.unwrap(), 0);
    for store in &gone {
        assert!(files.search(store, "ferry", 3).await.is_err());
    }
    assert_eq!(files.search(&stays, "ferry", 3).await.unwrap(), []);
}

async fn labels_are_letters_digits_and_hyphens(files: Port) {
    for wrong in ["", "a b", "a_b", "a/b", "ünïcode", &"x".repeat(65)] {
        let error = files.create(wrong).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong:?}");
    }
    let longest = "a-Z9".repeat(16);
    let store = files.create(&longest).await.unwrap();
    assert_eq!(files.search(&store, "ferry", 3).await.unwrap(), []);
}

async fn names_are_unique_and_of_a_length(files: Port) {
    let store = files.create("test-1").await.unwrap();
    files.add(&store, vec![file("a.md", "The canary sings.")]).await.unwrap();
    let (empty, long) = (String::new(), "x".repeat(501));
    for wrong in [
        vec![file(&empty, "heron")],
        vec![file(&long, "heron")],
        vec![file("b.md", "heron"), file("b.md", "heron")],
        vec![file("b.md", "heron"), file("a.md", "heron")],
    ] {
        let error = files.add(&store, wrong).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert_eq!(files.search(&store, "heron", 3).await.unwrap(), [], "none of them is added");
    files.add(&store, vec![file(&"é".repeat(250), "The heron fishes.")]).await.unwrap();
    assert_eq!(files.search(&store, "heron", 3).await.unwrap()[0].file, "é".repeat(250));
}

async fn ids_of_deleted_stores_are_not_given_again(files: Port) {
    let first = files.create("test-1").await.unwrap();
    files.delete(&first).await.unwrap();
    let second = files.create("test-1").await.unwrap();
    assert_ne!(first, second);
    assert!(files.search(&first, "ferry", 3).await.is_err());
}
