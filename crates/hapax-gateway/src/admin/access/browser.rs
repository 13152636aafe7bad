//! What has to be true of a request that a browser made.
//!
//! A browser sends cookies for whichever page asks it to. Three rules keep other pages out:
//!
//! - the request came by a name that is ours, so that nobody's domain can be pointed at this
//!   listener and read it as its own;
//! - the browser does not say that another site or port caused it;
//! - a change carries a header that no form can send, and comes from the page's own origin.

use std::net::IpAddr;

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, header::HOST, header::ORIGIN},
};

use super::AdminAccess;
use crate::admin::problem::AdminProblem;

/// What the page's own script sends with every change.
static DASHBOARD: HeaderName = HeaderName::from_static("hapax-dashboard");
static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses what another page may have caused.
pub(super) fn checked(access: &AdminAccess, request: &Request) -> Result<(), AdminProblem> {
    let host = known_host(access, request)?;
    let headers = request.headers();
    let is_change = !request.method().is_safe();
    let is_ours = match headers.get(&SEC_FETCH_SITE).map(|value| value.as_bytes()) {
        Some(b"same-origin") | None => true,
        // Typed by a person, who cannot type a change.
        Some(b"none") => !is_change,
        Some(_) => false,
    };
    if !is_ours || !is_same_origin(headers, &host) {
        return Err(AdminProblem::forbidden("cross-site", "another page caused this request"));
    }
    if is_change && !headers.contains_key(&DASHBOARD) {
        return Err(AdminProblem::forbidden(
            "cross-site",
            "a change by a session needs the header `Hapax-Dashboard`, which no form can send",
        ));
    }
    Ok(())
}

/// The name by which a request came, if browsers may come by it.
pub(in crate::admin) fn known_host(
    access: &AdminAccess,
    request: &Request,
) -> Result<String, AdminProblem> {
    let named = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let host = authority.or(named).unwrap_or_default().to_ascii_lowercase();
    if is_known(access, &host) { Ok(host) } else { Err(AdminProblem::unknown_host()) }
}

fn is_known(access: &AdminAccess, host: &str) -> bool {
    let name = without_port(host);
    if let Ok(address) = name.trim_matches(['[', ']']).parse::<IpAddr>() {
        let listener = access.address.ip();
        // Nobody can point an address by number elsewhere; a listener on all addresses has any.
        return address.is_loopback() || address == listener || listener.is_unspecified();
    }
    name == "localhost" || access.hosts.iter().any(|known| known == host || known == name)
}

fn without_port(host: &str) -> &str {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && (!name.contains(':') || name.ends_with(']')) => name,
        Some(_) | None => host,
    }
}

/// Whether the page that sent it, if it says which, is where the request goes.
fn is_same_origin(headers: &HeaderMap, host: &str) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
    origin.split_once("://").is_some_and(|(_, authority)| authority == host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(address: &str, hosts: &[&str], host: &str) -> bool {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let address = address.parse().unwrap();
        is_known(&AdminAccess { hosts, address, ..AdminAccess::default() }, host)
    }

    #[test]
    fn loopback_the_listener_and_configured_names_are_known_and_nothing_else() {
        for (address, host, is_known) in [
            ("127.0.0.1:8081", "127.0.0.1:8081", true),
            ("127.0.0.1:8081", "127.0.0.1", true),
            ("127.0.0.1:8081", "localhost:9000", true),
            ("127.0.0.1:8081", "[::1]:8081", true),
            ("127.0.0.1:8081", "10.0.0.7:8081", false),
            ("10.0.0.7:8081", "10.0.0.7:8081", true),
            ("10.0.0.7:8081", "10.0.0.8:8081", false),
            ("0.0.0.0:8081", "10.0.0.8:8081", true),
            ("127.0.0.1:8081", "evil.example:8081", false),
            ("0.0.0.0:8081", "evil.example", false),
            ("127.0.0.1:8081", "localhost.evil.example", false),
            ("127.0.0.1:8081", "127.0.0.1.evil.example", false),
            ("127.0.0.1:8081", "admin.example", true),
            ("127.0.0.1:8081", "admin.example:443", true),
            ("127.0.0.1:8081", "admin.example:443:1", false),
            ("127.0.0.1:8081", "", false),
        ] {
            let hosts = &["admin.example"];
            assert_eq!(known(address, hosts, host), is_known, "{host:?} at {address}");
        }
    }
}
