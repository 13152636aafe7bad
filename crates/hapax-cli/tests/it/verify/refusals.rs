//! What is refused before anything is asked.

use super::{ALICE, BODY, COUNT, Verifier, known, started};
use crate::world::Raw;

async fn silent() -> (Raw, String) {
    let server = Raw::start(|_| Vec::new()).await;
    let url = format!("http://{}/payments", server.address);
    (server, url)
}

/// Refused with these words, and nothing was asked.
async fn check(more: &[&str], words: &str) {
    let (server, url) = silent().await;
    let ended = Verifier::new().examine(&url, more);
    let refusal = ended.refusal();
    assert!(refusal.starts_with("hapax: ") && refusal.contains(words), "no {words:?}: {refusal}");
    assert_eq!(server.heads(), Vec::<String>::new(), "{more:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_effects_than_are_allowed_are_refused_before_the_first() {
    check(&["--max-effects", "20"], "are allowed: leave out the dearest with --skip V").await;
    check(&["--only", "V01", "--max-effects", "5"], "allow them with --max-effects 1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_hosts_need_somebody_who_allowed_it() {
    let verifier = Verifier::new();
    verifier.write("scope.txt", "# staging\napi.staging.example.com Ada Lovelace, OPS-12\n");
    verifier.write("nobody.txt", "api.staging.example.com\n");
    let there = "http://api.staging.example.com/payments";
    let scope = ["--scope-file", "scope.txt"];
    for (args, words) in [
        (&[][..], "is not this machine"),
        (&scope[..], "--i-am-authorised"),
        (&["--i-am-authorised"], "is not this machine"),
        (&["--i-am-authorised", "--scope-file", "nobody.txt"], "line 1 does not say who allowed"),
        // Allowed, but nobody can be asked whether to go on.
        (
            &["--also", "http://10.0.0.1/", "--i-am-authorised", "--scope-file", "scope.txt"],
            "10.0.0.1",
        ),
    ] {
        let ended = verifier.examine(there, args);
        assert!(ended.refusal().contains(words), "no {words:?}: {ended:?}");
    }
    let args = [&scope[..], &["--i-am-authorised", "--only", "V19"]].concat();
    let ended = verifier.examine(there, &args);
    assert_eq!(ended.exit, Some(2), "{ended:?}");
    assert!(ended.err.contains("Ada Lovelace, OPS-12"), "{ended:?}");
    assert!(ended.err.ends_with("give --yes\n"), "{ended:?}");
    let production = "https://connect.squareup.com/v2/payments";
    assert!(verifier.examine(production, &[]).refusal().contains("is never examined"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_reached_elsewhere_needs_it_too() {
    let verifier = Verifier::new();
    let (server, url) = silent().await;
    let store = "postgres://app:hidden@10.0.0.1/shop";
    let by_words = "host=127.0.0.1,db.example.com dbname=shop";
    let sql = ["--count-sql", "SELECT 1::bigint", "--count-store"];
    for (args, shown) in [
        (&["--clean-up", "POST http://10.0.0.1/reset"][..], "http://10.0.0.1"),
        (&["--kill-cmd", "ssh x; curl -X POST https://10.0.0.1/kill"], "https://10.0.0.1"),
        (&["--also", "http://10.0.0.1/payments"], "http://10.0.0.1"),
        (&["--count", "GET http://10.0.0.1/count?of={marker}"], "http://10.0.0.1"),
        (&["--count-command", "curl http://10.0.0.1/{marker}"], "http://10.0.0.1"),
        (&[&sql[..], &[store]].concat(), "PostgreSQL, database shop at 10.0.0.1:5432"),
        (&[&sql[..], &[by_words]].concat(), "db.example.com:5432"),
        (&[&sql[..], &["env:VERIFIED_STORE"]].concat(), "database shop at 10.0.0.1:5432"),
        (&["--webhook-sink", "0.0.0.0:0"], "0.0.0.0:0"),
        (&["--upstream-double", "[::]:0"], "[::]:0"),
    ] {
        let args = [&["POST", &url, "--json", BODY], args].concat();
        let output = verifier.command(&args).env("VERIFIED_STORE", store).output().unwrap();
        let ended = super::VerifyOutcome::of(&output);
        let words = format!("{shown} is not this machine");
        assert!(ended.refusal().contains(&words), "no {words:?}: {ended:?}");
        assert!(!ended.err.contains("hidden"), "{ended:?}");
    }
    assert_eq!(server.heads(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_allowed_may_count_and_listen() {
    let (_running, url) = started("honest").await;
    let verifier = Verifier::new();
    verifier.write("scope.txt", "0.0.0.0 Ada Lovelace, OPS-12\n");
    let more = ["--webhook-sink", "0.0.0.0:0", "--scope-file", "scope.txt", "--i-am-authorised"];
    let ended = verifier.run(&[&["POST", &url, "--json", BODY, "--yes"], &more[..]].concat());
    assert!(ended.err.contains("0.0.0.0: Ada Lovelace, OPS-12"), "{ended:?}");
    // The zoo sends no webhooks.
    assert_eq!(ended.exit, Some(3), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_look_live_are_never_sent_or_shown() {
    let live = "sk_live_51H8abcdef";
    let header = format!("Authorization: Bearer {live}");
    let body = format!(r#"{{"amount":1,"key":"{live}"}}"#);
    let path = format!("/refunds?key={live}");
    let command = format!("curl -u {live}: http://127.0.0.1:1/{{marker}}");
    let (server, url) = silent().await;
    for (option, value) in [
        ("--credential", &header),
        ("--other-credential", &header),
        ("--revoked-credential", &header),
        ("-H", &header),
        ("--changed-body", &body),
        ("--invalid-body", &body),
        ("--other-path", &path),
        ("--large-path", &path),
        ("--kill-cmd", &command),
        ("--count-command", &command),
    ] {
        let args = ["POST", &url, "--json", BODY, option, value];
        let ended = Verifier::new().run(&args);
        assert!(ended.refusal().contains("live key of Stripe"), "{option}: {ended:?}");
        assert!(!ended.err.contains("51H8"), "{ended:?}");
    }
    let with_user = url.replace("http://", &format!("http://{live}:@"));
    let refused = Verifier::new().run(&["POST", &with_user, "--json", BODY]);
    assert!(refused.refusal().contains("must not hold a name or a password"), "{refused:?}");
    assert!(!refused.err.contains("51H8") && server.heads().is_empty(), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_mean_nothing_are_refused_in_a_sentence() {
    check(&["--only", "V99"], "there is no probe `V99`").await;
    check(&["--only", "V01", "--skip", "V01"], "no probe is left").await;
    check(&["--credential", "no header"], "write 'Name: value'").await;
    check(&["--credential", "Authorization: Bearer env:HAPAX_NOT_SET"], "HAPAX_NOT_SET").await;
    check(&["--ca", "missing.pem"], "cannot read missing.pem").await;
    check(&["--compare", "missing.json"], "cannot read missing.json").await;
    check(&["--profile", "square"], "write {key} into it").await;
    check(&["--other-path", "http://127.0.0.1:1/refunds"], "begins with /").await;
    let (server, url) = silent().await;
    let ended = Verifier::new().examine(&url, &["--html", "missing/report.html"]);
    assert_eq!(ended.exit, Some(2), "{ended:?}");
    assert!(ended.err.contains("hapax: cannot write missing/report.html"), "{ended:?}");
    assert!(server.heads().is_empty());
    for (args, words) in [
        (&[][..], "say what to examine"),
        (&["GET", &url], "changes nothing"),
        (&["POST", "payments"], "`payments`"),
        (&["POST"], "give a method and a URL"),
        (&[&url, "--json", "{"], "no JSON"),
        (&[&url, "--body", "a=1"], "--content-type"),
        (&[&url, "--json", "{}", "--count", COUNT], "nothing marks an operation"),
        (&[&url, "--json", BODY, "--count", "GET /payments"], "is not understood"),
        (&[&url, "--json", BODY, "--count-sql", "SELECT 1"], "--count-store"),
        (
            &[&url, "--json", BODY, "--count-sql", "SELECT 1", "--count-store", "mysql://x"],
            "--count-store cannot be used",
        ),
    ] {
        let ended = Verifier::new().run(args);
        assert!(ended.refusal().contains(words), "no {words:?}: {ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_come_from_the_environment() {
    let (_running, url) = started("honest").await;
    let from = "Authorization: Bearer env:VERIFIED_AS";
    let args: Vec<_> =
        known(&url).iter().map(|arg| if *arg == ALICE { from } else { *arg }).collect();
    let verifier = Verifier::new();
    let mut command = verifier.command(&[&args[..], &["--only", "V19"]].concat());
    let output = command.env("VERIFIED_AS", "alice").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", crate::text(&output.stderr));
}
