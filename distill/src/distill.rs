//! The steps in their order.

use throughline_core::{Error, Result};

use crate::algebra::{Columns, normalise};
use crate::bags::Bags;
use crate::measure::{Fidelity, cosine, fidelity};
use crate::{fit, rare, rotate, start, target};

/// What the table is made of.
#[derive(Debug, Clone)]
pub struct Teacher {
    /// The teacher's vector of each text.
    pub texts: Columns,
    /// And of each token by itself, in the order of the table's rows.
    pub tokens: Columns,
}

/// How it is made.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Of the table.
    pub dimensions: usize,
    /// How many of the first texts are not fitted, but measured with.
    pub held_out: usize,
    /// The fit.
    pub fit: fit::Options,
}

impl Default for Options {
    fn default() -> Self {
        Self { dimensions: 256, held_out: 4_000, fit: fit::Options::default() }
    }
}

/// The table, and what to measure it with.
#[derive(Debug, Clone)]
pub struct Distilled {
    /// One vector a token; the longest has length 1.
    pub table: Columns,
    /// Which texts were not fitted.
    pub held_out: Vec<usize>,
    targets: Columns,
    teacher: Columns,
}

impl Distilled {
    /// How near vectors of the texts that were held out come to the teacher's; one a column.
    #[must_use]
    pub fn fidelity(&self, vectors: &Columns) -> Fidelity {
        fidelity(vectors, &self.targets, &self.teacher)
    }

    /// The same of the table before it is rounded to bytes.
    #[must_use]
    pub fn exact_fidelity(&self, bags: &Bags) -> Fidelity {
        self.fidelity(&bags.sums(&self.held_out, &self.table))
    }
}

/// Makes a table from texts in random order. Texts without a known token are left out. `report`
/// gets a line for each step when it is done.
///
/// # Errors
/// `InvalidInput` for numbers that do not go together, and for fewer texts than are held out.
pub fn distill(
    bags: &Bags,
    teacher: &Teacher,
    options: Options,
    mut report: impl FnMut(&str),
) -> Result<Distilled> {
    if bags.len() != teacher.texts.ncols() || teacher.texts.nrows() != teacher.tokens.nrows() {
        return Err(Error::invalid("the vectors are not those of these texts"));
    }
    let known: Vec<usize> = (0..bags.len()).filter(|text| !bags.bag(*text).is_empty()).collect();
    let Some((held_out, texts)) = known.split_at_checked(options.held_out) else {
        return Err(Error::invalid(format!(
            "{} texts are too few: {} are held out",
            known.len(),
            options.held_out
        )));
    };
    if texts.is_empty() || held_out.is_empty() {
        return Err(Error::invalid("there must be texts to fit, and some to measure with"));
    }

    let targets = target::target(&teacher.texts, texts, options.dimensions)?;
    report("target: principal axes");
    let held_targets = targets.select_columns(held_out);
    let held_cosine = |table: &Columns| cosine(&bags.sums(held_out, table), &held_targets);

    let frequencies = bags.frequencies(texts, teacher.tokens.ncols());
    let mut table = start::start(bags, texts, &targets, &teacher.tokens, &frequencies)?;
    report(&format!("start: held-out cosine {:.4}", held_cosine(&table)));

    fit::fit(bags, texts, &targets, &mut table, options.fit, |epoch, fitted, table| {
        let held = held_cosine(table);
        report(&format!("epoch {epoch}: cosine {fitted:.4}, held-out {held:.4}"));
    });
    let fitted = table.clone();
    rare::pull(&mut table, &teacher.tokens, &frequencies)?;
    let (before, after) = (held_cosine(&fitted), held_cosine(&table));
    report(&format!("rare rows: held-out cosine {after:.4}"));
    if after < before {
        // Too few rows are frequent to teach the map.
        table = fitted;
        report("rare rows: left as they were, for want of texts");
    }

    let rotation = rotate::itq(bags, texts, &table, options.fit.seed)?;
    let mut table = &rotation * table;
    let longest = table.column_iter().map(|row| row.norm()).fold(0.0, f32::max);
    table /= longest;
    report("rotation");
    let mut teacher = teacher.texts.select_columns(held_out);
    normalise(&mut teacher);
    Ok(Distilled { table, held_out: held_out.to_vec(), targets: rotation * held_targets, teacher })
}
