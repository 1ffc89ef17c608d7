//! What commands print: text for people, JSON for programs, progress while they wait.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use throughline_core::{Error, ErrorKind, Result};

/// Where results go.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether programs read the output.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Prints a result: as JSON, or as the text that `human` makes.
    pub fn result<T: Serialize>(self, value: &T, human: impl FnOnce() -> String) -> Result<()> {
        let text = if self.json {
            serde_json::to_string_pretty(value)
                .map_err(|error| Error::internal("a result has no JSON form").with_source(error))?
        } else {
            human()
        };
        print_line(&text)
    }

    /// Prints a text that is the same with and without `--json`.
    pub fn text(self, text: &str) -> Result<()> {
        print_line(text)
    }

    /// Prints one line while the command runs on: as JSON, or as the text that `human` makes.
    pub fn line<T: Serialize>(self, value: &T, human: impl FnOnce() -> String) -> Result<()> {
        let text = if self.json {
            serde_json::to_string(value)
                .map_err(|error| Error::internal("a result has no JSON form").with_source(error))?
        } else {
            human()
        };
        print_line(&text)
    }

    /// Prints a failure to standard error.
    pub fn error(self, error: &Error) {
        let mut stderr = std::io::stderr().lock();
        let code = error.kind().code();
        // Nothing can be done about a standard error that is gone.
        let _ = if self.json {
            writeln!(
                stderr,
                "{}",
                serde_json::json!({"error": {"code": code, "message": error.message()}})
            )
        } else {
            writeln!(stderr, "error: {}", error.message())
        };
        tracing::debug!(
            code,
            operation = error.operation(),
            source = error_chain(error),
            "command failed"
        );
    }

    /// Prints what people should know beside a result to standard error; not with `--json`, where the result says it.
    pub fn warning(self, text: &str) {
        if !self.json {
            // As with errors.
            let _ = writeln!(std::io::stderr().lock(), "warning: {text}");
        }
    }

    /// A progress bar on a terminal; nothing where no one watches.
    pub fn progress(self, total: u64, what: &str) -> ProgressBar {
        let target = if std::io::stderr().is_terminal() && !self.json {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::with_draw_target(Some(total), target)
            .with_style(style)
            .with_message(what.to_owned())
    }
}

/// A closed pipe (`| head`) is the reader's choice, not an error.
fn print_line(text: &str) -> Result<()> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let message = format!("standard output cannot be written: {error}");
            Err(Error::new(ErrorKind::Unavailable, message).with_source(error))
        }
        _ => Ok(()),
    }
}

fn error_chain(error: &Error) -> String {
    let mut chain = Vec::new();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        chain.push(cause.to_string());
        source = cause.source();
    }
    chain.join(": ")
}

/// A table with a heading and its numbers at the right.
pub fn table<T: Display>(heading: &[&str], rows: impl IntoIterator<Item = Vec<T>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(heading);
    for row in rows {
        table.add_row(row.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    for index in 1..heading.len() {
        let numeric = table.row_iter().all(|row| {
            row.cell_iter().nth(index).is_none_or(|cell| {
                cell.content().starts_with(|c: char| c.is_ascii_digit() || c == '-')
            })
        });
        if numeric && let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

/// `0.917` as `91.7 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// What is saved by `sent` tokens instead of `whole`; nothing where the whole history is short.
pub fn saved(sent: u64, whole: u64) -> String {
    match 1.0 - sent as f64 / whole.max(1) as f64 {
        share if share > 0.0 => percent(share),
        _ => "-".to_owned(),
    }
}

/// `12345` as `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 message`, `12,345 messages`.
pub fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let of = |number| counted(number, "message");
        assert_eq!([of(0), of(1), of(2_000)], ["0 messages", "1 message", "2,000 messages"]);
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
