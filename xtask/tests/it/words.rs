use xtask::tidy::words;

use crate::check;

#[test]
fn unfinished_work_and_tests_that_do_not_run_are_found() {
    let text = [
        concat!("// FIX", "ME later"),
        concat!("/// TO", "DO: more"),
        concat!("db", "g!(x);"),
        concat!("#[ig", "nore = \"slow\"]"),
        "fn fine() {}",
    ];
    let expected = ["a.rs:1: ", "a.rs:2: ", "a.rs:3: ", "a.rs:4: "];
    check(words::check, &[("a.rs", &text.join("\n"))], &expected);
}

#[test]
fn paths_of_one_machine_are_found_and_relative_ones_are_not() {
    let text = concat!("see /wo", "rk/main\nsee docs/wo", "rk/main\n\"/ho", "me/me\"\n");
    check(words::check, &[("a.md", text)], &["a.md:1: names", "a.md:3: names"]);
}

#[test]
fn hosts_of_registries_are_named_by_lock_files_alone() {
    let text = concat!("registry+https://github.com/rust-lang/crates", ".io-index\n");
    check(words::check, &[("Cargo.lock", text), ("other/Cargo.lock", text)], &[]);
    check(words::check, &[("deny.toml", text)], &["deny.toml:1: names the host"]);
}

#[test]
fn a_lint_is_silenced_only_with_a_reason() {
    let silenced = |inside: &str| format!("#[al{}({inside})]\nfn a() {{}}\n", "low");
    check(words::check, &[("a.rs", &silenced("dead_code"))], &["a.rs:1: a lint is silenced"]);
    check(words::check, &[("a.rs", &silenced("dead_code, reason = \"why\""))], &[]);
    check(words::check, &[("a.rs", &silenced("\n    dead_code,\n    reason = \"why\"\n"))], &[]);
}

#[test]
fn comments_that_are_code_are_found_and_prose_is_not() {
    let code = ["// let a = b(c);", "// if a == b {", "// }", "// store.write(a)?;"];
    for line in code {
        check(words::check, &[("a.rs", line)], &["a.rs:1: a comment that looks like code"]);
    }
    let prose = [
        "// It may end between the look and the signal; the next look tells.",
        "// if nobody looks, nothing happens;",
        "/// let a = b(c);",
        "let a = b(c); // for the reader;",
    ];
    check(words::check, &[("a.rs", &prose.join("\n"))], &[]);
}
