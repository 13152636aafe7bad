//! `hapax keys` on real stores, as a person at three in the morning uses it.

mod admin;
mod overview;
mod purge;

use std::{
    path::PathBuf,
    process::{Command, Output},
};

use hapax::{
    Admission, AttemptEnd, BeginRequest, Engine, Key, Operation, Options, Outcome, Policy,
    RequestParts, RunMode, Scope, Store, Tenant, postgres, sqlite,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{text, world::Database};

/// A SQLite file with three keys: `paid` is completed, `lost` in doubt, `busy` running.
struct File {
    directory: TempDir,
}

impl File {
    async fn new() -> Self {
        let file = Self { directory: tempfile::tempdir().unwrap() };
        populate(sqlite::Store::open(file.path(), sqlite::Options::default()).unwrap()).await;
        file
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("hapax.db")
    }

    fn keys(&self, args: &[&str]) -> Output {
        keys(&format!("sqlite:{}", self.path().display()), args)
    }

    fn json(&self, args: &[&str]) -> Value {
        json(&self.keys(&[args, &["--json"]].concat()))
    }
}

fn keys(store: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.env("USER", "night shift").env("HAPAX_STORE", store);
    command.arg("keys").args(args).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The code the program ended with, and what it said about it.
fn refused(output: &Output) -> (i32, String) {
    (output.status.code().unwrap(), text(&output.stderr))
}

/// Whoever is asked refuses these changes, made or only foreseen.
fn check_refusals(keys: impl Fn(&[&str]) -> Output) {
    for (key, more, words) in [
        ("paid", &[][..], "completed already"),
        ("busy", &[], "an owner may be at work"),
        ("lost", &["--fence", "7"], "attempt 7 was seen, attempt 1 is there"),
    ] {
        for dry in [&["--dry-run"][..], &[]] {
            let args = [&["release", "--key", key], more, &WHY, dry].concat();
            let (code, said) = refused(&keys(&args));
            assert_eq!(code, 4, "{said}");
            assert!(said.contains(words), "{said}");
        }
    }
}

fn operation(key: &str) -> Operation {
    Operation::new(
        Tenant::parse("acme").unwrap(),
        Scope::parse("POST /payments").unwrap(),
        Key::parse(key).unwrap(),
    )
}

pub(crate) async fn populate(store: impl Store + Clone) {
    let salt = store.salt();
    let engine = Engine::start(store, Options::default());
    for key in ["paid", "lost", "busy"] {
        let operation = operation(key);
        let parts = RequestParts { body: b"pay 100", ..RequestParts::default() };
        let fingerprint = salt.tenant_key(operation.tenant()).fingerprint(&parts);
        let (mode, policy) = (RunMode::Run { request: None }, Policy::default());
        let begun = engine
            .begin(&BeginRequest { operation, request: fingerprint.into(), mode, policy })
            .await
            .unwrap();
        let Admission::Execute(permit) = begun else { unreachable!("{key} is new") };
        let ended = match key {
            "paid" => AttemptEnd::completed(Outcome::bare(201)),
            "lost" => AttemptEnd::Unanswered,
            _ => {
                // It goes on running after this process has gone.
                std::mem::forget(permit);
                continue;
            }
        };
        permit.settle(ended).await.unwrap();
    }
}

#[tokio::test]
async fn a_key_is_found_by_what_its_client_was_told() {
    let file = File::new().await;
    let id = operation("lost").id();
    let told = hapax::Salt::from_bytes([7; 32]).signed(id).to_string();
    let address = format!("https://api.example/.well-known/idempotency/operations/{told}");
    for name in [id.to_string(), told, address] {
        let shown = file.json(&["show", &name]);
        assert_eq!(shown["record"]["key"], "lost", "{name}");
    }
    let (code, said) = refused(&file.keys(&["show", "operations/nothing"]));
    assert_eq!(code, 2, "{said}");
}

const NAME: [&str; 4] = ["--tenant", "acme", "--scope", "POST /payments"];
const WHY: [&str; 2] = ["--why", "the bank says so"];

#[tokio::test]
async fn a_listing_shows_every_key_and_keeps_to_its_filters() {
    let file = File::new().await;
    let table = text(&file.keys(&["list"]).stdout);
    for word in ["ID", "completed", "in_doubt", "running", "acme", "POST /payments", "paid"] {
        assert!(table.contains(word), "no {word} in:\n{table}");
    }
    let doubted = file.json(&["list", "--state", "in_doubt"]);
    assert_eq!(doubted["operations"].as_array().unwrap().len(), 1);
    assert_eq!(doubted["operations"][0]["key"], "lost");
    let found = file.json(&["list", "--key", "paid"]);
    assert_eq!(found["operations"][0]["id"], operation("paid").id().to_string());
    let page = file.json(&["list", "--limit", "2"]);
    let next = page["next"].as_str().unwrap();
    let rest = file.json(&["list", "--after", next]);
    assert_eq!(rest["operations"].as_array().unwrap().len(), 1);
    assert_eq!(rest["next"], Value::Null);
}

#[tokio::test]
async fn a_key_is_found_by_its_id_by_its_name_and_by_itself() {
    let file = File::new().await;
    let id = operation("paid").id().to_string();
    let full = [&NAME[..], &["--key", "paid"]].concat();
    for name in [&[id.as_str()][..], &full, &["--key", "paid"]] {
        let shown = file.json(&[&["show"], name].concat());
        assert_eq!(shown["record"]["key"], "paid", "{name:?}");
        assert_eq!(shown["record"]["outcome"]["status"], 201);
    }
    let (code, said) = refused(&file.keys(&["show", "--key", "unknown"]));
    assert_eq!(code, 3, "{said}");
    let (code, said) = refused(&file.keys(&["show", "--key", "paid", "--search-max", "0"]));
    assert_eq!(code, 0, "the first page always counts: {said}");
}

#[tokio::test]
async fn what_the_next_request_meets_is_explained() {
    let file = File::new().await;
    for (key, answer, words) in [
        ("paid", "replays", "it gets the stored answer"),
        ("lost", "refused_in_doubt", "Find out"),
        ("busy", "waits", "its lease lasts another"),
    ] {
        assert_eq!(file.json(&["explain", "--key", key])["answer"], answer);
        let said = text(&file.keys(&["explain", "--key", key]).stdout);
        assert!(said.contains(words), "no {words:?} in:\n{said}");
    }
    let absent = [&["explain"], &NAME[..], &["--key", "new"]].concat();
    assert_eq!(file.json(&absent)["answer"], "runs");
}

#[tokio::test]
async fn a_doubt_is_resolved_with_an_answer_from_a_file_and_both_notes_are_kept() {
    let file = File::new().await;
    let receipt = file.directory.path().join("receipt.json");
    std::fs::write(&receipt, "{\"paid\": true}").unwrap();
    let body = format!("@{}", receipt.display());
    let resolve = ["resolve", "--key", "lost", "--as", "completed", "--status", "201", "--body"];
    let header = ["--header", "content-type: application/json"];
    let changed = file.json(&[&resolve[..], &[&body], &header, &WHY].concat());
    assert_eq!(changed["state"], "completed");
    assert_eq!(changed["noted"], true);
    let shown = file.json(&["show", "--key", "lost", "--body"]);
    let outcome = &shown["record"]["outcome"];
    assert_eq!(outcome["status"], 201);
    assert_eq!(outcome["body"], "{\"paid\": true}");
    assert_eq!(outcome["headers"][0]["name"], "content-type");
    let notes = shown["notes"].as_array().unwrap();
    for (note, phase) in notes.iter().zip(["intended", "done"]) {
        assert_eq!(note["phase"], phase);
        assert_eq!(note["deed"], "resolve_completed");
        assert_eq!(note["who"], "night shift");
        assert_eq!(note["why"], "the bank says so");
    }
    assert_eq!(notes.len(), 2);
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_leaves_no_note() {
    let file = File::new().await;
    let output = file.keys(
        &[&["release", "--key", "lost", "--even-if-running", "--dry-run"], &WHY[..]].concat(),
    );
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("Nothing was changed"));
    let shown = file.json(&["show", "--key", "lost"]);
    assert_eq!(shown["record"]["state"], "in_doubt");
    assert!(shown["notes"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn what_must_not_be_changed_is_refused_with_code_4() {
    let file = File::new().await;
    check_refusals(|args| file.keys(args));
}

#[tokio::test]
async fn a_running_key_is_released_on_purpose() {
    let file = File::new().await;
    let release = ["release", "--key", "busy", "--even-if-running", "--yes"];
    assert_eq!(file.json(&[&release[..], &WHY].concat())["state"], "released");
    assert_eq!(file.json(&["explain", "--key", "busy"])["answer"], "runs");
}

#[tokio::test]
async fn several_keys_are_listed_to_choose_from() {
    let file = File::new().await;
    let store = sqlite::Store::open(file.path(), sqlite::Options::default()).unwrap();
    let engine = Engine::start(store.clone(), Options::default());
    let (tenant, key) = (Tenant::parse("other").unwrap(), Key::parse("paid").unwrap());
    let operation = Operation::new(tenant, Scope::parse("POST /refunds").unwrap(), key);
    let key = store.salt().tenant_key(operation.tenant());
    let fingerprint = key.fingerprint(&RequestParts::default());
    let (mode, policy) = (RunMode::Run { request: None }, Policy::default());
    let begun = engine
        .begin(&BeginRequest { operation, request: fingerprint.into(), mode, policy })
        .await
        .unwrap();
    let output = file.keys(&["show", "--key", "paid"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("POST /refunds") && table.contains("POST /payments"), "{table}");
    drop(begun);
}

#[tokio::test]
async fn a_store_that_is_not_there_is_named_and_not_created() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing.db");
    let (code, said) = refused(&keys(&format!("sqlite:{}", path.display()), &["list"]));
    assert_eq!(code, 1);
    assert!(said.contains("there is no file"), "{said}");
    assert!(!path.exists());
    let (code, said) = refused(&keys("mysql://somewhere", &["list"]));
    assert_eq!(code, 1);
    assert!(said.contains("write sqlite:PATH"), "{said}");
}

#[test]
fn arguments_that_mean_nothing_are_refused_with_code_2() {
    for args in [
        &["show"][..],
        &["show", "nonsense"],
        &["list", "--state", "lost"],
        &["release", "--key", "k"],
        &["resolve", "--key", "k", "--why", "y"],
        &["resolve", "--key", "k", "--why", "y", "--as", "completed"],
        &["resolve", "--key", "k", "--why", "y", "--as", "failed", "--status", "20"],
        &["resolve", "--key", "k", "--why", "y", "--as", "failed", "--status", "399"],
        &["resolve", "--key", "k", "--why", "y", "--as", "completed", "--status", "400"],
        &["list", "--store", "sqlite:hapax.db", "--admin", "http://127.0.0.1:1"],
    ] {
        let (code, said) = refused(&keys("sqlite:hapax.db", args));
        assert_eq!(code, 2, "{args:?}: {said}");
    }
}

#[test]
fn help_has_examples_and_the_exit_codes() {
    let help = text(&keys("sqlite:hapax.db", &["--help"]).stdout);
    for part in ["Examples:", "Exit codes:", "resolve", "explain"] {
        assert!(help.contains(part), "no {part:?} in:\n{help}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_on_postgresql_are_looked_at_and_resolved_alike() {
    let database = Database::create().await;
    let config: postgres::Address = database.url.parse().unwrap();
    let store = postgres::Store::connect(&config, postgres::Options::default()).await.unwrap();
    populate(store).await;
    let keys = |args: &[&str]| keys(&database.url, args);
    let listed = json(&keys(&["list", "--json"]));
    assert_eq!(listed["operations"].as_array().unwrap().len(), 3);
    assert_eq!(json(&keys(&["explain", "--key", "busy", "--json"]))["answer"], "waits");
    let resolve = ["resolve", "--key", "lost", "--as", "failed", "--status", "402", "--json"];
    assert_eq!(json(&keys(&[&resolve[..], &WHY].concat()))["state"], "failed");
    let shown = json(&keys(&["show", "--key", "lost", "--json"]));
    assert_eq!(shown["record"]["outcome"]["status"], 402);
    assert_eq!(shown["notes"].as_array().unwrap().len(), 2);
    let (code, said) = refused(&keys(&[&["release", "--key", "lost"], &WHY[..]].concat()));
    assert_eq!(code, 4, "{said}");
}
