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
async fn who_counts_elsewhere_or_hooks_elsewhere_needs_it_too() {
    check(&["--clean-up", "POST http://10.0.0.1/reset"], "http://10.0.0.1 is not this machine")
        .await;
    let (_server, url) = silent().await;
    let count = "GET http://10.0.0.1/count?of={marker}";
    let ended = Verifier::new().run(&["POST", &url, "--json", BODY, "--count", count]);
    assert!(ended.refusal().contains("http://10.0.0.1 is not this machine"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_look_live_are_never_sent_or_shown() {
    let header = "Authorization: Bearer sk_live_51H8abcdef";
    for option in ["--credential", "--other-credential", "--revoked-credential", "-H"] {
        let (server, url) = silent().await;
        let ended = Verifier::new().examine(&url, &[option, header]);
        assert!(ended.refusal().contains("live key of Stripe"), "{ended:?}");
        assert!(!ended.err.contains("51H8"), "{ended:?}");
        assert!(server.heads().is_empty());
    }
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
