//! A gateway's file, as a person in a hurry writes it.
#![no_main]
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what is not expected is what is looked for"
)]

use std::path::Path;

use hapax_gateway::{
    Config,
    config::{ConfigError, Fault, Overrides, describe},
};
use libfuzzer_sys::fuzz_target;

/// Nothing is beside it, so that files it names are not found.
const FILE: &str = "nowhere/gateway.toml";

fuzz_target!(|text: &str| {
    let read = read(text);
    if let Err(faults) = &read {
        assert!(!faults.is_empty(), "a refusal gives a reason");
        faults.iter().for_each(|fault| check(text, fault));
    }
    // A mark at the very start of a file is not text, and is one no longer after a comment.
    if !text.starts_with('\u{feff}') {
        match (read, self::read(&format!("# a comment\n{text}"))) {
            (Ok(before), Ok(after)) => assert_eq!(before, after),
            (Err(before), Err(after)) => check_moved(before, after),
            (before, after) => panic!("a comment changed {before:?} to {after:?}"),
        }
    }
});

/// What is in force, in words, or everything that is wrong.
fn read(text: &str) -> Result<String, Vec<Fault>> {
    match Config::parse(Path::new(FILE), text, &Overrides::default()) {
        Ok(config) => Ok(describe(&config)),
        Err(ConfigError::Refused { faults }) => Err(faults),
        Err(error) => panic!("text cannot be refused so: {error}"),
    }
}

/// A fault is where it says it is, and can be shown.
fn check(text: &str, fault: &Fault) {
    let (line, column) = place(fault);
    let written = text.split('\n').nth(line - 1).unwrap();
    assert!((1..=written.chars().count() + 1).contains(&column), "column {column} of {written:?}");
    assert!(!fault.what.is_empty() && fault.to_string().contains(&fault.what));
    let Some(excerpt) = &fault.excerpt else { return };
    assert_eq!((excerpt.line, excerpt.before + 1), (line, column));
    assert!(excerpt.text.chars().count() <= written.chars().count());
    assert!(!excerpt.text.contains(char::is_control), "a terminal would obey {:?}", excerpt.text);
}

/// The line and the column, counted from one.
fn place(fault: &Fault) -> (usize, usize) {
    let place = fault.place.strip_prefix(FILE).unwrap().strip_prefix(':').unwrap();
    let (line, column) = place.split_once(':').unwrap();
    (line.parse().unwrap(), column.parse().unwrap())
}

/// The same faults one line further down, but for those of the file as a whole.
fn check_moved(mut before: Vec<Fault>, mut after: Vec<Fault>) {
    for faults in [&mut before, &mut after] {
        faults.sort_by_cached_key(|fault| (said(fault), place(fault)));
    }
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(said(before), said(after));
        let (line, column) = place(before);
        let is_of_the_file = (line, column, place(after)) == (1, 1, (1, 1));
        assert!(place(after) == (line + 1, column) || is_of_the_file, "{before:?}, {after:?}");
    }
}

/// What is wrong, without the numbers of other lines in it.
fn said(fault: &Fault) -> String {
    let mut parts = fault.what.split("in line ");
    let start = parts.next().unwrap_or_default().to_owned();
    parts.fold(start, |said, part| said + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}
