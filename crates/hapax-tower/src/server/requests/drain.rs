//! What becomes of a request body that was not read when the answer is already known.
//!
//! Left on the connection, its bytes would be read as the next request.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Response, Version, header::CONNECTION, header::EXPECT};
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::body::Body;

/// Most bytes read for nothing.
const DRAIN_BYTES_MAX: usize = 64 << 10;
/// Longest time spent reading for nothing.
const DRAIN_TIME_MAX: Duration = Duration::from_millis(500);

/// What was not read of a request.
pub(crate) enum UnreadBody {
    Nothing,
    Unread(Body),
    /// It can no longer be read, though it has not come to its end.
    Broken,
}

/// Whether a request's connection can serve another request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionReuse {
    version: Version,
    waits_for_continue: bool,
}

impl ConnectionReuse {
    pub(crate) fn of(version: Version, headers: &HeaderMap) -> Self {
        Self { version, waits_for_continue: headers.contains_key(EXPECT) }
    }

    /// Reads what is left of the request, or has the connection closed after the answer.
    pub(crate) async fn leave_clean(self, rest: UnreadBody, response: &mut Response<Body>) {
        let clean = match rest {
            UnreadBody::Nothing => true,
            UnreadBody::Broken => false,
            // A client that waits for `100 Continue` has not sent its body, and should not start.
            UnreadBody::Unread(_) if self.waits_for_continue => false,
            UnreadBody::Unread(body) => timeout(DRAIN_TIME_MAX, drain(body)).await.unwrap_or(false),
        };
        if !clean && self.version < Version::HTTP_2 {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// Whether the body came to its end within bounds.
async fn drain(mut body: Body) -> bool {
    let mut left = DRAIN_BYTES_MAX;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        let len = frame.data_ref().map_or(0, bytes::Bytes::len);
        match left.checked_sub(len) {
            Some(rest) => left = rest,
            None => return false,
        }
    }
    true
}
