//! Whoever opens the front door is shown what each of its types is for.

use super::{TidyFinding, Tree};

const FRONT_DOOR: &str = "crates/hapax/src/";
const EXPORTS: &str = "pub use self::";
const KINDS: [&str; 4] = ["struct", "enum", "trait", "type"];

/// Types that the front door exports by name from its own modules, and shows no example of.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let lib = format!("{FRONT_DOOR}lib.rs");
    let Some(file) = tree.get(&lib) else { return Vec::new() };
    let mut findings = Vec::new();
    for name in exported_types(&file.text) {
        match find(tree, name) {
            Some((path, line, true)) => {
                let what = format!("`{name}` is exported, and has no example that is compiled");
                findings.push(TidyFinding::new(path, line, what));
            }
            Some((_, _, false)) => {}
            None => {
                let what = format!("`{name}` is exported, and not declared under {FRONT_DOOR}");
                findings.push(TidyFinding::new(&lib, 1, what));
            }
        }
    }
    findings
}

/// The names of types in `pub use self::…;`: those of functions and modules begin in lower case.
fn exported_types(text: &str) -> impl Iterator<Item = &str> {
    let lists = text.split(EXPORTS).skip(1).filter_map(|rest| rest.split(';').next());
    let names = lists.flat_map(|list| list.split(|c: char| !c.is_alphanumeric() && c != '_'));
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// Where a type is declared, and whether it lacks an example.
fn find<'t>(tree: &'t Tree, name: &str) -> Option<(&'t str, usize, bool)> {
    for file in tree.ending(".rs").filter(|file| file.path.starts_with(FRONT_DOOR)) {
        let lines: Vec<_> = file.text.lines().collect();
        if let Some(at) = lines.iter().position(|line| declares(line, name)) {
            return Some((&file.path, at + 1, !has_example(&lines[..at])));
        }
    }
    None
}

fn declares(line: &str, name: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.next() == Some("pub")
        && words.next().is_some_and(|kind| KINDS.contains(&kind))
        && words.next() == Some(name)
}

/// Whether the comment right above a declaration has a block of code that is compiled.
fn has_example(above: &[&str]) -> bool {
    let start = above.iter().rposition(|line| line.is_empty()).map_or(0, |blank| blank + 1);
    let fences = above[start..].iter().filter_map(|line| line.strip_prefix("/// ```"));
    fences.step_by(2).any(|kind| matches!(kind, "" | "no_run"))
}
