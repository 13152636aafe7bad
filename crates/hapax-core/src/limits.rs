//! Every bound of the machine, with its unit and its reason.
//!
//! A value outside these bounds is refused where it enters, so the rest of the code never checks
//! again.

use std::time::Duration;

/// Longest idempotency key, in bytes: what the field's large APIs accept.
pub const KEY_BYTES_MAX: usize = 255;
/// Longest tenant name, in bytes: a hashed credential or an account id fits many times over.
pub const TENANT_BYTES_MAX: usize = 255;
/// Longest scope, in bytes: a method and a concrete path.
pub const SCOPE_BYTES_MAX: usize = 1024;

/// Most headers kept with an outcome.
pub const OUTCOME_HEADERS_MAX: usize = 128;
/// Most bytes of header names and values kept with an outcome.
pub const OUTCOME_HEADER_BYTES_MAX: usize = 32 << 10;
/// Largest body kept with an outcome, in bytes; front ends may set a lower cap.
pub const OUTCOME_BODY_BYTES_MAX: usize = 16 << 20;
/// Largest request kept so that somebody else can finish the operation, in bytes.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

/// What encryption adds to something stored, at most, in bytes: a salt, a tag, and what keeps apart what
/// is encrypted together.
pub const SEALING_BYTES_MAX: usize = 1 << 10;
/// Largest outcome as an encrypting store keeps it, in bytes.
pub const OUTCOME_SEALED_BYTES_MAX: usize =
    OUTCOME_BODY_BYTES_MAX + OUTCOME_HEADER_BYTES_MAX + SEALING_BYTES_MAX;
/// Longest name of a master key, in bytes: what a key service calls its keys fits.
pub const MASTER_KEY_NAME_BYTES_MAX: usize = 2 << 10;
/// Largest data key as its master key wraps it, in bytes.
pub const WRAPPED_KEY_BYTES_MAX: usize = 8 << 10;

/// Shortest lease: below this, ordinary scheduling delay looks like death.
pub const LEASE_MIN: Duration = Duration::from_millis(100);
/// Longest lease: an abandoned key must not wait longer than this to be noticed.
pub const LEASE_MAX: Duration = Duration::from_secs(60 * 60);
/// Shortest time for which what was sent may still be at work: never nothing.
pub const WORKS_FOR_MIN: Duration = Duration::from_millis(1);
/// Shortest retention.
pub const RETENTION_MIN: Duration = Duration::from_secs(1);
/// Longest retention, and longest tombstone.
pub const RETENTION_MAX: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// How long a store's clock must have gone steadily before retention is judged by it: longer than a
/// wrong time server is left in charge, and short beside any retention worth having.
pub const CLOCK_STAYS: Duration = Duration::from_secs(10 * 60);
/// How long that is for leases: every owner that is alive has given a sign of life by then.
pub const CLOCK_LEASES_STAY: Duration = Duration::from_secs(60);
/// A clock that ran ahead or fell back by more than this was set, not slewed.
pub const CLOCK_STEP: Duration = Duration::from_secs(5);
/// Longest a look is good for: whoever did not look for longer was stopped, and watched nothing.
pub const CLOCK_UNSEEN_MAX: Duration = Duration::from_secs(10 * 60);
/// How far ahead of the last look a watched clock is trusted by those who do not watch it.
pub const CLOCK_AHEAD: Duration = Duration::from_secs(60);
/// How often at least a store keeps anew how far its clock is trusted.
pub const CLOCK_KEPT_EVERY: Duration = Duration::from_secs(20);

/// How often a process gives a sign of life on a store that can fail over.
pub const PROCESS_SEEN_EVERY: Duration = Duration::from_secs(2);
/// Longest a process begins operations without a sign of life; after as long again it counts as gone.
pub const PROCESS_SILENT_MAX: Duration = Duration::from_secs(30);
/// How long what is gone is listed among those at work.
pub const PROCESS_LISTED: Duration = Duration::from_secs(60 * 60);
/// Longest a failover takes, from the last sign of life to the first look after it; what took longer is
/// taken for a restored backup.
pub const FAILOVER_LASTS_MAX: Duration = Duration::from_secs(10 * 60);
/// How long a process remembers what it was told is stored, should the store forget it: longer than a standby
/// lags.
pub const ACKNOWLEDGED_KEPT: Duration = Duration::from_secs(60);

/// Most writes of one kind handed to a store in one batch.
pub const BATCH_WRITES_MAX: usize = 1024;
/// Most bytes of bodies and requests handed to a store in one batch.
pub const BATCH_BYTES_MAX: usize = 32 << 20;
/// Most records one call of sweep, purge or list may touch.
pub const PAGE_RECORDS_MAX: usize = 1000;
/// Longest name of a person in a note, in bytes.
pub const NOTE_WHO_BYTES_MAX: usize = 255;
/// Longest reason in a note, in bytes: a few paragraphs.
pub const NOTE_WHY_BYTES_MAX: usize = 4 << 10;
/// Attempts of which Hapax notes what happened to them; of later ones, only those whose number is a power of two.
pub const NOTED_ATTEMPTS: u64 = 32;
/// Most answers to probes that are noted of one attempt; an answer like the one before is not.
pub const NOTED_PROBES: u8 = 8;
/// How long a note is kept: long enough to be asked about a year later.
pub const NOTE_KEPT: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// Longest topic, key, content type or header name of an event, in bytes.
pub const EVENT_NAME_BYTES_MAX: usize = 255;
/// Largest payload of an event, in bytes: what brokers accept without being told to.
pub const EVENT_PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Most headers of an event.
pub const EVENT_HEADERS_MAX: usize = 64;
/// Most bytes of header names and values of an event.
pub const EVENT_HEADER_BYTES_MAX: usize = 16 << 10;
/// Lanes of an outbox: what can be sent at the same time, and shared among relays.
pub const OUTBOX_LANES: u8 = 64;
/// Positions that share a segment, which is emptied at once.
pub const OUTBOX_SEGMENT_POSITIONS: i64 = 1 << 16;
/// Segments of an outbox, used in turn.
pub const OUTBOX_SEGMENTS: i64 = 16;
/// Most gaps a reader remembers before it reads no further: each costs a look at every read.
pub const OUTBOX_GAPS_MAX: usize = 8192;
/// Most rows of one read of an outbox.
pub const OUTBOX_READ_ROWS_MAX: usize = 10_000;
/// Longest reason kept with a parked event, in bytes.
pub const PARK_REASON_BYTES_MAX: usize = 4 << 10;
/// How far messages of a consumer are counted for whoever looks at it.
pub const INBOX_COUNT_MAX: usize = 10_000;
/// Most bytes of a dead letter's payload that are shown.
pub const LETTER_SHOWN_BYTES_MAX: usize = 64 << 10;
/// Most topics a destination may name.
pub const DESTINATION_TOPICS_MAX: usize = 256;
/// Longest name of a step, in bytes.
pub const STEP_NAME_BYTES_MAX: usize = 64;
/// Largest result kept with a step, in bytes: what a later step needs to know, not a document.
pub const STEP_RESULT_BYTES_MAX: usize = 1 << 20;
/// Most steps of one operation: all of them are read when it is resumed.
pub const STEPS_MAX: u16 = 256;
/// Most messages that a consumer acts on in one transaction: each has a lock until the commit.
pub const MESSAGES_TOGETHER_MAX: usize = 256;
/// Times a claim is decided anew because another writer was faster, before giving up.
pub const CLAIM_ROUNDS_MAX: u32 = 16;

/// Shortest base of a retry schedule: below this, pauses are shorter than a round trip.
pub const RETRY_BASE_MIN: Duration = Duration::from_millis(1);
/// Longest pause between two attempts that a schedule may choose by itself.
pub const RETRY_CAP_MAX: Duration = Duration::from_secs(60 * 60);
/// Longest wait that the other side may ask for; a longer one is taken for this.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(5 * 60);
/// A pause the other side asked for is made longer by at most this part of it.
pub const RETRY_SPREAD_DIVISOR: u32 = 4;
/// Most attempts of one operation: a day of them at the default cap.
pub const RETRY_ATTEMPTS_MAX: u32 = 10_000;
/// Most tokens of a retry budget, and most retries one can save up.
pub const BUDGET_TOKENS_MAX: u32 = 1_000_000;
/// Highest floor of a retry budget, in retries a second.
pub const BUDGET_RETRIES_PER_SECOND_MAX: u32 = 10_000;
/// Shortest span of a breaker: its window, how long it stays open, its ramp.
pub const BREAKER_SPAN_MIN: Duration = Duration::from_millis(10);
/// Longest span of a breaker.
pub const BREAKER_SPAN_MAX: Duration = Duration::from_secs(60 * 60);
/// Most calls a breaker waits for, before it judges and as trials.
pub const BREAKER_CALLS_MAX: u32 = 1_000_000;

const _: () = assert!(LEASE_MIN.as_millis() < LEASE_MAX.as_millis());
const _: () = assert!(RETENTION_MIN.as_millis() > LEASE_MIN.as_millis());
const _: () = assert!(RETENTION_MAX.as_millis() > LEASE_MAX.as_millis());
const _: () = assert!(CLOCK_KEPT_EVERY.as_millis() < CLOCK_AHEAD.as_millis());
const _: () = assert!(PROCESS_SEEN_EVERY.as_millis() < PROCESS_SILENT_MAX.as_millis());
const _: () = assert!(PROCESS_SILENT_MAX.as_millis() < ACKNOWLEDGED_KEPT.as_millis());
const _: () = assert!(BATCH_BYTES_MAX >= OUTCOME_SEALED_BYTES_MAX);
const _: () = assert!(BATCH_BYTES_MAX >= REQUEST_BYTES_MAX);
const _: () = assert!(BATCH_BYTES_MAX >= STEP_RESULT_BYTES_MAX);
const _: () = assert!(RETRY_BASE_MIN.as_millis() < RETRY_CAP_MAX.as_millis());
