//! A server whose answers are bytes a test wrote.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Answers each request with what a function of its head says, and closes the connection where the
/// answer says `connection: close`.
pub(crate) struct Raw {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Raw {
    pub(crate) async fn start<F>(answer: F) -> Self
    where
        F: Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, heads) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<_>>>::default());
        let (answer, seen) = (Arc::new(answer), Arc::clone(&heads));
        let serving = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, Arc::clone(&answer), Arc::clone(&seen)));
            }
        });
        Self { address, heads, serving }
    }

    /// The heads of all requests it has seen.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve<F>(connection: TcpStream, answer: Arc<F>, seen: Arc<Mutex<Vec<String>>>)
where
    F: Fn(&str) -> Vec<u8>,
{
    let mut connection = BufReader::new(connection);
    while let Some(head) = read_request(&mut connection).await {
        seen.lock().unwrap().push(head.clone());
        let said = answer(&head);
        if connection.write_all(&said).await.is_err() {
            return;
        }
        if String::from_utf8_lossy(&said).contains("connection: close") {
            return;
        }
    }
}

/// Reads a request with its body, whose length must be announced; `None` at the end.
async fn read_request(connection: &mut BufReader<TcpStream>) -> Option<String> {
    let (mut head, mut len) = (String::new(), 0);
    loop {
        let start = head.len();
        if connection.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
        let line = head[start..].trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            len = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            connection.read_exact(&mut vec![0; len]).await.ok()?;
            return Some(head);
        }
    }
}
