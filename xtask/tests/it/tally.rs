use xtask::ci::Tally;

const LINES: [&str; 4] = [
    "running 3 tests",
    "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
    "test a_test ... FAILED",
    "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1s",
];

fn tally(lines: &[&str]) -> Tally {
    let mut tally = Tally::default();
    lines.iter().for_each(|line| tally.add(line));
    tally
}

#[test]
fn the_summaries_of_all_test_programs_are_added_up() {
    assert_eq!(tally(&LINES), Tally { passed: 5, failed: 1 });
}

#[test]
fn a_run_passes_only_if_tests_ran_and_none_failed() {
    let passed = tally(&LINES[..2]);
    assert_eq!(passed.judge(true), Ok(passed));
    passed.judge(false).unwrap_err();
    tally(&LINES).judge(true).unwrap_err();
    let nothing = tally(&[]).judge(true).unwrap_err();
    assert_eq!(nothing.to_string(), "no test ran");
}
