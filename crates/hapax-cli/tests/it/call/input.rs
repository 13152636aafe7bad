//! What cannot be meant is refused with what to write instead, and nothing is sent.

use std::fs;

use super::{Caller, DONE, server, url};
use crate::{hapax, text};

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_refused_before_anything_is_sent() {
    let (caller, server) = (Caller::new(), server(&[DONE]).await);
    let here = url(&server);
    let large = caller.home.path().join("large");
    fs::write(&large, vec![b'1'; (1 << 20) + 1]).unwrap();
    let large = format!("@{}", large.display());
    let post = |more: &[&str]| [&["POST", here.as_str()][..], more].concat().join("\u{1f}");
    for (args, words) in [
        ("POST".to_owned(), "<URL>"),
        (["POST", "api.example.com/charges"].join("\u{1f}"), "write it in full"),
        (["POST", "ftp://127.0.0.1/charges"].join("\u{1f}"), "write it in full"),
        (["POST", "http://me:secret@127.0.0.1/"].join("\u{1f}"), "in the header Authorization"),
        (["PO ST", &here].join("\u{1f}"), "write the method first"),
        ([here.as_str(), "POST"].join("\u{1f}"), "write the method first"),
        (["CONNECT", &here].join("\u{1f}"), "makes a tunnel"),
        (post(&["-H", "no colon"]), "write NAME:VALUE"),
        (post(&["-H", "a name: value"]), "is no name of a header"),
        (post(&["-H", "Idempotency-Key: k"]), "give the key with --key"),
        (post(&["-H", "Content-Length: 3"]), "is set by itself"),
        (post(&["--json"]), "--json needs what to send"),
        (post(&["--json", "{"]), "the body is no JSON"),
        (post(&["--json", "@/nowhere/at/all"]), "cannot be read from /nowhere/at/all"),
        (post(&["--data", &large]), "larger than the 1048576 bytes"),
        (post(&["--json", "1", "--data", "1"]), "cannot be used with"),
        (post(&["--deadline", "soon"]), "a whole number and a unit"),
        (post(&["--deadline", "30"]), "a whole number and a unit"),
        (post(&["--deadline=-5s"]), "a whole number and a unit"),
        (post(&["--deadline", "0s"]), "longer than nothing"),
        (post(&["--deadline", "99999d"]), "at most"),
        (post(&["--attempts", "0"]), "1..="),
        (post(&["--attempts=-1"]), "--attempts"),
        (post(&["--name", ""]), "--name"),
        (post(&["--key", "a\u{e4}b"]), "--key"),
        (post(&["--no-journal", "--name", "n"]), "cannot be used with"),
        (post(&["--output", "/nowhere/at/all"]), "--output /nowhere/at/all cannot be written"),
        (post(&["--list"]), "cannot be used with"),
        (post(&["--force"]), "cannot be used with"),
        ("--list\u{1f}--force".to_owned(), "cannot be used with"),
        ("--list\u{1f}--resume".to_owned(), "cannot be used with"),
        ("--list\u{1f}--json\u{1f}{}".to_owned(), "takes no value here"),
        ("--resume\u{1f}".to_owned(), "--resume"),
    ] {
        let args: Vec<_> = args.split('\u{1f}').collect();
        let ended = caller.run(&args);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.err.starts_with("error: "), "{args:?}: {ended:?}");
        assert!(ended.err.contains(words), "{args:?}: no {words:?} in {}", ended.err);
    }
    assert!(server.heads().is_empty() && !caller.journal().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_cannot_be_written_is_named_and_nothing_is_sent() {
    let (caller, server) = (Caller::new(), server(&[DONE]).await);
    let file = caller.home.path().join("no journal");
    fs::write(&file, "something else, and longer than the head of a database. ".repeat(20))
        .unwrap();
    for (journal, words) in [
        (file.to_str().unwrap(), "is not a journal of Hapax"),
        ("/nowhere/at/all.db", "the directory /nowhere/at does not exist"),
    ] {
        let ended = caller.post(&url(&server), &["--journal", journal]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(ended.last()["event"], "failed");
        assert!(ended.err.contains(words), "{ended:?}");
    }
    assert!(server.heads().is_empty());
}

#[test]
fn help_has_examples_and_says_what_becomes_of_credentials() {
    let help = text(&hapax(&["call", "--help"]).stdout);
    for part in
        ["Examples:", "--json @charge.json", "Exit status:", "kept in the journal", "--resume"]
    {
        assert!(help.contains(part), "no {part:?} in:\n{help}");
    }
}
