//! A server of raw bytes, for answers that no proper one would give.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A listener that does with each connection what it is told.
pub(crate) struct Raw {
    pub(crate) url: String,
    connections: Arc<AtomicUsize>,
}

impl Raw {
    /// Handles the connection of each number, from 0; it is closed when the handler ends.
    pub(crate) async fn start<F>(
        handle: impl Fn(usize, TcpStream) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/charges", listener.local_addr().expect("an address"));
        let connections = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(handle(count.fetch_add(1, Relaxed), stream));
            }
        });
        Self { url, connections }
    }

    /// Reads each request and answers with these bytes, by the number of the connection.
    pub(crate) async fn answering(bytes: impl Fn(usize) -> String + Send + Sync + 'static) -> Self {
        Self::start(move |number, mut stream| {
            let bytes = bytes(number);
            async move {
                read_head(&mut stream).await;
                let _ = stream.write_all(bytes.as_bytes()).await;
            }
        })
        .await
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }
}

/// Reads until the empty line after the headers, or until nothing more comes.
pub(crate) async fn read_head(stream: &mut TcpStream) {
    let (mut head, mut piece) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(count) => head.extend_from_slice(&piece[..count]),
        }
    }
}
