//! Whose keys they are: `[tenant]`, or `tenant` of a route.

use std::{ops::Range, path::Path, time::Duration};

use hapax_tower::{CredentialPlace, Tenancy};
use http::{HeaderName, Uri, header};
use toml::{Spanned, de::DeValue};

use super::{
    Upstream, files,
    names::TENANT,
    reader::{At, TableReader, alternatives},
    upstream::address,
};
use crate::{
    client::UpstreamClient,
    tenant::{self, Network, Question, SubjectName, Verifier, VerifierKey},
};

/// Where a tenant comes from, and how that is said in a summary.
#[derive(Debug, Clone)]
pub(super) struct Tenants {
    pub(super) tenancy: Tenancy,
    pub(super) described: String,
}

impl Default for Tenants {
    fn default() -> Self {
        Self { tenancy: Tenancy::credential(), described: "credential".to_owned() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TenantSourceKind {
    Credential,
    Single,
    Header,
    Cookie,
    Jwt,
    Subrequest,
    Certificate,
}

const SOURCES: &[(&str, TenantSourceKind)] = &[
    ("credential", TenantSourceKind::Credential),
    ("single", TenantSourceKind::Single),
    ("header", TenantSourceKind::Header),
    ("cookie", TenantSourceKind::Cookie),
    ("jwt", TenantSourceKind::Jwt),
    ("subrequest", TenantSourceKind::Subrequest),
    ("certificate", TenantSourceKind::Certificate),
];

impl TenantSourceKind {
    /// The settings that mean something for this source, beside `from`.
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Credential => &[],
            Self::Single | Self::Cookie => &["name"],
            Self::Header => &["name", "header", "trusted_proxies"],
            Self::Jwt => &[
                "secret",
                "secret_file",
                "public_key_file",
                "algorithms",
                "claim",
                "issuer",
                "audience",
                "leeway",
            ],
            Self::Subrequest => &["url", "header", "forward", "timeout"],
            Self::Certificate => &["san"],
        }
    }
}

/// What `tenant` says, as a word or as a table; `None` if it says nothing. `certificates` says whether
/// clients are asked for theirs.
pub(super) fn read(holder: &TableReader<'_>, dir: &Path, certificates: bool) -> Option<Tenants> {
    let value = holder.value("tenant")?;
    if matches!(value.get_ref(), DeValue::String(_)) {
        let from = holder.word("tenant", SOURCES)?;
        return match from.get_ref() {
            TenantSourceKind::Credential => Some(Tenants::default()),
            TenantSourceKind::Single => single(None),
            TenantSourceKind::Certificate => {
                by_certificate(holder, from.span(), None, certificates)
            }
            TenantSourceKind::Header
            | TenantSourceKind::Cookie
            | TenantSourceKind::Jwt
            | TenantSourceKind::Subrequest => {
                let what = "`tenant` needs to be told more; write a table, such as";
                let advice = "`tenant = { from = \"header\", header = \"X-Account\", … }`, instead";
                holder.fault(from.span(), format!("{what} {advice}"));
                None
            }
        };
    }
    let table = holder.table("tenant", TENANT);
    if !value.get_ref().is_table() {
        return None;
    }
    let from = table.word("from", SOURCES);
    if !table.has("from") {
        let sources = alternatives(SOURCES.iter().map(|(name, _)| format!("\"{name}\"")));
        holder.fault(holder.place("tenant"), format!("`tenant` has no `from`; write {sources}"));
    }
    let from = from?;
    refuse_other_settings(&table, *from.get_ref());
    match from.get_ref() {
        TenantSourceKind::Credential => Some(Tenants::default()),
        TenantSourceKind::Single => single(Some(&table)),
        TenantSourceKind::Header if table.has("name") => by_secret_header(&table),
        TenantSourceKind::Header => by_header(&table),
        TenantSourceKind::Cookie => by_cookie(&table),
        TenantSourceKind::Jwt => by_token(&table, dir),
        TenantSourceKind::Subrequest => by_question(&table),
        TenantSourceKind::Certificate => {
            let san = table.word("san", SAN).map(Spanned::into_inner);
            by_certificate(&table, table.place("from"), san, certificates)
        }
    }
}

const SAN: &[(&str, SubjectName)] = &[("uri", SubjectName::Uri), ("dns", SubjectName::Dns)];

fn by_certificate(
    table: &TableReader<'_>,
    place: Range<usize>,
    san: Option<SubjectName>,
    certificates: bool,
) -> Option<Tenants> {
    if !certificates {
        let what = "clients are not asked for certificates";
        let advice = "write `[tls]` and `client_ca = \"clients-ca.pem\"` too";
        table.fault(place, format!("{what}; {advice}"));
        return None;
    }
    let san = san.unwrap_or(SubjectName::Uri);
    let described = format!("the {} of the client's certificate", san.as_str());
    Some(Tenants { tenancy: tenant::from_certificate(san), described })
}

fn refuse_other_settings(table: &TableReader<'_>, from: TenantSourceKind) {
    for name in TENANT.iter().filter(|name| **name != "from" && table.has(name)) {
        if !from.settings().contains(name) {
            let owners = SOURCES.iter().filter(|(_, owner)| owner.settings().contains(name));
            let owners: Vec<_> = owners.map(|(word, _)| format!("`from = \"{word}\"`")).collect();
            let owners = alternatives(owners.into_iter());
            let what = format!("`{name}` means nothing here; leave it out, or write {owners}");
            table.fault(table.place(name), what);
        }
    }
}

fn single(table: Option<&TableReader<'_>>) -> Option<Tenants> {
    match table.filter(|table| table.has("name")) {
        Some(table) => table.parsed("name", named).map(Spanned::into_inner),
        None => named("everybody").ok(),
    }
}

fn named_tenancy(name: &str) -> Result<Tenancy, String> {
    let advice = "write 1 to 255 visible ASCII characters instead";
    let tenancy = Tenancy::single(name).ok().filter(|_| !name.trim().is_empty());
    tenancy.ok_or_else(|| format!("cannot be {name:?}; {advice}"))
}

/// A secret in a header that callers themselves send.
fn by_secret_header(table: &TableReader<'_>) -> Option<Tenants> {
    for other in ["header", "trusted_proxies"] {
        if table.has(other) {
            let what = format!("`{other}` means nothing beside `name`");
            let advice = "leave out `name` if a proxy names the tenant, or else this";
            table.fault(table.place(other), format!("{what}; {advice}"));
        }
    }
    let name = table.parsed("name", header_name)?.into_inner();
    Some(of_secret(CredentialPlace::Header(name)))
}

fn by_cookie(table: &TableReader<'_>) -> Option<Tenants> {
    let name = required(table, "name", table.parsed("name", cookie_name))?.into_inner();
    Some(of_secret(CredentialPlace::Cookie(name)))
}

fn of_secret(place: CredentialPlace) -> Tenants {
    let described = match &place {
        CredentialPlace::Header(name) => format!("the secret in header {name}, hashed"),
        CredentialPlace::Cookie(name) => format!("the secret in cookie {name}, hashed"),
    };
    Tenants { tenancy: Tenancy::credential_in(place), described }
}

fn by_header(table: &TableReader<'_>) -> Option<Tenants> {
    let header = required(table, "header", table.parsed("header", header_name));
    let trusted = table.list("trusted_proxies", network);
    let named = table.value("trusted_proxies");
    if named.is_none_or(|named| named.get_ref().as_array().is_some_and(|list| list.is_empty())) {
        let place = if named.is_some() { "trusted_proxies" } else { "from" };
        let what = "anybody could name anybody's tenant in a header";
        let advice = "write `trusted_proxies = [\"10.0.0.0/8\"]` with the proxies that set it, or \
                      `name` instead of `header` if it is a secret of the caller";
        table.fault(table.place(place), format!("{what}; {advice}"));
    }
    let (header, trusted) = (header?.into_inner(), trusted?.into_inner());
    let from = alternatives(trusted.iter().map(ToString::to_string));
    let described = format!("header {header} set by {from}");
    Some(Tenants { tenancy: tenant::from_header(header, trusted), described })
}

fn by_token(table: &TableReader<'_>, dir: &Path) -> Option<Tenants> {
    let text = |text: &str| Ok(text.to_owned());
    let names = |name| table.list(name, text).map(Spanned::into_inner).unwrap_or_default();
    let issuers = table.list("issuer", |issuer| {
        let is_one = !issuer.is_empty() && !issuer.contains(char::is_whitespace);
        let refusal = || format!("cannot be {issuer:?}; write it as the token's `iss` has it");
        is_one.then(|| issuer.to_owned()).ok_or_else(refusal)
    });
    let (issuers, audiences) =
        (issuers.map(Spanned::into_inner).unwrap_or_default(), names("audience"));
    let leeway = table.duration_or_zero("leeway").map(Spanned::into_inner);
    let claim = table.text("claim").map_or("sub", Spanned::into_inner);
    let key = token_key(table, &names("algorithms"), dir)?;
    let mut verifier = Verifier::new(key, claim, leeway.unwrap_or(Duration::from_secs(30)));
    if !issuers.is_empty() {
        verifier = verifier.issuers(&issuers);
    }
    if !audiences.is_empty() {
        verifier = verifier.audiences(&audiences);
    }
    let described = format!("claim {claim} of a signed token");
    Some(Tenants { tenancy: tenant::from_token(verifier), described })
}

fn token_key(table: &TableReader<'_>, algorithms: &[String], dir: &Path) -> Option<VerifierKey> {
    const KEYS: [&str; 3] = ["secret", "secret_file", "public_key_file"];
    let given: Vec<_> = KEYS.into_iter().filter(|name| table.has(name)).collect();
    let [name] = given[..] else {
        let what = match given.last() {
            None => {
                "no key verifies the tokens; write `public_key_file`, `secret_file` or `secret` too"
            }
            Some(_) => "two keys cannot both verify the tokens; leave one of them out",
        };
        table.fault(table.place(given.last().unwrap_or(&"from")), what);
        return None;
    };
    if table.has("algorithms") && algorithms.is_empty() {
        let what = "`algorithms` is empty, so no token could be good; leave it out instead";
        table.fault(table.place("algorithms"), what);
    }
    let path_or_secret = table.text(name)?;
    let key = match name {
        "secret" => VerifierKey::secret(path_or_secret.get_ref().as_bytes(), algorithms),
        "secret_file" => {
            let secret = files::named(table, name, &path_or_secret, dir)?;
            VerifierKey::secret(secret.trim_end_matches(['\r', '\n']).as_bytes(), algorithms)
        }
        _ => {
            let pem = files::named(table, name, &path_or_secret, dir)?;
            VerifierKey::public(pem.as_bytes(), algorithms)
        }
    };
    let blame = |error: &tenant::InvalidKey| match error {
        tenant::InvalidKey::Algorithm { .. } => table.place("algorithms"),
        tenant::InvalidKey::ShortSecret
        | tenant::InvalidKey::Private
        | tenant::InvalidKey::NotPem(_) => path_or_secret.span(),
    };
    key.map_err(|error| table.fault(blame(&error), error.to_string())).ok()
}

fn by_question(table: &TableReader<'_>) -> Option<Tenants> {
    let url = required(table, "url", table.parsed("url", address));
    let header = required(table, "header", table.parsed("header", header_name));
    let forward = table.list("forward", header_name).map(Spanned::into_inner);
    let within = table.duration("timeout").map(Spanned::into_inner);
    let (url, header) = (url?, header?.into_inner());
    let target = url.get_ref().path_and_query().map_or("/", |target| target.as_str());
    let question = Question {
        target: Uri::try_from(target).ok()?,
        forward: forward.unwrap_or_else(|| vec![header::AUTHORIZATION, header::COOKIE]),
        header,
        within: within.unwrap_or(Duration::from_secs(2)),
    };
    let described = format!("header {} of {}", question.header, url.get_ref());
    let client = UpstreamClient::new(&Upstream::at(without_path(url.get_ref())?));
    let client = client.map_err(|error| table.fault(url.span(), error.to_string())).ok()?;
    Some(Tenants { tenancy: tenant::from_answer(client, question), described })
}

fn without_path(url: &Uri) -> Option<Uri> {
    let (scheme, authority) = (url.scheme()?.clone(), url.authority()?.clone());
    Uri::builder().scheme(scheme).authority(authority).path_and_query("/").build().ok()
}

fn required<T>(table: &TableReader<'_>, name: &str, value: Option<At<T>>) -> Option<At<T>> {
    if !table.has(name) {
        table.fault(table.place("from"), format!("`{name}` is missing; write it too"));
    }
    value
}

fn network(text: &str) -> Result<Network, String> {
    let advice = "write an address or a network, such as \"10.0.0.7\" or \"10.0.0.0/8\", instead";
    text.parse().map_err(|error| format!("cannot be {text:?}: {error}; {advice}"))
}

/// What `--tenant` says: a word, `header:X-API-Key`, `cookie:session`, or the name of the one tenant.
pub(super) fn flag(text: &str) -> Result<Tenants, String> {
    const WORDS: &str = "\"credential\", \"single\", \"header:X-API-Key\", \"cookie:session\", or the \
                         name of the one tenant";
    if let Some((kind, name)) = text.split_once(':') {
        return match kind {
            "header" => Ok(of_secret(CredentialPlace::Header(header_name(name)?))),
            "cookie" => Ok(of_secret(CredentialPlace::Cookie(cookie_name(name)?))),
            _ => Err(format!("cannot be {text:?}; write {WORDS} instead")),
        };
    }
    let source = SOURCES.iter().find(|(word, _)| *word == text).map(|(_, source)| *source);
    match source {
        Some(TenantSourceKind::Credential) => Ok(Tenants::default()),
        Some(TenantSourceKind::Single) => named("everybody"),
        Some(TenantSourceKind::Header | TenantSourceKind::Cookie) => {
            Err(format!("needs a name; write \"{text}:NAME\" instead"))
        }
        Some(
            TenantSourceKind::Jwt | TenantSourceKind::Subrequest | TenantSourceKind::Certificate,
        ) => Err(format!(
            "cannot say all of that; write `[tenant]` and `from = \"{text}\"` in a file"
        )),
        None => named(text),
    }
}

fn named(name: &str) -> Result<Tenants, String> {
    let tenancy = named_tenancy(name)?;
    Ok(Tenants { tenancy, described: "one tenant for everybody".to_owned() })
}

/// The name of a cookie: a token, as RFC 6265 has it.
fn cookie_name(text: &str) -> Result<String, String> {
    let is_token = |byte: u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte);
    let is_name = !text.is_empty() && text.bytes().all(is_token);
    let advice = "write the name of a cookie, such as \"session\", instead";
    is_name.then(|| text.to_owned()).ok_or_else(|| format!("cannot be {text:?}; {advice}"))
}

/// The name of a header.
pub(super) fn header_name(text: &str) -> Result<HeaderName, String> {
    let advice = "write the name of a header, such as \"X-Request-Id\", instead";
    HeaderName::try_from(text).map_err(|_| format!("cannot be {text:?}; {advice}"))
}
