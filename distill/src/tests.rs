//! The whole way on texts and a teacher that are made up.

use crate::algebra::{Columns, normal, normalise};
use crate::bags::Bags;
use crate::{Options, Teacher, distill, fit};

const TOKENS: u32 = 300;
const TEXTS: usize = 3_000;
const DIMENSIONS: usize = 24;

/// A teacher whose tokens mean something else in a text than alone, some of them nothing.
fn teacher() -> (Bags, Teacher) {
    let mut random = fastrand::Rng::with_seed(11);
    let mut noise =
        |columns| Columns::from_fn(DIMENSIONS, columns, |_, _| normal(&mut random) as f32);
    let mut tokens = noise(TOKENS as usize);
    normalise(&mut tokens);
    let mut meanings = noise(TOKENS as usize);
    normalise(&mut meanings);
    meanings = &tokens + meanings * 0.7;
    for mut nothing in meanings.columns_range_mut(..30).column_iter_mut() {
        nothing /= 20.0;
    }
    let mut random = fastrand::Rng::with_seed(12);
    let mut bags = Bags::default();
    for _ in 0..TEXTS {
        let length = random.usize(3..9);
        bags.push((0..length).map(|_| random.u32(..TOKENS)).collect());
    }
    // One that is empty, and tokens that never occur: both must do no harm.
    bags.push(Vec::new());
    let all: Vec<usize> = (0..bags.len()).collect();
    let mut texts = bags.sums(&all, &meanings);
    normalise(&mut texts);
    let tokens = tokens.resize_horizontally(TOKENS as usize + 2, 0.1);
    (bags, Teacher { texts, tokens })
}

fn options() -> Options {
    let fit = fit::Options { epochs: 5, batch: 64, ..fit::Options::default() };
    Options { dimensions: 16, held_out: 300, fit }
}

#[test]
fn the_fit_comes_nearer_to_the_teacher() {
    let (bags, teacher) = teacher();
    let mut held = Vec::new();
    let distilled =
        distill(&bags, &teacher, options(), |line| {
            held.extend(line.split_once("held-out").and_then(|(_, rest)| {
                rest.trim_start_matches(" cosine").trim().parse::<f64>().ok()
            }));
        });
    let distilled = distilled.unwrap();
    let (start, end) = (held[0], distilled.exact_fidelity(&bags));
    println!("held-out cosines {held:?}, {end:?}");
    assert!(end.cosine > start + 0.03, "{held:?}");
    assert!(end.correlation > 0.8, "{end:?}");
    let lengths = distilled.table.column_iter().map(|row| row.norm());
    assert!((lengths.fold(0.0, f32::max) - 1.0).abs() < 1e-5);
    assert_eq!(distilled.table.shape(), (16, TOKENS as usize + 2));
}

#[test]
fn equal_inputs_give_equal_tables() {
    let (bags, teacher) = teacher();
    let table = |seed| {
        let mut options = options();
        options.fit.seed = seed;
        distill(&bags, &teacher, options, |_| {}).unwrap().table
    };
    assert_eq!(table(1), table(1));
    assert_ne!(table(1), table(2));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let (bags, teacher) = teacher();
    let refused = |options| distill(&bags, &teacher, options, |_| {}).is_err();
    assert!(refused(Options { held_out: TEXTS + 1, ..options() }));
    assert!(refused(Options { held_out: TEXTS, ..options() }));
    assert!(refused(Options { held_out: 0, ..options() }));
    assert!(refused(Options { dimensions: DIMENSIONS + 1, ..options() }));
    let mut fewer = teacher.clone();
    fewer.texts = fewer.texts.remove_column(0);
    assert!(distill(&bags, &fewer, options(), |_| {}).is_err());
}
