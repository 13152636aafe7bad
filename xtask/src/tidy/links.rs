//! Every link between the repository's documents leads somewhere.

use super::{SourceFile, TidyFinding, Tree};

/// Links to files that are not there, and to headings that are not in them.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in tree.ending(".md") {
        for (line, target) in links(&file.text) {
            if let Some(what) = broken(tree, file, &target) {
                findings.push(TidyFinding::new(&file.path, line, what));
            }
        }
    }
    findings
}

/// The files of the repository that a document links to, as far as they can be there.
pub fn files(document: &SourceFile) -> Vec<String> {
    let targets = links(&document.text).into_iter().map(|(_, target)| target);
    let within = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    let paths = within.filter_map(|target| {
        let path = target.split('#').next().unwrap_or_default();
        (!path.is_empty()).then(|| resolve(&document.path, path))
    });
    paths.collect()
}

fn broken(tree: &Tree, from: &SourceFile, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { from.path.clone() } else { resolve(&from.path, path) };
    if !tree.contains(&path) {
        return Some(format!("the link to `{target}` leads nowhere: there is no `{path}`"));
    }
    let page = tree.get(&path).filter(|page| page.path.ends_with(".md") && !anchor.is_empty())?;
    let found = anchors(&page.text).iter().any(|known| known == anchor);
    (!found).then(|| format!("the link to `{target}` leads nowhere: `{path}` has no such heading"))
}

/// The path that `target` means when it is written in the file at `from`.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The targets of links, with their lines; code is left out.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            if let Some(end) = rest.find([')', ' ']) {
                found.push((number, rest[..end].to_owned()));
            }
        }
        if let Some((_, target)) = line.split_once("]: ").filter(|_| line.starts_with('[')) {
            found.push((number, target.trim().to_owned()));
        }
    }
    found
}

/// The anchors that readers of Markdown derive from headings.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let repeats = anchors.iter().filter(|known| **known == anchor).count();
        anchors.push(if repeats == 0 { anchor } else { format!("{anchor}-{repeats}") });
    }
    anchors
}

/// The lines outside fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((at + 1, line))
    })
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}
