//! Where requests go, and what clients may use: `[upstream]`, `[tls]` and `[limits]`.

use std::{path::Path, time::Duration};

use hapax_tower::PathReading;
use http::Uri;
use toml::Spanned;

use super::{
    CertifiedKey, ClientCertificates, Limits, Protocol, Tls, Upstream, files, names,
    reader::{At, TableReader},
};

/// Most connections in either direction.
const CONNECTIONS_MAX: u32 = 1_000_000;
/// Bounds of a head, in bytes: below, ordinary cookies do not fit; above, no server reads on.
const HEAD_BYTES: (u64, u64) = (8 << 10, 1 << 20);
/// Bounds of the head of an answer, in bytes: it comes from whom we protect.
const ANSWER_HEAD_BYTES: (u64, u64) = (8 << 10, 16 << 20);
/// Most headers of a request or an answer.
const HEADERS_MAX: u32 = 4096;
/// Most requests at one time on an HTTP/2 connection.
const STREAMS_MAX: u32 = 10_000;
/// Bounds of the room for bodies, in bytes.
const BUFFERED_BYTES: (u64, u64) = (1 << 20, 1 << 40);
/// Bounds of what one connection may have of it, in bytes.
const SHARE_BYTES: (u64, u64) = (64 << 10, 1 << 40);
/// Highest least rate, in bytes.
const BODY_RATE_BYTES: (u64, u64) = (0, 1 << 20);
/// How many connections may together take all the room, where nothing is said about shares.
const SHARES: usize = 8;
/// Which part of the connections to the upstream is kept for protected requests, where nothing is
/// said about it.
const RESERVED_PART: usize = 4;

impl Upstream {
    /// The API at this address, with what is usual for the rest.
    pub fn at(url: Uri) -> Self {
        Self {
            url,
            protocol: Protocol::Automatic,
            connect_timeout: Duration::from_secs(5),
            // Node and uvicorn close after 5 s.
            idle: Duration::from_secs(3),
            connections_max: 1024,
            reserve: 1024 / RESERVED_PART,
            long_lived_max: 1000,
            silence_max: Duration::from_secs(60 * 60),
            answer_timeout: Duration::from_secs(60),
            answer_head_bytes_max: 400 << 10,
            answer_headers_max: 256,
            keep_host: false,
            paths: PathReading::Lenient,
            ca: None,
            identity: None,
        }
    }

    /// What `[upstream]` says about the API at this address.
    pub(super) fn read(table: &TableReader<'_>, url: Uri, dir: &Path) -> Self {
        let usual = Self::at(url);
        let protocols =
            [("auto", Protocol::Automatic), ("http1", Protocol::Http1), ("http2", Protocol::Http2)];
        let protocol = table.word("protocol", &protocols).map(Spanned::into_inner);
        let paths = [("lenient", PathReading::Lenient), ("literal", PathReading::Literal)];
        let paths = table.word("paths", &paths).map(Spanned::into_inner);
        let duration = |name| table.duration(name).map(Spanned::into_inner);
        let (head_min, head_max) = ANSWER_HEAD_BYTES;
        let answer_head = table.size("answer_head", head_min, head_max).map(Spanned::into_inner);
        let long_lived =
            table.count_or_zero("long_lived", CONNECTIONS_MAX).map(Spanned::into_inner);
        let long_lived = long_lived.and_then(|count| usize::try_from(count).ok());
        let connections_max =
            count(table, "connections", CONNECTIONS_MAX).unwrap_or(usual.connections_max);
        Self {
            protocol: protocol.unwrap_or(usual.protocol),
            connect_timeout: duration("connect_timeout").unwrap_or(usual.connect_timeout),
            idle: duration("idle").unwrap_or(usual.idle),
            connections_max,
            reserve: reserve(table, connections_max),
            long_lived_max: long_lived.unwrap_or(usual.long_lived_max),
            silence_max: duration("stream_idle").unwrap_or(usual.silence_max),
            answer_timeout: duration("answer_timeout").unwrap_or(usual.answer_timeout),
            answer_head_bytes_max: answer_head.unwrap_or(usual.answer_head_bytes_max),
            answer_headers_max: count(table, "answer_headers", HEADERS_MAX)
                .unwrap_or(usual.answer_headers_max),
            keep_host: table.flag("keep_host").unwrap_or(usual.keep_host),
            paths: paths.unwrap_or(usual.paths),
            ca: table
                .text("ca")
                .map(|path| files::expected(table, "ca", &path, dir, "BEGIN CERTIFICATE")),
            identity: identity(table, &usual.url, dir),
            ..usual
        }
    }
}

impl Tls {
    /// What `[tls]` says, if it is there.
    pub(super) fn read(top: &TableReader<'_>, dir: &Path) -> Option<Self> {
        if !top.has("tls") {
            return None;
        }
        let table = top.table("tls", names::TLS);
        for name in ["certificate", "key"].into_iter().filter(|name| !table.has(name)) {
            let what = format!("`[tls]` has no `{name}`; write `{name} = \"{name}.pem\"` too");
            table.fault(top.place("tls"), what);
        }
        let clients = ClientCertificates::read(&table, dir);
        Some(Self { identity: certified_key(&table, dir)?, clients })
    }
}

impl ClientCertificates {
    /// What `[tls]` says about the certificates of clients, if anything.
    fn read(table: &TableReader<'_>, dir: &Path) -> Option<Self> {
        let ca = table.text("client_ca");
        let required = table.word("client_certificates", &[("require", true), ("optional", false)]);
        if required.is_some() && !table.has("client_ca") {
            let what = "nobody is named who signs the certificates of clients";
            let advice = "write `client_ca = \"clients-ca.pem\"` too";
            table.fault(table.place("client_certificates"), format!("{what}; {advice}"));
        }
        let ca = files::expected(table, "client_ca", &ca?, dir, "BEGIN CERTIFICATE");
        Some(Self { ca, required: required.is_none_or(At::into_inner) })
    }
}

/// What the gateway shows to the upstream: both parts, or neither.
fn identity(table: &TableReader<'_>, url: &Uri, dir: &Path) -> Option<CertifiedKey> {
    let [has_certificate, has_key] = ["certificate", "key"].map(|name| table.has(name));
    if has_certificate != has_key {
        let (there, missing) =
            if has_key { ("key", "certificate") } else { ("certificate", "key") };
        let what = format!("`{there}` is of no use alone; write `{missing}` too");
        table.fault(table.place(there), what);
    }
    if has_certificate && url.scheme_str() == Some("http") {
        let what = "a certificate is shown over TLS alone; write `url = \"https://…\"` instead";
        table.fault(table.place("certificate"), what);
    }
    certified_key(table, dir)
}

fn certified_key(table: &TableReader<'_>, dir: &Path) -> Option<CertifiedKey> {
    let file = |name: &str, holds: &str| {
        table.text(name).map(|path| files::expected(table, name, &path, dir, holds))
    };
    let (certificate, key) = (file("certificate", "BEGIN CERTIFICATE"), file("key", "PRIVATE KEY"));
    Some(CertifiedKey { certificate: certificate?, key: key? })
}

impl Default for Limits {
    /// 10,000 connections, heads of 64 KiB in 10 s, bodies and answers that move at 1 KiB/s.
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            head_bytes_max: 64 << 10,
            headers_max: 100,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            body_bytes_per_second_min: 1 << 10,
            send_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(75),
            streams_max: 128,
            buffered_bytes_max: 256 << 20,
            answers_bytes_max: 256 << 20,
            share_bytes_max: (256 << 20) / SHARES,
            admin_connections_max: 64,
        }
    }
}

impl Limits {
    /// What `[limits]` says.
    pub(super) fn read(top: &TableReader<'_>) -> Self {
        let (table, usual) = (top.table("limits", names::LIMITS), Self::default());
        let duration = |name| table.duration(name).map(Spanned::into_inner);
        let size = |name, (min, max)| table.size(name, min, max).map(Spanned::into_inner);
        let streams = table.count("streams", STREAMS_MAX).map(Spanned::into_inner);
        let buffered_bytes_max =
            size("buffered", BUFFERED_BYTES).unwrap_or(usual.buffered_bytes_max);
        let answers_bytes_max = size("answers", BUFFERED_BYTES).unwrap_or(usual.answers_bytes_max);
        let an_eighth = buffered_bytes_max.min(answers_bytes_max) / SHARES;
        Self {
            connections_max: count(&table, "connections", CONNECTIONS_MAX)
                .unwrap_or(usual.connections_max),
            head_bytes_max: size("head", HEAD_BYTES).unwrap_or(usual.head_bytes_max),
            headers_max: count(&table, "headers", HEADERS_MAX).unwrap_or(usual.headers_max),
            head_timeout: duration("head_timeout").unwrap_or(usual.head_timeout),
            body_timeout: duration("body_timeout").unwrap_or(usual.body_timeout),
            body_bytes_per_second_min: size("body_rate", BODY_RATE_BYTES)
                .unwrap_or(usual.body_bytes_per_second_min),
            send_timeout: duration("send_timeout").unwrap_or(usual.send_timeout),
            idle_timeout: duration("idle_timeout").unwrap_or(usual.idle_timeout),
            streams_max: streams.unwrap_or(usual.streams_max),
            buffered_bytes_max,
            answers_bytes_max,
            share_bytes_max: size("share", SHARE_BYTES).unwrap_or(an_eighth),
            admin_connections_max: count(&table, "admin_connections", CONNECTIONS_MAX)
                .unwrap_or(usual.admin_connections_max),
        }
    }
}

/// How many of the connections to the upstream only protected requests may use: always one less
/// than there are, so that others can be served at all.
fn reserve(table: &TableReader<'_>, connections_max: usize) -> usize {
    let reserve = count(table, "reserve", CONNECTIONS_MAX);
    if reserve.is_some_and(|reserve| reserve >= connections_max) {
        let what = "`reserve` leaves no connection for requests that are not protected";
        table.fault(table.place("reserve"), format!("{what}; write a larger `connections`"));
    }
    reserve.unwrap_or(connections_max / RESERVED_PART)
}

/// A whole number from one to `max`.
pub(super) fn count(table: &TableReader<'_>, name: &str, max: u32) -> Option<usize> {
    usize::try_from(table.count(name, max)?.into_inner()).ok()
}

/// The address of something that speaks HTTP: `http://host[:port][/path]`.
pub(super) fn address(text: &str) -> Result<Uri, String> {
    let refuse = |why: &str| {
        format!("cannot be {text:?}{why}; write \"http://127.0.0.1:3000\" or \"https://…\" instead")
    };
    let uri: Uri = text.parse().map_err(|_| refuse(""))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        Some(_) => return Err(refuse(", which is neither http nor https")),
        None => return Err(refuse(", which does not start with http:// or https://")),
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err(refuse(", which names no host"));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("cannot hold a password; leave out what stands before `@`".to_owned());
    }
    Ok(uri)
}

/// The address of an API, as text is read: `http://host[:port][/path]`. The refusal goes on after the name of a
/// setting.
pub fn origin(text: &str) -> Result<Uri, String> {
    let uri = address(text)?;
    if uri.query().is_some() {
        return Err(format!("cannot hold a query, as {text:?} does; leave out what follows `?`"));
    }
    Ok(uri)
}
