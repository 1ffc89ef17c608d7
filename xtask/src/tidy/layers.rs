//! The order of a crate's modules: each uses only those below it, so that there is no circle between them.

use crate::tidy::Finding;
use crate::tidy::scan::{is_test_file, lines, test_blocks};
use crate::tidy::tree::Tree;

/// The modules of one crate, from the lowest to the highest.
struct Order {
    /// The folder of the crate's root module, ending with `/`.
    root: &'static str,
    layers: &'static [Layer],
}

/// Modules of one kind. A module uses those of lower layers, and those listed before it in its own.
struct Layer {
    name: &'static str,
    /// Paths from the root: `fact`, or `services/facts` where the modules of a folder have an order, too.
    modules: &'static [&'static str],
}

const ORDERS: &[Order] = &[CORE, ENGINE, SERVER];

const ENGINE: Order = Order {
    root: "engine/src/",
    layers: &[
        Layer { name: "configuration", modules: &["config"] },
        Layer {
            name: "engine",
            modules: &[
                "adapters", "telemetry", "compose", "admission", "identity", "metering", "parts",
                "json_limits", "backups", "worker",
            ],
        },
        Layer { name: "application", modules: &["app"] },
        Layer { name: "files and terminal", modules: &["import", "export", "terminal"] },
    ],
};

const SERVER: Order = Order {
    root: "server/src/",
    layers: &[
        Layer { name: "forms", modules: &["wire"] },
        Layer { name: "interfaces", modules: &["mcp", "http", "cli"] },
    ],
};

const CORE: Order = Order {
    root: "core/src/",
    layers: &[
        Layer {
            name: "foundation",
            modules: &["error", "time", "page", "ids", "index", "tokens", "text", "secret"],
        },
        Layer {
            name: "values",
            modules: &[
                "scope", "access", "job", "usage", "entity", "fact", "session", "summary",
                "document", "turn", "settings", "chat", "persona", "files",
            ],
        },
        Layer { name: "ports", modules: &["ports"] },
        Layer { name: "policy", modules: &["context", "append", "erase"] },
        Layer {
            name: "services",
            modules: &[
                "services/pause", "services/archive", "services/removals", "services/repeats",
                "services/access", "services/file_stores", "services/profiles",
                "services/settings", "services/shares", "services/embeddings", "services/facts",
                "services/model_jobs", "services/contexts", "services/sessions",
                "services/documents", "services/erasure", "services/personas",
            ],
        },
    ],
};

/// Checks every crate that has an order. Code under `#[cfg(test)]` may use any module.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    ORDERS.iter().flat_map(|order| order.check(tree)).collect()
}

/// The position of a module.
#[derive(Clone, Copy)]
struct Place {
    layer: &'static str,
    module: &'static str,
    /// Counted from the lowest module.
    height: usize,
}

impl Order {
    fn check(&self, tree: &Tree) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (path, text) in tree.sources().filter(|(path, _)| !is_test_file(path)) {
            let Some(file) = path.strip_prefix(self.root) else { continue };
            let module = module_of(file);
            if self.is_above_modules(&module) {
                continue;
            }
            let Some(own) = self.place(&module) else {
                let message = "is in no layer: add its module to xtask/src/tidy/layers.rs";
                findings.push(Finding::new(path, 1, message));
                continue;
            };
            for (line, used) in used_paths(text, &module) {
                if let Some(used) = self.place(&used).filter(|used| used.height > own.height) {
                    let message = format!(
                        "`{}` ({}) uses `{}` ({}), which is in a higher layer: move the shared \
                         code down, or the code that uses it up",
                        own.module, own.layer, used.module, used.layer
                    );
                    findings.push(Finding::new(path, line, message));
                }
            }
        }
        findings
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        let all = self
            .layers
            .iter()
            .flat_map(|layer| layer.modules.iter().map(|module| (layer.name, *module)));
        all.enumerate().map(|(height, (layer, module))| Place { layer, module, height })
    }

    /// The place of the innermost listed module that a path is in.
    fn place(&self, path: &[String]) -> Option<Place> {
        self.places()
            .filter(|place| {
                segments(place.module).zip(path).filter(|(a, b)| a == b).count()
                    == segments(place.module).count()
            })
            .max_by_key(|place| place.module.len())
    }

    /// Whether a module only holds modules that have places of their own, as the root does.
    fn is_above_modules(&self, path: &[String]) -> bool {
        self.places().any(|place| {
            let listed: Vec<_> = segments(place.module).collect();
            listed.len() > path.len() && listed.iter().zip(path).all(|(a, b)| a == b)
        })
    }
}

fn segments(module: &'static str) -> impl Iterator<Item = &'static str> {
    module.split('/')
}

/// The path of the module that a file is.
fn module_of(file: &str) -> Vec<String> {
    let module = file.strip_suffix(".rs").unwrap_or(file);
    let mut path: Vec<String> = module.split('/').map(str::to_owned).collect();
    let is_root = path.len() == 1 && ["lib", "main"].contains(&module);
    if is_root || path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    path
}

/// The paths from the crate's root that production code names, each with its line.
fn used_paths(source: &str, module: &[String]) -> Vec<(usize, Vec<String>)> {
    let mut lines = lines(source);
    for block in test_blocks(&lines) {
        lines[block.start..block.end].iter_mut().for_each(|line| line.code.clear());
    }
    let tokens = tokens(lines.iter().map(|line| line.code.as_str()));
    let mut paths = Paths { tokens: &tokens, at: 0, found: Vec::new() };
    while let Some((_, token)) = paths.token() {
        let begins = ["crate", "super"].contains(&token);
        let within = paths.at > 0 && paths.tokens[paths.at - 1].1 == "::";
        if begins && !within && paths.follows("::") {
            paths.tree(&mut module.to_vec());
        } else {
            paths.at += 1;
        }
    }
    paths.found
}

/// Words and signs, each with its line; `::` is one sign.
fn tokens<'s>(lines: impl Iterator<Item = &'s str>) -> Vec<(usize, &'s str)> {
    let mut tokens = Vec::new();
    for (line, mut rest) in lines.enumerate() {
        while let Some(first) = rest.chars().next() {
            let word = |char: char| char.is_alphanumeric() || char == '_';
            let end = match first {
                _ if word(first) => rest.find(|char| !word(char)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                _ => first.len_utf8(),
            };
            let (token, after) = rest.split_at(end);
            if !token.trim().is_empty() {
                tokens.push((line + 1, token));
            }
            rest = after;
        }
    }
    tokens
}

/// Reads paths and trees of them, as in `use crate::{error::Error, fact::{Fact, FactKind}}`.
struct Paths<'t> {
    tokens: &'t [(usize, &'t str)],
    at: usize,
    found: Vec<(usize, Vec<String>)>,
}

impl<'t> Paths<'t> {
    fn token(&self) -> Option<(usize, &'t str)> {
        self.tokens.get(self.at).copied()
    }

    fn follows(&self, sign: &str) -> bool {
        self.tokens.get(self.at + 1).is_some_and(|(_, token)| *token == sign)
    }

    /// Reads one path or tree below `base`, and ends after it.
    fn tree(&mut self, base: &mut Vec<String>) {
        while let Some((line, token)) = self.token() {
            match token {
                "crate" => base.clear(),
                "super" => drop(base.pop()),
                "self" => {}
                "{" => return self.branches(base),
                word => base.push(word.to_owned()),
            }
            if !self.follows("::") {
                self.found.push((line, base.clone()));
                self.at += 1;
                return;
            }
            self.at += 2;
        }
    }

    /// Reads what is between braces.
    fn branches(&mut self, base: &[String]) {
        self.at += 1;
        while let Some((_, token)) = self.token() {
            match token {
                "}" => {
                    self.at += 1;
                    return;
                }
                "," => self.at += 1,
                // A name of its own: `Error as CoreError`.
                "as" => self.at += 2,
                _ => self.tree(&mut base.to_vec()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn modules_use_what_is_below_them() {
        let fine = [
            (
                "core/src/fact/mod.rs",
                "use crate::text::{clip, fold_spaces};\nuse super::ids::Id;\n",
            ),
            ("core/src/session/cuts.rs", "use crate::{fact::Fact, error::{Error, Result}};\n"),
            ("core/src/services/facts.rs", "use super::embeddings::Placement;\n"),
            ("core/src/services/mod.rs", "pub mod personas;\npub use self::personas::Hit;\n"),
            ("core/src/lib.rs", "pub use crate::services::facts::FactService;\n"),
            ("core/src/error.rs", "// crate::ports::Store\nconst A: &str = \"crate::ports\";\n"),
            ("core/src/error.rs", "pub(crate) fn ports() { self::ports() }\nuse crate::Error;\n"),
            ("core/src/text/words.rs", "#[cfg(test)]\nmod tests {\n    use crate::ports::A;\n}\n"),
            ("core/src/text/tests.rs", "use crate::ports::Store;\n"),
            ("core/tests/a.rs", "use crate::ports::Store;\n"),
        ];
        for (path, text) in fine {
            assert_eq!(found(path, text), Vec::<String>::new(), "{path}: {text}");
        }
    }

    #[test]
    fn an_arrow_upwards_is_found_where_it_is_written() {
        let table = [
            ("core/src/fact/mod.rs", "//! A.\nuse crate::ports::Store;\n", 2, "`fact` (values)"),
            (
                "core/src/fact/forms/own.rs",
                "use super::super::super::session::A;\n",
                1,
                "`session`",
            ),
            (
                "core/src/fact/mod.rs",
                "use super::{error::Error,\n    ports::Store};\n",
                2,
                "`ports`",
            ),
            (
                "core/src/ports/mod.rs",
                "use crate::{\n  error::A,\n  context::{B, C as D},\n};",
                3,
                "D",
            ),
            ("core/src/ports/a.rs", "fn a() -> crate::services::facts::Fact {}\n", 1, "`services/"),
            ("core/src/services/facts.rs", "use super::personas::Hit;\n", 1, "`services/personas`"),
            ("core/src/error.rs", "use super::ids;\n", 1, "`ids` (foundation)"),
        ];
        for (path, text, line, part) in table {
            let found = found(path, text);
            assert!(!found.is_empty(), "{path}: {text}");
            assert!(found[0].starts_with(&format!("{path}:{line}: `")), "{found:?}");
            assert!(part == "D" || found[0].contains(part), "{found:?}");
        }
    }

    #[test]
    fn every_module_stands_somewhere() {
        for path in ["core/src/new.rs", "core/src/new/mod.rs", "core/src/services/new.rs"] {
            assert_eq!(found(path, "//! New.\n").len(), 1, "{path}");
        }
    }
}
