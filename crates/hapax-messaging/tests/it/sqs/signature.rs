//! Signatures as whoever receives them checks them: by Amazon's description, not by our client.

use std::fmt::Write;

use axum::http::{HeaderMap, Method};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// What a signature is made from, as it came over the wire.
pub(super) struct SignedRequest<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
}

/// The parts of an `Authorization`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authorization {
    pub(super) access_key_id: String,
    pub(super) scope: String,
    pub(super) signed_headers: String,
    pub(super) signature: String,
}

impl Authorization {
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get("authorization")?.to_str().ok()?;
        let text = text.strip_prefix("AWS4-HMAC-SHA256 Credential=")?;
        let (credential, rest) = text.split_once(", SignedHeaders=")?;
        let (signed_headers, signature) = rest.split_once(", Signature=")?;
        let (access_key_id, scope) = credential.split_once('/')?;
        Some(Self {
            access_key_id: access_key_id.to_owned(),
            scope: scope.to_owned(),
            signed_headers: signed_headers.to_owned(),
            signature: signature.to_owned(),
        })
    }
}

/// The signature that a request must have which was signed with this secret for this scope, such as
/// `20150830/us-east-1/sqs/aws4_request`.
pub(super) fn signature_of(
    request: &SignedRequest<'_>,
    signed_headers: &str,
    scope: &str,
    secret: &str,
) -> String {
    let mut query: Vec<_> = request.query.split('&').filter(|pair| !pair.is_empty()).collect();
    query.sort_unstable();
    let mut canonical = format!("{}\n{}\n{}\n", request.method, request.path, query.join("&"));
    for name in signed_headers.split(';') {
        let value = request.headers[name].to_str().unwrap();
        let _ = writeln!(canonical, "{name}:{}", value.trim());
    }
    let _ = write!(canonical, "\n{signed_headers}\n{}", hex(&Sha256::digest(request.body)));
    let date = request.headers["x-amz-date"].to_str().unwrap();
    let digest = hex(&Sha256::digest(&canonical));
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}");
    let key =
        scope.split('/').fold(format!("AWS4{secret}").into_bytes(), |key, part| hmac(&key, part));
    hex(&hmac(&key, &text))
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.chain_update(text).finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

struct Vector {
    name: &'static str,
    method: Method,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
    signature: &'static str,
}

/// From the suite Amazon publishes: the cases with the path `/` and without a query.
const VECTORS: [Vector; 4] = [
    Vector {
        name: "get-vanilla",
        method: Method::GET,
        headers: &[],
        body: "",
        signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    },
    Vector {
        name: "post-vanilla",
        method: Method::POST,
        headers: &[],
        body: "",
        signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    },
    Vector {
        name: "post-x-www-form-urlencoded",
        method: Method::POST,
        headers: &[FORM],
        body: "Param1=value1",
        signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    },
    Vector {
        name: "post-sts-header-before",
        method: Method::POST,
        headers: &[("x-amz-security-token", TOKEN)],
        body: "",
        signature: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
    },
];

#[test]
fn published_requests_get_the_published_signatures() {
    for vector in VECTORS {
        let mut named = vec![("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")];
        named.extend(vector.headers);
        named.sort_unstable();
        let headers: HeaderMap = named
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        let names: Vec<_> = named.iter().map(|(name, _)| *name).collect();
        let request = SignedRequest {
            method: &vector.method,
            path: "/",
            query: "",
            headers: &headers,
            body: vector.body.as_bytes(),
        };
        let signature = signature_of(
            &request,
            &names.join(";"),
            "20150830/us-east-1/service/aws4_request",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        );
        assert_eq!(signature, vector.signature, "{}", vector.name);
    }
}
