use xtask::tidy::{SourceFile, links};

use crate::check;

const STATES: (&str, &str) =
    ("docs/states.md", "# States\n\n## What a *result* means\n\n## Sweep\n");

#[test]
fn a_link_leads_to_a_file_or_a_folder() {
    let good = "[a](docs/states.md) [b](docs) [c](https://example.com) [d](#top)\n# Top\n";
    check(links::check, &[("README.md", good), STATES], &[]);
    let bad = "text\n[a](docs/none.md) and [b](states.md)\n";
    let expected =
        ["README.md:2: the link to `docs/none.md`", "README.md:2: the link to `states.md`"];
    check(links::check, &[("README.md", bad), STATES], &expected);
}

#[test]
fn a_link_is_read_from_the_folder_of_its_file() {
    let from = "docs/decisions/0001-a.md";
    check(links::check, &[(from, "[a](../states.md#sweep)"), STATES], &[]);
    check(links::check, &[(from, "[a](states.md)"), STATES], &["no `docs/decisions/states.md`"]);
}

#[test]
fn an_anchor_is_a_heading_of_the_page() {
    let good = "[a](docs/states.md#what-a-result-means)\n[ref]: docs/states.md#sweep\n";
    check(links::check, &[("README.md", good), STATES], &[]);
    let bad = "[a](docs/states.md#purge)\n[ref]: docs/states.md#none\n";
    let expected = ["README.md:1: the link to", "README.md:2: the link to"];
    check(links::check, &[("README.md", bad), STATES], &expected);
}

#[test]
fn code_is_not_read_for_links() {
    let code = "`a[0](b)`\n```rust\nlet a = b[0](c);\n```\n";
    check(links::check, &[("README.md", code)], &[]);
}

#[test]
fn the_files_that_a_document_links_to_are_named_from_the_root() {
    let text =
        "[a](../states.md#sweep) [b](#top) [c](https://example.com) [d](../../examples/once.rs)";
    let document =
        SourceFile { path: "docs/decisions/0001-a.md".to_owned(), bytes: 0, text: text.to_owned() };
    assert_eq!(links::files(&document), ["docs/states.md", "examples/once.rs"]);
}
