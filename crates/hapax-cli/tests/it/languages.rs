//! The examples in other languages, run as their pages say.

use std::{
    env,
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use crate::{
    text,
    world::{Gateway, Setup, ask, free_address, until},
};

#[tokio::test]
async fn a_python_client_that_asks_again_pays_once() {
    pays_once(Example { runs: "python3", folder: "gateway-python", ending: "py" }).await;
}

#[tokio::test]
async fn a_node_client_that_asks_again_pays_once() {
    pays_once(Example { runs: "node", folder: "gateway-node", ending: "mjs" }).await;
}

async fn pays_once(example: Example) {
    if !example.can_be_run() {
        return;
    }
    let api = example.start().await;
    let config = std::fs::read_to_string(example.file("gateway.toml")).unwrap();
    let gateway = Setup::new(api.address).config(&config).start().await;

    let said = example.pay(&gateway, "order-17");
    assert!(said.contains("attempt 1: no answer"), "the bank is slower than the client: {said}");
    assert!(said.contains("paid: payment 1, ") && said.contains("told again"), "{said}");
    assert_eq!(payments(&gateway).await, ["order-17"]);

    // As after the client's own death: all it remembers is the order.
    let said = example.pay(&gateway, "order-17");
    assert_eq!(said, "paid: payment 1, attempt 1, told again\n");
    let said = example.pay(&gateway, "order-18");
    assert!(said.contains("paid: payment 2, "), "{said}");
    assert_eq!(payments(&gateway).await, ["order-17", "order-18"]);
}

/// The orders that were paid for, as the API itself tells.
async fn payments(gateway: &Gateway) -> Vec<String> {
    let answer = ask(gateway.address, "GET /payments HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let payments: Vec<serde_json::Value> = serde_json::from_slice(&answer.body).unwrap();
    payments.iter().map(|payment| payment["order"].as_str().unwrap().to_owned()).collect()
}

/// An API and its client, in one language.
struct Example {
    runs: &'static str,
    folder: &'static str,
    ending: &'static str,
}

impl Example {
    /// Whether the language is installed, which in CI it must be.
    #[expect(clippy::print_stderr, reason = "a check that is left out is told")]
    fn can_be_run(&self) -> bool {
        let version = Command::new(self.runs).arg("--version").output();
        let is_there = version.is_ok_and(|version| version.status.success());
        let must_be = env::var_os("CI").is_some_and(|value| value == "true");
        assert!(is_there || !must_be, "{} is not installed", self.runs);
        if !is_there {
            eprintln!(
                "NOT CHECKED: {} is not installed, so {} did not run",
                self.runs, self.folder
            );
        }
        is_there
    }

    fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../examples")
            .join(self.folder)
            .join(name)
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new(self.runs);
        command.arg(self.file(&format!("{script}.{}", self.ending)));
        // Whoever runs the tests may have told programs to go through a proxy.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1").stdin(Stdio::null());
        command
    }

    /// Starts the API and waits until it answers.
    async fn start(&self) -> Api {
        let address = free_address();
        let mut command = self.command("payments");
        command.arg(address.port().to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        let api = Api { address, child: command.spawn().unwrap() };
        let request = "GET /payments HTTP/1.1\r\nhost: a\r\n\r\n";
        until("the API to answer", async || ask(address, request).await.is_some()).await;
        api
    }

    /// Runs the client to its end; what it said.
    fn pay(&self, gateway: &Gateway, order: &str) -> String {
        let mut command = self.command("client");
        command.args([order, "1000", &format!("http://{}", gateway.address)]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}, {}", gateway.log());
        text(&output.stdout)
    }
}

/// A payments API; killed when dropped.
struct Api {
    address: SocketAddr,
    child: Child,
}

impl Drop for Api {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
