//! The name of every setting, and which one somebody may have meant.

/// Every table of the file, with the settings it may hold.
pub const SETTINGS: &[(&str, &[&str])] = &[
    ("", TOP),
    ("admin_oidc", ADMIN_OIDC),
    ("upstream", UPSTREAM),
    ("tls", TLS),
    ("encryption", ENCRYPTION),
    ("cors", CORS),
    ("limits", LIMITS),
    ("tenant", TENANT),
    ("defaults", DEFAULTS),
    ("route", ROUTE),
    ("fingerprint", FINGERPRINT),
    ("key", KEY),
];

pub(crate) const TOP: &[&str] = &[
    "listen",
    "admin",
    "admin_token",
    "admin_token_file",
    "admin_read_token",
    "admin_read_token_file",
    "admin_hosts",
    "admin_oidc",
    "store",
    "store_file",
    "store_env",
    "hosts",
    "workers",
    "drain",
    "drain_delay",
    "cache",
    "sweep",
    "clock_stays",
    "otherwise",
    "upstream",
    "tls",
    "encryption",
    "cors",
    "limits",
    "tenant",
    "defaults",
    "route",
];
pub(crate) const ADMIN_OIDC: &[&str] = &[
    "issuer",
    "client_id",
    "client_secret_file",
    "client_secret_env",
    "dashboard",
    "scopes",
    "claim",
    "operate",
    "read",
    "person",
    "called",
    "ca",
];
pub(crate) const UPSTREAM: &[&str] = &[
    "url",
    "protocol",
    "connect_timeout",
    "idle",
    "connections",
    "reserve",
    "long_lived",
    "stream_idle",
    "answer_timeout",
    "answer_head",
    "answer_headers",
    "keep_host",
    "paths",
    "ca",
    "certificate",
    "key",
];
pub(crate) const TLS: &[&str] = &["certificate", "key", "client_ca", "client_certificates"];
pub(crate) const ENCRYPTION: &[&str] = &[
    "master_key_file",
    "master_key_env",
    "kms_key",
    "kms_region",
    "kms_endpoint",
    "previous_key_file",
    "previous_key_env",
    "previous_kms_key",
    "rotate_after",
];
pub(crate) const CORS: &[&str] = &["origins", "credentials", "max_age"];
pub(crate) const LIMITS: &[&str] = &[
    "connections",
    "head",
    "headers",
    "head_timeout",
    "body_timeout",
    "body_rate",
    "send_timeout",
    "idle_timeout",
    "streams",
    "buffered",
    "answers",
    "share",
    "admin_connections",
];
pub(crate) const TENANT: &[&str] = &[
    "from",
    "name",
    "header",
    "trusted_proxies",
    "secret",
    "secret_file",
    "public_key_file",
    "algorithms",
    "claim",
    "issuer",
    "audience",
    "leeway",
    "url",
    "forward",
    "timeout",
    "san",
];
/// What a route says about its requests, and what `[defaults]` says for those that do not.
pub(crate) const DEFAULTS: &[&str] = &PROTECTION;
const PROTECTION: [&str; 38] = [
    "mode",
    "key",
    "forward_key",
    "header",
    "dialect",
    "scope",
    "fingerprint",
    "retention",
    "retain_from",
    "tombstone",
    "lease",
    "timeout",
    "grpc_timeout",
    "receive_within",
    "in_flight",
    "respond_async",
    "wait",
    "wait_max",
    "results",
    "recovery",
    "probe",
    "probe_status",
    "upstream_works_for",
    "recover_for",
    "revalidate",
    "keep_credentials",
    "secret_headers",
    "request_max",
    "response_max",
    "keep_body",
    "rate_limit",
    "burst",
    "store_down",
    "stored_headers",
    "unstored_headers",
    "amount",
    "amount_decimals",
    "currency",
];
/// What a route says of itself beside that.
const OF_A_ROUTE: [&str; 3] = ["match", "treatment", "tenant"];
pub(crate) const ROUTE: &[&str] = &{
    let mut names = [""; OF_A_ROUTE.len() + PROTECTION.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] =
            if at < OF_A_ROUTE.len() { OF_A_ROUTE[at] } else { PROTECTION[at - OF_A_ROUTE.len()] };
        at += 1;
    }
    names
};
pub(crate) const FINGERPRINT: &[&str] = &["body", "ignore", "headers"];
pub(crate) const KEY: &[&str] = &["from", "pointer", "name", "within", "if_missing"];
/// Settings, and where they belong, in words.
pub(crate) type Home = (String, &'static [&'static str]);

/// Where each setting of a gateway's file belongs.
pub(crate) fn homes() -> Vec<Home> {
    let words = |table: &str| match table {
        "" => TOP_OF_FILE.to_owned(),
        "route" => "in `[[route]]`".to_owned(),
        "fingerprint" => "in `fingerprint` of a route".to_owned(),
        "key" => "in `key` of a route".to_owned(),
        table => format!("in `[{table}]`"),
    };
    SETTINGS.iter().map(|(table, names)| (words(table), *names)).collect()
}

/// Where what belongs to no table is.
pub(crate) const TOP_OF_FILE: &str = "at the top of the file, above every table,";

/// The known name that is spelled most like this one, if any is near.
pub(crate) fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let far = written.chars().count().max(3) / 3 + 1;
    let best = known.iter().map(|name| (distance(written, name), *name)).min()?;
    (best.0 <= far && written.len() < NAME_BYTES_MAX).then_some(best.1)
}

/// Longest name that is compared with others: the comparison takes time with its square.
const NAME_BYTES_MAX: usize = 64;

/// How many letters have to be added, dropped or changed.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > NAME_BYTES_MAX {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, in_a) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, in_b) in b.iter().enumerate() {
            let changed = diagonal + usize::from(in_a != *in_b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_recognised_and_another_word_is_not() {
        for (written, meant) in [
            ("retension", Some("retention")),
            ("in-flight", Some("in_flight")),
            ("Lease", Some("lease")),
            ("stored_header", Some("stored_headers")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, ROUTE), meant, "{written}");
        }
    }

    #[test]
    fn a_route_may_say_what_the_defaults_may() {
        assert!(DEFAULTS.iter().all(|name| ROUTE.contains(name)));
    }
}
