//! Ctrl-C, SIGTERM and SIGKILL, and what a resume makes of them.

use std::process::Child;

use serde_json::{Value, json};

use super::{BODY, Caller, DONE, Ended, SILENCE, keys, server, url};
use crate::world::{Raw, until};

/// A call that has been sent and waits for its answer.
async fn waiting(caller: &Caller, server: &Raw, name: &str) -> Child {
    let before = keys(server).len();
    let url = url(server);
    let args = ["POST", &url, "--json", BODY, "--name", name, "--deadline", "5m"];
    let child = caller.command(&args).spawn().unwrap();
    until("the request to arrive", async || keys(server).len() == before + 1).await;
    child
}

fn send(signal: rustix::process::Signal, child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

fn ended(child: Child) -> Ended {
    Ended::of(&child.wait_with_output().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_call_is_finished_with_the_same_key_at_once() {
    use rustix::process::Signal;
    for (signal, name, code) in
        [(Signal::INT, "SIGINT", 130), (Signal::TERM, "SIGTERM", 143), (Signal::HUP, "SIGHUP", 129)]
    {
        let (caller, server) = (Caller::new(), server(&[SILENCE, DONE]).await);
        let child = waiting(&caller, &server, "order 42").await;
        send(signal, &child);
        let ended = ended(child);
        assert_eq!((ended.code, ended.out.as_str()), (Some(code), ""), "{ended:?}");
        let last = ended.last();
        assert_eq!((&last["event"], &last["signal"]), (&json!("interrupted"), &json!(name)));
        assert_eq!(last["resume"], "hapax call --resume='order 42'");
        assert_eq!(caller.list()[0]["state"], "pending");

        let resumed = caller.run(&["--resume", "order 42"]);
        assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "paid"), "{resumed:?}");
        // Its lease was given up, so nobody had to wait for the end of it.
        assert!(!resumed.events().contains(&"waiting".to_owned()), "{resumed:?}");
        let keys = keys(&server);
        assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_call_is_finished_with_the_same_key_when_its_lease_is_over() {
    let (caller, server) = (Caller::new(), server(&[SILENCE, DONE]).await);
    let child = waiting(&caller, &server, "order-42").await;
    send(rustix::process::Signal::KILL, &child);
    assert_eq!(ended(child).code, None);
    let resumed = caller.run(&["--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.events().contains(&"waiting".to_owned()), "{resumed:?}");
    let keys = keys(&server);
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
    assert_eq!(caller.list()[0]["state"], "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_waits_for_a_process_that_is_at_it_and_has_its_answer() {
    let (caller, server) = (Caller::new(), server(&[SILENCE, DONE]).await);
    let first = waiting(&caller, &server, "order-42").await;
    let url = url(&server);
    let args = ["POST", &url, "--json", BODY, "--name", "order-42"];
    let second = caller.command(&args).spawn().unwrap();
    // The first attempt takes ten seconds and is then repeated, by the first process alone.
    let (first, second) = (ended(first), ended(second));
    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{first:?} {second:?}");
    assert_eq!((first.out.as_str(), second.out.as_str()), ("paid", "paid"));
    assert!(second.events().contains(&"waiting".to_owned()), "{second:?}");
    assert_eq!(second.last()["recorded"], true);
    assert_eq!(keys(&server).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_pending_is_finished_and_the_gravest_end_is_the_code() {
    let (caller, silent) = (Caller::new(), server(&[SILENCE, DONE]).await);
    let broken = server(&[SILENCE, super::CUT]).await;
    for (server, name) in [(&silent, "good"), (&broken, "bad")] {
        let child = waiting(&caller, server, name).await;
        send(rustix::process::Signal::INT, &child);
        assert_eq!(ended(child).code, Some(130));
    }
    let resumed = caller.run(&["--resume", "--attempts", "1"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(4), ""), "{resumed:?}");
    let concluded = |name: &str| {
        let told = resumed.told();
        let is_it = |line: &&Value| line["event"] == "concluded" && line["name"] == name;
        told.iter().find(is_it).map(|line| line["conclusion"].clone())
    };
    assert_eq!(concluded("good"), Some(json!("done")));
    assert_eq!(concluded("bad"), Some(json!("unknown")));
    let nothing = caller.run(&["--resume"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(0), ""), "{nothing:?}");
}
