//! What cannot be meant is refused before anything is sent.

use super::Shop;
use crate::{hapax, text, world::Database};

/// The code and the words with which this is refused.
fn refused(args: &[&str]) -> (i32, String) {
    let shop = Shop::new();
    let store = shop.store();
    let output = hapax(&[&["relay", "--store", &store], args].concat());
    (output.status.code().unwrap(), text(&output.stderr))
}

#[test]
fn an_address_that_is_none_is_refused_with_what_to_write() {
    for (to, words) in [
        ("ftp://somewhere", "begins with \"ftp\", which is not known"),
        ("somewhere", "begins with no scheme"),
        ("https://", "names no host"),
        ("https://me:secret@somewhere/", "cannot hold a password"),
        ("kafka://somewhere", "needs a host and a port"),
        ("kafka://me:secret@a:9092", "not how it signs in"),
        ("kafka+ssl://a:9093?sasl=PLAIN", "and not who"),
        ("kafka+ssl://me@a:9093?sasl=PLAIN", "needs a user and a password"),
        ("kafka+ssl://me:secret@a:9093?sasl=GSSAPI", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
        ("kafka://a:9092?ca=ca.pem", "write \"kafka+ssl://…\""),
        ("kafka+ssl://a:9092?trust=ca.pem", "has `trust`, which is not known"),
        ("kafka+ssl://a:9092?ca=a.pem&ca=b.pem", "has `ca` twice"),
        ("kafka+ssl://me:%FF@a:9092?sasl=PLAIN", "percent signs that make no text"),
    ] {
        let (code, said) = refused(&["--to", to]);
        assert_eq!(code, 2, "{to}: {said}");
        assert!(said.contains(words), "{to}: {said}");
    }
}

#[test]
fn flags_that_contradict_each_other_are_refused_with_code_2() {
    for args in [
        &[][..],
        &["--to", "stdout:", "--config", "relay.toml"],
        &["--config", "relay.toml", "--name", "a"],
        &["--to", "stdout:", "--topics", "a*b"],
        &["--to", "stdout:", "--attempts", "0"],
        &["--to", "stdout:", "--from", "yesterday"],
        &["--to", "stdout:", "--source", "a b"],
    ] {
        assert_eq!(refused(args).0, 2, "{args:?}");
    }
}

#[test]
fn what_means_nothing_to_a_destination_is_refused() {
    for (args, words) in [
        (&["--to", "stdout:", "--exchange", "orders"][..], "--exchange means nothing"),
        (&["--to", "stdout:", "--prefix", "shop."], "--prefix means nothing"),
        (&["--to", "stdout:", "--lease", "10ms"], "--lease is too short"),
        (&["--to", "stdout:", "--follow"], "only PostgreSQL has a log that can be followed"),
        (&["--to", "stdout:", "--secret-env", "HOME"], "means nothing to this destination"),
        (&["--to", "http://127.0.0.1:1/"], "a webhook is signed"),
        (&["--to", "http://127.0.0.1:1/?a=b", "--secret-env", "HOME"], "give --name"),
        (&["--to", "http://127.0.0.1:1/", "--secret-env", "HAPAX_NOT_SET"], "which is not set"),
        (&["--to", "http://127.0.0.1:1/", "--secret-env", "HOME"], "its secret cannot be used"),
    ] {
        let (code, said) = refused(args);
        assert_eq!(code, 1, "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    let output = hapax(&["relay", "--store", "memory:", "--to", "stdout:"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nothing can be emitted into a store in memory"));
}

#[tokio::test]
async fn a_log_that_cannot_be_followed_is_refused_with_what_to_set() {
    let database = Database::migrated().await;
    let output = hapax(&["relay", "--store", &database.url, "--to", "stdout:", "--follow"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("set `wal_level = logical`"), "{}", text(&output.stderr));
}

#[cfg(not(feature = "kafka"))]
#[test]
fn a_destination_that_was_not_built_in_says_how_it_is() {
    let (code, said) = refused(&["--to", "kafka://127.0.0.1:9092"]);
    assert_eq!(code, 1);
    assert!(said.contains("--features kafka"), "{said}");
}

#[test]
fn a_file_is_refused_with_every_fault_and_its_place() {
    let shop = Shop::new();
    let toml = "[[destination]]\nto = \"ftp://a\"\n\n[[destination]]\nname = \"b\"\n\
                to = \"stdout:\"\non_failure = \"ignore\"\ntopic = \"orders\"\n\n\
                [[destination]]\nname = \"b\"\nto_env = \"HAPAX_NOT_SET\"\n";
    std::fs::write(shop.path("relay.toml"), toml).unwrap();
    let output = hapax(&["relay", "--config", shop.path("relay.toml").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for (line, words) in [
        (1, "it has no `name`"),
        (2, "`to` begins with \"ftp\""),
        (
            7,
            "`on_failure` cannot be \"ignore\"; write \"block\", \"park-message\" or \"park-tail\"",
        ),
        (8, "there is no setting \"topic\" here; write `topics` instead"),
        (11, "another destination is called that"),
        (12, "`to_env` names HAPAX_NOT_SET, which is not set"),
    ] {
        let place = format!("relay.toml:{line}:");
        let found = said.lines().any(|told| told.contains(&place) && told.contains(words));
        assert!(found, "no {place} {words} in:\n{said}");
    }
}
