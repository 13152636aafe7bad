//! What must not stand in a report: who asked, in a way by which others could ask too.

use super::text::WrittenText;
use crate::{ApiUnderTest, CredentialHeaders};

/// What stands in a report where a secret was.
pub const REDACTED: &str = "[redacted]";

/// Shorter values stay where they turn up outside of their header: they would be found in every word.
const SECRET_BYTES_MIN: usize = 4;

/// Headers and parameters of these names hold secrets.
const NAMES: [&str; 4] = ["authorization", "cookie", "set-cookie", "auth"];
/// And those whose name has such a part.
const PARTS: [&str; 13] = [
    "authorization",
    "x-auth",
    "cookie",
    "api-key",
    "apikey",
    "access-key",
    "secret",
    "token",
    "password",
    "passwd",
    "credential",
    "session",
    "signature",
];

/// Takes secrets out of texts.
#[derive(Debug, Clone)]
pub struct Redaction {
    /// In every way in which they may be written, the longest first.
    secrets: Vec<String>,
    /// Headers that credentials were given in, in lower case.
    names: Vec<String>,
    /// The header that keys are sent in, in lower case: it is shown, whatever it is called.
    key_header: String,
    askers: Vec<(Asker, CredentialHeaders)>,
}

/// Whose credentials a request brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    Main,
    Other,
    Revoked,
}

impl Redaction {
    /// For reports on this API: its credentials, and whatever stands in headers that hold secrets.
    pub fn of(api: &ApiUnderTest) -> Self {
        let credentials = &api.credentials;
        let others = [
            (Asker::Main, Some(&credentials.main)),
            (Asker::Other, credentials.other.as_ref()),
            (Asker::Revoked, credentials.revoked.as_ref()),
        ];
        let askers: Vec<_> = others
            .into_iter()
            .filter_map(|(asker, headers)| Some((asker, headers?.clone())))
            .filter(|(_, headers)| !headers.is_empty())
            .collect();
        let given = askers.iter().flat_map(|(_, headers)| headers);
        let mut redaction = Self {
            secrets: Vec::new(),
            names: given.clone().map(|(name, _)| name.to_ascii_lowercase()).collect(),
            key_header: api.key.name.to_ascii_lowercase(),
            askers: Vec::new(),
        };
        let among_others = api.headers.iter().filter(|(name, _)| redaction.hides(name));
        let mut secrets: Vec<_> =
            given.chain(among_others).flat_map(|(_, value)| parts_of(value)).collect();
        secrets.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
        let mut written: Vec<_> = secrets.iter().flat_map(|secret| ways_to_write(secret)).collect();
        written.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        written.dedup();
        redaction.secrets = written;
        redaction.askers = askers;
        redaction
    }

    /// Text of any kind.
    pub fn text(&self, text: &str) -> String {
        let mut text = self.without_parameters(text);
        for secret in &self.secrets {
            if text.contains(secret) {
                text = text.replace(secret, REDACTED);
            }
        }
        text
    }

    /// A message with its headers, or a part of one: the values of lines that begin with the name of a header that
    /// holds secrets, and secrets wherever they stand.
    pub fn message(&self, text: &str) -> String {
        let mut lines = Vec::new();
        let mut is_hidden = false;
        for line in text.split('\n') {
            // What begins with a space goes on with the line before.
            let goes_on = line.starts_with([' ', '\t']);
            let name = line.split_once(':').map(|(name, _)| name).filter(|_| !goes_on);
            is_hidden = (goes_on && is_hidden) || name.is_some_and(|name| self.hides(name));
            lines.push(match name {
                Some(name) if is_hidden => format!("{name}: {REDACTED}"),
                None if is_hidden => format!(" {REDACTED}"),
                Some(_) | None => self.text(line),
            });
        }
        lines.join("\n")
    }

    /// Whose credentials a request has among its lines.
    pub(super) fn asker(&self, request: &[u8]) -> Option<Asker> {
        let text = WrittenText::of_head(request).text;
        let brings = |(name, value): &(String, String)| {
            let line = format!("{name}: {value}");
            text.lines().any(|given| given == line)
        };
        let found = self.askers.iter().find(|(_, headers)| headers.iter().all(brings));
        found.map(|(asker, _)| *asker)
    }

    /// How much longer than what is shown a text must be so that no secret is cut in half.
    pub(super) fn longest(&self) -> usize {
        self.secrets.first().map_or(0, String::len)
    }

    /// Whether what stands under this name is a secret.
    fn hides(&self, name: &str) -> bool {
        let name = name.trim().to_ascii_lowercase().replace('_', "-");
        // The body of an answer has colons too.
        let is_name =
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-!.".contains(&byte));
        is_name
            && name != self.key_header.replace('_', "-")
            && (NAMES.contains(&name.as_str())
                || PARTS.iter().any(|part| name.contains(part))
                || self.names.iter().any(|given| given.replace('_', "-") == name))
    }

    /// `?access_token=abc` has its value in the open wherever a URL is written.
    fn without_parameters(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['?', '&']) {
            let (before, after) = rest.split_at(at + 1);
            clean.push_str(before);
            rest = after;
            let Some((name, value)) = after.split_once('=') else { continue };
            let has_name = !name.contains(|c: char| c.is_whitespace() || "?&".contains(c));
            if has_name && self.hides(name) {
                let ends = |c: char| c.is_whitespace() || "&#\"'<>`\\".contains(c);
                let end = value.find(ends).unwrap_or(value.len());
                clean.push_str(&format!("{name}={REDACTED}"));
                rest = value.get(end..).unwrap_or_default();
            }
        }
        clean.push_str(rest);
        clean
    }
}

impl Asker {
    /// As documents name them.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Other => "other",
            Self::Revoked => "revoked",
        }
    }
}

/// A value, what follows its scheme (`Bearer`), and the values of its pairs (`session=abc; theme=dark`).
fn parts_of(value: &str) -> Vec<String> {
    let value = value.trim();
    let mut parts = vec![value.to_owned()];
    parts.extend(value.split_once(' ').map(|(_, rest)| rest.trim().to_owned()));
    let pairs = value.split([';', ',']).filter_map(|pair| pair.split_once('='));
    parts.extend(pairs.map(|(_, value)| value.trim().trim_matches('"').to_owned()));
    parts
}

/// As it is, as it stands in a URL, and as it stands in JSON.
fn ways_to_write(secret: &str) -> [String; 3] {
    let in_json = serde_json::Value::from(secret).to_string();
    let in_json = in_json.trim_matches('"').to_owned();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut in_url = String::new();
    for byte in secret.bytes() {
        if is_plain(byte) {
            in_url.push(char::from(byte));
        } else {
            in_url.push_str(&format!("%{byte:02X}"));
        }
    }
    [secret.to_owned(), in_url, in_json]
}
