//! Files and functions stay small enough to be read at one go.

use super::{TidyFinding, Tree, source};

const FILE_LINES_MAX: usize = 600;
const FILE_LINES_NOTED: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

/// What is too large. Tests count like everything else: a long test is two tests.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.ending(".rs") {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            let what = format!("{lines} lines; split it, {FILE_LINES_MAX} is the most");
            findings.push(TidyFinding::new(&file.path, 1, what));
        }
        for function in source::functions(&file.text) {
            let lines = function.lines_of_code();
            if lines > FUNCTION_LINES_MAX {
                let name = function.name;
                let what = format!("`{name}` has {lines} lines; {FUNCTION_LINES_MAX} is the most");
                findings.push(TidyFinding::new(&file.path, function.line, what));
            }
        }
    }
    findings
}

/// Files that are still allowed but worth another thought.
pub fn large_files(tree: &Tree) -> Vec<TidyFinding> {
    let noted = tree.ending(".rs").filter_map(|file| {
        let lines = file.text.lines().count();
        let noted = (FILE_LINES_NOTED + 1..=FILE_LINES_MAX).contains(&lines);
        noted.then(|| TidyFinding::new(&file.path, 1, format!("{lines} lines; think again")))
    });
    noted.collect()
}
