//! What servers publish, read once in a while.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::poll_fn;
use hapax_tower::{Body, BoxError};
use http::{Method, Request, StatusCode, Uri, header::ACCEPT};
use http_body_util::{BodyExt, Limited};
use tokio::time::{Instant, timeout};

use super::well_known::Published;
use crate::transport::Transport;

/// How long an answer is believed.
const FRESH_FOR: Duration = Duration::from_secs(600);
/// How soon a server that could not be asked is asked again.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// How long the question may take.
const READ_WITHIN: Duration = Duration::from_secs(5);
/// The largest document that is read.
const DOCUMENT_BYTES_MAX: usize = 256 << 10;
/// How many servers are remembered.
const ORIGINS_MAX: usize = 256;
const WELL_KNOWN: &str = "/.well-known/idempotency";

/// What a server says about how long it remembers a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetentionWindow {
    /// So long.
    Published(Duration),
    /// It answered, and says nothing that can be understood.
    NotPublished,
    /// It could not be asked.
    Unreadable,
}

/// The windows of all servers this client speaks to.
#[derive(Debug)]
pub(crate) struct Windows<T> {
    transport: T,
    origins: Mutex<HashMap<String, Arc<OriginCache>>>,
}

/// One server. Whoever asks holds the lock, and the others wait for its answer.
#[derive(Debug, Default)]
struct OriginCache(tokio::sync::Mutex<Option<CachedDocument>>);

#[derive(Debug)]
struct CachedDocument {
    read: Instant,
    document: Document,
}

#[derive(Debug)]
enum Document {
    Read(Published),
    Absent,
    Unreadable,
}

impl<T: Transport> Windows<T> {
    pub(crate) fn new(transport: T) -> Self {
        Self { transport, origins: Mutex::default() }
    }

    /// What the server of this request says, asked if it was not asked lately.
    pub(crate) async fn of(&self, method: &Method, url: &Uri) -> RetentionWindow {
        let Some((name, origin)) = self.origin(url) else { return RetentionWindow::NotPublished };
        let mut known = origin.0.lock().await;
        let document = match known.take().filter(CachedDocument::is_fresh) {
            Some(fresh) => fresh,
            None => {
                let document = read(self.transport.clone(), &name).await;
                CachedDocument { read: Instant::now(), document }
            }
        };
        known.insert(document).window(method, url)
    }

    /// What the server of this request said when it was last asked; it is not asked now.
    pub(crate) fn known(&self, method: &Method, url: &Uri) -> Option<Duration> {
        let (_, origin) = self.origin(url)?;
        let known = origin.0.try_lock().ok()?;
        match known.as_ref()?.window(method, url) {
            RetentionWindow::Published(window) => Some(window),
            RetentionWindow::NotPublished | RetentionWindow::Unreadable => None,
        }
    }

    /// Whether the server of this request has been asked, or is just being asked.
    pub(crate) fn is_asked(&self, url: &Uri) -> bool {
        self.origin(url).is_none_or(|(_, origin)| {
            origin
                .0
                .try_lock()
                .map_or(true, |known| known.as_ref().is_some_and(CachedDocument::is_fresh))
        })
    }

    fn origin(&self, url: &Uri) -> Option<(String, Arc<OriginCache>)> {
        let name = format!("{}://{}", url.scheme_str()?, url.authority()?);
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(origin) = origins.get(&name) {
            return Some((name, Arc::clone(origin)));
        }
        if origins.len() >= ORIGINS_MAX {
            // Rare enough that whichever goes may be asked again.
            origins.clear();
        }
        let origin = Arc::clone(origins.entry(name.clone()).or_default());
        Some((name, origin))
    }
}

impl CachedDocument {
    fn is_fresh(&self) -> bool {
        let fresh_for = match self.document {
            Document::Read(_) | Document::Absent => FRESH_FOR,
            Document::Unreadable => ASKED_AGAIN_AFTER,
        };
        self.read.elapsed() < fresh_for
    }

    fn window(&self, method: &Method, url: &Uri) -> RetentionWindow {
        match &self.document {
            Document::Read(published) => published
                .window(method, url.path())
                .map_or(RetentionWindow::NotPublished, RetentionWindow::Published),
            Document::Absent => RetentionWindow::NotPublished,
            Document::Unreadable => RetentionWindow::Unreadable,
        }
    }
}

async fn read<T: Transport>(transport: T, origin: &str) -> Document {
    match timeout(READ_WITHIN, fetch(transport, origin)).await {
        Ok(Ok(document)) => document,
        Ok(Err(error)) => {
            tracing::debug!(origin, error, "the published policy cannot be read");
            Document::Unreadable
        }
        Err(_) => {
            tracing::debug!(origin, "the published policy did not come in time");
            Document::Unreadable
        }
    }
}

/// Asks without credentials: what is published is for everybody.
async fn fetch<T: Transport>(mut transport: T, origin: &str) -> Result<Document, BoxError> {
    let request = Request::get(format!("{origin}{WELL_KNOWN}")).header(ACCEPT, "application/json");
    let request = request.body(Body::empty())?;
    poll_fn(|cx| transport.poll_ready(cx)).await.map_err(Into::into)?;
    let response = transport.call(request).await.map_err(Into::into)?;
    match response.status() {
        StatusCode::OK => {}
        status if status.is_server_error() => return Err(format!("answered {status}").into()),
        _ => return Ok(Document::Absent),
    }
    let body = Limited::new(response.into_body(), DOCUMENT_BYTES_MAX).collect().await?;
    Ok(serde_json::from_slice(&body.to_bytes()).map_or(Document::Absent, Document::Read))
}
