//! Names, and what the journal shows and forgets.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use super::{BODY, CUT, Caller, DONE, REFUSED, keys, server, url};

#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_under_the_same_name_is_answered_from_the_journal() {
    for (server, code, body) in
        [(server(&[DONE]).await, 0, "paid"), (server(&[REFUSED]).await, 3, "broke")]
    {
        let caller = Caller::new();
        for recorded in [false, true] {
            let ended = caller.post(&url(&server), &["--name", "order-42"]);
            assert_eq!((ended.code, ended.out.as_str()), (Some(code), body), "{ended:?}");
            assert_eq!(ended.last()["recorded"], recorded);
        }
        assert_eq!(keys(&server).len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_request_under_the_name_is_refused_with_what_differs() {
    let (caller, server) = (Caller::new(), server(&[DONE]).await);
    let (here, there) = (url(&server), format!("{}/there", url(&server)));
    assert_eq!(caller.post(&here, &["--name", "n", "--key", "k"]).code, Some(0));
    for (args, differs) in [
        (&["POST", &there, "--json", BODY][..], "its URL differs"),
        (&["PUT", &here, "--json", BODY], "its method differs"),
        (&["POST", &here, "--json", "[]"], "its body differs"),
        (&["POST", &here, "--data", BODY], "its content type differs"),
        (&["PUT", &here, "--json", "[]"], "its method, its body differs"),
        (&["POST", &here, "--json", BODY, "--key", "other"], "its key differs"),
    ] {
        let ended = caller.run(&[args, &["--name", "n"]].concat());
        assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
        assert!(ended.err.contains(differs), "no {differs:?} in {ended:?}");
    }
    assert_eq!(keys(&server), ["k"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_given_is_sent_and_is_the_name() {
    let (caller, server) = (Caller::new(), server(&[CUT, DONE]).await);
    assert_eq!(caller.post(&url(&server), &["--key", "k-1", "--attempts", "1"]).code, Some(4));
    let again = caller.post(&url(&server), &["--key", "k-1"]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), "paid"), "{again:?}");
    assert_eq!(keys(&server), ["k-1", "k-1"]);
    assert_eq!(caller.list().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_without_a_name_are_operations_of_their_own() {
    let (caller, server) = (Caller::new(), server(&[DONE]).await);
    for _ in 0..2 {
        assert_eq!(caller.post(&url(&server), &[]).code, Some(0));
    }
    let keys = keys(&server);
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
    assert_eq!(caller.list().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_only_reads_leaves_no_journal_behind() {
    let (caller, server) = (Caller::new(), server(&[DONE]).await);
    let ended = caller.run(&["GET", &url(&server)]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "paid"), "{ended:?}");
    for args in [&["--list"][..], &["--resume"], &["--show", "n"], &["--forget", "n"]] {
        let ended = caller.run(args);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.err.contains("there is no journal"), "{ended:?}");
    }
    assert!(!caller.journal().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_is_its_owners_alone_and_is_named() {
    let (caller, server) = (Caller::new(), server(&[DONE]).await);
    let ended = caller.post(&url(&server), &[]);
    assert_eq!(ended.told()[0]["journal"], json!(caller.journal()));
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(caller.journal()), 0o600);
    assert_eq!(mode(caller.home.path().join("hapax")), 0o700);
    let other = caller.home.path().join("other.db");
    let ended = caller.post(&url(&server), &["--journal", other.to_str().unwrap()]);
    assert_eq!((ended.code, mode(other.clone())), (Some(0), 0o600), "{ended:?}");
    assert_eq!(ended.told()[0]["journal"], json!(other));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_has_every_operation_and_no_secret() {
    let (caller, server) = (Caller::new(), server(&[CUT, DONE]).await);
    let address = format!("{}?token=hush", url(&server));
    let secret = ["-H", "Authorization: Bearer hush", "-H", "X-Api-Key: hush"];
    let unknown = ["--name", "lost", "--attempts", "1"];
    assert_eq!(caller.post(&address, &[&secret[..], &unknown].concat()).code, Some(4));
    assert_eq!(
        caller.post(&address, &[&secret[..], &["--name", "paid-for"]].concat()).code,
        Some(0)
    );
    for args in [
        &["--list"][..],
        &["--list", "--json"],
        &["--show", "lost"],
        &["--show", "lost", "--json"],
        &["--show", "paid-for"],
    ] {
        let ended = caller.run(args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.out.contains("hush"), "{ended:?}");
        assert!(ended.out.contains(&keys(&server)[usize::from(args.contains(&"paid-for"))]));
    }
    let table = caller.run(&["--list"]).out;
    let rows: Vec<Vec<_>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "STATE", "ATTEMPTS", "AGE", "KEY", "URL"]);
    assert_eq!((rows[1][0], rows[1][1], rows[1][2]), ("lost", "unknown", "1"), "{table}");
    assert_eq!((rows[2][0], rows[2][1], rows[2][2]), ("paid-for", "done", "201"), "{table}");
    assert_eq!(caller.list()[1]["status"], 201);
    let shown = caller.run(&["--show", "lost"]).out;
    assert!(shown.contains("authorization") && shown.contains("reason"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_forgotten_is_a_new_operation_with_a_new_key() {
    let (caller, server) = (Caller::new(), server(&[DONE]).await);
    assert_eq!(caller.post(&url(&server), &["--name", "n"]).code, Some(0));
    assert_eq!(caller.run(&["--forget", "n"]).code, Some(0));
    assert_eq!(caller.post(&url(&server), &["--name", "n"]).code, Some(0));
    let keys = keys(&server);
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
    for args in [&["--forget", "m"][..], &["--show", "m"], &["--resume", "m"]] {
        let ended = caller.run(args);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.err.contains("there is no operation `m`"), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pending_is_forgotten_only_by_force() {
    let (caller, silent) = (Caller::new(), server(&[super::SILENCE]).await);
    let address = url(&silent);
    let args = ["POST", &address, "--name", "n"];
    let mut child = caller.command(&args).spawn().unwrap();
    crate::world::until("the request to arrive", async || keys(&silent).len() == 1).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let refused = caller.run(&["--forget", "n"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("--force"), "{refused:?}");
    assert_eq!(caller.list().len(), 1);
    assert_eq!(caller.run(&["--forget", "n", "--force"]).code, Some(0));
    assert!(caller.list().is_empty());
}
