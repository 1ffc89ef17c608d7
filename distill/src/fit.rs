//! The fit: moves the rows so that texts' sums point where the teacher's vectors do.
//!
//! tokenlearn showed that static vectors gain most when they are trained on the transformer's
//! vectors of texts. Its loss is the squared distance of means; here it is 1 - cosine of sums, so
//! that a row's length is its token's weight and nothing else needs to be learnt or stored.
//!
//! With h the sum of a text's rows, s = h / |h| and t its target, the gradient of 1 - s·t in each
//! occurrence of a row is ((s·t) s - t) / |h|. That is all the calculus there is, so that plain
//! loops do it. The steps are Adam's (Kingma & Ba 2015) but for three things: only rows that occur
//! in a batch move; the second moment is one number a row, which keeps a row's direction; moments
//! begin at zero uncorrected, so that the first steps of each row are long.

use crate::algebra::{Columns, add_scaled, dot};
use crate::bags::{Bags, column, column_mut};

/// How the fit goes.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How often each text is seen. More is no better: the cosine of texts that were held out has
    /// stopped rising.
    pub epochs: usize,
    /// Texts of a step.
    pub batch: usize,
    /// The first steps' length, in means of the table's absolute values; it falls to nearly nothing
    /// along half a cosine. Longer steps overfit.
    pub step: f64,
    /// Of the order of texts.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { epochs: 7, batch: 512, step: 0.03, seed: 0 }
    }
}

/// What is kept of the first moment, and of the second.
const MOMENTUM: f32 = 0.9;
const MEMORY: f32 = 0.99;
/// What is left of the step's length at the end.
const LAST: f64 = 1e-5;

/// Moves the table's columns, one a row of the bags. After each epoch `report` gets its number, the
/// mean cosine over the epoch and the table. Texts must not be empty bags.
pub fn fit(
    bags: &Bags,
    texts: &[usize],
    targets: &Columns,
    table: &mut Columns,
    options: Options,
    mut report: impl FnMut(usize, f64, &Columns),
) {
    let batch = options.batch.clamp(1, texts.len().max(1));
    let steps = options.epochs * (texts.len() / batch);
    let mean = table.iter().map(|value| f64::from(value.abs())).sum::<f64>() / table.len() as f64;
    let length = options.step * mean;
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut order = texts.to_vec();
    let mut moments = Moments::new(table);
    let mut gradient = Gradient::new(table);
    let mut done = 0_usize;
    for epoch in 1..=options.epochs {
        random.shuffle(&mut order);
        let mut cosines = 0.0;
        for batch in order.chunks_exact(batch) {
            cosines += gradient.of(bags, batch, targets, table);
            done += 1;
            let share = std::f64::consts::PI * done as f64 / steps as f64;
            let step = length * 0.5 * (1.0 + share.cos()) + LAST;
            moments.step(table, &gradient, step as f32);
        }
        let seen = (order.len() / batch * batch).max(1);
        report(epoch, cosines / seen as f64, table);
    }
}

/// The gradient of a batch, of the rows that occur in it.
#[derive(Debug)]
struct Gradient {
    /// The rows, in the order of their first occurrence.
    rows: Vec<u32>,
    /// The place of each row of the table among them, or [`ABSENT`].
    places: Vec<u32>,
    values: Vec<f32>,
    dimensions: usize,
}

const ABSENT: u32 = u32::MAX;

impl Gradient {
    fn new(table: &Columns) -> Self {
        let places = vec![ABSENT; table.ncols()];
        Self { rows: Vec::new(), places, values: Vec::new(), dimensions: table.nrows() }
    }

    /// Computes it anew, and returns the sum of the batch's cosines.
    fn of(&mut self, bags: &Bags, batch: &[usize], targets: &Columns, table: &Columns) -> f64 {
        for row in self.rows.drain(..) {
            self.places[row as usize] = ABSENT;
        }
        self.values.clear();
        let mut sum = vec![0.0; self.dimensions];
        let mut cosines = 0.0;
        for text in batch {
            bags.sum(*text, table, &mut sum);
            let target = column(targets, *text);
            let norm = dot(&sum, &sum).sqrt().max(1e-6);
            let cosine = dot(&sum, target) / norm;
            cosines += f64::from(cosine);
            // In place of the sum: the gradient of each occurrence.
            let scale = 1.0 / (norm * batch.len() as f32);
            for (value, target) in sum.iter_mut().zip(target) {
                *value = (cosine * *value / norm - target) * scale;
            }
            for (row, count) in bags.bag(*text) {
                add_scaled(self.row_mut(*row), *count, &sum);
            }
        }
        cosines
    }

    fn row_mut(&mut self, row: u32) -> &mut [f32] {
        let place = &mut self.places[row as usize];
        if *place == ABSENT {
            *place = self.rows.len() as u32;
            self.rows.push(row);
            self.values.resize(self.rows.len() * self.dimensions, 0.0);
        }
        let begin = *place as usize * self.dimensions;
        &mut self.values[begin..begin + self.dimensions]
    }
}

/// What Adam remembers.
#[derive(Debug)]
struct Moments {
    first: Columns,
    /// One a row: the mean of its values' squares.
    second: Vec<f32>,
}

impl Moments {
    fn new(table: &Columns) -> Self {
        let first = Columns::zeros(table.nrows(), table.ncols());
        Self { first, second: vec![0.0; table.ncols()] }
    }

    fn step(&mut self, table: &mut Columns, gradient: &Gradient, step: f32) {
        let gradients = gradient.values.chunks_exact(gradient.dimensions);
        for (row, gradient) in gradient.rows.iter().zip(gradients) {
            let row = *row as usize;
            let square = dot(gradient, gradient) / gradient.len() as f32;
            let second = &mut self.second[row];
            *second = MEMORY * *second + (1.0 - MEMORY) * square;
            let scale = step / (second.sqrt() + 1e-9);
            let first = column_mut(&mut self.first, row);
            for ((value, first), gradient) in
                column_mut(table, row).iter_mut().zip(first).zip(gradient)
            {
                *first = MOMENTUM * *first + (1.0 - MOMENTUM) * gradient;
                *value -= scale * *first;
            }
        }
    }
}
