//! What the controls found out about an API before it is probed.

use std::time::Duration;

use crate::KeySyntax;

/// How an API behaves when nothing is wrong.
#[derive(Debug, Clone)]
pub struct LearnedConduct {
    /// How keys are written.
    pub syntax: KeySyntax,
    /// How long an execution takes, the median of a few.
    pub latency: Duration,
    /// What a success is answered with.
    pub success_status: u16,
    /// Whether HTTP/2 is spoken: over TLS if it was agreed, without TLS if prior knowledge is answered.
    pub http2: bool,
    /// Whether an effect shows in the count only some time after its answer, and how late at most.
    pub count_lag: Duration,
    /// Whether two operations with the same content are answered differently: then an equal answer is a replay.
    pub answers_differ: bool,
}
