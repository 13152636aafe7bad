//! Stripe's own libraries, as their users call them, in front of the gateway.

mod charges;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use self::charges::Charges;
use super::{not_checked, packages::Packages};
use crate::{
    text,
    world::{Gateway, Setup, ask, until},
};

/// A route as the documentation has it.
const ROUTE: &str = "[[route]]\nmatch = \"POST /v1/*\"\ndialect = \"stripe\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn stripes_library_for_python_raises_what_its_users_catch() {
    let python = Library {
        packages: Packages {
            name: "stripe-python",
            programs: programs("python"),
            list: "requirements.txt",
            steps: &[
                &["python3", "-m", "venv", "--clear", ".venv"],
                &[".venv/bin/pip", "install", "--quiet", "-r", "requirements.txt"],
            ],
        },
        run: &[".venv/bin/python", "charges.py"],
        idempotency_error: "IdempotencyError",
        api_error: "APIError",
        waits: true,
    };
    python.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stripes_library_for_node_raises_what_its_users_catch() {
    let node = Library {
        packages: Packages {
            name: "stripe-node",
            programs: programs("node"),
            list: "package-lock.json",
            steps: &[&["npm", "ci", "--no-audit"]],
        },
        run: &["node", "charges.mjs"],
        idempotency_error: "StripeIdempotencyError",
        api_error: "StripeAPIError",
        waits: true,
    };
    node.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stripes_library_for_go_returns_what_its_users_look_for() {
    let go = Library {
        packages: Packages {
            name: "stripe-go",
            programs: programs("go"),
            list: "charges.go",
            steps: &[&["go", "build", "-mod=readonly", "-o", "charges", "."]],
        },
        run: &["./charges"],
        idempotency_error: "idempotency_error",
        api_error: "api_error",
        // It repeats no error that it can read, whatever the header says.
        waits: false,
    };
    go.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stripes_library_for_java_throws_what_its_users_catch() {
    let java = Library {
        packages: Packages {
            name: "stripe-java",
            programs: programs("java"),
            list: "pom.xml",
            steps: &[&[
                "mvn",
                "--quiet",
                "--batch-mode",
                "--strict-checksums",
                "dependency:copy-dependencies",
                "-DoutputDirectory=libraries",
            ]],
        },
        run: &["java", "-XX:TieredStopAtLevel=1", "-cp", "libraries/*", "Charges.java"],
        idempotency_error: "IdempotencyException",
        api_error: "ApiException",
        waits: true,
    };
    java.check().await;
}

fn programs(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/foreign/stripe").join(language)
}

/// A program that charges through one of the libraries.
struct Library {
    packages: Packages,
    run: &'static [&'static str],
    /// What it calls the error of a key that was used for something else.
    idempotency_error: &'static str,
    /// What it calls an error after which nobody knows what was done.
    api_error: &'static str,
    /// Whether it asks again while the first request is at work.
    waits: bool,
}

impl Library {
    async fn check(&self) {
        let folder = match self.packages.install() {
            Ok(folder) => folder,
            Err(why) => return not_checked(self.packages.name, &why),
        };
        let charges = Charges::start().await;
        let gateway = Setup::new(charges.address).config(ROUTE).start().await;
        let mut command = Command::new(self.run[0]);
        command.args(&self.run[1..]).arg(format!("http://{}", gateway.address));
        // Whoever runs the tests may have told programs to go through a proxy.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command.current_dir(folder).stdin(Stdio::null());
        let charging = tokio::task::spawn_blocking(move || command.output().unwrap());
        // Two charges with one key: one waits for the service, the other one is refused meanwhile.
        until("a charge to be refused while another one is at work", async || {
            charging.is_finished() || counted(&gateway, "busy").await > 0
        })
        .await;
        charges.go_on();
        let output = charging.await.unwrap();
        assert!(output.status.success(), "{output:?}, {}", gateway.log());
        assert_eq!(text(&output.stdout), self.expected(), "{}", text(&output.stderr));
        assert_eq!(charges.made(), 6);
        // Nothing was asked for again that would be refused again.
        let replayed = if self.waits { 3 } else { 2 };
        let verdicts = [
            ("executed", 5),
            ("unanswered", 1),
            ("mismatch", 1),
            ("in_doubt", 1),
            ("replayed", replayed),
        ];
        for (verdict, times) in verdicts {
            assert_eq!(counted(&gateway, verdict).await, times, "{verdict}");
        }
    }

    fn expected(&self) -> String {
        let (reused, api) = (self.idempotency_error, self.api_error);
        let in_flight = if self.waits {
            "ch_4, ch_4".to_owned()
        } else {
            format!("ch_4, {reused} 409 idempotency_key_in_use")
        };
        format!(
            "again: ch_1, ch_1\nreused: {reused} 400 key_reused\naccounts: ch_2, ch_3\n\
             in flight: {in_flight}\nfailed: {api} 500 broken, {api} 500 broken\n\
             vanished: {api} 502 execution_unanswered, {api} 409 outcome_in_doubt\n"
        )
    }
}

/// How many requests were answered so, as the gateway's own metrics say.
async fn counted(gateway: &Gateway, verdict: &str) -> u64 {
    let answer = ask(gateway.admin, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let metrics = text(&answer.body);
    let name = format!("hapax_requests_total{{route=\"POST /v1/*\",verdict=\"{verdict}\"}} ");
    let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
    count.map_or(0, |count| count.parse().unwrap())
}
