//! Words that have no place in the repository.

use super::{TidyFinding, Tree, source};

/// Each is spelled in two halves, so that this file does not hold what it looks for.
const IN_CODE: &[(&str, &str)] = &[
    (concat!("FIX", "ME"), "mend it, or open an issue"),
    (concat!("TO", "DO"), "do it, or open an issue"),
    (concat!("XX", "X"), "say what is meant"),
    (concat!("db", "g!("), "remove it"),
    (concat!("#[ig", "nore"), "a test that does not run shows nothing: mend or delete it"),
];

const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("deb.", "debian.org"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("registry.", "npmjs.org"),
    concat!("proxy.", "golang.org"),
    concat!("repo1.", "maven.org"),
    concat!("repo.", "maven.apache.org"),
];

const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Cargo writes where each crate comes from into its lock files.
const MAY_NAME_HOSTS: &str = "Cargo.lock";

/// What must not be written.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (at, line) in file.text.lines().enumerate() {
            let mut find = |what: String| findings.push(TidyFinding::new(&file.path, at + 1, what));
            for path in MACHINE_PATHS.iter().filter(|path| names_path(line, path)) {
                find(format!("names `{path}` of one machine; say it relative to the repository"));
            }
            for host in HOSTS.iter().filter(|host| line.contains(**host)) {
                if !file.path.ends_with(MAY_NAME_HOSTS) {
                    find(format!("names the host `{host}`; name the package alone"));
                }
            }
            if file.path.ends_with(".rs") {
                for (word, advice) in IN_CODE.iter().filter(|(word, _)| line.contains(word)) {
                    find(format!("`{word}`: {advice}"));
                }
                if source::plain_comment(line).is_some_and(looks_like_code) {
                    find("a comment that looks like code: delete it".to_owned());
                }
            }
        }
        if file.path.ends_with(".rs") {
            findings.extend(silenced_lints(&file.path, &file.text));
        }
    }
    findings
}

/// Attributes that silence a lint without saying why.
fn silenced_lints<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = TidyFinding> + 'a {
    const ATTRIBUTES: [&str; 4] = ["#[allow(", "#![allow(", "#[expect(", "#![expect("];
    let lines: Vec<_> = text.lines().collect();
    let silences = move |line: &str| {
        ATTRIBUTES.iter().any(|attribute| line.trim_start().starts_with(attribute))
    };
    let starts: Vec<_> = (0..lines.len()).filter(|at| silences(lines[*at])).collect();
    starts.into_iter().filter_map(move |at| {
        let end = lines[at..].iter().position(|line| line.trim_end().ends_with(")]"));
        let attribute = lines[at..=at + end.unwrap_or(0)].concat();
        let what = "a lint is silenced without a `reason = \"...\"`: give it";
        (!attribute.contains("reason =")).then(|| TidyFinding::new(path, at + 1, what))
    })
}

fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-*}".contains(c))
    })
}

/// A guess, kept narrow: prose ends in a full stop and does not start like a statement.
fn looks_like_code(comment: &str) -> bool {
    const STARTS: [&str; 14] = [
        "let ", "use ", "fn ", "pub ", "if ", "for ", "while ", "match ", "return ", "mod ",
        "struct ", "enum ", "impl ", "assert",
    ];
    let ends_like_code = comment.ends_with([';', '{']) || matches!(comment, "}" | "});" | "},");
    let starts_like_code = STARTS.iter().any(|start| comment.starts_with(start));
    let has_marks = comment.contains(['=', '(', ':', '{', '}']);
    let is_call = comment.ends_with(");") || comment.ends_with(")?;");
    let is_one_word = !comment.contains(' ');
    ends_like_code && (starts_like_code && has_marks || is_call && is_one_word || comment.len() < 4)
}
