use xtask::tidy::statuses;

use crate::check;

#[test]
fn a_status_in_the_core_is_found_however_it_is_written() {
    for line in [
        "(401 | 403, _) => Evidence::NotDone,",
        "..400 => Settlement::Completed(outcome),",
        "520..=527 => unknown(),",
        "const ACCEPTED: u16 = 202;",
        "//! let outcome = Outcome::bare(503);",
    ] {
        let path = "crates/hapax-core/src/settle.rs";
        let found = statuses::check(&xtask::tidy::Tree::of(&[(path, line)]));
        assert!(!found.is_empty(), "{line}");
    }
}

#[test]
fn a_name_of_http_in_the_core_is_found() {
    for line in ["use http::StatusCode;", "/// What `Retry-After` says.", "fn of(status_code: u16)"]
    {
        let path = "crates/hapax-core/src/settle.rs";
        let found = statuses::check(&xtask::tidy::Tree::of(&[(path, line)]));
        assert!(!found.is_empty(), "{line}");
    }
}

#[test]
fn other_numbers_and_other_crates_are_let_be() {
    let numbers = "const A: u16 = 255;\nlet b = 1_404 + 0x404;\nlet SHA_512 = sha512(4040);\n";
    check(statuses::check, &[("crates/hapax-core/src/a.rs", numbers)], &[]);
    check(statuses::check, &[("crates/hapax-core/src/limits.rs", "400 * 24 * 60 * 60")], &[]);
    check(statuses::check, &[("crates/hapax-core/tests/it/a.rs", "Outcome::bare(404)")], &[]);
    check(statuses::check, &[("crates/hapax-tower/src/a.rs", "404 => failed")], &[]);
    let elsewhere = [("crates/hapax-core/src/other.rs", "400 * 24 * 60 * 60")];
    check(statuses::check, &elsewhere, &["other.rs:1: names the status 400"]);
}
