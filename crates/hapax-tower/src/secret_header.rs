//! Which headers carry secrets, by what they are called.

use http::HeaderName;

/// Words that only the name of a secret has.
const SECRET_WORDS: [&str; 16] = [
    "apikey",
    "assertion",
    "auth",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "dpop",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "secret",
    "session",
    "sessionid",
    "token",
];

/// Whose key is a secret; other keys, such as those of caches and partitions, only name something.
const KEY_OWNERS: [&str; 12] = [
    "access",
    "account",
    "admin",
    "api",
    "app",
    "client",
    "customer",
    "encryption",
    "functions",
    "private",
    "service",
    "subscription",
];

/// Whether a request's header carries a secret, as far as its name says: `Authorization`, `Cookie`,
/// `X-Api-Key`, `X-Auth-Token`, `X-Amz-Security-Token`, `X-Goog-Iap-Jwt-Assertion` and their like.
///
/// What is called otherwise has to be named: [`Protection::secret_headers`](crate::Protection).
///
/// ```
/// use hapax_tower::is_secret_header;
/// use http::HeaderName;
///
/// assert!(is_secret_header(&HeaderName::from_static("x-api-key")));
/// assert!(!is_secret_header(&HeaderName::from_static("idempotency-key")));
/// ```
pub fn is_secret_header(name: &HeaderName) -> bool {
    let mut before = "";
    for word in name.as_str().split(['-', '_']) {
        if SECRET_WORDS.contains(&word) || word == "key" && KEY_OWNERS.contains(&before) {
            return true;
        }
        before = word;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_clouds_gateways_and_frameworks_are_known_by_their_names() {
        for name in [
            "authorization",
            "proxy-authorization",
            "cookie",
            "x-api-key",
            "api-key",
            "apikey",
            "api_key",
            "x-auth-token",
            "x-auth-key",
            "x-access-token",
            "x-amz-security-token",
            "x-amz-server-side-encryption-customer-key",
            "x-amzn-oidc-accesstoken-jwt",
            "x-goog-api-key",
            "x-goog-iap-jwt-assertion",
            "x-goog-iam-authorization-token",
            "x-ms-token-aad-access-token",
            "ocp-apim-subscription-key",
            "x-functions-key",
            "x-vault-token",
            "private-token",
            "cf-access-client-secret",
            "x-forwarded-access-token",
            "x-csrf-token",
            "x-session-id",
            "dpop",
        ] {
            assert!(is_secret_header(&HeaderName::from_static(name)), "{name}");
        }
    }

    #[test]
    fn what_only_names_or_describes_something_is_no_secret() {
        for name in [
            "idempotency-key",
            "repeatability-request-id",
            "x-partition-key",
            "surrogate-key",
            "content-type",
            "accept",
            "x-request-id",
            "x-account",
            "author",
            "x-forwarded-for",
        ] {
            assert!(!is_secret_header(&HeaderName::from_static(name)), "{name}");
        }
    }
}
