//! Metrics have one name: a dashboard shows none that is gone, and the document lists every one.

use std::collections::BTreeMap;

use crate::tidy::Finding;
use crate::tidy::scan::is_test_file;
use crate::tidy::tree::Tree;

/// What every metric's name begins with.
const PREFIX: &str = "throughline_";
/// Where metrics are told.
const SOURCES: [&str; 2] = ["engine/src/", "server/src/"];
/// Where they are shown.
const DASHBOARDS: &str = "deploy/grafana/";
/// Where they are explained.
const DOCUMENT: &str = "docs/OPERATIONS.md";
/// What Prometheus adds to the name of a histogram.
const SERIES: &[&str] = &["_bucket", "_count", "_sum"];

/// Checks dashboards and the document against the names in the server's source.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let told = told(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        if !path.starts_with(DASHBOARDS) && path != DOCUMENT {
            continue;
        }
        for (line, name) in names(text) {
            let series = SERIES.iter().find_map(|series| name.strip_suffix(series));
            if ![Some(name), series].into_iter().flatten().any(|name| told.contains_key(name)) {
                findings.push(Finding::new(
                    path,
                    line,
                    format!("no source file records the metric `{name}`"),
                ));
            }
        }
    }
    let listed: Vec<_> = names(tree.file(DOCUMENT).unwrap_or_default()).collect();
    for (name, (path, line)) in told {
        if !listed.iter().any(|(_, listed)| *listed == name) {
            let message = format!("the metric `{name}` is not in {DOCUMENT}");
            findings.push(Finding::new(path, line, message));
        }
    }
    findings
}

/// The names that the source tells: whole string literals, each with its first place.
fn told(tree: &Tree) -> BTreeMap<&str, (&str, usize)> {
    let mut told = BTreeMap::new();
    let of_product = |path: &str| SOURCES.iter().any(|dir| path.starts_with(dir));
    for (path, text) in tree.sources().filter(|(path, _)| of_product(path) && !is_test_file(path)) {
        for (line, name) in names(text) {
            if text.contains(&format!("\"{name}\"")) {
                told.entry(name).or_insert((path, line));
            }
        }
    }
    told
}

/// Every word that can be a metric's name, with its line: not a path within a crate, nor a prefix.
fn names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(index, line)| {
        line.match_indices(PREFIX).filter_map(move |(at, _)| {
            let rest = &line[at..];
            let end = rest.find(|char: char| !(char.is_ascii_lowercase() || char == '_'));
            let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
            (!name.ends_with('_') && !after.starts_with("::")).then_some((index + 1, name))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: (&str, &str) = (
        "server/src/a.rs",
        "use throughline_core::Scope;\nmetrics::histogram!(\"throughline_a_seconds\").record(1);\n",
    );
    const LISTED: (&str, &str) = ("docs/OPERATIONS.md", "| `throughline_a_seconds` | histogram |");

    fn found(dashboard: &str, document: (&str, &str)) -> Vec<String> {
        let shown = ("deploy/grafana/a.json", dashboard);
        check(&Tree::of(&[SOURCE, shown, document])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_dashboard_shows_what_is_told() {
        let fine = "rate(throughline_a_seconds_bucket[1m]) / throughline_a_seconds_count{a=\"b\"}";
        assert!(found(fine, LISTED).is_empty());
        let gone = found("\nthroughline_b_total", LISTED);
        assert_eq!(
            gone,
            ["deploy/grafana/a.json:2: no source file records the metric `throughline_b_total`"]
        );
        assert!(found("throughline_core::fact=debug", LISTED).is_empty(), "a crate is no metric");
    }

    #[test]
    fn the_document_lists_every_metric_and_no_other() {
        let none = found("", ("docs/OPERATIONS.md", ""));
        let missing = "the metric `throughline_a_seconds` is not in docs/OPERATIONS.md";
        assert_eq!(none, [format!("server/src/a.rs:2: {missing}")]);
        let more = "throughline_a_seconds\nthroughline_gone_total";
        assert_eq!(found("", ("docs/OPERATIONS.md", more)).len(), 1);
    }
}
