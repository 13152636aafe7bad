//! What pages of other origins may ask and read, by the Fetch standard.

use std::{sync::Arc, time::Duration};

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS,
        ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
        ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD,
        ORIGIN, VARY,
    },
    request::Parts,
};

use crate::body::Body;

/// Which pages of other origins may use protected routes, and read what they answer.
///
/// On those routes and on the layer's own pages it counts instead of what the service says; all
/// others are left to the service.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_tower::{Cors, Readers};
/// use http::{HeaderMap, HeaderValue};
///
/// let shop = HeaderValue::from_static("https://shop.example");
/// let readers = Readers::Origins { listed: vec![shop.clone()], credentials: true };
/// let cors = Cors { readers, max_age: Duration::from_secs(600) };
/// let mut headers = HeaderMap::new();
/// cors.apply(Some(&shop), &mut headers);
/// assert_eq!(headers["access-control-allow-origin"], "https://shop.example");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// Whose pages.
    pub readers: Readers,
    /// How long a browser remembers that it may ask.
    pub max_age: Duration,
}

/// Whose pages may ask.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_tower::{Cors, Readers};
///
/// let cors = Cors { readers: Readers::Anybody, max_age: Duration::from_secs(600) };
/// # drop(cors);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readers {
    /// Everybody's; the browser adds no cookies.
    Anybody,
    /// Those of these origins.
    Origins {
        /// As browsers write them: `https://shop.example`, `http://localhost:3000`.
        listed: Vec<HeaderValue>,
        /// Whether the browser may add cookies.
        credentials: bool,
    },
}

/// Headers of answers that a page needs to understand them.
const EXPOSED: &str = "idempotent-replayed, idempotency-expires, retry-after, link, location, \
                       preference-applied, repeatability-result, hapax-unprotected, \
                       www-authenticate";
/// What an answer to the question of a browser depends on.
const ASKED_BY: &str = "origin, access-control-request-method, access-control-request-headers";

/// Where an answer goes, if pages of other origins may read it. Boxed, because it seldom matters.
pub(crate) type Reader = Box<(Arc<Cors>, Option<HeaderValue>)>;

/// Who reads the answer to this request.
pub(crate) fn reader(cors: &Arc<Cors>, parts: &Parts) -> Reader {
    Box::new((Arc::clone(cors), parts.headers.get(ORIGIN).cloned()))
}

/// Lets whoever reads this answer do so, if it may.
pub(crate) fn let_read(reader: Option<&Reader>, response: &mut Response<Body>) {
    if let Some((cors, origin)) = reader.map(|reader| &**reader) {
        cors.apply(origin.as_ref(), response.headers_mut());
    }
}

impl Cors {
    /// Lets a page of this origin read an answer, if it may.
    pub fn apply(&self, origin: Option<&HeaderValue>, headers: &mut HeaderMap) {
        if let Readers::Origins { .. } = self.readers {
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
        let Some(origin) = origin else { return };
        headers.remove(ACCESS_CONTROL_ALLOW_ORIGIN);
        headers.remove(ACCESS_CONTROL_ALLOW_CREDENTIALS);
        if self.allow(origin, headers) {
            // Beside what the service wants to be read.
            headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        }
    }

    /// The answer to a browser that asks whether a page may.
    pub(crate) fn answer(&self, asked: &Preflight<'_>) -> Response<Body> {
        let mut response = Response::new(Body::from(bytes::Bytes::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static(ASKED_BY));
        if self.allow(asked.origin, headers) {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, asked.method_line.clone());
            if let Some(names) = asked.headers.filter(|names| are_names(names)) {
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
            }
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(self.max_age.as_secs()));
        }
        response
    }

    /// Says that pages of this origin may, and whether they do.
    fn allow(&self, origin: &HeaderValue, headers: &mut HeaderMap) -> bool {
        match &self.readers {
            Readers::Anybody => {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
                true
            }
            Readers::Origins { listed, .. } if !listed.contains(origin) => false,
            Readers::Origins { credentials, .. } => {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
                if *credentials {
                    let yes = HeaderValue::from_static("true");
                    headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
                }
                true
            }
        }
    }
}

/// What a browser asks before it sends a request for a page of another origin.
#[derive(Debug)]
pub(crate) struct Preflight<'a> {
    origin: &'a HeaderValue,
    pub(crate) method: Method,
    method_line: &'a HeaderValue,
    headers: Option<&'a HeaderValue>,
}

impl<'a> Preflight<'a> {
    /// `None` if the request is not such a question.
    pub(crate) fn by(parts: &'a Parts) -> Option<Self> {
        if parts.method != Method::OPTIONS {
            return None;
        }
        let method_line = parts.headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
        Some(Self {
            origin: parts.headers.get(ORIGIN)?,
            method: Method::from_bytes(method_line.as_bytes()).ok()?,
            method_line,
            headers: parts.headers.get(ACCESS_CONTROL_REQUEST_HEADERS),
        })
    }
}

/// Whether it is a list of names of headers, and nothing else.
fn are_names(list: &HeaderValue) -> bool {
    let is_name = |name: &[u8]| HeaderName::from_bytes(name.trim_ascii()).is_ok();
    list.as_bytes().split(|byte| *byte == b',').all(is_name)
}
