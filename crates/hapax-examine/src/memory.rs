//! What a run must remember, so that a run days later can go on where it had to wait.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{ApiUnderTest, ExamRequest, RawAnswer};

/// What is written down at the end of a run, and given to the one that resumes it. No credentials are in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminationMemory {
    /// How many operations were begun: the next run numbers its own from there, so that no key comes twice.
    pub operations: u32,
    /// Keys whose time has not come.
    pub awaited: Vec<AwaitedKey>,
}

/// A key that was used, and is asked again when it is about to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedKey {
    /// When it was first asked, in milliseconds since 1970.
    pub asked_unix_ms: u64,
    /// How long it is kept, by what was declared.
    pub retention_ms: u64,
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The value of the key's header, as it was written.
    pub key: String,
    /// What was sent.
    pub body: String,
    /// By what the effect is found.
    pub marker: String,
    /// The status of the first answer.
    pub status: u16,
    /// The body of the first answer.
    pub answer: String,
}

impl AwaitedKey {
    /// What was asked at `asked`, and answered so.
    pub(crate) fn new(
        request: &ExamRequest,
        answer: &RawAnswer,
        asked: SystemTime,
        retention: Duration,
    ) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let since = asked.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            asked_unix_ms: milliseconds(since),
            retention_ms: milliseconds(retention),
            method: request.method.clone(),
            path: request.path.clone(),
            key: request.keys.first().map(|key| text(key)).unwrap_or_default(),
            body: text(&request.body),
            marker: request.marker.clone(),
            status: answer.status,
            answer: text(&answer.body),
        }
    }

    /// The same request once more, with the credentials and headers of today.
    pub(crate) fn request(&self, api: &ApiUnderTest) -> ExamRequest {
        ExamRequest {
            method: self.method.clone(),
            path: self.path.clone(),
            headers: api.plain_headers(),
            credentials: api.credentials.main.clone(),
            key_header: api.key.name.clone(),
            keys: vec![self.key.clone().into_bytes()],
            body: Bytes::from(self.body.clone()),
            marker: self.marker.clone(),
        }
    }

    /// How old it is.
    pub fn age(&self, now: SystemTime) -> Duration {
        let asked = UNIX_EPOCH + Duration::from_millis(self.asked_unix_ms);
        now.duration_since(asked).unwrap_or_default()
    }

    /// How long it is kept.
    pub fn retention(&self) -> Duration {
        Duration::from_millis(self.retention_ms)
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
