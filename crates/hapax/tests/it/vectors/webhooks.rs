//! Signatures of webhooks.

use std::time::{Duration, UNIX_EPOCH};

use hapax::messaging::sink::webhook::{
    ID, SIGNATURE, Secret, TIMESTAMP, TOLERANCE, Unverified, sign, verify,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::check;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const NOW: u64 = 1_700_000_000;

struct Received<'a> {
    id: &'a str,
    timestamp: &'a str,
    signature: String,
    body: &'a str,
    secrets: &'a [&'a str],
}

#[test]
fn a_webhook_is_believed_alike() {
    let signed = |secrets: &[&str], id: &str, timestamp: u64, body: &str| {
        let secrets: Vec<_> = secrets.iter().map(|secret| Secret::parse(secret).unwrap()).collect();
        sign(&secrets, id, timestamp, body.as_bytes())
    };
    let body = r#"{"paid":true}"#;
    let good = Received {
        id: "e-1",
        timestamp: "1700000000",
        signature: signed(&[SECRET], "e-1", NOW, body),
        body,
        secrets: &[SECRET],
    };
    let both = signed(&[OTHER, SECRET], "e-1", NOW, body);
    let cases = vec![
        case(&good),
        case(&Received { signature: both, ..copy(&good) }),
        case(&Received { secrets: &[OTHER, SECRET], ..copy(&good) }),
        case(&Received { secrets: &[OTHER], ..copy(&good) }),
        case(&Received { body: r#"{"paid":false}"#, ..copy(&good) }),
        case(&Received { id: "e-2", ..copy(&good) }),
        case(&Received { timestamp: "1700000001", ..copy(&good) }),
        case(&Received { timestamp: "soon", ..copy(&good) }),
        case(&Received { timestamp: "+1700000000", ..copy(&good) }),
        case(&Received {
            timestamp: "1699999699",
            signature: signed(&[SECRET], "e-1", NOW - 301, body),
            ..copy(&good)
        }),
        case(&Received {
            timestamp: "1699999700",
            signature: signed(&[SECRET], "e-1", NOW - 300, body),
            ..copy(&good)
        }),
        case(&Received {
            timestamp: "1700000301",
            signature: signed(&[SECRET], "e-1", NOW + 301, body),
            ..copy(&good)
        }),
        case(&Received { signature: good.signature.replace("v1,", "v2,"), ..copy(&good) }),
        case(&Received { signature: String::new(), ..copy(&good) }),
        case(&Received { signature: format!("v1,!!! {}", good.signature), ..copy(&good) }),
    ];
    let about = "A webhook that was received at 1700000000, and whether it is genuine: by the rules of Standard Webhooks.";
    check("signatures.json", about, &cases);
}

fn copy<'a>(of: &Received<'a>) -> Received<'a> {
    Received { signature: of.signature.clone(), ..*of }
}

fn case(received: &Received<'_>) -> Value {
    let Received { id, timestamp, signature, body, secrets } = received;
    let mut headers = HeaderMap::new();
    for (name, value) in [(ID, *id), (TIMESTAMP, *timestamp), (SIGNATURE, signature.as_str())] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    }
    let parsed: Vec<_> = secrets.iter().map(|secret| Secret::parse(secret).unwrap()).collect();
    let now = UNIX_EPOCH + Duration::from_secs(NOW);
    let verified = match verify(&parsed, &headers, body.as_bytes(), now, TOLERANCE) {
        Ok(_) => "genuine",
        Err(Unverified::Unsigned { .. }) => "unsigned",
        Err(Unverified::Forged) => "forged",
        Err(Unverified::Untimely { .. }) => "untimely",
        Err(other) => panic!("{other:?} has no word"),
    };
    json!({
        "secrets": secrets, "id": id, "timestamp": timestamp, "signature": signature, "body": body, "now": NOW,
        "verified": verified,
    })
}
