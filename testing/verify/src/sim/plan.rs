//! What one simulated run will look like: everything follows from the seed, and is printed.

use std::time::Duration;

use fastrand::Rng;
use hapax_core::Recovery;

/// The shape of one run and the faults in it, as data.
#[derive(Debug, Clone)]
pub struct SimPlan {
    /// What everything is derived from.
    pub seed: u64,
    /// Engines on one store.
    pub processes: usize,
    /// Clients that retry until they know.
    pub clients: usize,
    /// Operations each client asks for.
    pub asks: usize,
    /// Distinct keys.
    pub keys: usize,
    /// What the upstream can do about a repeated call.
    pub recovery: Recovery,
    /// Whether operations are stored with their request and finished in the background.
    pub finisher: bool,
    /// Whether operations are accepted first and run later (needs a finisher).
    pub queued: bool,
    /// The lease of every operation.
    pub lease: Duration,
    /// Whether callers wait for operations in flight.
    pub waiting: bool,
    /// Records kept in memory by each engine, in bytes.
    pub cache_bytes_max: u64,
    /// Per thousand store calls, each kind of fault.
    pub store: StoreFaults,
    /// Per thousand upstream calls, each kind of fault.
    pub upstream: UpstreamFaults,
    /// Per thousand steps of a handler, a pause of up to three leases.
    pub pauses: u32,
    /// Per thousand requests, the caller hangs up at once.
    pub hang_ups: u32,
    /// Per thousand requests, another request under the same key.
    pub mismatches: u32,
    /// Steps of the store's clock during the run.
    pub clock_steps: usize,
    /// Times the store's clock is ahead by more than any retention for a moment.
    pub clock_glitches: usize,
    /// How long that clock must have gone steadily before it is trusted.
    pub clock_stays: Duration,
    /// What is wrong with whoever follows an owner: nothing, in every plan of a seed.
    pub flaw: Option<Flaw>,
}

/// A way to follow an owner that must be noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// "It did not happen" is believed while what was sent may be at work.
    EarlyNoBelieved,
    /// The answer of somebody in between is taken for a word about the operation.
    AnswersForItBelieved,
}

/// Faults between an engine and its store.
#[derive(Debug, Clone)]
pub struct StoreFaults {
    /// Refused, nothing written.
    pub refused: u32,
    /// Lost on the way, nothing written, nobody knows.
    pub request_lost: u32,
    /// Written, and the answer lost.
    pub answer_lost: u32,
    /// Half of the batch written, and the answer lost.
    pub half_written: u32,
    /// Given up by the caller, and written later.
    pub late: u32,
    /// The process dies before the write.
    pub crash_before: u32,
    /// The process dies after the write.
    pub crash_after: u32,
    /// The longest delay of a call.
    pub delay_max: Duration,
}

/// Faults between an engine and whatever has the effect.
#[derive(Debug, Clone)]
pub struct UpstreamFaults {
    /// Cannot be reached: nothing happens.
    pub refused: u32,
    /// Answers with a server error: nothing happens.
    pub server_error: u32,
    /// Answers with a client error: nothing happens, and that is final.
    pub client_error: u32,
    /// Happens, and the answer is lost.
    pub answer_lost: u32,
    /// The caller gives up before it happens: it happens later, while the caller may ask.
    pub slow: u32,
    /// Somebody in between answers 502 or 504 in its place, before or after it happens.
    pub answered_for: u32,
    /// The process dies while the call is under way.
    pub crash: u32,
    /// The longest delay of a call, before and after the effect.
    pub delay_max: Duration,
}

impl SimPlan {
    /// How long a call may be at work after its caller gave it up.
    pub fn works_for(&self) -> Duration {
        self.upstream.delay_max * 2 + self.lease * 2
    }

    /// The plan of a seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let recovery = [Recovery::Resend, Recovery::Probe, Recovery::Hold][rng.usize(..3)];
        let finisher = rng.u8(..3) == 0;
        let lease = Duration::from_millis(rng.u64(200..3000));
        Self {
            seed,
            processes: rng.usize(1..4),
            clients: rng.usize(4..12),
            asks: rng.usize(8..24),
            keys: rng.usize(4..40),
            recovery,
            finisher,
            queued: finisher && rng.bool(),
            lease,
            waiting: rng.bool(),
            cache_bytes_max: [0, 4 << 10, 1 << 20][rng.usize(..3)],
            store: StoreFaults {
                refused: rng.u32(..60),
                request_lost: rng.u32(..30),
                answer_lost: rng.u32(..60),
                half_written: rng.u32(..30),
                late: rng.u32(..20),
                crash_before: rng.u32(..10),
                crash_after: rng.u32(..15),
                delay_max: Duration::from_millis(rng.u64(1..80)),
            },
            upstream: UpstreamFaults {
                refused: rng.u32(..80),
                server_error: rng.u32(..80),
                client_error: rng.u32(..80),
                answer_lost: rng.u32(..80),
                slow: rng.u32(..80),
                answered_for: rng.u32(..80),
                crash: rng.u32(..40),
                delay_max: Duration::from_millis(rng.u64(1..400)),
            },
            pauses: rng.u32(..60),
            hang_ups: rng.u32(..60),
            mismatches: rng.u32(..80),
            clock_steps: rng.usize(..4),
            clock_glitches: rng.usize(..3),
            clock_stays: lease * 20,
            flaw: None,
        }
    }
}
