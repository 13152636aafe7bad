//! Secrets are in no report, wherever they were.

use std::time::Duration;

use hapax_examine::{
    DefectClass, ExaminationRecord, ExchangeEnd, ProbeVerdict, REDACTED, Redaction, ReportDocument,
    TerminalColour, render_html, render_junit, render_sarif, render_terminal,
};

use super::{TOKEN, WHEN, answer, api, defect, exchange, header, probe};
use crate::grade::flawless;

#[test]
fn headers_that_hold_secrets_are_known_by_their_names() {
    let redaction = Redaction::of(&api());
    let hidden = [
        "Authorization",
        "authorization",
        "Proxy-Authorization",
        "Cookie",
        "Set-Cookie",
        "X-Api-Key",
        "x_api_key",
        "Api-Key",
        "X-Auth-Token",
        "X-CSRF-Token",
        "Session-Id",
        "X-Amz-Signature",
        "Client-Secret",
    ];
    for name in hidden {
        let message = redaction.message(&format!("GET / HTTP/1.1\n{name}: a b c\nAccept: all"));
        assert_eq!(message, format!("GET / HTTP/1.1\n{name}: {REDACTED}\nAccept: all"));
    }
    for name in ["Idempotency-Key", "Content-Type", "WWW-Authenticate", "Retry-After", "Location"] {
        let line = format!("{name}: a b c");
        assert_eq!(redaction.message(&line), line);
    }
}

#[test]
fn a_header_that_goes_on_in_the_next_line_is_hidden_to_its_end() {
    let redaction = Redaction::of(&api());
    let message = redaction.message("Cookie: a=1;\n b=2\nAccept: all");
    assert_eq!(message, format!("Cookie: {REDACTED}\n {REDACTED}\nAccept: all"));
}

#[test]
fn the_header_of_keys_is_shown_whatever_it_is_called() {
    let mut api = api();
    api.key.name = "X-Request-Token".to_owned();
    let redaction = Redaction::of(&api);
    assert_eq!(redaction.message("X-Request-Token: k-1"), "X-Request-Token: k-1");
}

#[test]
fn headers_of_credentials_are_hidden_whatever_they_are_called() {
    let mut api = api();
    api.credentials.other = Some(vec![header("X-Tenant", "blue-tenant")]);
    let redaction = Redaction::of(&api);
    assert_eq!(redaction.message("x-tenant: green"), format!("x-tenant: {REDACTED}"));
    assert_eq!(redaction.text("it is blue-tenant's"), format!("it is {REDACTED}'s"));
}

#[test]
fn credentials_are_found_however_they_are_written() {
    let mut api = api();
    let cookie = r#"sid=a/b+c"d\e; theme=dark"#;
    api.credentials.main = vec![header("Cookie", cookie), header("Authorization", "Basic YTpi")];
    let redaction = Redaction::of(&api);
    let cases = [
        (r#"sid was a/b+c"d\e here"#, format!("sid was {REDACTED} here")),
        (r#"{"sid":"a/b+c\"d\\e"}"#, format!(r#"{{"sid":"{REDACTED}"}}"#)),
        ("GET /a%2Fb%2Bc%22d%5Ce/x", format!("GET /{REDACTED}/x")),
        ("YTpi", REDACTED.to_owned()),
        ("nothing", "nothing".to_owned()),
    ];
    for (text, expected) in cases {
        assert_eq!(redaction.text(text), expected);
    }
}

#[test]
fn values_in_urls_are_hidden_by_the_names_of_their_parameters() {
    let redaction = Redaction::of(&api());
    let cases = [
        (
            "GET /a?access_token=abc&ref=hpx-1 HTTP/1.1",
            "GET /a?access_token=[redacted]&ref=hpx-1 HTTP/1.1",
        ),
        ("see https://a/?x=1&api_key=k#top", "see https://a/?x=1&api_key=[redacted]#top"),
        ("is it 3? no & yes = no", "is it 3? no & yes = no"),
        ("/payments?ref={marker}", "/payments?ref={marker}"),
    ];
    for (text, expected) in cases {
        assert_eq!(redaction.text(text), expected);
    }
}

#[test]
fn no_form_of_a_report_has_a_secret() {
    // Also across the end of what is shown of a body.
    let long = format!("{}{TOKEN}", "x".repeat(16 * 1024 - 5));
    let echo = format!(r#"{{"you":"Bearer {TOKEN}","app":"key-of-the-application"}}"#);
    let partial = format!("HTTP/1.1 201\r\nSet-Cookie: sid=4711-{TOKEN}");
    let exchanges = vec![
        exchange(1, "echo", (0, 9), answer(200, echo)),
        exchange(2, "long", (9, 19), answer(200, long)),
        exchange(3, TOKEN, (19, 29), ExchangeEnd::Closed { received: partial.into() }),
        exchange(4, "failed", (30, 39), ExchangeEnd::Failed { reason: format!("no {TOKEN}") }),
    ];
    let sentence = format!("{TOKEN} was answered");
    let mut leaking = probe(
        "V08",
        ProbeVerdict::Fail {
            trials: 1,
            defects: vec![defect(DefectClass::Safety, &sentence, &[])],
        },
        exchanges,
    );
    leaking.notes.push((Duration::ZERO, format!("called /hook?token=4711-{TOKEN}")));
    let open = probe("V09", ProbeVerdict::inconclusive(format!("{TOKEN} again")), Vec::new());
    let record = ExaminationRecord {
        probes: vec![leaking, open],
        oracle_text: format!("GET /payments?api_key={TOKEN}"),
        ..flawless()
    };
    let report = ReportDocument::of(&record, &api(), WHEN);
    let forms = [
        report.to_json().unwrap(),
        render_html(&report),
        render_junit(&report),
        render_sarif(&report, "openapi.yaml").unwrap(),
        render_terminal(&report, TerminalColour::Plain),
    ];
    for form in forms {
        for secret in [TOKEN, "alice", "key-of-the-application", "4711"] {
            assert!(!form.contains(secret), "{secret} in {form}");
        }
        assert!(form.contains(REDACTED));
    }
    assert_eq!(report.probes[0].exchanges[0].asked_by.as_deref(), Some("main"));
}
