//! What people read of an error.

use std::{error::Error, fmt};

use hapax_core::OneLine;

#[derive(Debug)]
struct Failure(&'static str, Option<Box<dyn Error>>);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1.as_deref()
    }
}

/// The first of these, caused by the second, and so on.
fn failure(words: &[&'static str]) -> Failure {
    let cause = |rest: &[&'static str]| (!rest.is_empty()).then(|| failure(rest).into());
    Failure(words[0], cause(&words[1..]))
}

#[test]
fn an_error_is_told_with_its_causes_each_once() {
    for (words, line) in [
        (&["it failed"][..], "it failed"),
        (&["it failed", "no answer", "reset"], "it failed: no answer: reset"),
        (&["it failed: no answer", "no answer", "reset"], "it failed: no answer: reset"),
        (&["it failed", "no answer: reset", "reset"], "it failed: no answer: reset"),
    ] {
        assert_eq!(OneLine::of(&failure(words)).to_string(), line);
    }
}

#[test]
fn what_is_behind_a_skipped_cause_is_still_told() {
    let is_number = |cause: &(dyn Error + 'static)| cause.to_string().parse::<u32>().is_ok();
    let error = failure(&["it failed", "14", "no such file"]);
    assert_eq!(OneLine::of(&error).skipping(is_number).to_string(), "it failed: no such file");
}
