//! Counts are compared as promised: which fail, which are only noted, and what is read as a count.

use std::collections::BTreeMap;

use xtask::bench_guard::{
    callgrind,
    compare::{Comparison, Limit},
    figures::{GuardFigures, InstructionCount},
    tools::CountingTools,
};

type Paths = BTreeMap<String, InstructionCount>;

/// Paths with their instructions and their hashing.
fn paths(counts: &[(&str, u64, u64)]) -> Paths {
    let path = |(name, instructions, hashing): &(&str, u64, u64)| {
        let count = InstructionCount { instructions: *instructions, hashing: *hashing };
        ((*name).to_owned(), count)
    };
    counts.iter().map(path).collect()
}

/// Compares one path, and what is said about it: nothing if it passes.
#[track_caller]
fn check(limit: Limit, committed: &[(&str, u64, u64)], now: &[(&str, u64, u64)], said: &str) {
    let comparison = Comparison::new(&paths(committed), &paths(now), limit);
    match comparison.judge() {
        Ok(()) => assert_eq!(said, "", "it passed\n{comparison}"),
        Err(failure) => {
            let failure = failure.to_string();
            assert!(!said.is_empty() && failure.contains(said), "{failure:?}, not {said:?}");
            assert!(failure.contains("--accept"), "{failure:?} does not say what to do");
        }
    }
}

#[test]
fn up_to_five_per_cent_more_pass_and_one_instruction_beyond_fails() {
    let check = |now, said| check(Limit::SAME_TOOLS, &[("a", 2000, 0)], &[("a", now, 0)], said);
    check(2000, "");
    check(2100, "");
    check(2101, "a takes over 5 % more");
    check(1, "");
}

#[test]
fn other_tools_have_a_wider_limit_but_have_one() {
    let check = |now, said| check(Limit::OTHER_TOOLS, &[("a", 2000, 0)], &[("a", now, 0)], said);
    check(2300, "");
    check(2301, "a takes over 15 % more");
}

#[test]
fn hashing_neither_hides_behind_the_rest_nor_hides_it() {
    let check = |now, said| check(Limit::SAME_TOOLS, &[("a", 1000, 90_000)], &[now], said);
    check(("a", 1000, 90_000), "");
    check(("a", 1100, 90_000), "a takes over 5 % more");
    check(("a", 1000, 95_000), "a, hashing takes over 5 % more");
}

#[test]
fn a_path_that_begins_to_hash_fails() {
    check(Limit::SAME_TOOLS, &[("a", 1000, 0)], &[("a", 1000, 1)], "a, hashing takes over");
}

#[test]
fn a_path_without_a_figure_and_a_figure_without_a_path_fail() {
    let (a, b) = (("a", 10, 0), ("b", 10, 0));
    check(Limit::SAME_TOOLS, &[a], &[a, b], "b has no committed figure");
    check(Limit::SAME_TOOLS, &[a, b], &[a], "b is no path any more");
}

#[test]
fn the_table_shows_every_path_and_notes_those_that_became_faster() {
    let committed = paths(&[("decide", 2000, 0), ("gone", 7, 0), ("http", 1000, 400)]);
    let now = paths(&[("decide", 1899, 0), ("http", 1051, 399), ("new", 5, 0)]);
    let table = Comparison::new(&committed, &now, Limit::SAME_TOOLS).to_string();
    let lines: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected = [
        "path committed now change",
        "decide 2000 1899 -5.0 % fewer",
        "http 1000 1051 +5.1 % TOO MANY",
        "http, hashing 400 399 -0.2 %",
        "new 0 5 new NOT COMMITTED",
        "gone 7 0 gone NOT COUNTED",
        "note: some take fewer; `--accept` keeps them there",
    ];
    assert_eq!(lines.iter().map(|words| words.join(" ")).collect::<Vec<_>>(), expected);
}

#[test]
fn the_cost_of_a_call_is_counted_where_it_is_spent_and_once() {
    let profile = "\
positions: line
events: Ir

ob=/bin/guard
fl=???
fn=hapax_bench_guard::measure::counted
0 30
cfn=sha2::sha256::compress256
calls=2 0
0 7000
cfn=hapax_core::decide::decide
calls=1 0
0 5

fn=sha2::sha256::compress256
0 6900
cob=/lib/libc.so
cfn=memcpy
calls=4 12
0 100

ob=/lib/libc.so
fn=memcpy
12 60
13 40

fn=hapax_core::decide::decide
0 5

totals: 7035
";
    assert_eq!(callgrind::read(profile), InstructionCount { instructions: 135, hashing: 6900 });
}

fn figures() -> GuardFigures {
    let tools = CountingTools {
        rustc: "rustc 1.95.0".to_owned(),
        libc: "glibc 2.36".to_owned(),
        valgrind: "valgrind-3.19.0".to_owned(),
        cpu: "with AVX2".to_owned(),
    };
    GuardFigures { tools, paths: paths(&[("decide-first", 199, 0), ("http-new", 54_000, 120_000)]) }
}

#[test]
fn figures_are_read_back_as_they_were_written() {
    let text = figures().to_string();
    assert_eq!(GuardFigures::parse(&text).as_ref(), Ok(&figures()), "{text}");
}

#[test]
fn figures_that_nobody_wrote_so_are_refused() {
    let text = figures().to_string();
    assert!(GuardFigures::parse(&text.replace("hashing", "hashes")).is_err());
    assert!(GuardFigures::parse(&text.replace("libc", "# libc")).is_err());
}

#[test]
fn every_tool_that_is_another_is_named() {
    let committed = figures().tools;
    assert_eq!(committed.differences(&committed), []);
    let here = CountingTools { rustc: "rustc 1.96.0".to_owned(), ..committed.clone() };
    let said: Vec<_> = committed.differences(&here).iter().map(ToString::to_string).collect();
    assert_eq!(said, ["the figures are for rustc 1.95.0; here is rustc 1.96.0"]);
}
