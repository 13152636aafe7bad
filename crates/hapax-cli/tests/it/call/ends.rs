//! The four ends, their codes, and what is printed where.

use std::fs;

use serde_json::{Value, json};

use super::{BODY, CUT, Caller, DONE, REFUSED, SILENCE, keys, server, url};
use crate::world::free_address;

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_asked_for_again_with_the_same_key_until_it_is_done() {
    let (caller, server) = (Caller::new(), server(&[CUT, DONE]).await);
    let ended = caller.post(&url(&server), &["--deadline", "30s"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "paid"), "{ended:?}");
    let keys = keys(&server);
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
    assert_eq!(
        ended.events(),
        ["journalled", "begun", "ended", "pausing", "begun", "ended", "concluded"]
    );
    let last = ended.last();
    assert_eq!(last["conclusion"], "done");
    assert_eq!((&last["status"], &last["attempts"]), (&json!(201), &json!(2)));
    assert_eq!(last["key"], json!(keys[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_has_the_fields_that_are_documented() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/call.md"));
    let page = page.unwrap();
    let (caller, server) = (Caller::new(), server(&[CUT, DONE]).await);
    for line in caller.post(&url(&server), &[]).told() {
        let Value::Object(fields) = &line else { unreachable!("{line}") };
        let event = line["event"].as_str().unwrap();
        let row = page.lines().find(|row| row.starts_with(&format!("| `{event}` |")));
        assert!(row.is_some(), "{event} is not documented");
        for field in
            fields.keys().filter(|field| !["event", "elapsed_ms"].contains(&field.as_str()))
        {
            assert!(row.unwrap().contains(&format!("`{field}`")), "{field} of {event}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_says_no_is_refused_and_printed() {
    let (caller, server) = (Caller::new(), server(&[REFUSED]).await);
    let ended = caller.post(&url(&server), &[]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(3), "broke"), "{ended:?}");
    assert_eq!(ended.last()["conclusion"], "refused");
    assert_eq!(keys(&server).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_answers_is_unknown_and_says_how_to_ask_again() {
    let (caller, server) = (Caller::new(), server(&[CUT]).await);
    let ended = caller.post(&url(&server), &["--deadline", "400ms", "--name", "order-42"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(4), ""), "{ended:?}");
    let last = ended.last();
    assert_eq!((&last["conclusion"], &last["name"]), (&json!("unknown"), &json!("order-42")));
    assert_eq!(last["key"], json!(keys(&server)[0]));
    assert_eq!(last["resume"], "hapax call --resume order-42");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unknown_is_asked_for_again_with_its_key_when_it_is_resumed() {
    let (caller, server) = (Caller::new(), server(&[CUT, DONE]).await);
    let first = caller.post(&url(&server), &["--attempts", "1", "--name", "order-42"]);
    assert_eq!(first.code, Some(4), "{first:?}");
    let ended = caller.run(&["--resume", "order-42"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "paid"), "{ended:?}");
    let keys = keys(&server);
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
}

#[test]
fn what_was_never_sent_is_given_up() {
    let nobody = format!("http://{}/charges", free_address());
    let ended = Caller::new().post(&nobody, &["--deadline", "400ms"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(5), ""), "{ended:?}");
    assert_eq!(ended.last()["conclusion"], "gave_up");
    let not_sent = |line: &Value| line["event"] == "ended" && line["heard"] == "not_sent";
    assert!(ended.told().iter().any(not_sent), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_end_where_they_were_told_to() {
    let (caller, server) = (Caller::new(), server(&[CUT]).await);
    let ended = caller.post(&url(&server), &["--attempts", "3"]);
    assert_eq!((ended.code, keys(&server).len()), (Some(4), 3), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_takes_too_long_is_followed_by_another() {
    let (caller, server) = (Caller::new(), server(&[SILENCE, DONE]).await);
    let ended = caller.post(&url(&server), &["--attempt-timeout", "200ms"]);
    assert_eq!((ended.code, keys(&server).len()), (Some(0), 2), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_on_standard_output_and_nowhere_else() {
    let (caller, server) = (Caller::new(), server(&[DONE]).await);
    let loud = caller.post(&url(&server), &[]);
    assert!(loud.out == "paid" && !loud.err.contains("paid"), "{loud:?}");
    let quiet = caller.post(&url(&server), &["--quiet"]);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("paid", ""));
    let with_head = caller.post(&url(&server), &["-i", "--quiet"]).out;
    assert_eq!(with_head, "HTTP 201 Created\ncontent-length: 4\n\npaid");
    let file = caller.home.path().join("answer");
    let saved = caller.post(&url(&server), &["--output", file.to_str().unwrap()]);
    assert_eq!((saved.code, saved.out.as_str()), (Some(0), ""), "{saved:?}");
    assert_eq!(fs::read_to_string(file).unwrap(), "paid");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_quiet_still_says_what_went_wrong_in_words() {
    let (caller, server) = (Caller::new(), server(&[CUT]).await);
    let ended = caller.post(&url(&server), &["--quiet", "--attempts", "1", "--name", "order-42"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    for part in
        ["hapax: unknown after 1 attempt: ", &keys(&server)[0], "hapax call --resume order-42"]
    {
        assert!(ended.err.contains(part), "no {part:?} in {}", ended.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_journal_nothing_is_kept_and_the_key_is_told() {
    let (caller, server) = (Caller::new(), server(&[CUT, DONE]).await);
    let ended = caller.post(&url(&server), &["--no-journal", "--attempts", "1"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let key = ended.last()["key"].as_str().unwrap().to_owned();
    assert!(ended.last()["resume"].is_null() && !caller.journal().exists(), "{ended:?}");
    let again = caller.post(&url(&server), &["--no-journal", "--key", &key]);
    assert_eq!((again.code, keys(&server)), (Some(0), vec![key.clone(), key]), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_comes_from_the_command_line_a_file_or_standard_input() {
    let (caller, server) = (Caller::new(), server(&[DONE]).await);
    let file = caller.home.path().join("charge.json");
    fs::write(&file, BODY).unwrap();
    let from_file = format!("@{}", file.display());
    for (flag, value) in
        [("--json", BODY), ("--json", from_file.as_str()), ("--json", "-"), ("--data", "-")]
    {
        let mut command = caller.command(&["POST", &url(&server), flag, value]);
        let output = command.stdin(fs::File::open(&file).unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{flag} {value}: {output:?}");
        let head = server.heads().into_iter().rfind(|head| head.starts_with("POST ")).unwrap();
        let sent = |name| super::header(&head, name);
        assert_eq!(sent("content-length"), Some(BODY.len().to_string()), "{flag} {value}: {head}");
        let kind = (flag == "--json").then(|| "application/json".to_owned());
        assert_eq!(sent("content-type"), kind, "{flag} {value}: {head}");
    }
}
