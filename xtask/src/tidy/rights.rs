//! What of a migration can be seen to be safe without a server. What its catalogue says about functions that
//! run with the rights of their owner is a test of `hapax-postgres`: `tests/it/functions/catalogue.rs`.

use super::{TidyFinding, Tree};

const MIGRATIONS: &str = "crates/hapax-postgres/migrations/";
const PATH: &str = "SET search_path = pg_catalog, pg_temp";
/// What a function without one says on its line; that catalogue test holds it to that.
const QUALIFIED: &str = "-- every name is qualified";

/// A path that does not name `pg_temp` is searched after it, and a function with the rights of its owner
/// has a path of its own, or needs none.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.ending(".sql").filter(|file| file.path.starts_with(MIGRATIONS)) {
        for (number, line) in (1..).zip(file.text.lines()) {
            let code = line.split("--").next().unwrap_or_default();
            let is_kept = code.contains(PATH) || line.ends_with(QUALIFIED);
            if code.contains("SECURITY DEFINER") && !is_kept {
                let what =
                    format!("SECURITY DEFINER without `{PATH}` or `{QUALIFIED}` on its line");
                findings.push(TidyFinding::new(&file.path, number, what));
            } else if code.contains("SET search_path") && !code.contains(PATH) {
                let what = format!("this path can be led astray; write `{PATH}`");
                findings.push(TidyFinding::new(&file.path, number, what));
            }
        }
    }
    findings
}
