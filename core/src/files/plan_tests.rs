//! Tests of planning, one rule each.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::test_tree::{Tree, Turn};
use super::{
    Budget, InlineList, Mode, Outcome, PlanRequest, Readings, SkipReason, SkippedFile, plan, render,
};
use crate::error::ErrorKind;

fn none() -> InlineList {
    InlineList::default()
}

fn skipped(path: &str, reason: SkipReason) -> SkippedFile {
    SkippedFile { path: path.to_owned(), reason }
}

#[test]
fn unchanged_tree_reads_no_file() {
    let mut tree = Tree::of("src", [10, 20, 900]);
    tree.write("src/image.png", 0, "binary");
    tree.write("src/empty.rs", 0, "");
    tree.failures.insert("src/image.png".to_owned(), SkipReason::Binary);
    let first = tree.call(&none(), &["src"], 100);
    assert_eq!(first.read.len(), 4);
    let second = tree.call(&first.next, &["src"], 100);
    assert_eq!(second.read, [""; 0]);
    assert_eq!(second.reason("src/image.png"), first.reason("src/image.png"));
    assert_eq!(second.with(Outcome::Skipped), ["src/empty.rs", "src/image.png"]);
    let tokens = second.plan.files.iter().find(|file| file.path == "src/002.rs").unwrap().tokens;
    assert_eq!(tokens, 900, "also of what is not sent");
    assert_eq!(second.next, first.next);
}

#[test]
fn new_files_join_list_until_one_does_not_fit() {
    let mut tree = Tree::of("src", [40]);
    let first = tree.call(&none(), &["src"], 100);
    tree.write("src/b.rs", 50, "b");
    let second = tree.call(&first.next, &["src"], 100);
    assert_eq!(second.of("src/b.rs"), Some(Outcome::Inline));
    tree.write("src/a.rs", 20, "a");
    tree.write("src/c.rs", 5, "c");
    let third = tree.call(&second.next, &["src"], 100);
    assert_eq!(third.of("src/c.rs"), Some(Outcome::Inline), "the smaller one first");
    assert_eq!(third.of("src/a.rs"), Some(Outcome::New));
    assert!(third.next.is_fixed());
    assert_eq!(third.next.paths(), ["src/000.rs", "src/b.rs", "src/c.rs"], "in order of arrival");
    tree.write("src/d.rs", 1, "d");
    let fourth = tree.call(&third.next, &["src"], 100);
    assert_eq!(fourth.of("src/a.rs"), Some(Outcome::Overflow));
    assert_eq!(fourth.of("src/d.rs"), Some(Outcome::New), "it would fit, and the list is fixed");
}

#[test]
fn list_is_also_fixed_by_room_of_call() {
    let tree = Tree::of("src", [10, 20, 30]);
    let mut request = tree.request(&["src"], 1_000);
    request.budget = Budget { session: 1_000, call: 35 };
    let turn = tree.plan(&none(), &request).unwrap();
    assert_eq!(turn.with(Outcome::Overflow), ["src/002.rs"]);
    assert!(turn.next.is_fixed());
}

#[test]
fn overflow_file_stays_overflow_when_it_shrinks_or_grows_empty() {
    let mut tree = Tree::of("src", [10, 900]);
    let first = tree.call(&none(), &["src"], 100);
    tree.write("src/001.rs", 1, "small now");
    let second = tree.call(&first.next, &["src"], 100);
    assert_eq!(second.of("src/001.rs"), Some(Outcome::Overflow));
    tree.failures.insert("src/001.rs".to_owned(), SkipReason::Binary);
    tree.edit("src/001.rs");
    let third = tree.call(&second.next, &["src"], 100);
    assert_eq!(third.of("src/001.rs"), Some(Outcome::Skipped));
    tree.failures.clear();
    let fourth = tree.call(&third.next, &["src"], 100);
    assert_eq!(fourth.of("src/001.rs"), Some(Outcome::Overflow), "not new");
}

#[test]
fn changed_file_is_sent_although_it_exceeds_budget_of_session() {
    let mut tree = Tree::of("src", [50, 40]);
    let first = tree.call(&none(), &["src"], 100);
    tree.write("src/001.rs", 90, "grown");
    let mut request = tree.request(&["src"], 100);
    request.budget.call = 90;
    let second = tree.plan(&first.next, &request).unwrap();
    assert_eq!(second.with(Outcome::Changed), ["src/001.rs"]);
    assert_eq!(second.next.tokens(), 140);
}

#[test]
fn changed_file_that_does_not_fit_ends_call() {
    let mut tree = Tree::of("src", [50, 40]);
    let first = tree.call(&none(), &["src"], 100);
    tree.write("src/001.rs", 90, "grown");
    let mut request = tree.request(&["src"], 100);
    request.budget.call = 89;
    let error = tree.plan(&first.next, &request).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BudgetTooSmall);
    for part in ["90 tokens", "89 are left", "fresh session"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn priority_files_are_inline_also_after_fixing() {
    let mut tree = Tree::of("src", [60, 70]);
    tree.write("guide/rules.md", 80, "rules");
    let mut request = tree.request(&["src"], 150);
    request.priority = tree.below("guide");
    let first = tree.plan(&none(), &request).unwrap();
    assert_eq!(first.with(Outcome::Inline), ["guide/rules.md", "src/000.rs"]);
    assert_eq!(first.with(Outcome::Overflow), ["src/001.rs"]);
    // A new one, and one that was overflow: the only move there is, and the caller's.
    tree.write("guide/more.md", 10, "more");
    let mut request = tree.request(&["src"], 150);
    request.priority = [tree.below("guide"), tree.below("src/001.rs")].concat();
    let second = tree.plan(&first.next, &request).unwrap();
    assert_eq!(second.with(Outcome::Inline), ["guide/more.md", "src/001.rs"]);
    assert_eq!(second.with(Outcome::Unchanged), ["guide/rules.md", "src/000.rs"]);
    let third = tree.call(&second.next, &["src", "guide"], 150);
    assert_eq!(third.count(Outcome::Unchanged), 4, "inline for good");
    assert_eq!(third.read, [""; 0]);
}

#[test]
fn priority_files_that_do_not_fit_end_call() {
    let tree = Tree::of("guide", [80, 30]);
    let mut request = PlanRequest::new(Mode::On, Budget::of(100));
    request.priority = tree.below("guide");
    assert_eq!(tree.plan(&none(), &request).unwrap_err().kind(), ErrorKind::BudgetTooSmall);
}

#[test]
fn attachments_are_never_inline_and_leave_no_trace() {
    let mut tree = Tree::of("src", [10]);
    tree.write("paper.txt", 5, "paper");
    let mut request = tree.request(&["src"], 100);
    request.attachments = tree.below("paper.txt");
    let first = tree.plan(&none(), &request).unwrap();
    assert_eq!(first.of("paper.txt"), Some(Outcome::Overflow));
    assert!(first.reason("paper.txt").contains("attachment"));
    let without = tree.call(&none(), &["src"], 100);
    assert_eq!(first.next, without.next);
    // A file that is inline stays so, also where it is attached.
    request.attachments = tree.below("src");
    request.context = Vec::new();
    let second = tree.plan(&first.next, &request).unwrap();
    assert_eq!(second.of("src/000.rs"), Some(Outcome::Unchanged));
}

#[test]
fn what_has_a_long_name_is_inline_or_skipped() {
    let name = |letter: &str, bytes: usize| format!("src/{}", letter.repeat(bytes - 4));
    let (fits, longest, long) = (name("a", 501), name("b", 500), name("c", 501));
    let mut tree = Tree::of("other", [1]);
    for (path, tokens) in [(&fits, 10), (&longest, 100), (&long, 100)] {
        tree.write(path, tokens, path);
    }
    let all = [(&fits, Outcome::Inline), (&longest, Outcome::Overflow), (&long, Outcome::Skipped)];
    let first = tree.call(&none(), &["src"], 50);
    for (path, outcome) in all {
        assert_eq!(first.of(path), Some(outcome), "{}", path.len());
    }
    assert!(first.reason(&long).contains("500 bytes"), "{}", first.reason(&long));
    let second = tree.call(&first.next, &["src"], 50);
    assert_eq!(second.of(&long), Some(Outcome::Skipped));
    tree.edit(&long);
    let third = tree.call(&second.next, &["src"], 50);
    assert_eq!(third.of(&long), Some(Outcome::Skipped));
    let mut request = tree.request(&["other"], 50);
    request.attachments = tree.below("src");
    let attached = tree.plan(&none(), &request).unwrap();
    let outcomes = [&fits, &longest, &long].map(|path| attached.of(path).unwrap());
    assert_eq!(outcomes, [Outcome::Skipped, Outcome::Overflow, Outcome::Skipped]);
}

#[test]
fn removed_file_is_told_once_and_sent_again_when_it_is_back() {
    let mut tree = Tree::of("src", [10, 20]);
    let first = tree.call(&none(), &["src"], 100);
    let before = tree.clone();
    tree.remove("src/001.rs");
    let second = tree.call(&first.next, &["src"], 100);
    assert_eq!(second.with(Outcome::Removed), ["src/001.rs"]);
    let third = tree.call(&second.next, &["src"], 100);
    assert_eq!(third.of("src/001.rs"), None, "told once");
    let fourth = before.call(&third.next, &["src"], 100);
    assert_eq!(
        fourth.of("src/001.rs"),
        Some(Outcome::Changed),
        "the same bytes, and the model was told it is gone"
    );
    assert_eq!(fourth.next.spent(), first.next.spent() + 20);
    assert_eq!(fourth.next.paths(), first.next.paths());
}

#[test]
fn removed_path_that_was_given_is_removed_and_not_skipped() {
    let mut tree = Tree::of("src", [10, 20]);
    let first = tree.call(&none(), &["src/000.rs", "src/001.rs"], 100);
    tree.remove("src/001.rs");
    let mut request = tree.request(&["src/000.rs", "src/001.rs"], 100);
    request.skipped = vec![skipped("src/001.rs", SkipReason::Missing)];
    let second = tree.plan(&first.next, &request).unwrap();
    assert_eq!(second.with(Outcome::Removed), ["src/001.rs"]);
    assert_eq!(second.count(Outcome::Skipped), 0);
    let third = tree.plan(&second.next, &request).unwrap();
    assert_eq!(third.of("src/001.rs"), Some(Outcome::Skipped), "afterwards it is only not found");
}

#[test]
fn file_that_vanishes_before_it_is_read_is_removed() {
    let mut tree = Tree::of("src", [10, 20]);
    let first = tree.call(&none(), &["src"], 100);
    tree.edit("src/001.rs");
    tree.write("src/new.rs", 5, "new");
    for path in ["src/001.rs", "src/new.rs"] {
        tree.failures.insert(path.to_owned(), SkipReason::Missing);
    }
    let second = tree.call(&first.next, &["src"], 100);
    assert_eq!(second.with(Outcome::Removed), ["src/001.rs"]);
    assert_eq!(second.with(Outcome::Skipped), ["src/new.rs"]);
}

#[test]
fn files_elsewhere_are_left_alone() {
    let mut tree = Tree::of("src", [10]);
    tree.add("src-other", [20]);
    let first = tree.call(&none(), &["src", "src-other"], 100);
    tree.remove("src-other/000.rs");
    let second = tree.call(&first.next, &["src"], 100);
    assert_eq!(second.of("src-other/000.rs"), None);
    let third = tree.call(&second.next, &["."], 100);
    assert_eq!(third.with(Outcome::Removed), ["src-other/000.rs"]);
}

#[test]
fn files_that_walk_could_not_see_are_not_removed() {
    let tree = Tree::of("src/deep", [10, 20]);
    let first = tree.call(&none(), &["src"], 100);
    for reason in
        [SkipReason::Unreadable, SkipReason::TooMany { limit: 1 }, SkipReason::LinkOutside]
    {
        for place in ["src", "src/deep"] {
            let mut request = tree.request(&["src"], 100);
            request.context.clear();
            request.skipped = vec![skipped(place, reason)];
            let turn = tree.plan(&first.next, &request).unwrap();
            assert_eq!(
                (turn.count(Outcome::Removed), turn.with(Outcome::Skipped)),
                (0, vec![place])
            );
            assert_eq!(turn.next, first.next);
        }
    }
}

#[test]
fn inline_file_that_cannot_be_read_is_skipped_and_stays_in_list() {
    let mut tree = Tree::of("src", [10]);
    let first = tree.call(&none(), &["src"], 100);
    tree.edit("src/000.rs");
    tree.failures.insert("src/000.rs".to_owned(), SkipReason::Unreadable);
    let second = tree.call(&first.next, &["src"], 100);
    assert_eq!(second.of("src/000.rs"), Some(Outcome::Skipped));
    assert!(second.reason("src/000.rs").contains("the model keeps what it was sent before"));
    tree.failures.clear();
    let third = tree.call(&second.next, &["src"], 100);
    assert_eq!(third.of("src/000.rs"), Some(Outcome::Changed));
}

#[test]
fn inline_file_that_is_emptied_is_sent() {
    let mut tree = Tree::of("src", [10]);
    let first = tree.call(&none(), &["src"], 100);
    tree.write("src/000.rs", 3, "");
    let second = tree.call(&first.next, &["src"], 100);
    assert_eq!(second.of("src/000.rs"), Some(Outcome::Changed));
}

#[test]
fn reason_that_may_pass_is_looked_at_again() {
    let mut tree = Tree::of("src", [10]);
    tree.failures.insert("src/000.rs".to_owned(), SkipReason::Unreadable);
    let first = tree.call(&none(), &["src"], 100);
    assert_eq!(first.of("src/000.rs"), Some(Outcome::Skipped));
    tree.failures.clear();
    let second = tree.call(&first.next, &["src"], 100);
    assert_eq!(second.of("src/000.rs"), Some(Outcome::Inline));
}

#[test]
fn prompt_that_is_begun_anew_has_every_file() {
    let mut tree = Tree::of("src", [10, 20, 30, 900]);
    let first = tree.call(&none(), &["src"], 100);
    tree.edit("src/001.rs");
    tree.remove("src/002.rs");
    let mut request = tree.request(&["src"], 100);
    request.afresh = true;
    let second = tree.plan(&first.next, &request).unwrap();
    assert_eq!(
        second.with(Outcome::Inline),
        ["src/000.rs", "src/001.rs"],
        "in the order of the list"
    );
    assert!(second.reason("src/000.rs").contains("begun anew"));
    assert_eq!(second.count(Outcome::Removed), 0, "the new prompt says nothing of it");
    assert_eq!(second.with(Outcome::Overflow), ["src/003.rs"]);
    assert_eq!((first.next.spent(), second.next.spent()), (60, 30));
    let third = tree.call(&second.next, &["src"], 100);
    assert_eq!((third.plan.tokens.sent, third.read.len()), (0, 0));
}

#[test]
fn files_that_are_sent_again_have_the_same_bytes() {
    let mut tree = Tree::of("src", [30, 20, 10]);
    let text = |turn: &Turn| render(&turn.plan, |_| Some("text")).unwrap();
    let first = tree.call(&none(), &["src"], 100);
    tree.write("src/a.rs", 5, "new, smaller, and first by name");
    let second = tree.call(&first.next, &["src"], 100);
    let mut request = tree.request(&["src"], 100);
    request.afresh = true;
    let third = tree.plan(&second.next, &request).unwrap();
    assert!(text(&third).starts_with(&text(&first)), "what is new comes last");
    assert_eq!(third.with(Outcome::Inline).last(), Some(&"src/a.rs"));
}

#[test]
fn file_that_was_not_given_when_prompt_was_begun_anew_is_sent_later() {
    let mut tree = Tree::of("src", [10]);
    tree.add("guide", [20]);
    let first = tree.call(&none(), &["src", "guide"], 100);
    let mut request = tree.request(&["src"], 100);
    request.afresh = true;
    let second = tree.plan(&first.next, &request).unwrap();
    assert!(second.reason("guide/000.rs").contains("left out of the prompt"));
    let third = tree.call(&second.next, &["src", "guide"], 100);
    assert_eq!(third.with(Outcome::Changed), ["guide/000.rs"]);
    assert_eq!(third.with(Outcome::Unchanged), ["src/000.rs"]);
}

#[test]
fn file_named_twice_counts_once() {
    let tree = Tree::of("src", [10]);
    let mut request = tree.request(&["src", "src"], 100);
    request.attachments = tree.below("src");
    request.priority = tree.below("src");
    request.skipped = vec![skipped("x", SkipReason::Device), skipped("x", SkipReason::Device)];
    let turn = tree.plan(&none(), &request).unwrap();
    assert_eq!(turn.plan.files.len(), 2);
    assert_eq!(turn.reason("src/000.rs"), "a priority file");
    assert_eq!(turn.reason("x"), "a device");
}

#[test]
fn recorded_list_is_true_of_what_was_sent() {
    // Without a list, the call sends the small new file, and not the larger one that is in the list.
    let mut tree = Tree::of("src", [50, 60]);
    let call = |tree: &Tree, list: &InlineList, mode| {
        let mut request = tree.request(&["src"], 110);
        request.mode = mode;
        tree.plan(list, &request).unwrap()
    };
    let first = call(&tree, &none(), Mode::Record);
    assert_eq!(first.count(Outcome::Inline), 2);
    tree.write("src/a.rs", 55, "a");
    tree.edit("src/001.rs");
    let second = call(&tree, &first.next, Mode::Record);
    assert_eq!(second.with(Outcome::Inline), ["src/000.rs", "src/a.rs"]);
    assert_eq!(second.next.paths(), ["src/000.rs", "src/001.rs"]);
    let third = call(&tree, &second.next, Mode::On);
    assert_eq!(third.with(Outcome::Changed), ["src/001.rs"], "its edit was never sent");
}

#[test]
fn recording_ends_no_call() {
    let mut tree = Tree::of("src", [50, 40]);
    let mut request = tree.request(&["src"], 100);
    request.mode = Mode::Record;
    let first = tree.plan(&none(), &request).unwrap();
    tree.write("src/001.rs", 190, "grown");
    let mut request = tree.request(&["src"], 100);
    request.mode = Mode::Record;
    let second = tree.plan(&first.next, &request).unwrap();
    assert_eq!(second.with(Outcome::Overflow), ["src/001.rs"]);
}

#[test]
fn missing_reading_is_an_error() {
    let tree = Tree::of("src", [10]);
    let error = plan(&none(), &tree.request(&["src"], 100), &Readings::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
}

#[test]
fn outcomes_have_names() {
    let names: Vec<&str> = Outcome::ALL.iter().map(|outcome| outcome.as_str()).collect();
    let expected = ["inline", "unchanged", "changed", "overflow", "new", "removed", "skipped"];
    assert_eq!(names, expected);
}

#[test]
fn thousands_of_overflow_files_are_remembered() {
    let mut tree = Tree::default();
    (0..10_000)
        .for_each(|nth| tree.write(&format!("src/folder_{}/{nth}.rs", nth % 50), 100, "text"));
    let first = tree.call(&none(), &["src"], 50_000);
    assert_eq!((first.count(Outcome::Inline), first.count(Outcome::Overflow)), (500, 9_500));
    let bytes = first.next.encode().len();
    assert!(bytes < 200_000, "{bytes} bytes");
    let second = tree.call(&first.next, &["src"], 50_000);
    assert_eq!((second.read.len(), second.count(Outcome::Overflow)), (0, 9_500));
}

/// What happens between two calls.
#[derive(Debug, Clone)]
enum Step {
    Write(u8, u32),
    Edit(u8),
    Touch(u8),
    Remove(u8),
    Afresh,
}

fn steps() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = prop_oneof![
        4 => (0..30_u8, 1..60_u32).prop_map(|(file, tokens)| Step::Write(file, tokens)),
        2 => (0..30_u8).prop_map(Step::Edit),
        1 => (0..30_u8).prop_map(Step::Touch),
        2 => (0..30_u8).prop_map(Step::Remove),
        1 => Just(Step::Afresh),
    ];
    proptest::collection::vec(proptest::collection::vec(step, 0..12), 1..12)
}

fn path(file: u8) -> String {
    format!("src/{}/{file}.rs", file % 4)
}

proptest! {
    /// Whatever happens: no file moves, the model always has what the list says, and nothing is sent twice.
    #[test]
    fn model_has_what_list_says(turns in steps()) {
        let mut tree = Tree::default();
        let mut list = none();
        // What the model has of each file, as a name and a version of it.
        let mut model: BTreeMap<String, String> = BTreeMap::new();
        let mut overflow: BTreeSet<String> = BTreeSet::new();
        let mut versions: BTreeMap<String, String> = BTreeMap::new();
        let mut count = 0;
        for steps in turns {
            let mut afresh = false;
            for step in steps {
                count += 1;
                match step {
                    Step::Write(file, tokens) => {
                        tree.write(&path(file), tokens, &format!("version {count}"));
                        versions.insert(path(file), format!("version {count}"));
                    }
                    Step::Edit(file) if versions.contains_key(&path(file)) => {
                        tree.edit(&path(file));
                        versions.get_mut(&path(file)).unwrap().push_str(", edited");
                    }
                    Step::Touch(file) if versions.contains_key(&path(file)) => tree.set_modified(&path(file), count),
                    Step::Remove(file) if versions.remove(&path(file)).is_some() => tree.remove(&path(file)),
                    Step::Afresh => afresh = true,
                    _ => {}
                }
            }
            let mut request = tree.request(&["src"], 400);
            request.afresh = afresh;
            request.budget.call = 3_000;
            let Turn { plan, next, .. } = tree.plan(&list, &request).unwrap();
            if afresh {
                model.clear();
            }
            let mut named = BTreeSet::new();
            for file in &plan.files {
                prop_assert!(named.insert(file.path.clone()), "{} twice", file.path);
                match file.outcome {
                    Outcome::Inline | Outcome::Changed => {
                        prop_assert!(!overflow.contains(&file.path), "{} moved", file.path);
                        let sent = model.insert(file.path.clone(), versions[&file.path].clone());
                        prop_assert_ne!(sent.as_ref(), versions.get(&file.path), "{} was sent already", &file.path);
                    }
                    Outcome::Unchanged => prop_assert_eq!(model.get(&file.path), versions.get(&file.path)),
                    Outcome::Removed => prop_assert!(model.remove(&file.path).is_some()),
                    Outcome::Overflow | Outcome::New => {
                        prop_assert!(!next.is_inline(&file.path), "{} moved", file.path);
                        overflow.insert(file.path.clone());
                    }
                    Outcome::Skipped => prop_assert!(false, "{:?}", file),
                }
            }
            prop_assert_eq!(versions.keys().filter(|path| !named.contains(*path)).count(), 0);
            // Nothing that is gone stays with the model.
            prop_assert_eq!(model.keys().filter(|path| !versions.contains_key(*path)).count(), 0);
            list = next;
        }
    }
}
