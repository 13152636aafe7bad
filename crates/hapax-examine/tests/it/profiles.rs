//! How vendors refuse, and that it is understood.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use hapax_examine::{
    DefectClass, Examination, HttpAddress, ProbeRecord, ProbeVerdict, VendorProfile, VendorRefusals,
};

use serde_json::Value;

use crate::{
    played_api::{PlayedAnswer, PlayedApi, PlayedRequest},
    zoo,
};

/// What a key was used for, and how often its operation was asked for.
struct UsedKey {
    body: String,
    asked: u32,
}

/// How an API says what is about keys: each a status and a body.
#[derive(Clone, Copy)]
struct SpokenRefusals {
    in_flight: (u16, &'static str),
    mismatch: (u16, &'static str),
    missing: (u16, &'static str),
    bad: (u16, &'static str),
}

const OF_DRAFT: SpokenRefusals = SpokenRefusals {
    in_flight: (409, "{}"),
    mismatch: (422, "{}"),
    missing: (400, "{}"),
    bad: (400, "{}"),
};
const OF_STRIPE: SpokenRefusals = SpokenRefusals {
    in_flight: (409, r#"{"error":{"type":"idempotency_error","code":"idempotency_key_in_use"}}"#),
    mismatch: (400, r#"{"error":{"type":"idempotency_error"}}"#),
    missing: (400, r#"{"error":{"type":"invalid_request_error"}}"#),
    bad: (400, r#"{"error":{"type":"invalid_request_error"}}"#),
};
const OF_PAYPAL: SpokenRefusals = SpokenRefusals {
    in_flight: (422, r#"{"details":[{"issue":"PREVIOUS_REQUEST_IN_PROGRESS"}]}"#),
    mismatch: (422, r#"{"name":"UNPROCESSABLE_ENTITY"}"#),
    missing: (400, r#"{"details":[{"issue":"PAYPAL_REQUEST_ID_REQUIRED"}]}"#),
    bad: (400, r#"{"name":"INVALID_REQUEST"}"#),
};
const OF_ADYEN: SpokenRefusals = SpokenRefusals {
    in_flight: (422, r#"{"errorCode":"704"}"#),
    mismatch: (422, r#"{"errorType":"validation"}"#),
    missing: (400, r#"{"errorType":"validation"}"#),
    bad: (400, r#"{"errorType":"validation"}"#),
};
const OF_SQUARE: SpokenRefusals = SpokenRefusals {
    in_flight: (429, r#"{"errors":[{"code":"RATE_LIMITED"}]}"#),
    mismatch: (400, r#"{"errors":[{"code":"IDEMPOTENCY_KEY_REUSED"}]}"#),
    missing: (400, r#"{"errors":[{"code":"MISSING_REQUIRED_PARAMETER"}]}"#),
    bad: (400, r#"{"errors":[{"code":"VALUE_TOO_LONG"}]}"#),
};
/// In nobody's words.
const OF_NOBODY: SpokenRefusals = SpokenRefusals {
    in_flight: (409, r#"{"oops":1}"#),
    mismatch: (418, r#"{"oops":2}"#),
    missing: (418, r#"{"oops":3}"#),
    bad: (418, r#"{"oops":4}"#),
};

/// Does all of it right in these words; the first to come again hears that the first one is still at work.
async fn played(profile: &'static VendorProfile, spoken: SpokenRefusals) -> PlayedApi {
    let keys: Mutex<HashMap<String, UsedKey>> = Mutex::default();
    PlayedApi::start(move |request| {
        let mut keys = keys.lock().unwrap();
        if request.line.starts_with("GET") {
            let marker = format!("\"hpx-{}\"", request.marker());
            let count = keys.values().filter(|used| used.body.contains(&marker)).count();
            return said((200, &format!("{{\"items\":{{\"length\":{count}}}}}")));
        }
        let body = request.text.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned();
        let Some(key) = key(profile, request, &body) else { return said(spoken.missing) };
        let is_bad = key.len() > 64
            || key.chars().any(|one| one == '"' || one.is_control() || !one.is_ascii());
        let headers = request.text.matches(&format!("\r\n{}: ", profile.key_header)).count();
        if is_bad || headers > 1 {
            return said(spoken.bad);
        }
        let used = keys.entry(key).or_insert_with(|| UsedKey { body: body.clone(), asked: 0 });
        used.asked += 1;
        match used.asked {
            _ if used.body != body => said(spoken.mismatch),
            2 => said(spoken.in_flight),
            _ => Some((201, "idempotent-replayed: true\r\n".to_owned(), "{\"id\":1}".to_owned())),
        }
    })
    .await
}

fn said((status, body): (u16, &str)) -> PlayedAnswer {
    Some((status, "retry-after: 0\r\n".to_owned(), body.to_owned()))
}

fn key(profile: &VendorProfile, request: &PlayedRequest, body: &str) -> Option<String> {
    let key = match profile.key_header {
        "" => serde_json::from_str::<Value>(body).ok()?["idempotency_key"].as_str()?.to_owned(),
        header => request.header(header)?.to_owned(),
    };
    let key = key.trim();
    let bare = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
    (!bare.is_empty()).then(|| bare.to_owned())
}

/// What these probes say of an API of this vendor.
async fn probed(profile: &'static VendorProfile, address: &HttpAddress) -> Vec<ProbeRecord> {
    let to = format!("127.0.0.1:{}", address.port).parse().unwrap();
    let mut examination = zoo::examination_at([to, to], &["V01", "V05", "V19", "V20"]);
    examination.api.key = profile.key();
    examination.api.id = None;
    if profile.key_header.is_empty() {
        examination.api.body.text =
            r#"{"amount":100,"ref":"{marker}","idempotency_key":"{key}"}"#.to_owned();
    }
    examination.declared = profile.declared();
    let examination: Arc<Examination> = Arc::new(examination);
    let record = examination.run(Vec::new(), Arc::new(AtomicBool::new(false)), |_| {}).await;
    let record = record.unwrap();
    assert!(record.learned.is_some(), "{}: {:?}", profile.name, record.controls);
    record.probes
}

#[tokio::test(flavor = "multi_thread")]
async fn each_vendors_refusals_are_understood() {
    let all = [
        ("draft-07", OF_DRAFT),
        ("stripe", OF_STRIPE),
        ("paypal", OF_PAYPAL),
        ("adyen", OF_ADYEN),
        ("square", OF_SQUARE),
    ];
    for (name, spoken) in all {
        let profile = VendorProfile::named(name).unwrap();
        let api = played(profile, spoken).await;
        for record in probed(profile, &api.address).await {
            let is_passed = matches!(record.verdict, ProbeVerdict::Pass { .. });
            assert!(is_passed, "{name} {}: {:?}", record.probe.id, record.verdict);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_in_other_words_are_a_finding_that_names_the_vendors() {
    let said = |refusals: &VendorRefusals, id: &str| match id {
        "V05" => !refusals.mismatch.is_empty(),
        "V19" => !refusals.missing_key.is_empty(),
        "V20" => !refusals.missing_key.is_empty() || !refusals.bad_key.is_empty(),
        _ => false,
    };
    for name in ["draft-07", "stripe", "paypal", "square"] {
        let profile = VendorProfile::named(name).unwrap();
        let api = played(profile, OF_NOBODY).await;
        for record in probed(profile, &api.address).await {
            let id = record.probe.id;
            let ProbeVerdict::Fail { defects, .. } = &record.verdict else {
                assert!(!said(&profile.refusals, id), "{name} {id}: {:?}", record.verdict);
                continue;
            };
            assert!(said(&profile.refusals, id), "{name} {id}: {defects:?}");
            for defect in defects {
                assert_eq!(defect.class, DefectClass::Hygiene, "{name} {id}: {defect:?}");
                assert!(defect.sentence.contains(profile.refusals.vendor), "{defect:?}");
            }
        }
    }
}
