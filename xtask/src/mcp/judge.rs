//! What the conformance suite found, held against what is expected to fail.
//!
//! The suite's own judgement leaves out the scenarios that a revision is not scored by, and here they count as well.

use std::path::Path;

use serde_json::Value;

use crate::Result;

/// Scenarios that are expected to fail, by the list of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expected(Vec<String>);

impl Expected {
    /// Reads the list: `- scenario # reason`, a line each, under the names of its parts.
    ///
    /// # Errors
    /// A line without a reason, and one of another form.
    pub(super) fn read(list: &str) -> Result<Self> {
        let mut all = Vec::new();
        for line in list.lines().map(str::trim) {
            let heading = line.trim_end_matches(" []").strip_suffix(':');
            if line.is_empty() || line.starts_with('#') || heading.is_some() {
                continue;
            }
            let entry = line.strip_prefix("- ").and_then(|entry| entry.split_once(" # "));
            match entry {
                Some((scenario, reason)) if !reason.trim().is_empty() => {
                    all.push(scenario.trim().to_owned());
                }
                _ => {
                    let form = "`- scenario # why it fails`";
                    return Err(format!("`{line}`: write it as {form}").into());
                }
            }
        }
        Ok(Self(all))
    }

    fn has(&self, scenario: &str) -> bool {
        self.0.iter().any(|expected| expected == scenario)
    }
}

/// A scenario that was run.
#[derive(Debug)]
pub(super) struct Ran {
    scenario: String,
    pub(super) checks: usize,
    /// What did not hold: what is only recommended, too.
    pub(super) failed: Vec<String>,
}

impl Ran {
    /// What the suite wrote, a folder a scenario.
    pub(super) fn all(results: &Path) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(results)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(scenario) = scenario_of(&name) else { continue };
            let text = std::fs::read_to_string(entry.path().join("checks.json"))?;
            all.push(Self::of(scenario, &serde_json::from_str(&text)?));
        }
        all.sort_by(|left, right| left.scenario.cmp(&right.scenario));
        Ok(all)
    }

    fn of(scenario: &str, checks: &Value) -> Self {
        let checks = checks.as_array().map_or(&[][..], Vec::as_slice);
        let failed = checks
            .iter()
            .filter(|check| matches!(check["status"].as_str(), Some("FAILURE" | "WARNING")));
        let told = |check: &Value| {
            let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", text("id"), text("errorMessage"))
        };
        Self {
            scenario: scenario.to_owned(),
            checks: checks.len(),
            failed: failed.map(told).collect(),
        }
    }
}

/// `server-<scenario>-<time>`, the time as in 2026-11-22T16-19-15-990Z.
fn scenario_of(folder: &str) -> Option<&str> {
    const TIME: usize = "-2026-11-22T16-19-15-990Z".len();
    let named = folder.strip_prefix("server-")?;
    named.is_char_boundary(named.len().checked_sub(TIME)?).then(|| &named[..named.len() - TIME])
}

/// What is not as expected.
pub(super) fn findings(expected: &Expected, ran: &[Ran]) -> Vec<String> {
    let judged = ran.iter().filter_map(|ran| {
        let (scenario, failed) = (&ran.scenario, ran.failed.join("; "));
        match (expected.has(scenario), ran.failed.is_empty()) {
            (false, false) => Some(format!("{scenario} fails: {failed}")),
            (true, true) => Some(format!("{scenario} passes: take it from expected-failures.yml")),
            (false, true) | (true, false) => None,
        }
    });
    judged.collect()
}

/// What is expected of scenarios that are in no revision.
pub(super) fn never_ran(expected: &Expected, ran: &[Ran]) -> Vec<String> {
    let none = |scenario: &&String| ran.iter().all(|ran| ran.scenario != **scenario);
    let told = |scenario| format!("{scenario} did not run: take it from expected-failures.yml");
    expected.0.iter().filter(none).map(told).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ran(scenario: &str, status: &str) -> Ran {
        Ran::of(scenario, &json!([{"id": "a", "status": "SUCCESS"}, {"id": "b", "status": status}]))
    }

    #[test]
    fn every_expectation_has_a_reason() {
        let read = |text| Expected::read(text).map(|expected| expected.0);
        let good = "# All\nserver: []\n\nunscored:\n  - one # It is not served.\n";
        assert_eq!(read(good).unwrap(), ["one"]);
        for bad in ["- one", "- one #", "- one # ", "one # reason", "- one: two"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(Expected::read(super::super::EXPECTED).is_ok());
    }

    #[test]
    fn what_fails_is_listed_and_what_is_listed_fails() {
        let expected = Expected(vec!["known".into(), "mended".into(), "gone".into()]);
        let all = [
            ran("fine", "SKIPPED"),
            ran("known", "FAILURE"),
            ran("mended", "INFO"),
            ran("new", "FAILURE"),
            ran("hint", "WARNING"),
        ];
        let found = findings(&expected, &all);
        let begin: Vec<_> = found.iter().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(begin, ["mended passes", "new fails", "hint fails"]);
        assert_eq!(never_ran(&expected, &all).len(), 1);
    }

    #[test]
    fn a_folder_tells_its_scenario() {
        let folder = "server-tools-call-error-2026-11-22T16-19-18-117Z";
        assert_eq!(scenario_of(folder), Some("tools-call-error"));
        assert_eq!(scenario_of("output.txt"), None);
        assert_eq!(scenario_of("server-x"), None);
    }
}
