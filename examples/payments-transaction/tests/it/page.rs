//! The code on the page about transactions is code that is compiled and run.

const PAGE: &str = include_str!("../../../../docs/transactions.md");
const SOURCES: [&str; 4] = [
    include_str!("../../src/lib.rs"),
    include_str!("../../src/once.rs"),
    include_str!("../../../../crates/hapax-sqlite/src/transaction/once.rs"),
    include_str!("../../../../crates/hapax-sqlite/tests/it/transaction/pool.rs"),
];

#[test]
fn the_code_on_the_page_is_code_that_is_run() {
    let blocks: Vec<&str> = PAGE.split("```").skip(1).step_by(2).collect();
    let rust: Vec<_> = blocks.iter().filter_map(|block| block.strip_prefix("rust")).collect();
    assert!(rust.len() > 2, "the page was not understood");
    for block in rust {
        let (fence, code) = block.split_once('\n').unwrap();
        assert_eq!(fence, "", "a fence that nobody checks");
        let found = SOURCES.iter().any(|source| words(source).contains(&words(code)));
        assert!(found, "not in the sources:\n{code}");
    }
}

/// Without indentation and the marks of a documentation comment.
fn words(code: &str) -> String {
    code.split_whitespace().filter(|word| *word != "///").collect::<Vec<_>>().join(" ")
}
