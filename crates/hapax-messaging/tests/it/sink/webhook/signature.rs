//! Who is believed, and who is not.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use hapax_messaging::sink::webhook::{
    ID, SIGNATURE, Secret, TIMESTAMP, TOLERANCE, Unverified, sign, verify,
};

use super::receiver::SECRET;

/// The example that Standard Webhooks publish.
const MESSAGE: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const AT: u64 = 1_614_265_330;
const BODY: &[u8] = br#"{"test": 2432232314}"#;
const SIGNED: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

fn secret(text: &str) -> Secret {
    Secret::parse(text).unwrap()
}

fn headers(id: &str, timestamp: &str, signature: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [(ID, id), (TIMESTAMP, timestamp), (SIGNATURE, signature)] {
        headers.insert(name, value.parse().unwrap());
    }
    headers
}

fn check(headers: &HeaderMap, body: &[u8], now: SystemTime) -> Result<(), Unverified> {
    verify(&[secret(SECRET)], headers, body, now, TOLERANCE).map(drop)
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn the_published_example_is_signed_as_published() {
    assert_eq!(sign(&[secret(SECRET)], MESSAGE, AT, BODY), SIGNED);
    let headers = headers(MESSAGE, &AT.to_string(), SIGNED);
    let verified = verify(&[secret(SECRET)], &headers, BODY, at(AT + 1), TOLERANCE).unwrap();
    assert_eq!((verified.id, verified.at), (MESSAGE, at(AT)));
}

#[test]
fn a_change_to_any_signed_part_is_noticed() {
    let timestamp = AT.to_string();
    let good = headers(MESSAGE, &timestamp, SIGNED);
    assert_eq!(check(&good, BODY, at(AT)), Ok(()));
    assert_eq!(check(&good, br#"{"test": 2432232315}"#, at(AT)), Err(Unverified::Forged));
    let other_id = headers("msg_p5jXN8AQM9LWM0D4loKWxJel", &timestamp, SIGNED);
    assert_eq!(check(&other_id, BODY, at(AT)), Err(Unverified::Forged));
    let other_time = headers(MESSAGE, &(AT + 1).to_string(), SIGNED);
    assert_eq!(check(&other_time, BODY, at(AT)), Err(Unverified::Forged));
    for signature in
        ["v1,", "v1,AAAA", "v2,g0hM", "", "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="]
    {
        let headers = headers(MESSAGE, &timestamp, signature);
        assert_eq!(check(&headers, BODY, at(AT)), Err(Unverified::Forged), "{signature}");
    }
}

#[test]
fn old_and_new_secrets_work_side_by_side() {
    let (old, new) = (secret(SECRET), secret("whsec_bmV3IHNlY3JldCBvZiB0aGUgc2VuZGVyIQ=="));
    let both = sign(&[old.clone(), new.clone()], MESSAGE, AT, BODY);
    let both = headers(MESSAGE, &AT.to_string(), &format!("v1a,unknown {both}"));
    for known in [vec![old.clone()], vec![new.clone()], vec![new, old]] {
        assert!(verify(&known, &both, BODY, at(AT), TOLERANCE).is_ok());
    }
    let stranger = secret("whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldCBoZXJl");
    assert_eq!(verify(&[stranger], &both, BODY, at(AT), TOLERANCE), Err(Unverified::Forged));
    assert_eq!(verify(&[], &both, BODY, at(AT), TOLERANCE), Err(Unverified::Forged));
}

#[test]
fn what_is_too_old_or_from_the_future_is_not_believed() {
    let headers = headers(MESSAGE, &AT.to_string(), SIGNED);
    for apart in [0, 299, 300] {
        assert_eq!(check(&headers, BODY, at(AT + apart)), Ok(()), "{apart} s later");
        assert_eq!(check(&headers, BODY, at(AT - apart)), Ok(()), "{apart} s earlier");
    }
    let untimely = Err(Unverified::Untimely { apart: Duration::from_secs(301) });
    assert_eq!(check(&headers, BODY, at(AT + 301)), untimely);
    assert_eq!(check(&headers, BODY, at(AT - 301)), untimely);
}

#[test]
fn a_header_that_is_missing_twice_there_or_unreadable_is_named() {
    let good = headers(MESSAGE, &AT.to_string(), SIGNED);
    for header in [ID, TIMESTAMP, SIGNATURE] {
        let unsigned = Err(Unverified::Unsigned { header });
        let mut without = good.clone();
        without.remove(header);
        assert_eq!(check(&without, BODY, at(AT)), unsigned);
        let mut twice = good.clone();
        twice.append(header, good[header].clone());
        assert_eq!(check(&twice, BODY, at(AT)), unsigned);
    }
    for timestamp in ["", "+1614265330", "soon", "-1", "99999999999999999999"] {
        let headers = headers(MESSAGE, timestamp, SIGNED);
        let unsigned = Err(Unverified::Unsigned { header: TIMESTAMP });
        assert_eq!(check(&headers, BODY, at(AT)), unsigned, "{timestamp}");
    }
}

#[test]
fn a_secret_has_a_length_and_is_not_shown() {
    for text in ["", "whsec_", "whsec_AAAA", "whsec_not base64 at all, but long enough"] {
        let error = Secret::parse(text).unwrap_err();
        assert!(!error.to_string().contains("AAAA"));
    }
    let shown = format!("{:?}", secret(SECRET));
    assert!(!shown.contains("MfKQ"), "{shown}");
}
