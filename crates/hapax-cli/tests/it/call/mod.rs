//! `hapax call`, as people run it, against servers that do what a test says.

mod ends;
mod example;
mod input;
mod interrupts;
mod kept;
mod secrets;

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{text, world::Raw};

/// Somebody with a home of their own, and so with a journal of their own.
struct Caller {
    home: TempDir,
}

impl Caller {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
        command.arg("call").args(args).env("XDG_STATE_HOME", self.home.path());
        command.env_remove("HAPAX_JOURNAL").env_remove("HAPAX_MASTER_KEY_FILE");
        // Whoever runs the tests may have told programs to go through a proxy.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        Ended::of(&self.command(args).output().unwrap())
    }

    fn post(&self, url: &str, more: &[&str]) -> Ended {
        self.run(&[&["POST", url, "--json", BODY], more].concat())
    }

    fn journal(&self) -> PathBuf {
        self.home.path().join("hapax/calls.db")
    }

    /// What the journal's files hold, as bytes.
    fn journal_holds(&self, what: &str) -> bool {
        let files = fs::read_dir(self.home.path().join("hapax")).unwrap();
        files.into_iter().any(|file| {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            bytes.windows(what.len()).any(|part| part == what.as_bytes())
        })
    }

    fn list(&self) -> Vec<Value> {
        let ended = self.run(&["--list", "--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str(&ended.out).unwrap()
    }
}

const BODY: &str = r#"{"amount":100}"#;

/// What a run came to.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ended {
    fn of(output: &Output) -> Self {
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Everything it told, which must be one JSON object for each line.
    fn told(&self) -> Vec<Value> {
        let parse = |line: &str| {
            let parsed = serde_json::from_str::<Value>(line);
            assert!(parsed.as_ref().is_ok_and(Value::is_object), "{line:?} in {self:?}");
            parsed.unwrap()
        };
        self.err.lines().map(parse).collect()
    }

    fn events(&self) -> Vec<String> {
        self.told().iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect()
    }

    /// The last thing it told.
    fn last(&self) -> Value {
        self.told().pop().unwrap()
    }
}

const DONE: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\npaid";
const REFUSED: &[u8] = b"HTTP/1.1 402 Payment Required\r\ncontent-length: 5\r\n\r\nbroke";
/// The head of an answer, cut short: it may have happened.
const CUT: &[u8] = b"HTTP/1.1 201 Created\r\nconnection: close\r\nx";
/// No answer, and no end.
const SILENCE: &[u8] = b"";

/// Answers the first requests with these, and every later one with the last.
async fn server(answers: &'static [&'static [u8]]) -> Raw {
    let asked = AtomicUsize::new(0);
    Raw::start(move |head| {
        if head.starts_with("GET /.well-known/") {
            return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec();
        }
        let at = asked.fetch_add(1, Relaxed).min(answers.len() - 1);
        answers[at].to_vec()
    })
    .await
}

fn url(server: &Raw) -> String {
    format!("http://{}/charges", server.address)
}

/// The keys of all requests that could have an effect, in the order they came.
fn keys(server: &Raw) -> Vec<String> {
    let heads = server.heads().into_iter().filter(|head| !head.starts_with("GET /.well-known/"));
    heads.map(|head| header(&head, "idempotency-key").unwrap()).collect()
}

/// The value of a header of a request, without quotes.
fn header(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
    Some(value.trim().trim_matches('"').to_owned())
}
