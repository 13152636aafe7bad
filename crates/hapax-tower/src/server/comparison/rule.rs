//! What makes two requests the same, as the route says.

use std::{borrow::Cow, pin::Pin, sync::Arc};

use bytes::Bytes;
use hapax_core::{Fingerprint, RequestParts, TenantKey};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
    request::Parts,
};
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::server::{
    comparison::{
        canonical::canonical_json,
        form, gzip,
        media_type::{MediaKind, MediaType},
        multipart::{self, NotMultipart},
    },
    options::{BodyForm, Protection},
    responses::{answer::TRY_AGAIN, code::Code, problem::Problem},
};

/// Largest body that is compared on the thread that serves its client, in bytes: a larger one would
/// keep the others of that thread waiting.
const COMPARED_HERE_BYTES_MAX: usize = 64 << 10;
/// Most bytes of larger bodies that are compared at one time; further ones wait.
const COMPARED_AT_ONCE_BYTES_MAX: usize = 16 << 20;

/// Compares requests. Clones share the room for large bodies.
#[derive(Debug, Clone)]
pub(crate) struct Comparing {
    /// A permit for each KiB of large bodies.
    room: Arc<Semaphore>,
}

impl Default for Comparing {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(COMPARED_AT_ONCE_BYTES_MAX >> 10)) }
    }
}

/// The fingerprint of a request, or why it has none.
pub(crate) type Compared = Result<Fingerprint, Problem>;

/// Where a request is compared.
pub(crate) enum BodyComparison {
    /// Here; it is done.
    Done(Compared),
    /// On a thread where nobody waits, once not too much is compared already.
    Elsewhere(Pin<Box<dyn Future<Output = Compared> + Send>>),
}

impl Comparing {
    /// Compares a request at once, unless its body is large.
    pub(crate) fn compare(
        &self,
        tenant_key: TenantKey,
        protection: &Arc<Protection>,
        parts: &Parts,
        body: &Bytes,
    ) -> BodyComparison {
        let bytes = body_work_bytes(protection, &parts.headers, body);
        if bytes <= COMPARED_HERE_BYTES_MAX {
            let head =
                ComparedHead { method: &parts.method, uri: &parts.uri, headers: &parts.headers };
            return BodyComparison::Done(fingerprint(&tenant_key, protection, head, body));
        }
        let (protection, room) = (Arc::clone(protection), Arc::clone(&self.room));
        let (method, uri) = (parts.method.clone(), parts.uri.clone());
        let (headers, body) = (parts.headers.clone(), body.clone());
        BodyComparison::Elsewhere(Box::pin(elsewhere(room, bytes, move || {
            let head = ComparedHead { method: &method, uri: &uri, headers: &headers };
            fingerprint(&tenant_key, &protection, head, &body)
        })))
    }

    /// Looks into so many bytes on a thread where nobody waits: for bodies that are [large](is_large).
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        bytes: usize,
        look: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        elsewhere(Arc::clone(&self.room), bytes, look).await
    }
}

/// Whether looking into so many bytes would keep others waiting.
pub(crate) fn is_large(bytes: usize) -> bool {
    bytes > COMPARED_HERE_BYTES_MAX
}

/// Looks at so many bytes on a thread for work that takes its time.
async fn elsewhere<T: Send + 'static>(
    room: Arc<Semaphore>,
    bytes: usize,
    look: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let overloaded =
        || Problem::new(Code::Overloaded, "Nothing was run. Ask again.").retry_after(TRY_AGAIN);
    let kibibytes = u32::try_from(bytes.min(COMPARED_AT_ONCE_BYTES_MAX) >> 10);
    let room = room.acquire_many_owned(kibibytes.map_err(|_| overloaded())?);
    let room = room.await.map_err(|_closed| overloaded())?;
    let looking = spawn_blocking(move || {
        let seen = look();
        drop(room);
        seen
    });
    looking.await.map_err(|_stopped| overloaded())?
}

/// How many bytes have to be looked at, at most.
fn body_work_bytes(protection: &Protection, headers: &HeaderMap, body: &Bytes) -> usize {
    let most = body.len().max(gzip::most(body.len()));
    match protection.body {
        BodyForm::Auto { .. } if most <= COMPARED_HERE_BYTES_MAX => most,
        BodyForm::Auto { .. } if headers.contains_key(CONTENT_ENCODING) => most,
        BodyForm::Auto { .. } | BodyForm::Raw | BodyForm::Json { .. } | BodyForm::Multipart => {
            body.len()
        }
    }
}

/// What is compared beside the body.
#[derive(Clone, Copy)]
struct ComparedHead<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
}

fn fingerprint(
    tenant_key: &TenantKey,
    protection: &Protection,
    head: ComparedHead<'_>,
    body: &Bytes,
) -> Result<Fingerprint, Problem> {
    let place = |name: &str| protection.compared_headers.place(name);
    let (mut described, mut headers) = (Described::default(), Vec::with_capacity(4));
    for (name, value) in head.headers {
        described.read(name, value);
        if place(name.as_str()).is_some() {
            headers.push((name.as_str(), value.as_bytes()));
        }
    }
    // In the order the route names them; lines of one name stay in the order they came.
    if headers.len() > 1 {
        headers.sort_by_key(|(name, _)| place(name));
    }
    let content = described.content();
    let spelled = spelled(protection, &content, body)?;
    if let Some(content_type) = &spelled.content_type {
        let lines = headers.iter_mut().filter(|(name, _)| *name == CONTENT_TYPE.as_str());
        lines.for_each(|(_, value)| *value = content_type);
    }
    if let Some(form) = spelled.form {
        // No header has no name: what was spelled in one way never equals what was in another.
        headers.push(("", form.as_bytes()));
    }
    Ok(tenant_key.fingerprint(&RequestParts {
        method: head.method.as_str().as_bytes(),
        path: head.uri.path().as_bytes(),
        query: head.uri.query().unwrap_or_default().as_bytes(),
        headers: &headers,
        body: spelled.body.as_deref().unwrap_or(body),
    }))
}

/// The lines of a head about its body.
#[derive(Default)]
struct Described<'a> {
    content_type: SingleHeader<'a>,
    content_encoding: SingleHeader<'a>,
}

/// A header that should be there once.
#[derive(Default, Clone, Copy)]
enum SingleHeader<'a> {
    #[default]
    Missing,
    Once(&'a HeaderValue),
    Repeated,
}

impl<'a> SingleHeader<'a> {
    fn and(self, value: &'a HeaderValue) -> Self {
        match self {
            Self::Missing => Self::Once(value),
            Self::Once(_) | Self::Repeated => Self::Repeated,
        }
    }
}

impl<'a> Described<'a> {
    fn read(&mut self, name: &HeaderName, value: &'a HeaderValue) {
        if *name == CONTENT_TYPE {
            self.content_type = self.content_type.and(value);
        } else if *name == CONTENT_ENCODING {
            self.content_encoding = self.content_encoding.and(value);
        }
    }

    fn content(&self) -> Content<'a> {
        let media_type = match self.content_type {
            SingleHeader::Once(value) => MediaType::parse(value.as_bytes()),
            SingleHeader::Missing | SingleHeader::Repeated => None,
        };
        let is_gzip = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"gzip");
        let coding = match self.content_encoding {
            SingleHeader::Missing => Coding::Plain,
            SingleHeader::Once(value) if is_gzip(value) => Coding::Gzip,
            SingleHeader::Once(_) | SingleHeader::Repeated => Coding::Other,
        };
        Content { media_type, coding }
    }
}

/// What the head says about the body.
struct Content<'a> {
    media_type: Option<MediaType<'a>>,
    coding: Coding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Plain,
    Gzip,
    Other,
}

/// What is compared instead of what came, if anything.
#[derive(Default)]
struct Spelled<'a> {
    content_type: Option<Cow<'a, [u8]>>,
    /// How the body was spelled, where requests of one route can be spelled in several ways.
    form: Option<&'static str>,
    body: Option<Vec<u8>>,
}

fn spelled<'a>(
    protection: &Protection,
    content: &'a Content<'_>,
    body: &Bytes,
) -> Result<Spelled<'a>, Problem> {
    let not_canonical = |detail: String| Problem::new(Code::BodyNotCanonical, detail);
    let content_type = |is_content| content.media_type.as_ref().map(|it| it.spelled(is_content));
    match &protection.body {
        BodyForm::Raw => Ok(Spelled::default()),
        BodyForm::Auto { ignored } => {
            let Alike { is_content, form, body } = alike(content, ignored, body);
            Ok(Spelled { content_type: content_type(is_content), form, body })
        }
        BodyForm::Json { .. } | BodyForm::Multipart if body.is_empty() => Ok(Spelled::default()),
        BodyForm::Json { .. } | BodyForm::Multipart if content.coding != Coding::Plain => {
            Err(Problem::new(Code::BodyEncoded, "Send the body as it is."))
        }
        BodyForm::Json { ignored } => {
            let body = canonical_json(body, ignored).map_err(|e| not_canonical(e.to_string()))?;
            Ok(Spelled { content_type: content_type(true), form: None, body: Some(body) })
        }
        BodyForm::Multipart => {
            let media_type = content.media_type.as_ref().ok_or(NotMultipart::ContentType);
            let body = media_type.and_then(|media_type| multipart::canonical(media_type, body));
            let body = body.map_err(|e| not_canonical(e.to_string()))?;
            Ok(Spelled { content_type: content_type(true), form: None, body: Some(body) })
        }
    }
}

/// A body in the spelling of its media type; as it came where it is not what its head says.
#[derive(Default)]
struct Alike {
    /// Whether it is spelled as its media type says.
    is_content: bool,
    form: Option<&'static str>,
    body: Option<Vec<u8>>,
}

fn alike(content: &Content<'_>, ignored: &[String], body: &Bytes) -> Alike {
    let body = match content.coding {
        Coding::Plain => Cow::Borrowed(&body[..]),
        Coding::Gzip => match gzip::content(body) {
            Some(content) => Cow::Owned(content),
            None => return Alike::default(),
        },
        Coding::Other => return Alike::default(),
    };
    let is_gzip = content.coding == Coding::Gzip;
    let spelled = content.media_type.as_ref().filter(|_| !body.is_empty()).and_then(|media_type| {
        let (forms, spelled) = match media_type.kind() {
            MediaKind::Json => (["json", "json in gzip"], canonical_json(&body, ignored).ok()?),
            MediaKind::Form => (["form", "form in gzip"], form::canonical(&body)?),
            MediaKind::Multipart => {
                (["parts", "parts in gzip"], multipart::canonical(media_type, &body).ok()?)
            }
            MediaKind::Other => return None,
        };
        Some((forms[usize::from(is_gzip)], spelled))
    });
    match (spelled, body) {
        (Some((form, spelled)), _) => {
            Alike { is_content: true, form: Some(form), body: Some(spelled) }
        }
        (None, Cow::Owned(content)) => {
            Alike { is_content: false, form: Some("gzip"), body: Some(content) }
        }
        (None, Cow::Borrowed(_)) => Alike::default(),
    }
}
