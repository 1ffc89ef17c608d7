//! The scenarios of the original design, each named for its section.

use std::collections::BTreeSet;

use super::test_tree::{Tree, Turn};
use super::{Budget, InlineList, Mode, Outcome};
use crate::error::ErrorKind;

fn none() -> InlineList {
    InlineList::default()
}

#[test]
fn problem_1_context_overflow_unpredictability() {
    // 100 files of 3,000 tokens for 150,000 tokens, then another folder of 20.
    let mut tree = Tree::of("api", [3_000; 100]);
    let first = tree.call(&none(), &["api"], 150_000);
    assert_eq!((first.count(Outcome::Inline), first.count(Outcome::Overflow)), (50, 50));
    tree.add("tests", [1_000; 20]);
    let second = tree.call(&first.next, &["api", "tests"], 150_000);
    assert_eq!(second.with(Outcome::Unchanged), first.with(Outcome::Inline), "none moved");
    assert_eq!(second.with(Outcome::Overflow), first.with(Outcome::Overflow), "none moved");
    assert_eq!(second.count(Outcome::New), 20);
}

#[test]
fn problem_2_context_duplication_in_assistant_history() {
    let tree = Tree::of("api", [1_000]);
    let mut list = none();
    let mut sent = Vec::new();
    for _ in 0..10 {
        let turn = tree.call(&list, &["api"], 200_000);
        sent.push(turn.plan.tokens.sent);
        list = turn.next;
    }
    assert_eq!(sent.iter().sum::<u64>(), 1_000, "{sent:?}");
}

#[test]
fn first_call_with_overflow() {
    let mut tree = Tree::of("lib", [400, 100, 300]);
    tree.write("api/z.rs", 200, "z");
    tree.write("api/a.rs", 200, "a");
    let turn = tree.call(&none(), &["api", "lib"], 700);
    let inline = ["lib/001.rs", "api/a.rs", "api/z.rs"];
    assert_eq!(turn.with(Outcome::Inline), inline, "by tokens, then by name");
    assert_eq!(turn.with(Outcome::Overflow), ["lib/000.rs", "lib/002.rs"]);
    assert!(turn.next.is_fixed());
    assert_eq!(turn.next.paths(), inline);
}

#[test]
fn subsequent_calls() {
    let mut tree = Tree::of("api", [100, 100, 100, 900]);
    let first = tree.call(&none(), &["api"], 500);
    tree.edit("api/001.rs");
    tree.write("api/new.rs", 10, "new");
    let second = tree.call(&first.next, &["api"], 500);
    assert_eq!(second.with(Outcome::Changed), ["api/001.rs"]);
    assert_eq!(second.with(Outcome::Unchanged), ["api/000.rs", "api/002.rs"]);
    assert_eq!(second.with(Outcome::Overflow), ["api/003.rs"]);
    assert_eq!(second.with(Outcome::New), ["api/new.rs"], "although it would fit");
    let third = tree.call(&second.next, &["api"], 500);
    assert_eq!(third.with(Outcome::Overflow), ["api/003.rs", "api/new.rs"], "new only once");
}

#[test]
fn file_change_detection() {
    let mut tree = Tree::of("src", [10; 4]);
    let first = tree.call(&none(), &["src"], 100);
    tree.edit("src/000.rs");
    tree.set_modified("src/001.rs", -5);
    tree.write("src/002.rs", 10, "other");
    tree.set_modified("src/002.rs", -5);
    let second = tree.call(&first.next, &["src"], 100);
    assert_eq!(second.read, ["src/000.rs", "src/001.rs", "src/002.rs"], "differ, also backwards");
    assert_eq!(second.with(Outcome::Changed), ["src/000.rs", "src/002.rs"]);
    assert_eq!(second.of("src/001.rs"), Some(Outcome::Unchanged), "the same content");
    let third = tree.call(&second.next, &["src"], 100);
    assert_eq!((third.read.len(), third.count(Outcome::Unchanged)), (0, 4));
}

#[test]
fn deterministic_sorting() {
    let tree = Tree::of("src", [30, 20, 20, 10, 90]);
    let one = tree.call(&none(), &["src"], 80);
    let mut request = tree.request(&["src"], 80);
    request.context.reverse();
    let other = tree.plan(&none(), &request).unwrap();
    assert_eq!((&one.plan, &one.next), (&other.plan, &other.next));
    let order = ["src/003.rs", "src/001.rs", "src/002.rs", "src/000.rs"];
    assert_eq!(one.with(Outcome::Inline), order);
}

#[test]
fn reset_mechanism() {
    let mut tree = Tree::of("src", [10, 20, 90]);
    let first = tree.call(&none(), &["src"], 40);
    tree.write("src/002.rs", 5, "small now");
    assert_eq!(tree.call(&first.next, &["src"], 40).of("src/002.rs"), Some(Outcome::Overflow));
    let reset = tree.call(&none(), &["src"], 40);
    assert_eq!(reset.with(Outcome::Inline), ["src/002.rs", "src/000.rs", "src/001.rs"]);
    assert!(!reset.next.is_fixed());
}

#[test]
fn migration_phase_1_add_stable_list_tracking() {
    let mut tree = Tree::of("src", [10, 20, 90]);
    let request = |tree: &Tree, mode| {
        let mut request = tree.request(&["src"], 40);
        request.mode = mode;
        request
    };
    let (mut off, mut recorded) = (none(), none());
    for turn in 0..3 {
        if turn > 0 {
            tree.edit("src/000.rs");
        }
        let without = tree.plan(&off, &request(&tree, Mode::Off)).unwrap();
        let record = tree.plan(&recorded, &request(&tree, Mode::Record)).unwrap();
        assert_eq!(without.plan, record.plan, "recording changes nothing that is sent");
        assert_eq!(record.with(Outcome::Inline), ["src/000.rs", "src/001.rs"]);
        (off, recorded) = (without.next, record.next);
    }
    assert!(off.is_empty());
    assert!(recorded.is_fixed());
    // The list can be used from here on: the model has what was recorded.
    let on = tree.call(&recorded, &["src"], 40);
    assert_eq!(on.with(Outcome::Unchanged), ["src/000.rs", "src/001.rs"]);
    assert_eq!(on.plan.tokens.sent, 0);
}

#[test]
fn migration_phase_2_implement_deduplication() {
    let mut tree = Tree::of("src", [1_000; 100]);
    let (mut list, mut sent, mut all) = (none(), 0, 0);
    for turn in 0..20 {
        if turn > 0 {
            (0..5).for_each(|n| tree.edit(&format!("src/{:03}.rs", (turn * 5 + n) % 100)));
        }
        let call = tree.call(&list, &["src"], 150_000);
        sent += call.plan.tokens.sent;
        all += 100_000;
        list = call.next;
    }
    assert!(sent * 10 < all * 2, "{sent} of {all}");
}

#[test]
fn rollback_plan() {
    let mut tree = Tree::of("src", [10, 20, 90]);
    let kept = tree.call(&none(), &["src"], 40).next;
    let off = |tree: &Tree, list: &InlineList| {
        let mut request = tree.request(&["src"], 40);
        request.mode = Mode::Off;
        tree.plan(list, &request).unwrap()
    };
    let turn = off(&tree, &kept);
    assert_eq!(turn.with(Outcome::Inline), ["src/000.rs", "src/001.rs"], "everything is resent");
    assert_eq!(turn.next, kept, "the list stays harmless");
    // Sent while it was off, and back as it was: the model's last version is not the recorded one.
    let before = tree.clone();
    tree.edit("src/000.rs");
    let turn = off(&tree, &turn.next);
    let on = before.call(&turn.next, &["src"], 40);
    assert_eq!(on.with(Outcome::Changed), ["src/000.rs"]);
}

#[test]
fn scenario_1_typical_development_session() {
    // 50 files of 180,000 tokens, of which 40 take 120,000.
    let tokens = (0..50).map(|nth| if nth < 40 { 3_000 } else { 6_000 });
    let mut tree = Tree::of("src", tokens);
    let first = tree.call(&none(), &["src"], 120_000);
    assert_eq!((first.count(Outcome::Inline), first.count(Outcome::Overflow)), (40, 10));
    assert_eq!(first.plan.tokens.sent, 120_000);

    ["src/003.rs", "src/017.rs", "src/039.rs"].into_iter().for_each(|path| tree.edit(path));
    let second = tree.call(&first.next, &["src"], 120_000);
    assert_eq!(second.with(Outcome::Changed), ["src/003.rs", "src/017.rs", "src/039.rs"]);
    assert_eq!((second.count(Outcome::Unchanged), second.count(Outcome::Overflow)), (37, 10));
    assert_eq!((second.plan.tokens.sent, second.plan.tokens.saved), (9_000, 111_000));

    tree.add("tests", [500; 20]);
    let third = tree.call(&second.next, &["src", "tests"], 120_000);
    assert_eq!((third.count(Outcome::Unchanged), third.plan.tokens.sent), (40, 0));
    assert_eq!((third.count(Outcome::Overflow), third.count(Outcome::New)), (10, 20));
}

#[test]
fn scenario_2_context_window_fills() {
    let mut tree = Tree::of("src", [2_000; 20]);
    let mut list = none();
    let mut left = 60_000;
    let mut turns = 0;
    let error = loop {
        let mut request = tree.request(&["src"], 60_000);
        request.budget = Budget { session: 60_000, call: left };
        match tree.plan(&list, &request) {
            Ok(Turn { plan, next, .. }) => (list, left) = (next, left - plan.tokens.sent),
            Err(error) => break error,
        }
        turns += 1;
        (0..3).for_each(|n| tree.edit(&format!("src/{:03}.rs", (turns * 3 + n) % 20)));
    };
    assert_eq!(turns, 4, "40,000, then 6,000 each");
    assert_eq!(error.kind(), ErrorKind::BudgetTooSmall);
    assert!(error.to_string().contains("fresh session"), "{error}");
    assert_eq!(list.len(), 20, "the list is as the last call that succeeded left it");
    // The new session has a list and a window of its own.
    assert_eq!(tree.call(&none(), &["src"], 60_000).count(Outcome::Inline), 20);
}

#[test]
fn success_metrics() {
    let mut tree = Tree::of("src", (0..1_000).map(|nth| 40 + nth * 7 % 300));
    let (mut list, mut inline, mut overflow) = (none(), BTreeSet::new(), BTreeSet::new());
    for turn in 0..20 {
        let call = tree.call(&list, &["."], 100_000);
        for file in &call.plan.files {
            let (here, there) = match file.outcome {
                Outcome::Overflow | Outcome::New => (&mut overflow, &inline),
                Outcome::Skipped => panic!("{file:?}"),
                _ => (&mut inline, &overflow),
            };
            assert!(!there.contains(&file.path), "{} moved in turn {turn}", file.path);
            here.insert(file.path.clone());
        }
        list = call.next;
        assert!(list.encode().len() <= 100_000, "{} bytes", list.encode().len());
        // Edits, a rename, a file that is gone and comes back, and a new folder.
        (0..10).for_each(|n| tree.edit(&format!("src/{:03}.rs", (turn * 31 + n * 7) % 900)));
        tree.remove(&format!("src/{:03}.rs", 900 + turn));
        if turn > 4 {
            tree.write(&format!("src/{:03}.rs", 895 + turn), 60, "back");
        }
        tree.write(&format!("src/renamed_{turn}.rs"), 50, "renamed");
        if turn == 10 {
            tree.add("branch", [100; 50]);
        }
    }
    assert!(!overflow.is_empty() && inline.len() > 300);
}
