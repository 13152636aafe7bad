//! A client of Redis: the commands of many callers share one connection, sent together.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, oneshot},
};

/// Commands that may wait for their answer: more than there are callers.
const IN_FLIGHT_MAX: usize = 1 << 14;
/// Commands that are sent with one write.
const TOGETHER_MAX: usize = 1024;

/// One connection, shared by all.
#[derive(Debug)]
pub(super) struct RespClient {
    commands: mpsc::Sender<RespCommand>,
}

#[derive(Debug)]
struct RespCommand {
    bytes: Vec<u8>,
    answer: oneshot::Sender<Reply>,
}

/// What Redis answered, as far as our commands need it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Ok,
    Nothing,
    Numbers(Vec<u64>),
    Refused(String),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RedisError {
    #[error("Redis cannot be reached")]
    Unreachable(#[source] io::Error),
    #[error("the connection to Redis ended")]
    Ended,
    #[error("Redis answered {found}")]
    Unexpected { found: String },
}

impl RespClient {
    pub(super) async fn connect(address: SocketAddr) -> Result<Self, RedisError> {
        let socket = TcpStream::connect(address).await.map_err(RedisError::Unreachable)?;
        socket.set_nodelay(true).map_err(RedisError::Unreachable)?;
        let (reader, writer) = socket.into_split();
        let (commands, received) = mpsc::channel(IN_FLIGHT_MAX);
        let (waiting, waiters) = mpsc::channel(IN_FLIGHT_MAX);
        tokio::spawn(write(received, writer, waiting));
        tokio::spawn(read(BufReader::new(reader), waiters));
        Ok(Self { commands })
    }

    /// Sends a command with whatever others send now, and waits for its answer.
    pub(super) async fn ask(&self, words: &[&[u8]]) -> Result<Reply, RedisError> {
        let (answer, answered) = oneshot::channel();
        let command = RespCommand { bytes: encode(words), answer };
        self.commands.send(command).await.map_err(|_| RedisError::Ended)?;
        answered.await.map_err(|_| RedisError::Ended)
    }
}

async fn write(
    mut commands: mpsc::Receiver<RespCommand>,
    mut socket: OwnedWriteHalf,
    waiting: mpsc::Sender<oneshot::Sender<Reply>>,
) {
    let (mut together, mut bytes) = (Vec::new(), Vec::new());
    while commands.recv_many(&mut together, TOGETHER_MAX).await > 0 {
        for command in together.drain(..) {
            bytes.extend_from_slice(&command.bytes);
            if waiting.send(command.answer).await.is_err() {
                return;
            }
        }
        if socket.write_all(&bytes).await.is_err() {
            return;
        }
        bytes.clear();
    }
}

/// Whoever still waits when it ends is told so by the end of its channel.
async fn read(
    mut socket: BufReader<OwnedReadHalf>,
    mut waiters: mpsc::Receiver<oneshot::Sender<Reply>>,
) {
    while let Some(waiter) = waiters.recv().await {
        let Ok(reply) = reply(&mut socket).await else { return };
        // A caller that went away needs no answer.
        let _ = waiter.send(reply);
    }
}

async fn reply(socket: &mut BufReader<OwnedReadHalf>) -> io::Result<Reply> {
    let first = line(socket).await?;
    Ok(match first.split_at_checked(1) {
        Some(("+", _)) => Reply::Ok,
        Some(("$", "-1")) => Reply::Nothing,
        Some(("*", count)) => {
            let mut numbers = Vec::new();
            for _ in 0..count.parse().unwrap_or(0) {
                let line = line(socket).await?;
                numbers.push(line.trim_start_matches(':').parse().unwrap_or(u64::MAX));
            }
            Reply::Numbers(numbers)
        }
        _ => Reply::Refused(first),
    })
}

async fn line(socket: &mut BufReader<OwnedReadHalf>) -> io::Result<String> {
    let mut line = String::new();
    if socket.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
