use xtask::tidy::{Tree, sizes};

use crate::{check, compare};

fn function(lines: usize) -> String {
    let body = "        work();\n".repeat(lines);
    format!("impl A {{\n    pub async fn long(\n        a: u8,\n    ) -> u8 {{\n{body}    }}\n}}\n")
}

#[test]
fn a_function_may_have_70_lines_and_no_more() {
    check(sizes::check, &[("a.rs", &function(70))], &[]);
    check(sizes::check, &[("a.rs", &function(71))], &["a.rs:2: `long` has 71 lines"]);
}

#[test]
fn blank_lines_comments_and_declarations_without_a_body_do_not_count() {
    let padded = function(70).replacen("work();", "work();\n\n        // Because.", 5);
    check(sizes::check, &[("a.rs", &padded)], &[]);
    let declared = "trait A {\n    fn one(&self);\n    fn two(\n        a: u8,\n    ) -> u8;\n}\n";
    let after = format!("{declared}{}", "const A: u8 = 1;\n".repeat(80));
    check(sizes::check, &[("a.rs", &after)], &[]);
}

#[test]
fn a_file_is_noted_above_400_lines_and_refused_above_600() {
    let text = |lines| "const A: u8 = 1;\n".repeat(lines);
    check(sizes::check, &[("a.rs", &text(600)), ("a.md", &text(900))], &[]);
    check(sizes::check, &[("a.rs", &text(601))], &["a.rs:1: 601 lines; split it"]);
    let noted = |lines| sizes::large_files(&Tree::of(&[("a.rs", &text(lines))]));
    compare(&noted(400), &[]);
    compare(&noted(401), &["a.rs:1: 401 lines; think again"]);
}
