//! An API that does what it is told before it answers honestly.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::cuts_proxy::{How, key_of, read_message};

/// What is done with one request.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// Whether it has its effect.
    pub(crate) effect: bool,
    /// The bytes that are answered.
    pub(crate) said: Vec<u8>,
    /// How the connection ends afterwards; `None` to keep it.
    pub(crate) then: Option<How>,
}

/// An API on loopback. A key without a turn left is answered honestly, and only its first request
/// has an effect; `GET /by-key/{key}` says whether there was one.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    script: Arc<Script>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Script {
    turns: Mutex<HashMap<String, VecDeque<Turn>>>,
    effects: Mutex<HashMap<String, usize>>,
    sent: Mutex<HashMap<String, Vec<String>>>,
    asked: Mutex<HashMap<String, usize>>,
}

impl Scripted {
    pub(crate) async fn start() -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into()).await
    }

    pub(crate) async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let (address, script) = (listener.local_addr().unwrap(), Arc::<Script>::default());
        let serving = tokio::spawn({
            let script = Arc::clone(&script);
            async move {
                while let Ok((gateway, _)) = listener.accept().await {
                    let script = Arc::clone(&script);
                    tokio::spawn(async move { script.serve(gateway).await });
                }
            }
        });
        Self { address, script, serving }
    }

    /// Does this with the next requests of a key.
    pub(crate) fn plan(&self, key: &str, turns: impl IntoIterator<Item = Turn>) {
        let turns = turns.into_iter().collect();
        self.script.turns.lock().unwrap().insert(key.to_owned(), turns);
    }

    /// How often a key had its effect.
    pub(crate) fn effects(&self, key: &str) -> usize {
        self.script.effects.lock().unwrap().get(key).copied().unwrap_or(0)
    }

    /// The fences of all requests with this key.
    pub(crate) fn fences(&self, key: &str) -> Vec<String> {
        self.script.sent.lock().unwrap().get(key).cloned().unwrap_or_default()
    }

    /// How often it was asked whether this key had its effect.
    pub(crate) fn asked(&self, key: &str) -> usize {
        self.script.asked.lock().unwrap().get(key).copied().unwrap_or(0)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Script {
    async fn serve(&self, gateway: TcpStream) -> Option<()> {
        let mut gateway = BufReader::new(gateway);
        loop {
            let request = read_message(&mut gateway).await?;
            let turn = self.turn(&request);
            // A gateway that gives up on a wrong answer need not take all of it.
            let _ = gateway.write_all(&turn.said).await;
            match turn.then {
                None => {}
                Some(How::Fin) => {
                    gateway.shutdown().await.ok()?;
                    return None;
                }
                Some(How::Rst) => return gateway.get_ref().set_zero_linger().ok(),
                Some(How::Silence) => {
                    gateway.read_to_end(&mut Vec::new()).await.ok()?;
                    return None;
                }
            }
        }
    }

    fn turn(&self, request: &[u8]) -> Turn {
        let text = String::from_utf8_lossy(request);
        if let Some(rest) = text.strip_prefix("GET /by-key/") {
            return self.asked_for(rest.split(' ').next().unwrap());
        }
        let (key, fence) = (key_of(request), header(&text, "hapax-fence"));
        self.sent.lock().unwrap().entry(key.clone()).or_default().push(fence);
        let planned = self.turns.lock().unwrap().get_mut(&key).and_then(VecDeque::pop_front);
        let mut effects = self.effects.lock().unwrap();
        let effects = effects.entry(key.clone()).or_default();
        let turn = planned.unwrap_or_else(|| Turn {
            effect: *effects == 0,
            said: answer(201, &receipt(&key)),
            then: None,
        });
        *effects += usize::from(turn.effect);
        turn
    }

    fn asked_for(&self, key: &str) -> Turn {
        *self.asked.lock().unwrap().entry(key.to_owned()).or_default() += 1;
        let happened = self.effects.lock().unwrap().get(key).is_some_and(|effects| *effects > 0);
        let said = if happened { answer(201, &receipt(key)) } else { answer(404, "") };
        Turn { effect: false, said, then: None }
    }
}

/// What a key is answered when all goes well.
pub(crate) fn receipt(key: &str) -> String {
    format!("receipt for {key}")
}

/// A whole answer.
pub(crate) fn answer(status: u16, body: &str) -> Vec<u8> {
    let len = body.len();
    format!("HTTP/1.1 {status} Said\r\ncontent-length: {len}\r\n\r\n{body}").into_bytes()
}

fn header(request: &str, name: &str) -> String {
    let mut lines = request.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned()).unwrap_or_default()
}
