//! The difference between two snapshots.

use similar::TextDiff;

/// Lines around a change that are shown with it.
const AROUND: usize = 3;
/// Past as many lines between the first and the last that differ, finding the least difference could cost
/// the square of them: such texts have become others.
const MOST_LINES: usize = 6_000;

/// The difference of two texts, by lines, in the unified format; empty where they are equal. The same texts
/// give the same difference.
#[must_use]
pub fn unified_diff(from: (&str, &str), to: (&str, &str)) -> String {
    let ((from_name, old), (to_name, new)) = (from, to);
    if old == new {
        return String::new();
    }
    if differing_lines(old, new) > MOST_LINES {
        return replaced(from, to);
    }
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(AROUND)
        .header(from_name, to_name)
        .to_string()
}

/// Lines of both that are left when equal beginnings and ends are taken away.
fn differing_lines(old: &str, new: &str) -> usize {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    old.len() + new.len() - 2 * tail
}

/// All of one text in place of all of the other.
fn replaced((from_name, old): (&str, &str), (to_name, new): (&str, &str)) -> String {
    let (gone, come) = (old.lines().count(), new.lines().count());
    let mut diff = format!("--- {from_name}\n+++ {to_name}\n@@ -1,{gone} +1,{come} @@\n");
    for (mark, text) in [('-', old), ('+', new)] {
        for line in text.lines() {
            diff.push(mark);
            diff.push_str(line);
            diff.push('\n');
        }
        if !text.ends_with('\n') {
            diff.push_str("\\ No newline at end of file\n");
        }
    }
    diff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        unified_diff(("c1", old), ("c2", new))
    }

    #[test]
    fn differences_are_unified() {
        assert_eq!(diff("a\n", "a\n"), "");
        let changed =
            diff("# Facts\n- CEO = Alice\n- port 80\n", "# Facts\n- CEO = Bob\n- port 80\n");
        assert_eq!(
            changed,
            "--- c1\n+++ c2\n@@ -1,3 +1,3 @@\n # Facts\n-- CEO = Alice\n+- CEO = Bob\n - port 80\n"
        );
        assert!(diff("a\n", "a").contains("\\ No newline at end of file"));
    }

    #[test]
    fn large_rewrites_are_one_hunk() {
        let lines = |of: &str| (0..8_000).map(|n| format!("{of}{}\n", n % 7)).collect::<String>();
        let all = diff(&lines("a"), &lines("b"));
        assert!(all.starts_with("--- c1\n+++ c2\n@@ -1,8000 +1,8000 @@\n-a0\n"));
        assert_eq!(all.lines().count(), 3 + 16_000);
        // A long text with a short change is none of these.
        let long = lines("a");
        let short = diff(&long, &format!("{long}more\n"));
        assert!(short.ends_with("+more\n") && short.lines().count() < 9, "{short}");
    }
}
