//! Documents say what the code says.

use std::collections::HashSet;

use clap::CommandFactory;

use super::{SourceFile, TidyFinding, Tree, source};
use crate::Args;

/// The types whose words people read, where each is declared, and the page that explains them.
const WORDS: &[(&str, &str)] = &[
    ("StateTag", "crates/hapax-core/src/record.rs"),
    ("Doubt", "crates/hapax-core/src/record.rs"),
    ("ResultPolicy", "crates/hapax-tower/src/server/execution/status_meaning.rs"),
    ("Recovery", "crates/hapax-core/src/policy.rs"),
];
const STATES_PAGE: &str = "docs/states.md";
const ERRORS: &str = "docs/errors/";
const ERRORS_LIST: &str = "docs/errors/README.md";
const CLI: &str = "crates/hapax-cli/src/";
const SETTINGS: &str = "crates/hapax-gateway/src/config/names.rs";

/// Every word of the machine is explained.
pub fn check_states(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let page = tree.get(STATES_PAGE).map_or("", |page| page.text.as_str());
    for (name, path) in WORDS {
        let words = tree.get(path).map(|file| words_of(file, name)).unwrap_or_default();
        if words.is_empty() {
            let what = format!("no words of `{name}` found here; tell `tidy` where they moved");
            findings.push(TidyFinding::new(path, 1, what));
        }
        for word in words {
            if !page.contains(&format!("`{word}`")) {
                let what = format!("`{word}` of `{name}` is missing; explain it");
                findings.push(TidyFinding::new(STATES_PAGE, 1, what));
            }
        }
    }
    findings
}

/// Every error code has a page and every page a code.
///
/// A code is a kebab-case string that a function named `code` returns. The list names each code as
/// a link to its page.
pub fn check_errors(tree: &Tree) -> Vec<TidyFinding> {
    let list = tree.get(ERRORS_LIST).map_or("", |list| list.text.as_str());
    let is_listed = |code: &str| list.contains(&format!("]({code}.md)"));
    let pages: Vec<_> = tree
        .ending(".md")
        .filter_map(|file| file.path.strip_prefix(ERRORS)?.strip_suffix(".md"))
        .filter(|code| *code != "README")
        .collect();
    let codes: Vec<_> = tree.ending(".rs").flat_map(codes_of).collect();
    let mut findings = Vec::new();
    for (path, line, code) in &codes {
        if !pages.contains(code) {
            let what = format!("the code `{code}` has no page; write {ERRORS}{code}.md");
            findings.push(TidyFinding::new(path, *line, what));
        }
    }
    for page in pages {
        let path = format!("{ERRORS}{page}.md");
        if !codes.iter().any(|(_, _, code)| *code == page) {
            let what = format!("no code is called `{page}`; delete the page or name the code");
            findings.push(TidyFinding::new(&path, 1, what));
        }
        if !is_listed(page) {
            let what = format!("not listed; link to it in {ERRORS_LIST}");
            findings.push(TidyFinding::new(&path, 1, what));
        }
    }
    findings
}

/// What changes for users has a place to be written down.
pub fn check_changelog(tree: &Tree) -> Vec<TidyFinding> {
    const PAGE: &str = "CHANGELOG.md";
    let has_section = tree
        .get(PAGE)
        .is_some_and(|page| page.text.lines().any(|line| line.starts_with("## [Unreleased]")));
    if has_section {
        return Vec::new();
    }
    vec![TidyFinding::new(PAGE, 1, "no `## [Unreleased]` section; add it")]
}

/// The commands that the front page tells people to type exist.
pub fn check_commands(tree: &Tree) -> Vec<TidyFinding> {
    const PAGE: &str = "README.md";
    let Some(page) = tree.get(PAGE) else {
        return vec![TidyFinding::new(PAGE, 1, "there is no front page; write it")];
    };
    let mut findings = Vec::new();
    for (at, line) in page.text.lines().enumerate() {
        let mut find = |what: String| findings.push(TidyFinding::new(PAGE, at + 1, what));
        for task in words_after(line, "cargo xtask ") {
            if Args::command().find_subcommand(task).is_none() {
                find(format!("`cargo xtask {task}` does not exist"));
            }
        }
        for command in words_after(line, "hapax ").filter(|_| line.starts_with("hapax ")) {
            if !tree.files.iter().any(|file| declares_command(file, command)) {
                find(format!("`hapax {command}` does not exist"));
            }
        }
        for package in words_after(line, "cargo run -p ").chain(words_after(line, "cargo add ")) {
            if !tree.contains(&format!("crates/{package}")) {
                find(format!("there is no crate `{package}`"));
            }
        }
    }
    findings
}

/// A test that a document names as its witness exists. A setting may have as long a name.
pub fn check_tests(tree: &Tree) -> Vec<TidyFinding> {
    let functions: HashSet<_> = tree
        .ending(".rs")
        .flat_map(|file| source::functions(&file.text))
        .map(|function| function.name)
        .collect();
    let settings = tree.get(SETTINGS).map_or("", |file| file.text.as_str());
    let is_setting = |name: &str| settings.contains(&format!("\"{name}\""));
    let mut findings = Vec::new();
    for page in tree.ending(".md") {
        for (at, line) in page.text.lines().enumerate() {
            for name in line.split('`').skip(1).step_by(2).filter(|word| is_sentence(word)) {
                if !functions.contains(name) && !is_setting(name) {
                    let what = format!("there is no test `{name}`; name one that exists");
                    findings.push(TidyFinding::new(&page.path, at + 1, what));
                }
            }
        }
    }
    findings
}

/// A source file that a document names, by its whole path or the end of it, exists.
///
/// `{one,other}.rs` names several; `NAME` stands for whatever the reader chooses.
pub fn check_files(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for page in tree.ending(".md") {
        for (at, line) in page.text.lines().enumerate() {
            let spans = line.split('`').skip(1).step_by(2).filter(|span| is_source_file(span));
            for name in spans.flat_map(alternatives) {
                let end = format!("/{name}");
                if !tree.files.iter().any(|file| file.path == name || file.path.ends_with(&end)) {
                    let what = format!("there is no file `{name}`; name one that exists");
                    findings.push(TidyFinding::new(&page.path, at + 1, what));
                }
            }
        }
    }
    findings
}

fn is_source_file(span: &str) -> bool {
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./{},".contains(&byte);
    span.ends_with(".rs") && span.bytes().all(is_path) && !span.contains("NAME")
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn alternatives(span: &str) -> Vec<String> {
    let parts = span.split_once('{').and_then(|(start, rest)| Some((start, rest.split_once('}')?)));
    let Some((start, (between, end))) = parts else { return vec![span.to_owned()] };
    between.split(',').map(|part| format!("{start}{part}{end}")).collect()
}

/// The strings of `as_str` in the `impl` of this type.
fn words_of<'a>(file: &'a SourceFile, name: &str) -> Vec<&'a str> {
    let header = format!("impl {name} {{");
    let Some(start) = file.text.find(&header) else { return Vec::new() };
    let functions = source::functions(&file.text[start..]);
    let as_str = functions.iter().find(|function| function.name == "as_str");
    as_str
        .map(|found| found.body.iter().copied().flat_map(source::strings).collect())
        .unwrap_or_default()
}

fn codes_of(file: &SourceFile) -> Vec<(&str, usize, &str)> {
    let functions = source::functions(&file.text).into_iter().filter(|found| found.name == "code");
    let codes = functions.flat_map(|function| {
        function.body.into_iter().enumerate().flat_map(move |(at, text)| {
            source::strings(text).map(move |code| (function.line + at + 1, code))
        })
    });
    codes
        .filter(|(_, code)| is_kebab_case(code))
        .map(|(line, code)| (file.path.as_str(), line, code))
        .collect()
}

fn is_kebab_case(code: &str) -> bool {
    !code.is_empty()
        && code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Whether a word is a test's name: at least four words, joined by underscores. What starts with
/// the product's own name is a metric; a test of the gateway compares those with the program.
fn is_sentence(word: &str) -> bool {
    if word.starts_with("hapax_") {
        return false;
    }
    let is_word = |part: &str| part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    word.split('_').count() >= 4 && word.split('_').all(|part| !part.is_empty() && is_word(part))
}

fn words_after<'a>(line: &'a str, phrase: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(phrase).filter_map(move |(at, _)| {
        let rest = &line[at + phrase.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
        Some(&rest[..end]).filter(|word| !word.is_empty())
    })
}

/// Whether a file of the program has a variant named like the command.
fn declares_command(file: &SourceFile, command: &str) -> bool {
    let mut variant = String::new();
    for word in command.split('-') {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        variant.push_str(&first.to_uppercase());
        variant.push_str(rest);
    }
    let declares = |line: &str| {
        line.trim().strip_prefix(&variant).is_some_and(|rest| rest.starts_with([',', '(', ' ']))
    };
    file.path.starts_with(CLI) && file.text.lines().any(declares)
}
