//! Credentials: kept where only their owner reads them, or not at all.

use super::{CUT, Caller, DONE, Ended, header, server, url};

const SECRET: &str = "Bearer hush-hush";
const FROM_ENVIRONMENT: [&str; 2] = ["--header-env", "Authorization=TOKEN"];

/// Runs with the secret in the environment.
fn knowing(caller: &Caller, args: &[&str]) -> Ended {
    Ended::of(&caller.command(args).env("TOKEN", SECRET).output().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_is_given_is_kept_for_the_resume() {
    let (caller, server) = (Caller::new(), server(&[CUT, DONE]).await);
    let given = format!("Authorization: {SECRET}");
    let first = caller.post(&url(&server), &["-H", &given, "--name", "n", "--attempts", "1"]);
    assert_eq!(first.code, Some(4), "{first:?}");
    assert!(caller.journal_holds(SECRET));
    assert_eq!(caller.run(&["--resume", "n"]).code, Some(0));
    let heads = server.heads();
    let sent = heads.iter().filter(|head| header(head, "authorization").as_deref() == Some(SECRET));
    assert_eq!(sent.count(), 2, "{heads:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_from_the_environment_is_not_kept_and_a_resume_needs_it_again() {
    let (caller, server) = (Caller::new(), server(&[CUT, DONE]).await);
    let address = url(&server);
    let call = ["POST", &address, "--name", "n", "--attempts", "1"];
    let first = knowing(&caller, &[&call[..], &FROM_ENVIRONMENT].concat());
    assert_eq!(first.code, Some(4), "{first:?}");
    assert!(!caller.journal_holds(SECRET) && !first.err.contains(SECRET), "{first:?}");
    let resume = first.last()["resume"].as_str().unwrap().to_owned();
    assert_eq!(resume, "hapax call --resume n --header-env authorization=TOKEN");

    let without = caller.run(&["--resume", "n"]);
    assert_eq!(without.code, Some(1), "{without:?}");
    assert!(without.err.contains("--header-env authorization=VARIABLE"), "{without:?}");
    let with = knowing(&caller, &[&["--resume", "n"], &FROM_ENVIRONMENT[..]].concat());
    assert_eq!((with.code, with.out.as_str()), (Some(0), "paid"), "{with:?}");
    let posts: Vec<_> =
        server.heads().into_iter().filter(|head| head.starts_with("POST")).collect();
    assert_eq!(posts.len(), 2, "{posts:?}");
    for head in &posts {
        assert_eq!(header(head, "authorization").as_deref(), Some(SECRET), "{head}");
    }
    assert!(!caller.journal_holds(SECRET));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_from_the_environment_goes_to_nobody_it_was_not_meant_for() {
    let (caller, server) = (Caller::new(), server(&[DONE]).await);
    for (args, words) in [
        (&["--resume", "--header-env", "Authorization=TOKEN"][..], "name one with --resume NAME"),
        (&["POST", &url(&server), "--header-env", "Authorization=UNSET"], "UNSET is not set"),
        (&["POST", &url(&server), "--header-env", "X-Shape=TOKEN"], "give x-shape with -H"),
        (
            &["POST", &url(&server), "-H", "Cookie: a=b", "--header-env", "Authorization=TOKEN"],
            "give both the same way",
        ),
    ] {
        let ended = knowing(&caller, args);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains(words), "no {words:?} in {ended:?}");
    }
    assert!(server.heads().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_master_key_no_secret_is_in_the_journal_and_a_resume_needs_the_key() {
    let (caller, server) = (Caller::new(), server(&[CUT, DONE]).await);
    let file = |name: &str, digits: &str| {
        let path = caller.home.path().join(name);
        std::fs::write(&path, digits.repeat(32)).unwrap();
        path.display().to_string()
    };
    let (key, other) = (file("master.key", "01"), file("other.key", "02"));
    let (given, with_key) = (format!("Authorization: {SECRET}"), ["--master-key-file", &key]);
    let asked = [&["-H", &given, "--name", "n", "--attempts", "1"], &with_key[..]].concat();
    let first = caller.post(&format!("{}?card=alice-4242", url(&server)), &asked);
    assert_eq!(first.code, Some(4), "{first:?}");
    for secret in [SECRET, "alice-4242", "amount"] {
        assert!(!caller.journal_holds(secret), "{secret}");
    }
    let resume = first.last()["resume"].as_str().unwrap().to_owned();
    assert_eq!(resume, format!("hapax call --resume n --master-key-file {key}"));

    let without = caller.run(&["--resume", "n"]);
    assert_eq!(without.code, Some(1), "{without:?}");
    assert!(without.err.contains("give that key"), "{without:?}");
    let wrong = caller.run(&["--resume", "n", "--master-key-file", &other]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.err.contains("give that one"), "{wrong:?}");
    let resumed = caller.run(&[&["--resume", "n"], &with_key[..]].concat());
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "paid"), "{resumed:?}");
    assert!(!caller.journal_holds("paid"));

    let both = ["--master-key-file", &other, "--previous-master-key-file", &key];
    let listed = caller.run(&[&["--list"], &both[..]].concat());
    assert!(listed.out.contains("done 201"), "{listed:?}");
    assert_eq!(caller.run(&[&["--list"], &with_key[..]].concat()).code, Some(1));
}
