//! The same over the admin API of a running gateway.

use std::process::{Command, Output};

use serde_json::Value;

use super::{File, NAME, WHY, check_refusals, json, refused};
use crate::world::{Behaviour, Gateway, Setup, Upstream};

/// A gateway on the file's store. The store the environment names is none of its business.
struct Asked {
    gateway: Gateway,
    _upstream: Upstream,
}

impl Asked {
    async fn new(file: &File) -> Self {
        let upstream = Upstream::start(Behaviour::default()).await;
        let store = format!("sqlite:{}", file.path().display());
        let gateway = Setup::new(upstream.address).store(&store).token("secret").start().await;
        Self { gateway, _upstream: upstream }
    }

    fn keys(&self, args: &[&str], token: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
        command.env("USER", "night shift").env("HAPAX_STORE", "sqlite:elsewhere.db").arg("keys");
        let admin = format!("http://{}", self.gateway.admin);
        command.args(args).args(["--admin", &admin, "--token", token, "--json"]).output().unwrap()
    }

    fn ask(&self, args: &[&str]) -> Output {
        self.keys(args, "secret")
    }

    fn json(&self, args: &[&str]) -> Value {
        json(&self.ask(args))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_gateway_answers_as_its_store_does() {
    let file = File::new().await;
    let asked = Asked::new(&file).await;
    assert_eq!(asked.json(&["list"]), file.json(&["list"]));
    assert_eq!(asked.json(&["list", "--state", "in_doubt"])["operations"][0]["key"], "lost");
    let name = [&NAME[..], &["--key", "lost"]].concat();
    let named = asked.json(&[&["list"], &NAME[..]].concat());
    assert_eq!(named["operations"].as_array().unwrap().len(), 3);
    assert_eq!(asked.json(&[&["explain"], &name[..]].concat())["answer"], "refused_in_doubt");
    let (code, said) = refused(&asked.ask(&["show", "00000000000000000000000000000000"]));
    assert_eq!(code, 3, "{said}");
    let resolve = ["resolve", "--as", "completed", "--status", "200", "--body", "found"];
    let changed = asked.json(&[&resolve[..], &name, &WHY].concat());
    assert_eq!(changed["state"], "completed");
    let show = [&["show", "--body"], &name[..]].concat();
    let (theirs, ours) = (asked.json(&show), file.json(&show));
    assert_eq!(theirs["record"], ours["record"]);
    assert_eq!(theirs["record"]["outcome"]["body"], "found");
    assert_eq!(theirs["notes"], ours["notes"]);
    let (code, said) = refused(&asked.keys(&["list"], "wrong"));
    assert_eq!(code, 1, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_over_a_gateway_foresees_what_one_on_its_store_does() {
    let file = File::new().await;
    let asked = Asked::new(&file).await;
    check_refusals(|args| asked.ask(args));
    let resolve = ["resolve", "--key", "lost", "--as", "failed", "--status", "402", "--dry-run"];
    let release = ["release", "--key", "lost", "--even-if-running", "--dry-run"];
    for change in [&release[..], &resolve] {
        let dry = [change, &WHY].concat();
        assert_eq!(asked.json(&dry), file.json(&dry));
    }
    let shown = file.json(&["show", "--key", "lost"]);
    assert_eq!(shown["record"]["state"], "in_doubt");
    assert!(shown["notes"].as_array().unwrap().is_empty());
}
