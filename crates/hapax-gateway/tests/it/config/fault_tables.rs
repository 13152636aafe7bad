//! What routes and tenants cannot be told.

use super::faults::{check, check_route, check_tenant};

#[test]
fn a_route_that_cannot_be_reached_or_understood_is_refused() {
    for (text, expected) in [
        (
            r#"[route]
match = "POST /a""#,
            &["3:1: `route` cannot be a table; write tables, each begun with `[[route]]`, instead"]
                [..],
        ),
        (
            "[[route]]",
            &[r#"3:1: this route matches nothing; write `match = "POST /payments"` too"#][..],
        ),
        (
            r#"[[route]]
match = "POST""#,
            &[
                r#"4:9: `match` names no path in "POST"; write methods and a path, such as "POST /payments/{id}" or "* /v1/*", instead"#,
            ][..],
        ),
        (
            r#"[[route]]
match = "GET /a""#,
            &[
                "4:9: `match` cannot be about GET, which changes nothing and always passes; leave it out",
            ][..],
        ),
        (
            r#"[[route]]
match = "post /a""#,
            &[r#"4:9: `match` names the method "post"; write "POST" instead"#][..],
        ),
        (
            r#"[[route]]
match = "POST /a/*/b""#,
            &[
                r#"4:9: `match` has the path "/a/*/b"; write `*` only as the last segment, or `{name}` for one segment, instead"#,
            ][..],
        ),
        (
            r#"[[route]]
match = "POST /a"
[[route]]
match = "POST, PUT /a""#,
            &["6:9: POST /a is already treated by the route in line 4; leave one of them out"][..],
        ),
        (
            r#"[[route]]
match = "POST /a/*"
[[route]]
match = "POST /a/{id}""#,
            &[
                "6:9: this route is never reached: the one in line 4 comes first; write this one above it instead",
            ][..],
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn what_a_route_says_must_be_understood() {
    for (text, expected) in [
        (r#"match = "POST /b""#, &["5:1: duplicate key"][..]),
        (
            r#"key = "yes""#,
            &[r#"5:7: `key` cannot be "yes"; write "required", "optional" or "strict" instead"#][..],
        ),
        (
            "key = true",
            &[
                r#"5:7: `key` cannot be true or false; write "required", "optional" or "strict" instead"#,
            ][..],
        ),
        (
            r#"header = "X Key""#,
            &[
                r#"5:10: `header` cannot be "X Key"; write the name of a header, such as "X-Request-Id", instead"#,
            ][..],
        ),
        (
            r#"header = "X-Key"
dialect = "repeatability""#,
            &["6:1: `header` and `dialect` both say where the key is; leave one of them out"][..],
        ),
        (
            r#"lease = "10s"
timeout = "20s""#,
            &[
                r#"5:9: a `lease` of 10s is not longer than the `timeout` of 20s; write `lease = "25s"`, or a shorter `timeout`, instead"#,
            ][..],
        ),
        (
            r#"lease = "10s""#,
            &[
                r#"5:9: a `lease` of 10s is not longer than the `timeout` of 25s; write `lease = "30s"`, or a shorter `timeout`, instead"#,
            ][..],
        ),
        (
            r#"timeout = "2h""#,
            &["5:1: `timeout` is not shorter than the longest lease; write less than 1h"][..],
        ),
        (
            r#"retention = "20s""#,
            &[
                r#"5:1: a `retention` of 20s is shorter than the `lease`, 30s; write `retention = "30s"` or more instead"#,
            ][..],
        ),
        (
            r#"retention = "-1d""#,
            &[
                r#"5:13: `retention` cannot be negative, as "-1d" is; write a whole number and a unit, such as "250ms", "10s", "24h" or "7d", instead"#,
            ][..],
        ),
        (
            r#"retention = "500d""#,
            &[r#"5:13: `retention` cannot be "500d"; write at most "400d" instead"#][..],
        ),
        (
            r#"retention = "10ms""#,
            &[
                r#"5:1: a `retention` of 10ms is shorter than the `lease`, 30s; write `retention = "30s"` or more instead"#,
            ][..],
        ),
        (
            "retention = 24",
            &[
                r#"5:13: `retention` cannot be a whole number; write a duration in quotes, such as "10s" or "24h", instead"#,
            ][..],
        ),
        (
            r#"recovery = "probe""#,
            &[
                r#"5:1: `recovery` is "probe", and nobody says what to ask; write `probe = "/payments/by-key/{key}"` too"#,
            ][..],
        ),
        (
            r#"probe = "/by/{key}""#,
            &[r#"5:1: `probe` is never asked; write `recovery = "probe"` too, or leave it out"#][..],
        ),
    ] {
        check_route(text, expected);
    }
}

#[test]
fn settings_of_a_route_that_contradict_each_other_are_refused() {
    for (text, expected) in [
        (
            r#"recovery = "probe"
probe = "/by/{id}""#,
            &[
                r#"6:9: `probe` cannot be "/by/{id}", where only {key} and {path} are known; write a path, such as "/payments/by-key/{key}", instead"#,
            ][..],
        ),
        (
            r#"wait = "5s""#,
            &[r#"5:1: `wait` means nothing here; write `in_flight = "wait"` too, or leave it out"#]
                [..],
        ),
        (
            r#"fingerprint = { ignore = ["/sent_at"] }"#,
            &[r#"5:17: `ignore` means nothing here; write `body = "json"` too, or leave it out"#][..],
        ),
        (
            r#"fingerprint = { body = "json", ignore = ["sent_at"] }"#,
            &[
                r#"5:42: `ignore` cannot be "sent_at"; write a JSON pointer, such as "/sent_at", instead"#,
            ][..],
        ),
        (
            r#"fingerprint = "json""#,
            &["5:15: `fingerprint` cannot be text; write a table, `[fingerprint]`, instead"][..],
        ),
        (
            "burst = 5",
            &[
                r#"5:1: `burst` means nothing here; write `rate_limit = "50/s"` too, or leave it out"#,
            ][..],
        ),
        (
            r#"rate_limit = "fast""#,
            &[
                r#"5:14: `rate_limit` cannot be "fast"; write how many operations may begin in a second, such as "50/s", instead"#,
            ][..],
        ),
        (
            r#"request_max = "1GiB""#,
            &["5:15: `request_max` cannot be 1GiB; write a size from 1B to 15MiB instead"][..],
        ),
        (
            r#"response_max = "17MiB""#,
            &["5:16: `response_max` cannot be 17MiB; write a size from 1B to 16MiB instead"][..],
        ),
        (
            r#"stored_headers = ["Set-Cookie", 5, "a b"]"#,
            &[
                "5:33: `stored_headers` cannot be a whole number; write text in quotes instead",
                r#"5:36: `stored_headers` cannot be "a b"; write the name of a header, such as "X-Request-Id", instead"#,
            ][..],
        ),
        (
            r#"treatment = "pass"
key = "required""#,
            &["6:1: `key` means nothing on a route that passes; leave it out"][..],
        ),
        (
            r#"scope = "ü""#,
            &[r#"5:9: `scope` cannot be "ü"; write "path", or a name in visible ASCII, instead"#][..],
        ),
        (
            r#"tenant = "jwt""#,
            &[
                r#"5:10: `tenant` needs to be told more; write a table, such as `tenant = { from = "header", header = "X-Account", … }`, instead"#,
            ][..],
        ),
        (
            "tenant = 5",
            &["5:10: `tenant` cannot be a whole number; write a table, `[tenant]`, instead"][..],
        ),
    ] {
        check_route(text, expected);
    }
}

#[test]
fn a_tenant_that_anybody_could_pretend_to_be_is_refused() {
    for (text, expected) in [
        (
            r#"from = "header"
header = "X-Account""#,
            &[
                r#"4:1: anybody could name anybody's tenant in a header; write `trusted_proxies = ["10.0.0.0/8"]` with the proxies that set it"#,
            ][..],
        ),
        (
            r#"from = "header"
header = "X-Account"
trusted_proxies = []"#,
            &[
                r#"6:1: anybody could name anybody's tenant in a header; write `trusted_proxies = ["10.0.0.0/8"]` with the proxies that set it"#,
            ][..],
        ),
        (
            r#"from = "header"
header = "X-Account"
trusted_proxies = ["0.0.0.0/0", "proxy"]"#,
            &[
                r#"6:20: `trusted_proxies` cannot be "0.0.0.0/0": it would trust everybody; write an address or a network, such as "10.0.0.7" or "10.0.0.0/8", instead"#,
                r#"6:33: `trusted_proxies` cannot be "proxy": it is not an address; write an address or a network, such as "10.0.0.7" or "10.0.0.0/8", instead"#,
            ][..],
        ),
        (
            r#"from = "header"
trusted_proxies = ["10.0.0.0/8"]"#,
            &["4:1: `header` is missing; write it too"][..],
        ),
        (
            r#"from = "jwt""#,
            &[
                "4:1: no key verifies the tokens; write `public_key_file`, `secret_file` or `secret` too",
            ][..],
        ),
        (
            r#"from = "jwt"
secret = "short""#,
            &["5:10: the secret is shorter than 32 bytes; use a longer one, made at random"][..],
        ),
        (
            r#"from = "jwt"
secret = "0123456789012345678901234567890123456789"
algorithms = ["RS256"]"#,
            &[
                r#"6:1: "RS256" does not fit the key; write one of "HS256", "HS384", "HS512" instead"#,
            ][..],
        ),
        (
            r#"from = "jwt"
secret = "0123456789012345678901234567890123456789"
algorithms = ["none"]"#,
            &[
                r#"6:1: "none" does not fit the key; write one of "HS256", "HS384", "HS512" instead"#,
            ][..],
        ),
        (
            r#"from = "jwt"
secret = "0123456789012345678901234567890123456789"
secret_file = "x""#,
            &["6:1: two keys cannot both verify the tokens; leave one of them out"][..],
        ),
        (
            r#"from = "jwt"
public_key_file = "missing.pem""#,
            &[
                "5:19: `public_key_file` names missing.pem, which cannot be read: No such file or directory (os error 2); write the path of a file instead",
            ][..],
        ),
        (
            r#"from = "credential"
claim = "sub""#,
            &[r#"5:1: `claim` means nothing here; leave it out, or write `from = "jwt"`"#][..],
        ),
        (
            r#"name = "shop""#,
            &[
                r#"3:2: `tenant` has no `from`; write "credential", "single", "header", "jwt" or "subrequest""#,
            ][..],
        ),
        (
            r#"from = "cookie""#,
            &[
                r#"4:8: `from` cannot be "cookie"; write "credential", "single", "header", "jwt" or "subrequest" instead"#,
            ][..],
        ),
        (
            r#"from = "subrequest""#,
            &["4:1: `header` is missing; write it too", "4:1: `url` is missing; write it too"][..],
        ),
    ] {
        check_tenant(text, expected);
    }
}

#[test]
fn certificates_that_are_not_there_are_refused() {
    for (text, expected) in [
        (
            r#"[tls]
certificate = "missing.pem"
key = "missing.key""#,
            &[
                "4:15: `certificate` names missing.pem, which cannot be read: No such file or directory (os error 2); write the path of a file instead",
                "5:7: `key` names missing.key, which cannot be read: No such file or directory (os error 2); write the path of a file instead",
            ][..],
        ),
        (
            r#"[tls]
certificate = "missing.pem""#,
            &[
                r#"3:2: `[tls]` has no `key`; write `key = "key.pem"` too"#,
                "4:15: `certificate` names missing.pem, which cannot be read: No such file or directory (os error 2); write the path of a file instead",
            ][..],
        ),
    ] {
        check(text, expected);
    }
}
