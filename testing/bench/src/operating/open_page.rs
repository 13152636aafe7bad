//! A browser that has the dashboard open, as far as the gateway can tell.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use http::header::{ACCEPT, CONTENT_TYPE, COOKIE, SET_COOKIE};
use reqwest::{Client, RequestBuilder, Response};
use tokio::task::JoinHandle;

use crate::{BenchError, client};

/// What every figure of the stream begins with.
const FIGURES: &[u8] = b"event: figures\n";

/// A page that was loaded, signed in, and listens. Dropping it closes the stream.
pub(super) struct OpenPage {
    figures: Arc<AtomicU64>,
    listening: JoinHandle<()>,
}

impl OpenPage {
    /// Does what the page does when somebody opens it: reads it, signs in, asks for the overview, and
    /// listens to the stream from then on.
    pub(super) async fn open(admin: u16, token: &str) -> Result<Self, BenchError> {
        let client = client::connections()?.build().map_err(BenchError::Dashboard)?;
        let at = |path: &str| format!("http://127.0.0.1:{admin}{path}");
        answered(client.get(at("/"))).await?;
        answered(client.get(at("/session"))).await?;
        let login = client.post(at("/session")).header("Hapax-Dashboard", "1");
        let login = login.header(CONTENT_TYPE, "application/json");
        let login = answered(login.body(format!(r#"{{"token":"{token}"}}"#))).await?;
        let cookie = login.headers().get(SET_COOKIE).and_then(|cookie| cookie.to_str().ok());
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        let cookie = cookie.ok_or(BenchError::NotSignedIn)?.to_owned();
        answered(client.get(at("/v1/overview")).header(COOKIE, &cookie)).await?;
        let stream = client.get(at("/v1/events")).header(ACCEPT, "text/event-stream");
        let stream = answered(stream.header(COOKIE, cookie)).await?;
        let figures = Arc::<AtomicU64>::default();
        let listening = tokio::spawn(listen(client, stream, Arc::clone(&figures)));
        Ok(Self { figures, listening })
    }

    /// How many figures it was told so far.
    pub(super) fn figures(&self) -> u64 {
        self.figures.load(Relaxed)
    }
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn answered(request: RequestBuilder) -> Result<Response, BenchError> {
    let response = request.send().await.and_then(Response::error_for_status);
    response.map_err(BenchError::Dashboard)
}

/// Counts until the stream ends; that it ended is seen by what it was not told.
async fn listen(_client: Client, mut stream: Response, figures: Arc<AtomicU64>) {
    while let Ok(Some(chunk)) = stream.chunk().await {
        // Each is one chunk as the gateway wrote it.
        figures.fetch_add(u64::from(chunk.starts_with(FIGURES)), Relaxed);
    }
}
