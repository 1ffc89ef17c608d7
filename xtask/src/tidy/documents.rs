//! Documents name nothing that is gone: paths, links, crates and commands exist.
//!
//! A name with a placeholder (`<name>`, `*`, `{}`) is not checked, nor are older sections of the
//! changelog. Commands of `throughline` are read from the variants of the command line's enums. In
//! source, the documents under `docs` that a message or a comment names are checked.

use std::collections::BTreeSet;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::tidy::Finding;
use crate::tidy::markdown::{Kind, pieces};
use crate::tidy::scan::lines;
use crate::tidy::tree::Tree;

/// The command line of the product.
const PRODUCT_CLI: &str = "server/src/cli/mod.rs";

/// Checks every document.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let names = Names::of(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| is_document(path)) {
        let text = if path == "CHANGELOG.md" { newest_section(text) } else { text };
        for piece in pieces(text) {
            let mut gone = match piece.kind {
                Kind::Link => names.dead_link(path, &piece.text),
                Kind::Code => names.dead_name(&piece.text),
                Kind::Fenced => None,
            };
            if piece.kind != Kind::Link {
                gone = gone.or_else(|| names.dead_command(&piece.text));
            }
            if let Some(gone) = gone {
                findings.push(Finding::new(path, piece.line, gone));
            }
        }
    }
    // The names in this crate are examples.
    for (path, text) in tree.sources().filter(|(path, _)| !path.starts_with("xtask/")) {
        for (index, line) in text.lines().enumerate() {
            if let Some(document) = named_document(line).filter(|name| !tree.exists(name)) {
                let message = format!("`{document}` does not exist");
                findings.push(Finding::new(path, index + 1, message));
            }
        }
    }
    findings
}

/// The document that a message or a comment sends its reader to.
fn named_document(line: &str) -> Option<&str> {
    let from = &line[line.find("docs/")?..];
    let end = from.find(".md")? + ".md".len();
    let name = &from[..end];
    name.chars().all(|char| char.is_ascii_alphanumeric() || "_./-".contains(char)).then_some(name)
}

fn is_document(path: &str) -> bool {
    let known = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    known.contains(&path) || (path.starts_with("docs/") && path.ends_with(".md"))
}

/// Up to the second heading of a release.
fn newest_section(changelog: &str) -> &str {
    let mut releases = changelog.match_indices("\n## ").skip(1);
    releases.next().map_or(changelog, |(second, _)| &changelog[..second])
}

/// What exists and can be named.
struct Names<'a> {
    tree: &'a Tree,
    tops: BTreeSet<&'a str>,
    tasks: BTreeSet<String>,
    /// Empty when they could not be read.
    commands: BTreeSet<String>,
}

impl<'a> Names<'a> {
    fn of(tree: &'a Tree) -> Self {
        let tops = tree.files().filter_map(|(path, _)| Some(path.split_once('/')?.0)).collect();
        let cli = Cli::command();
        let mut tasks: BTreeSet<_> =
            cli.get_subcommands().map(|task| task.get_name().to_owned()).collect();
        tasks.insert("help".to_owned());
        let commands = tree.file(PRODUCT_CLI).map(subcommands).unwrap_or_default();
        Self { tree, tops, tasks, commands }
    }

    /// What is wrong with inline code that names a path or a crate.
    fn dead_name(&self, code: &str) -> Option<String> {
        let path = code.strip_prefix("./").unwrap_or(code);
        let path = without_line_number(path);
        if path.is_empty() || !path.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c))
        {
            return None;
        }
        if let Some((top, _)) = path.split_once('/') {
            let ours = self.tops.contains(top) || is_area(top);
            return (ours && !self.tree.exists(path)).then(|| format!("`{path}` does not exist"));
        }
        if path.starts_with("throughline-") && !path.contains(['.', '_']) {
            let known = self.tree.packages().iter().any(|package| package.name == path);
            return (!known).then(|| format!("`{path}` is not a crate of the workspace"));
        }
        let document = path
            .strip_suffix(".md")
            .is_some_and(|stem| stem.chars().all(|char| char.is_ascii_uppercase() || char == '_'));
        let missing = (document || path == "xtask") && !self.tree.exists(path);
        missing.then(|| format!("`{path}` does not exist"))
    }

    /// What is wrong with the target of a link in `document`.
    fn dead_link(&self, document: &str, target: &str) -> Option<String> {
        let target = target.trim_matches(['<', '>']);
        let path = target.split('#').next().unwrap_or("");
        if path.is_empty() || path.contains(':') {
            return None;
        }
        let mut parts: Vec<&str> = document.split('/').collect();
        parts.pop();
        if path.starts_with('/') {
            parts.clear();
        }
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() {
                        return Some(format!("the link `{path}` points outside the repository"));
                    }
                }
                part => parts.push(part),
            }
        }
        let resolved = parts.join("/");
        let dead = !resolved.is_empty() && !self.tree.exists(&resolved);
        dead.then(|| format!("the link `{path}` is broken: its target does not exist"))
    }

    /// What is wrong with a command.
    fn dead_command(&self, text: &str) -> Option<String> {
        let words: Vec<_> = text.split_whitespace().filter(|word| *word != "$").collect();
        for (at, pair) in words.windows(2).enumerate() {
            let Some(name) = command_name(pair[1]) else {
                continue;
            };
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            if pair[0] == "xtask" && before == Some(&"cargo") {
                if !self.tasks.contains(name) {
                    return Some(format!("`cargo xtask {name}` is not a command"));
                }
            } else if is_product(pair[0], at)
                && !self.commands.is_empty()
                && !self.commands.contains(name)
            {
                return Some(format!("`throughline {name}` is not a command"));
            }
        }
        None
    }
}

/// A directory that holds a crate or documents, whether it still exists or not.
fn is_area(top: &str) -> bool {
    matches!(top, "core" | "testkit" | "server" | "xtask" | "docs" | "deploy" | "e2e")
        || top.starts_with("store-")
        || top.starts_with("provider-")
}

/// The binary, at the start of a command line or by its path.
fn is_product(word: &str, position: usize) -> bool {
    // A setting may end with a folder of this name.
    let by_path = word.ends_with("/throughline") && !word.contains('=');
    (word == "throughline" && position == 0) || by_path
}

fn command_name(word: &str) -> Option<&str> {
    let word = word.trim_end_matches([',', ';', '.', ':', ')']);
    let fits = word.starts_with(|char: char| char.is_ascii_lowercase())
        && word.chars().all(|char| char.is_ascii_lowercase() || char == '-');
    fits.then_some(word)
}

/// `a/b.rs:12` without its number.
fn without_line_number(path: &str) -> &str {
    match path.rsplit_once(':') {
        Some((path, number)) if number.chars().all(|char| char.is_ascii_digit()) => path,
        _ => path,
    }
}

/// The subcommands that clap derives from a file: variants of its enums, in kebab case.
fn subcommands(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let (mut derived, mut inside, mut depth) = (false, false, 0_usize);
    let mut renamed = None;
    for (line, raw) in lines(source).iter().zip(source.lines()) {
        let code = line.code.trim();
        if !inside {
            derived |= code.starts_with("#[derive(") && code.contains("Subcommand");
            if derived && code.contains("enum ") {
                (derived, inside) = (false, true);
                found.insert("help".to_owned());
            }
        } else if depth == 1 && code.starts_with("#[command(") {
            renamed = raw.split_once("name = \"").and_then(|(_, rest)| rest.split('"').next());
        } else if depth == 1 && code.starts_with(|char: char| char.is_ascii_uppercase()) {
            let variant: String = code.chars().take_while(char::is_ascii_alphanumeric).collect();
            found.insert(renamed.take().map_or_else(|| kebab(&variant), str::to_owned));
        }
        if inside {
            for char in code.chars() {
                match char {
                    '{' | '(' => depth += 1,
                    '}' | ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            inside = depth > 0;
        }
    }
    found
}

fn kebab(variant: &str) -> String {
    let mut name = String::new();
    for char in variant.chars() {
        if char.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(char.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests;
