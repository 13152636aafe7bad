//! The tenant is what somebody else says who is asked for each request.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_tower::{Caller, Identified, Tenancy, TenantKind};
use http::{HeaderName, HeaderValue, Request, StatusCode, Uri};

use super::named_by;
use crate::client::UpstreamClient;

/// Most bytes of an answer that are read; only its head matters.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Asks somebody for the tenant of each request: 2xx with the tenant in a header means it is known,
/// 401 or 403 that the request is refused with the same. Anything else refuses it with 503: nothing
/// runs for somebody nobody knows.
pub fn from_answer(client: UpstreamClient, question: Question) -> Tenancy {
    let (credentials, question) = (question.forward.clone(), Arc::new(question));
    Tenancy::from_async_fn(move |caller| {
        let (client, question) = (client.clone(), Arc::clone(&question));
        async move { question.ask(&client, &caller).await }
    })
    .of_kind(TenantKind::Subrequest)
    .reading(credentials)
}

/// What is asked, and where the answer is.
#[derive(Debug, Clone)]
pub struct Question {
    /// The path and query that are asked for, of the client's origin.
    pub target: Uri,
    /// The headers of the request that are passed on; without any of them nobody is asked.
    pub forward: Vec<HeaderName>,
    /// The header of the answer that names the tenant.
    pub header: HeaderName,
    /// How long the answer may take.
    pub within: Duration,
}

impl Question {
    async fn ask(&self, client: &UpstreamClient, caller: &Caller) -> Identified {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = self.target.clone();
        let headers = request.headers_mut();
        for name in &self.forward {
            for line in caller.headers.get_all(name) {
                headers.append(name, line.clone());
            }
        }
        if headers.is_empty() {
            return Identified::Unknown;
        }
        headers.extend(original(caller).into_iter().flatten());
        let answer = match client.fetch(request, ANSWER_BYTES_MAX, self.within).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(%error, "nobody said whose request it is");
                return Identified::CannotAsk;
            }
        };
        match answer.status() {
            StatusCode::UNAUTHORIZED => Identified::Unknown,
            StatusCode::FORBIDDEN => Identified::Refused,
            status if status.is_success() => match named_by(answer.headers(), &self.header) {
                Some(tenant) => Identified::As(tenant),
                None => {
                    tracing::warn!(header = %self.header, "the answer names no tenant");
                    Identified::CannotAsk
                }
            },
            status => {
                tracing::warn!(%status, "nobody said whose request it is");
                Identified::CannotAsk
            }
        }
    }
}

const ORIGINAL_METHOD: HeaderName = HeaderName::from_static("x-original-method");
const ORIGINAL_URI: HeaderName = HeaderName::from_static("x-original-uri");

/// What a caller asks for, as somebody is told who is asked about the caller.
pub(crate) fn original(caller: &Caller) -> [Option<(HeaderName, HeaderValue)>; 2] {
    let target = caller.uri.path_and_query().map_or("/", |target| target.as_str());
    [(ORIGINAL_METHOD, caller.method.as_str()), (ORIGINAL_URI, target)]
        .map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?)))
}
