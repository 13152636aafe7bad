use xtask::tidy::documents;

use crate::check;

const RECORD: (&str, &str) = (
    "crates/hapax-core/src/record.rs",
    "impl StateTag {\n    pub const fn as_str(self) -> &'static str {\n        match self {\n            \
     Self::InDoubt => \"in_doubt\",\n        }\n    }\n}\n\nimpl Doubt {\n    \
     pub const fn as_str(self) -> &'static str {\n        \"unanswered\"\n    }\n}\n",
);
const RESULTS: (&str, &str) = (
    "crates/hapax-tower/src/server/execution/status_meaning.rs",
    "impl ResultPolicy {\n    fn as_str() {\n        \"stripe\"\n    }\n}\n",
);
const POLICY: (&str, &str) = (
    "crates/hapax-core/src/policy.rs",
    "impl Recovery {\n    fn as_str() {\n        \"hold\"\n    }\n}\n",
);

#[test]
fn every_word_of_the_machine_is_on_the_page_of_states() {
    let page = |text| ("docs/states.md", text);
    let all = "`in_doubt` `unanswered` `stripe` `hold`";
    check(documents::check_states, &[RECORD, RESULTS, POLICY, page(all)], &[]);
    let bare = "in_doubt `unanswered` `stripe`";
    let expected = ["docs/states.md:1: `in_doubt` of `StateTag`", "`hold` of `Recovery`"];
    check(documents::check_states, &[RECORD, RESULTS, POLICY, page(bare)], &expected);
}

#[test]
fn words_that_moved_elsewhere_are_missed() {
    let expected = ["no words of `StateTag`", "no words of `Doubt`"];
    let page = ("docs/states.md", "`stripe` `hold`");
    check(documents::check_states, &[RESULTS, POLICY, page], &expected);
}

#[test]
fn every_code_has_a_page_in_the_list_and_every_page_a_code() {
    let code = |name: &str| {
        let body = format!("        match self {{\n            Self::A => \"{name}\",\n        }}");
        format!("impl Problem {{\n    fn code(&self) -> &str {{\n{body}\n    }}\n}}\n")
    };
    let list = ("docs/errors/README.md", "- [`key-reused`](key-reused.md): 422\n");
    let page = ("docs/errors/key-reused.md", "# key-reused\n");
    check(documents::check_errors, &[("a.rs", &code("key-reused")), list, page], &[]);
    check(
        documents::check_errors,
        &[("a.rs", &code("in-doubt")), list, page],
        &[
            "a.rs:4: the code `in-doubt` has no page",
            "docs/errors/key-reused.md:1: no code is called",
        ],
    );
    let unlisted = ["docs/errors/key-reused.md:1: not listed"];
    check(documents::check_errors, &[("a.rs", &code("key-reused")), page], &unlisted);
}

#[test]
fn the_changelog_has_a_section_for_what_comes() {
    check(documents::check_changelog, &[("CHANGELOG.md", "# C\n\n## [Unreleased]\n")], &[]);
    check(documents::check_changelog, &[("CHANGELOG.md", "## [0.1.0]\n")], &["CHANGELOG.md:1: no"]);
    check(documents::check_changelog, &[], &["CHANGELOG.md:1: no"]);
}

#[test]
fn the_front_page_names_only_commands_that_exist() {
    let program = ("crates/hapax-cli/src/main.rs", "enum Command {\n    Bench(Bench),\n}\n");
    let page = |text| ("README.md", text);
    let good =
        "Run `cargo xtask ci`.\n\nhapax bench --seconds 5\ncargo run -p hapax-cli -- bench\n";
    check(documents::check_commands, &[program, page(good)], &[]);
    let bad = "`cargo xtask fly`\nhapax serve\ncargo run -p hapax-none\n";
    let expected =
        ["README.md:1: `cargo xtask fly`", "README.md:2: `hapax serve`", "README.md:3: "];
    check(documents::check_commands, &[program, page(bad)], &expected);
    check(documents::check_commands, &[], &["README.md:1: there is no front page"]);
}

#[test]
fn a_test_that_a_document_names_exists() {
    let suite =
        ("a.rs", "pub async fn a_key_belongs_to_its_tenant<B: Backend>() {\n    one();\n}\n");
    let good =
        ("docs/a.md", "`a_key_belongs_to_its_tenant`, `in_doubt`, `synchronous_commit = off`\n");
    check(documents::check_tests, &[suite, good], &[]);
    let metric = ("docs/a.md", "`hapax_request_duration_seconds`\n");
    check(documents::check_tests, &[suite, metric], &[]);
    let bad = ("docs/a.md", "\n`a_key_belongs_to_nobody`\n");
    check(documents::check_tests, &[suite, bad], &["docs/a.md:2: there is no test"]);
}

#[test]
fn a_source_file_that_a_document_names_exists() {
    let here = ("crates/a/src/unit.rs", "");
    let page = |text| ("docs/page.md", text);
    for text in
        ["`unit.rs`", "`src/unit.rs`", "`crates/a/src/{unit}.rs`", "`a/NAME.rs`", "`x.rs y`"]
    {
        check(documents::check_files, &[here, page(text)], &[]);
    }
    let expected = ["docs/page.md:2: there is no file `src/gone.rs`"];
    check(documents::check_files, &[here, page("# P\n`src/{unit,gone}.rs`\n")], &expected);
    let expected = ["docs/page.md:1: there is no file `nit.rs`"];
    check(documents::check_files, &[here, page("`nit.rs`")], &expected);
}
