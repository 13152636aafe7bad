//! Whom an examination may reach, and whose credentials it never takes.

use std::{fmt, net::IpAddr};

use base64::{Engine, prelude::BASE64_STANDARD};
use thiserror::Error;

use crate::{ApiUnderTest, BodyTemplate, HttpAddress};

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

/// A host that an examination would ask, or would listen at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachedHost {
    /// Its name or address, without brackets.
    pub host: String,
    /// As people are told of it: `http://10.0.0.1:8080`.
    pub shown: String,
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
            let is_address = host.parse::<IpAddr>().is_ok();
            let host = if is_address { host } else { host.trim_end_matches(':') };
            let host = host.to_ascii_lowercase();
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
        // Without `..`: whatever is sent some day is looked at as well.
        let Self {
            addresses: _,
            method,
            path,
            headers,
            body,
            key,
            credentials,
            id: _,
            other_path,
            large_path,
        } = self;
        let credentials =
            [Some(&credentials.main), credentials.other.as_ref(), credentials.revoked.as_ref()];
        let headers = credentials.into_iter().flatten().chain([headers]).flatten();
        let headers =
            headers.map(|(name, value)| (format!("the header {name}"), Some(value.as_str())));
        let BodyTemplate { content_type, text, changed, invalid } = body;
        let parts = [
            ("the method", Some(method.as_str())),
            ("the URL", Some(path.as_str())),
            ("the other path", other_path.as_deref()),
            ("the path of large answers", large_path.as_deref()),
            ("the type of the body", Some(content_type.as_str())),
            ("the body", Some(text.as_str())),
            ("the changed body", changed.as_deref()),
            ("the invalid body", invalid.as_deref()),
            ("the name of the key's header", Some(key.name.as_str())),
            ("the name of the header of first sending", key.first_sent.as_deref()),
        ];
        let parts = parts.map(|(place, text)| (place.to_owned(), text));
        headers
            .chain(parts)
            .find_map(|(place, text)| LiveCredential::in_text(&place, text.unwrap_or_default()))
    }
}

impl LiveCredential {
    /// The first one in a text that stands in this place.
    pub fn in_text(place: &str, text: &str) -> Option<Self> {
        live_word(text).map(|looks_like| Self { place: place.to_owned(), looks_like })
    }
}

impl ReachedHost {
    /// All hosts of URLs in a text, whatever is between them: a command, an address of a database.
    pub fn in_text(text: &str) -> Vec<Self> {
        let mut found = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("://") {
            let is_scheme =
                |one: char| one.is_ascii_alphanumeric() || matches!(one, '+' | '-' | '.');
            let scheme = before.rsplit(|one| !is_scheme(one)).next().unwrap_or_default();
            let is_over = |one: char| one.is_whitespace() || r#"/?#'"`<>|;&()\"#.contains(one);
            let authority = after.split(is_over).next().unwrap_or_default();
            let hosts = authority.rsplit('@').next().unwrap_or_default();
            let hosts = hosts.split(',').filter_map(host_of);
            found.extend(hosts.map(|host| Self { shown: format!("{scheme}://{host}"), host }));
            rest = after;
        }
        found
    }

    /// Whether it is this machine, and nobody else gets there.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost"
            || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Whose production it is, if it is known to be one.
    pub fn known_production(&self) -> Option<&'static str> {
        let host = self.host.to_ascii_lowercase();
        let is_it = |(known, _): &&(&str, &str)| {
            if known.starts_with('-') { host.ends_with(known) } else { host == *known }
        };
        LIVE_HOSTS.iter().find(is_it).map(|(_, whose)| *whose)
    }
}

impl From<&HttpAddress> for ReachedHost {
    fn from(address: &HttpAddress) -> Self {
        Self { host: address.host.clone(), shown: address.to_string() }
    }
}

impl fmt::Display for ReachedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// The host of `host:port` or `[host]:port`; nothing where a variable stands for it, or there is none.
fn host_of(place: &str) -> Option<String> {
    let host = match place.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => place.split(':').next().unwrap_or_default(),
    };
    (!host.is_empty() && !host.contains(['$', '{'])).then(|| host.to_owned())
}

/// What the first live credential of a text looks like, also where it is written for a URL, or for basic authentication.
fn live_word(text: &str) -> Option<&'static str> {
    let plain = words(text).find_map(looks_live);
    let written = || {
        let text = text.replace("%24", "$").replace("%5F", "_").replace("%5f", "_");
        words(&text).find_map(looks_live)
    };
    let basic = || {
        let (_, basic) =
            text.split_once(' ').filter(|(way, _)| way.eq_ignore_ascii_case("basic"))?;
        let decoded = BASE64_STANDARD.decode(basic.trim()).ok()?;
        words(&String::from_utf8_lossy(&decoded)).find_map(looks_live)
    };
    plain.or_else(written).or_else(basic)
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
