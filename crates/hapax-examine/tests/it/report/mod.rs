//! The report: what stands in it, what must not, and each of its forms.

use std::time::Duration;

use bytes::Bytes;
use hapax_examine::{
    ApiCredentials, ApiUnderTest, BodyTemplate, CutEnd, Defect, DefectClass, ExaminationRecord,
    Exchange, ExchangeEnd, HttpAddress, JsonPath, KeyHeader, Probe, ProbeRecord, ProbeVerdict,
    RawAnswer, ReportDocument, WireCut, WireProtocol,
};

use crate::grade::flawless;

mod baseline;
mod document;
mod forms;
mod page;
mod real;
mod redaction;
mod reproducer;
mod schema;

pub(crate) const WHEN: &str = "2026-11-15 10:00 UTC";
const TOKEN: &str = "alices-secret-token";

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn api() -> ApiUnderTest {
    ApiUnderTest {
        addresses: vec![
            HttpAddress::parse("http://127.0.0.1:8080/").unwrap().0,
            HttpAddress::parse("http://127.0.0.1:8081/").unwrap().0,
        ],
        method: "POST".to_owned(),
        path: "/payments".to_owned(),
        headers: vec![header("X-Api-Key", "key-of-the-application")],
        body: BodyTemplate {
            content_type: "application/json".to_owned(),
            text: r#"{"amount":100,"ref":"{marker}"}"#.to_owned(),
            changed: None,
            invalid: None,
        },
        key: KeyHeader {
            name: "Idempotency-Key".to_owned(),
            syntax: None,
            uuids: false,
            first_sent: None,
        },
        credentials: ApiCredentials {
            main: vec![header("Authorization", &format!("Bearer {TOKEN}"))],
            other: Some(vec![header("Authorization", "Bearer bobs-secret-token")]),
            revoked: None,
        },
        id: Some(JsonPath::new("/id")),
        other_path: None,
        large_path: None,
    }
}

fn request(token: &str, key: &str, body: &str) -> Bytes {
    let length = body.len();
    format!(
        "POST /payments HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\n\
         Authorization: Bearer {token}\r\nIdempotency-Key: {key}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into()
}

fn answer(status: u16, body: impl Into<Bytes>) -> ExchangeEnd {
    let headers =
        vec![header("content-type", "application/json"), header("set-cookie", "sid=4711")];
    ExchangeEnd::Answered(RawAnswer { status, headers, body: body.into() })
}

/// An exchange of these milliseconds that asks with the main credentials.
fn exchange(number: u32, label: &str, (began, ended): (u64, u64), end: ExchangeEnd) -> Exchange {
    Exchange {
        number,
        label: label.to_owned(),
        address: 0,
        protocol: WireProtocol::Http1,
        request: request(TOKEN, "key-1", r#"{"amount":100,"ref":"hpx-1"}"#),
        cut: None,
        began: Duration::from_millis(began),
        sent: Some(Duration::from_millis(began + 1)),
        answered: Some(Duration::from_millis(ended - 1)),
        ended: Duration::from_millis(ended),
        end,
    }
}

fn probe(id: &str, verdict: ProbeVerdict, exchanges: Vec<Exchange>) -> ProbeRecord {
    ProbeRecord {
        probe: Probe::named(id).unwrap(),
        verdict,
        was_run: true,
        exchanges,
        notes: Vec::new(),
        spreads: Vec::new(),
        reach: None,
        took: Duration::from_millis(120),
    }
}

fn defect(class: DefectClass, sentence: &str, shown_by: &[u32]) -> Defect {
    Defect {
        class,
        sentence: sentence.to_owned(),
        advice: "claim the key in one atomic step, before the effect",
        shown_by: shown_by.to_vec(),
    }
}

/// One probe of each kind: a race that is lost, a kill, a cut, some that are open, and one that passed.
fn record() -> ExaminationRecord {
    let mut race = probe(
        "V02",
        ProbeVerdict::Fail {
            trials: 30,
            defects: vec![defect(
                DefectClass::Safety,
                "one key had 2 effects: 3 requests were answered with 201",
                &[1, 2, 3],
            )],
        },
        (1..=3)
            .map(|number| {
                let id = u64::from(number.min(2));
                let label = format!("duplicate {number}");
                let body = format!(r#"{{"id":"{id}"}}"#);
                exchange(number, &label, (id, 20 + 3 * id), answer(201, body))
            })
            .collect(),
    );
    race.spreads = (1..=30).map(|step| Duration::from_micros(step * 10)).collect();
    race.reach =
        Some("30 races of 3 duplicates: sent before the first success was heard".to_owned());
    race.notes.push((Duration::from_millis(31), "2 effects of hpx-1".to_owned()));
    let silent = ExchangeEnd::Silent { received: Bytes::new() };
    let closed = ExchangeEnd::Closed { received: Bytes::from_static(b"HTTP/1.1 2") };
    let mut kill = probe(
        "V23",
        ProbeVerdict::Fail {
            trials: 4,
            defects: vec![defect(
                DefectClass::Liveness,
                "a key was still busy 30 s after the server was killed",
                &[1, 2, 3],
            )],
        },
        vec![
            exchange(1, "first", (0, 40), closed),
            exchange(2, "retry", (60, 90), answer(409, "{}")),
            Exchange { answered: None, ..exchange(3, "last retry", (95, 160), silent) },
        ],
    );
    kill.notes.push((Duration::from_millis(40), "the server was killed".to_owned()));
    kill.notes.push((Duration::from_millis(55), "the server was started".to_owned()));
    let cut = Exchange {
        cut: Some(WireCut::Answer { bytes: 12, end: CutEnd::Reset }),
        ..exchange(
            1,
            "cut",
            (0, 20),
            ExchangeEnd::BrokenOff { received: Bytes::from_static(b"HTTP/1.1 201") },
        )
    };
    let failing = ExchangeEnd::Failed { reason: "the connection was refused".to_owned() };
    let cut = probe(
        "V12",
        ProbeVerdict::Fail {
            trials: 1,
            defects: vec![defect(DefectClass::Hygiene, "a retry was not the first answer", &[])],
        },
        vec![cut, exchange(2, "retry", (30, 35), failing)],
    );
    let open = probe("V03", ProbeVerdict::inconclusive("duplicates never overlapped"), Vec::new());
    let mut not_run = probe("V04", ProbeVerdict::inconclusive("it needs `--also`"), Vec::new());
    not_run.was_run = false;
    let mut passed = probe("V01", ProbeVerdict::Pass { trials: 30 }, Vec::new());
    passed.spreads = race.spreads.clone();
    passed.reach = race.reach.clone();
    ExaminationRecord { probes: vec![passed, race, open, not_run, cut, kill], ..flawless() }
}

fn report() -> ReportDocument {
    ReportDocument::of(&record(), &api(), WHEN)
}
