//! `hapax demo`, from its first line to what it leaves behind.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

use crate::{hapax, text};

/// A demo that is still running, with a temporary directory of its own. Dropped, it cleans up.
pub(crate) struct Demo {
    pub(crate) child: Child,
    directory: tempfile::TempDir,
}

impl Demo {
    pub(crate) fn start(args: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
        command.arg("demo").args(args).env("TMPDIR", directory.path());
        // What belongs to some other gateway must not matter.
        command.env("HAPAX_UPSTREAM", "http://127.0.0.1:1").env("HAPAX_STORE", "memory:");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: command.spawn().unwrap(), directory }
    }

    /// What it says, up to the line that contains this.
    pub(crate) fn said_until(&mut self, last: &str) -> String {
        let mut out = BufReader::new(self.child.stdout.as_mut().unwrap());
        let mut said = String::new();
        while !said.lines().last().is_some_and(|line| line.contains(last)) {
            assert_ne!(out.read_line(&mut said).unwrap(), 0, "no {last:?} in:\n{said}");
        }
        said
    }

    /// Sends what Ctrl-C sends, unless it has ended already, and waits for the end.
    pub(crate) fn interrupt(&mut self) -> ExitStatus {
        if let Some(ended) = self.child.try_wait().unwrap() {
            return ended;
        }
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
        self.child.wait().unwrap()
    }

    pub(crate) fn is_clean(&self) -> bool {
        is_empty(self.directory.path())
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.interrupt();
    }
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// The two figures of a row of the table.
fn row<'a>(said: &'a str, name: &str) -> (&'a str, &'a str) {
    let line = said.lines().find(|line| line.trim_start().starts_with(name));
    assert!(line.is_some(), "no {name:?} in:\n{said}");
    let mut words = line.unwrap().split_whitespace();
    let with = words.next_back().unwrap();
    (words.next_back().unwrap(), with)
}

fn number(figure: &str) -> u64 {
    figure.replace(',', "").parse().unwrap()
}

#[test]
fn a_bad_day_charges_customers_twice_without_the_gateway_and_once_with_it() {
    let mut demo = Demo::start(&["--payments", "20"]);
    let said = demo.said_until("hapax demo --keep");
    assert!(demo.child.wait().unwrap().success(), "{said}");
    assert_eq!(row(&said, "payments wanted"), ("20", "20"));
    let (without, with) = row(&said, "charges made");
    assert!(number(without) > 20 && with == "20", "{said}");
    let (without, with) = row(&said, "customers charged twice");
    assert!(number(without) > 0 && with == "0", "{said}");
    let (without, with) = row(&said, "money taken too much");
    assert!(without != "$0.00" && with == "$0.00", "{said}");
    for some in ["retries answered", "told \"it is being", "told \"that key", "gateway killed and"]
    {
        let (without, with) = row(&said, some);
        assert!(without == "-" && number(with) > 0, "{some}: {said}");
    }
    assert!(said.contains("20 of 20 payments were charged exactly once"), "{said}");
    assert!(demo.is_clean());
}

#[test]
fn what_is_kept_can_be_tried_with_the_commands_it_prints() {
    let mut demo = Demo::start(&["--keep", "--payments", "4"]);
    let said = demo.said_until("keys explain");
    let commands: Vec<_> = said.lines().filter(|line| line.starts_with("  curl ")).collect();
    let answers: Vec<_> = commands.iter().map(|command| shell(command)).collect();
    let [first, again, dearer] = answers.as_slice() else { panic!("three commands: {said}") };
    assert!(first.starts_with("HTTP/1.1 201") && first.contains("\"amount\":2500"), "{first}");
    assert!(!first.contains("idempotent-replayed"), "{first}");
    assert!(again.starts_with("HTTP/1.1 201"), "{again}");
    assert!(again.contains("idempotent-replayed: true"), "{again}");
    assert_eq!(first.lines().last(), again.lines().last());
    assert!(dearer.starts_with("HTTP/1.1 422"), "{dearer}");
    let keys: Vec<_> = said.lines().filter(|line| line.contains(" keys ")).map(shell).collect();
    let [list, explained] = keys.as_slice() else { panic!("two commands: {said}") };
    assert!(list.contains("order-0001") && list.contains("try-1"), "{list}");
    assert!(explained.contains("it gets the stored answer"), "{explained}");

    let address = said.lines().find_map(|line| line.trim().strip_prefix("look at it"));
    let address = address.unwrap().trim();
    let page = shell(&format!("curl -s {address}"));
    assert!(page.contains("5 <span>charges for 5 payments") && page.contains("try-1"), "{page}");

    let dashboard = said.lines().find_map(|line| line.trim().strip_prefix("dashboard"));
    let (dashboard, token) = dashboard.unwrap().split_once("(its token: ").unwrap();
    let (dashboard, token) = (dashboard.trim(), token.trim_end_matches(')'));
    let figures = format!("curl -sf -H 'Authorization: Bearer {token}' {dashboard}v1/overview");
    assert!(shell(&figures).contains("\"replayed\""), "{}", shell(&figures));
    assert!(shell(&format!("curl -sf {dashboard}")).contains("<title>Hapax</title>"));

    let status = demo.interrupt();
    assert!(status.success(), "{status}");
    assert!(demo.is_clean());
    let page = address.trim_start_matches("http://").trim_end_matches('/');
    assert!(TcpStream::connect(page).is_err(), "the page is still there");
    let gateway = said.lines().find_map(|line| line.trim().strip_prefix("gateway  "));
    let gateway = gateway.unwrap().trim().trim_start_matches("http://");
    assert!(TcpStream::connect(gateway).is_err(), "the gateway is still there");
}

/// What a command says, run as somebody does who pastes it.
fn shell(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command.trim()]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", text(&output.stderr));
    text(&output.stdout).replace('\r', "")
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let mut demo = Demo::start(&["--payments", "20"]);
    demo.said_until("after the charge was made");
    assert_eq!(demo.interrupt().code(), Some(1));
    assert!(demo.is_clean());
}

#[test]
fn help_has_examples_and_what_cannot_be_asked_for_is_refused() {
    let help = text(&hapax(&["demo", "--help"]).stdout);
    for part in ["Examples:", "hapax demo --keep", "Exit status:"] {
        assert!(help.contains(part), "no {part:?} in:\n{help}");
    }
    for args in [&["demo", "--payments", "0"][..], &["demo", "--payments", "1001"]] {
        assert_eq!(hapax(args).status.code(), Some(2), "{args:?}");
    }
}
