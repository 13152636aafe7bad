//! One name, one meaning: a reader who has met a type knows it wherever its name stands.

use std::collections::BTreeMap;

use super::{TidyFinding, Tree};

/// Most names that may stand for several types; those that are [`BY_RULE`] are not counted.
const REUSED_MAX: usize = 30;

/// Names that every crate or driver may give to the one thing they stand for.
const BY_RULE: &[&str] =
    &["Database", "Inner", "OpenError", "Options", "Shared", "Store", "Transaction"];

/// Names that stand for several types, once there are too many of them.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut declared: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for file in tree.ending(".rs").filter(|file| is_ours(&file.path)) {
        for (at, line) in file.text.lines().enumerate() {
            if let Some(name) = declared_type(line).filter(|name| !BY_RULE.contains(name)) {
                declared.entry(name).or_default().push((&file.path, at + 1));
            }
        }
    }
    declared.retain(|_, places| places.len() > 1);
    let count = declared.len();
    if count <= REUSED_MAX {
        return Vec::new();
    }
    let finding = |(name, places): (&str, Vec<(&str, usize)>)| {
        let others = places.len() - 1;
        let advice = format!("{count} names stand for several types, {REUSED_MAX} is the most");
        places.last().map(|(path, line)| {
            let what = format!("`{name}` stands for {others} other types; {advice}: rename one");
            TidyFinding::new(path, *line, what)
        })
    };
    declared.into_iter().filter_map(finding).collect()
}

/// Words that say how something was done, not what it is: nobody would look for it there.
const NO_MODULES: &[&str] = &[
    "again",
    "alone",
    "ask",
    "beside",
    "compared",
    "dead",
    "described",
    "due",
    "ended",
    "failed",
    "gathered",
    "handled",
    "heard",
    "helpers",
    "journalled",
    "kept",
    "later",
    "live",
    "private",
    "published",
    "queued",
    "recorded",
    "said",
    "shown",
    "stored",
    "told",
    "tried",
    "utils",
    "whole",
];

/// Modules of what ships whose name is no noun.
pub fn check_modules(tree: &Tree) -> Vec<TidyFinding> {
    let modules = tree.ending(".rs").filter_map(|file| {
        let (_, module) = file.path.strip_prefix("crates/")?.split_once("/src/")?;
        let module = module.strip_suffix("/mod.rs").or_else(|| module.strip_suffix(".rs"))?;
        let name = module.rsplit('/').next()?;
        let what = format!("a module is a noun for what is inside, which `{name}` is not");
        NO_MODULES.contains(&name).then(|| TidyFinding::new(&file.path, 1, what))
    });
    modules.collect()
}

/// Whether it is source of what ships or of what tests it.
fn is_ours(path: &str) -> bool {
    let ours = path.starts_with("crates/") || path.starts_with("testing/");
    ours && path.contains("/src/") && !path.starts_with("testing/bench-peers/")
}

/// The type that a line declares.
fn declared_type(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let mut word = words.next()?;
    if word == "pub" || word.starts_with("pub(") {
        word = words.find(|word| !word.ends_with(')'))?;
    }
    if !["struct", "enum", "trait", "union"].contains(&word) {
        return None;
    }
    let name = words.next()?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}
