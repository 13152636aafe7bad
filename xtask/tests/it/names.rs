use xtask::tidy::{Tree, names};

use crate::check;

/// Files in which this many names are declared twice, in the given ways.
fn twice(count: usize, one: &str, other: &str) -> Tree {
    let first: String = (0..count).map(|at| format!("{one} Type{at};\n")).collect();
    let second: String = (0..count).map(|at| format!("{other} Type{at}<T> {{\n")).collect();
    let (first, second) = (first.as_str(), second.as_str());
    Tree::of(&[("crates/a/src/lib.rs", first), ("testing/b/src/lib.rs", second)])
}

#[test]
fn more_than_thirty_names_of_several_types_are_too_many_however_they_are_declared() {
    for (one, other) in [
        ("struct", "pub enum"),
        ("pub(crate) struct", "trait"),
        ("    pub(in crate::bench) union", "pub(super) trait"),
    ] {
        assert!(names::check(&twice(30, one, other)).is_empty(), "{one}, {other}");
        assert_eq!(names::check(&twice(31, one, other)).len(), 31, "{one}, {other}");
    }
}

#[test]
fn the_name_and_its_last_place_are_told() {
    let found = names::check(&twice(31, "struct", "enum"));
    let told = found[0].to_string();
    assert!(
        told.starts_with("testing/b/src/lib.rs:1: `Type0` stands for 1 other types;"),
        "{told}"
    );
}

#[test]
fn names_by_rule_uses_and_tests_are_let_be() {
    let uses = |at| format!("impl Type{at} {{}}\nlet x = Type{at};\n// struct Type{at}\n");
    let files: String = (0..70).map(uses).collect();
    let tests = files.replace("impl", "struct");
    let (files, tests) = (files.as_str(), tests.as_str());
    check(names::check, &[("crates/a/src/a.rs", files), ("crates/b/src/b.rs", files)], &[]);
    check(names::check, &[("crates/a/tests/a.rs", tests), ("crates/b/tests/b.rs", tests)], &[]);
    let by_rule = "pub struct Store;\npub struct Options;\n";
    check(names::check, &[("crates/a/src/a.rs", by_rule), ("crates/b/src/b.rs", by_rule)], &[]);
}

#[test]
fn a_module_of_what_ships_is_a_noun() {
    let files = [
        ("crates/a/src/said.rs", ""),
        ("crates/a/src/later/mod.rs", ""),
        ("crates/a/src/rate_limit.rs", ""),
        ("crates/a/tests/it/told.rs", ""),
    ];
    let found = [
        "crates/a/src/said.rs:1: a module is a noun for what is inside, which `said` is not",
        "crates/a/src/later/mod.rs:1: a module is a noun for what is inside, which `later` is not",
    ];
    check(names::check_modules, &files, &found);
}
