//! Whom an examination may ask, and whose credentials it never takes.

use base64::{Engine, prelude::BASE64_STANDARD};
use thiserror::Error;

use crate::{ApiUnderTest, HttpAddress};

/// Hosts that may be examined, and who allowed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsentScope {
    allowed: Vec<(String, String)>,
}

/// Why a text names no hosts that may be examined.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ConsentError {
    /// A host without anybody who allowed it.
    #[error("line {line} does not say who allowed `{host}`: write it behind the host")]
    Nobody {
        /// Which line, from 1.
        line: usize,
        /// Which host.
        host: String,
    },
    /// Nothing but comments.
    #[error("it names no host: write lines such as `api.staging.example.com Ada Lovelace, OPS-12`")]
    Empty,
}

/// A credential that looks as if it moved real money or opened a real account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCredential {
    /// Where it was given: `the header Authorization`.
    pub place: String,
    /// What it looks like: `a live key of Stripe (sk_live_…)`.
    pub looks_like: &'static str,
}

/// What live credentials begin with. Shorter words than that may be anything.
const LIVE_PREFIXES: &[(&str, usize, &str)] = &[
    ("sk_live_", 0, "a live key of Stripe (sk_live_…)"),
    ("rk_live_", 0, "a restricted live key of Stripe (rk_live_…)"),
    ("live_", 16, "a live key (live_…)"),
    ("access_token$production$", 0, "a production token (access_token$production$…)"),
    ("sq0atp-", 0, "a production token of Square (sq0atp-…)"),
    ("sq0csp-", 0, "a production secret of Square (sq0csp-…)"),
];
const AWS_KEY: &str = "AKIA";
const AWS_KEY_CHARS: usize = 20;

/// Where real money moves, by the end of the host's name or all of it.
const LIVE_HOSTS: &[(&str, &str)] = &[
    ("connect.squareup.com", "Square's production (connect.squareupsandbox.com is for tests)"),
    ("api.paypal.com", "PayPal's production (api-m.sandbox.paypal.com is for tests)"),
    ("api-m.paypal.com", "PayPal's production (api-m.sandbox.paypal.com is for tests)"),
    ("-live.adyen.com", "Adyen's production (checkout-test.adyen.com is for tests)"),
    ("-live.adyenpayments.com", "Adyen's production (checkout-test.adyen.com is for tests)"),
];

impl ConsentScope {
    /// Reads lines of a host and who allowed it; what begins with `#` is a comment.
    pub fn read(text: &str) -> Result<Self, ConsentError> {
        let mut allowed = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (host, by) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let host = host.trim_end_matches(':').to_ascii_lowercase();
            if by.trim().is_empty() {
                return Err(ConsentError::Nobody { line: at + 1, host });
            }
            allowed.push((host, by.trim().to_owned()));
        }
        if allowed.is_empty() { Err(ConsentError::Empty) } else { Ok(Self { allowed }) }
    }

    /// Who allowed that this host is examined.
    pub fn who_allowed(&self, host: &str) -> Option<&str> {
        let found = self.allowed.iter().find(|(allowed, _)| allowed.eq_ignore_ascii_case(host));
        found.map(|(_, by)| by.as_str())
    }
}

impl ApiUnderTest {
    /// A credential that is never taken, if one is given anywhere.
    pub fn live_credential(&self) -> Option<LiveCredential> {
        let credentials = [
            Some(&self.credentials.main),
            self.credentials.other.as_ref(),
            self.credentials.revoked.as_ref(),
            Some(&self.headers),
        ];
        let headers = credentials.into_iter().flatten().flatten();
        let headers = headers.map(|(name, value)| (format!("the header {name}"), value.as_str()));
        let parts = [
            ("the URL".to_owned(), self.path.as_str()),
            ("the body".to_owned(), self.body.text.as_str()),
        ];
        headers.chain(parts).find_map(|(place, text)| {
            live_word(text).map(|looks_like| LiveCredential { place, looks_like })
        })
    }
}

impl HttpAddress {
    /// Whose production it is, if it is known to be one.
    pub fn known_production(&self) -> Option<&'static str> {
        let host = self.host.to_ascii_lowercase();
        let is_it = |(known, _): &&(&str, &str)| {
            if known.starts_with('-') { host.ends_with(known) } else { host == *known }
        };
        LIVE_HOSTS.iter().find(is_it).map(|(_, whose)| *whose)
    }
}

/// What the first live credential of a text looks like, also where the text is that of basic authentication.
fn live_word(text: &str) -> Option<&'static str> {
    let plain = words(text).find_map(looks_live);
    plain.or_else(|| {
        let basic = text.trim().strip_prefix("Basic ")?;
        let decoded = BASE64_STANDARD.decode(basic.trim()).ok()?;
        words(&String::from_utf8_lossy(&decoded)).find_map(looks_live)
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_ascii_alphanumeric() && !matches!(char, '_' | '-' | '$'))
}

fn looks_live(word: &str) -> Option<&'static str> {
    let is_aws = word.len() == AWS_KEY_CHARS
        && word.starts_with(AWS_KEY)
        && word.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit());
    if is_aws {
        return Some("an access key of AWS (AKIA…)");
    }
    let found = LIVE_PREFIXES.iter().find(|(prefix, least, _)| {
        word.starts_with(prefix) && word.len() > prefix.len().max(*least)
    });
    found.map(|(.., looks_like)| *looks_like)
}
