//! How Amazon wants requests signed: Signature Version 4.

use std::fmt::Write;

use hapax_core::time::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::credentials::Credentials;

/// What a signature speaks for. The path is always `/`, and there is no query.
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) host: &'a str,
    /// Further headers to be signed, their names in lower case.
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [u8],
}

/// Where a signature counts.
pub(super) struct Place<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

/// The headers that make a request a signed one.
#[derive(Debug)]
pub(super) struct Signed {
    pub(super) date: String,
    pub(super) authorization: String,
}

/// Signs a request with these credentials, for this moment.
pub(super) fn sign(
    request: &Request<'_>,
    place: &Place<'_>,
    credentials: &Credentials,
    now: Timestamp,
) -> Signed {
    let date = date_of(now);
    let day = &date[..8];
    let mut headers = vec![("host", request.host), ("x-amz-date", date.as_str())];
    headers.extend(request.headers);
    headers.extend(credentials.session_token().map(|token| ("x-amz-security-token", token)));
    headers.sort_unstable();
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");

    let mut canonical = format!("{}\n/\n\n", request.method);
    for (name, value) in headers {
        let _ = writeln!(canonical, "{name}:{value}");
    }
    let _ = write!(canonical, "\n{names}\n{}", hex(&Sha256::digest(request.body)));

    let scope = format!("{day}/{}/{}/aws4_request", place.region, place.service);
    let digest = hex(&Sha256::digest(&canonical));
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}");
    let key = [day, place.region, place.service, "aws4_request"]
        .iter()
        .fold(format!("AWS4{}", credentials.secret_access_key()).into_bytes(), |key, part| {
            hmac(&key, part)
        });
    let signature = hex(&hmac(&key, &text));
    let id = credentials.access_key_id();
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
    );
    Signed { date, authorization }
}

/// An instant as Amazon spells it: `20150830T123600Z`.
fn date_of(now: Timestamp) -> String {
    let spelled = now.to_string();
    let seconds = spelled.split('.').next().unwrap_or_default();
    let mut date = seconds.replace(['-', ':'], "");
    date.push('Z');
    date
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    // HMAC takes keys of any length.
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.chain_update(text).finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
    const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

    struct Vector {
        name: &'static str,
        method: &'static str,
        headers: &'static [(&'static str, &'static str)],
        body: &'static str,
        token: Option<&'static str>,
        signature: &'static str,
    }

    /// From the suite Amazon publishes: the cases with the path `/` and without a query.
    const VECTORS: [Vector; 4] = [
        Vector {
            name: "get-vanilla",
            method: "GET",
            headers: &[],
            body: "",
            token: None,
            signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        },
        Vector {
            name: "post-vanilla",
            method: "POST",
            headers: &[],
            body: "",
            token: None,
            signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        },
        Vector {
            name: "post-x-www-form-urlencoded",
            method: "POST",
            headers: &[FORM],
            body: "Param1=value1",
            token: None,
            signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        },
        Vector {
            name: "post-sts-header-before",
            method: "POST",
            headers: &[],
            body: "",
            token: Some(TOKEN),
            signature: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        },
    ];

    #[test]
    fn published_requests_get_the_published_signatures() {
        let now = Timestamp::from_micros(1_440_938_160_000_000);
        let place = Place { region: "us-east-1", service: "service" };
        for vector in VECTORS {
            let credentials = Credentials::new(
                "AKIDEXAMPLE",
                "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                vector.token.map(str::to_owned),
            );
            let request = Request {
                method: vector.method,
                host: "example.amazonaws.com",
                headers: vector.headers,
                body: vector.body.as_bytes(),
            };
            let signed = sign(&request, &place, &credentials, now);
            assert_eq!(signed.date, "20150830T123600Z");
            let (_, signature) = signed.authorization.split_once("Signature=").unwrap();
            assert_eq!(signature, vector.signature, "{}", vector.name);
        }
    }
}
