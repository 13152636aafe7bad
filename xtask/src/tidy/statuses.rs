//! The core names no HTTP: whoever speaks it says what an answer means.

use super::{TidyFinding, Tree};

const CORE: &str = "crates/hapax-core/src/";
const NAMES: &[&str] = &["http", "retry-after", "statuscode", "status_code"];

/// Numbers of the core that are statuses of HTTP by chance: in which file, and what they are.
const BY_CHANCE: &[(&str, u16, &str)] = &[
    ("limits.rs", 400, "days"),
    ("outcome.rs", 504, "what is stored for an operation that nobody came for"),
    ("retry/budget.rs", 500, "tokens"),
    ("time.rs", 400, "years after which the calendar repeats"),
];

/// Statuses and names of HTTP in the core.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.ending(".rs") {
        let Some(name) = file.path.strip_prefix(CORE) else { continue };
        let advice = "the core hears what an answer means; read it where HTTP is spoken";
        for (at, line) in file.text.lines().enumerate() {
            let mut find = |what: String| findings.push(TidyFinding::new(&file.path, at + 1, what));
            for number in numbers(line).filter(|number| is_status(*number)) {
                if !BY_CHANCE.iter().any(|known| (known.0, known.1) == (name, number)) {
                    find(format!("names the status {number}; {advice}"));
                }
            }
            let lower = line.to_ascii_lowercase();
            for word in NAMES.iter().filter(|word| lower.contains(**word)) {
                find(format!("says `{word}`; {advice}"));
            }
        }
    }
    findings
}

/// The numbers of a line that are no part of a name or of a longer number.
fn numbers(line: &str) -> impl Iterator<Item = u16> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter_map(|word| word.parse().ok())
}

/// Whether a final answer of HTTP has this status: those that are registered, and those that
/// proxies are known to make up.
fn is_status(number: u16) -> bool {
    matches!(
        number,
        200..=208 | 226 | 300..=308 | 400..=418 | 421..=431 | 451 | 499 | 500..=511 | 520..=527
    )
}
