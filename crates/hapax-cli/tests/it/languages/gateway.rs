//! An API that knows nothing of retries, behind the gateway, and a client that asks again.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use super::{Api, Language, example};
use crate::{
    text,
    world::{Gateway, Setup, ask, free_address},
};

#[tokio::test]
async fn a_python_client_that_asks_again_pays_once() {
    pays_once(Example { language: Language::Python, folder: "gateway-python", ending: "py" }).await;
}

#[tokio::test]
async fn a_node_client_that_asks_again_pays_once() {
    pays_once(Example { language: Language::Node, folder: "gateway-node", ending: "mjs" }).await;
}

async fn pays_once(example: Example) {
    if !example.language.is_there() {
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
    language: Language,
    folder: &'static str,
    ending: &'static str,
}

impl Example {
    fn file(&self, name: &str) -> PathBuf {
        example(self.folder).join(name)
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new(self.language.program());
        command.arg(self.file(&format!("{script}.{}", self.ending)));
        // Whoever runs the tests may have told programs to go through a proxy.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1").stdin(Stdio::null());
        command
    }

    async fn start(&self) -> Api {
        let address = free_address();
        let mut command = self.command("payments");
        command.arg(address.port().to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        Api::start(address, command).await
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
