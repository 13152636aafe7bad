//! Commands that repeat what a defect was shown by: with this program, and much the same with `curl`.

use super::{
    document::{
        CutMessage, DefectDocument, ExchangeDocument, MessageDocument, ProbeDocument,
        TargetDocument,
    },
    redaction::REDACTED,
};

/// Most requests that are written out.
const COMMANDS_MAX: usize = 24;

/// The command by which this program sends the same again; `command` has all options but these.
pub(super) fn replay_command(command: &str, seed: &str, probe: &str) -> String {
    format!("{command} --replay {seed} --only {probe}")
}

/// The beginning of that, where nothing is known but what was examined.
pub(super) fn bare_command(target: &TargetDocument) -> String {
    let (method, url) = (quoted(&target.method, "$SECRET"), quoted(&target.url(), "$SECRET"));
    format!("hapax verify {method} {url}")
}

/// Commands for a shell: requests in the order in which they were sent; those that were under way at once, at once.
///
/// What was a secret is a variable of the shell.
pub(super) fn reproducer(
    target: &TargetDocument,
    probe: &ProbeDocument,
    defect: &DefectDocument,
) -> String {
    let shown = probe.shown_by(defect);
    let mut script = String::new();
    let mut at = 0;
    while at < shown.len() && at < COMMANDS_MAX {
        let length = at_once(shown.get(at..).unwrap_or_default());
        let together = shown.get(at..at + length).unwrap_or_default();
        for line in steps(target, together) {
            script.push_str(&line);
            script.push('\n');
        }
        at += length;
    }
    if at < shown.len() {
        script.push_str(&format!("# and {} requests more\n", shown.len() - at));
    }
    script
}

/// How many of the first exchanges were under way at one time, each beginning before another one's end.
fn at_once(exchanges: &[&ExchangeDocument]) -> usize {
    let mut until = 0;
    let together = exchanges.iter().enumerate().take_while(|(at, exchange)| {
        let is_one_of_them = *at == 0 || exchange.began_micros < until;
        until = until.max(exchange.ended_micros);
        is_one_of_them
    });
    together.count().max(1)
}

/// The commands of exchanges that were under way at one time.
fn steps(target: &TargetDocument, together: &[&ExchangeDocument]) -> Vec<String> {
    let commands: Vec<_> = together.iter().map(|exchange| command(target, exchange)).collect();
    if let [(comments, command)] = commands.as_slice() {
        return comments.iter().chain([command]).cloned().collect();
    }
    let Some((comments, first)) = commands.first() else { return Vec::new() };
    if commands.iter().all(|other| *other == (comments.clone(), first.clone())) {
        let mut lines = comments.clone();
        lines.push(format!("for n in $(seq {}); do", commands.len()));
        lines.push(format!("  {first} &"));
        lines.extend(["done".to_owned(), "wait".to_owned()]);
        return lines;
    }
    let mut lines = Vec::new();
    for (comments, command) in commands.into_iter().take(COMMANDS_MAX) {
        lines.extend(comments);
        lines.push(format!("{command} &"));
    }
    lines.push("wait".to_owned());
    lines
}

/// A request as a command, and what must be known of it.
fn command(target: &TargetDocument, exchange: &ExchangeDocument) -> (Vec<String>, String) {
    let MessageDocument { head, body, body_bytes, is_shortened, is_escaped } = &exchange.request;
    let mut comments = Vec::new();
    if let Some(cut) = exchange.cut_text() {
        comments.push(format!("# {cut}; curl can only stop early"));
    }
    if *is_shortened {
        comments.push("# this request is longer than what the report shows of it".to_owned());
    }
    if *is_escaped {
        comments.push("# \\xNN stands for a byte that cannot be shown".to_owned());
    }
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let address = target.addresses.get(exchange.address).or_else(|| target.addresses.first());
    let address = address.map_or("", String::as_str);
    let whose = match exchange.asked_by.as_deref() {
        Some("other") => "OTHER_",
        Some("revoked") => "REVOKED_",
        Some(_) | None => "",
    };
    let mut parts = vec!["curl -sS -i".to_owned()];
    match (exchange.protocol.as_str(), address.starts_with("https:")) {
        ("HTTP/2", true) => parts.push("--http2".to_owned()),
        ("HTTP/2", false) => parts.push("--http2-prior-knowledge".to_owned()),
        _ => {}
    }
    if let Some(cut) = &exchange.cut {
        parts.push(match cut.within {
            CutMessage::Request => "--max-time 0.05".to_owned(),
            CutMessage::Answer => "--max-time 0.2".to_owned(),
        });
    }
    parts.push(format!("-X {}", quoted(method, "$SECRET")));
    parts.push(quoted(&format!("{address}{path}"), "$SECRET"));
    let mut names_content = false;
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        // curl writes them itself.
        if ["host", "content-length"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
            continue;
        }
        names_content |= name.eq_ignore_ascii_case("content-type");
        let value = value.trim();
        // A header without a value is written so.
        let header = if value.is_empty() { format!("{name};") } else { format!("{name}: {value}") };
        parts.push(format!("-H {}", quoted(&header, &variable(whose, name))));
    }
    if *body_bytes > 0 {
        if !names_content {
            parts.push("-H 'Content-Type:'".to_owned());
        }
        parts.push(format!("--data-raw {}", quoted(body, "$SECRET")));
    }
    (comments, parts.join(" "))
}

/// `$OTHER_AUTHORIZATION`.
fn variable(whose: &str, header: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("${whose}{}", header.chars().map(upper).collect::<String>())
}

/// As one word of a shell, in which nothing is looked at but what stands for a secret.
fn quoted(text: &str, variable: &str) -> String {
    let escaped = text.replace('\'', r"'\''");
    format!("'{}'", escaped.replace(REDACTED, &format!("'\"{variable}\"'")))
}
