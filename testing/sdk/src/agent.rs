use std::{process::Stdio, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::Sdk;

/// How long an agent may take for a command.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that uses an SDK as it is told. Dropping it kills it.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Agent {
    /// Starts one, and waits until it is ready.
    pub async fn start(sdk: Sdk, driver: &str, database: &str) -> Self {
        let mut command = Command::from(sdk.program("agent"));
        command.args(["--driver", driver, "--database", database]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        // The script becomes the program, so that what is killed is the agent itself.
        let mut child = command.spawn().expect("the agent can be started");
        let input = child.stdin.take().expect("it reads");
        let output = BufReader::new(child.stdout.take().expect("it writes")).lines();
        let mut agent = Self { child, input, output };
        let ready = agent.heard().await;
        assert_eq!(ready, Some(json!({ "ready": true })), "{sdk} {driver}");
        agent
    }

    /// Tells it to do something, and waits for what it says; `None` if it ended instead.
    pub async fn ask(&mut self, command: &Value) -> Option<Value> {
        self.tell(command).await;
        self.heard().await
    }

    /// Tells it to do something.
    pub async fn tell(&mut self, command: &Value) {
        let line = format!("{command}\n");
        // Who has ended is noticed when it is heard.
        let _ = self.input.write_all(line.as_bytes()).await;
        let _ = self.input.flush().await;
    }

    /// What it says next; `None` if it has ended.
    pub async fn heard(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.output.next_line()).await;
        let line = line.expect("the agent answers in time").ok().flatten()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}")))
    }

    /// Kills it, and waits until it is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it can be killed");
    }
}
