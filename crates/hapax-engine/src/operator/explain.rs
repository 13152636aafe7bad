//! Why the next request will be answered as it will, for somebody who was just woken up.

use std::time::Duration;

use hapax_core::{
    Arrival, Decision, Doubt, Fingerprint, Outcome, Owner, Policy, Record, Recovery, RunMode,
    StateTag, Timestamp, decide,
};

use super::Shown;

/// What the next request under a key meets, and what a person can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What the same request again is answered with.
    pub answer: ExpectedAnswer,
    /// What another request under this key is answered with.
    pub another: ExpectedAnswer,
    /// Why, in words.
    pub because: String,
    /// What to do, in words.
    pub advice: String,
}

/// How an arrival is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExpectedAnswer {
    /// It runs.
    Runs,
    /// It takes over from an owner that vanished.
    TakesOver,
    /// It is told to wait. Over HTTP: 409, or the answer when it comes.
    Waits,
    /// It gets the stored outcome.
    Replays,
    /// It is refused, because nobody knows whether the effect happened. Over HTTP: 409.
    RefusedInDoubt,
    /// It is refused, because the key was used for another request. Over HTTP: 422.
    RefusedMismatch,
    /// It is refused, because the outcome is forgotten and the key used up. Over HTTP: 410.
    RefusedGone,
}

impl ExpectedAnswer {
    /// The word used in JSON and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::TakesOver => "takes_over",
            Self::Waits => "waits",
            Self::Replays => "replays",
            Self::RefusedInDoubt => "refused_in_doubt",
            Self::RefusedMismatch => "refused_mismatch",
            Self::RefusedGone => "refused_gone",
        }
    }

    fn to(decision: &Decision) -> Self {
        match decision {
            Decision::Execute(_) => Self::Runs,
            Decision::TakeOver { .. } => Self::TakesOver,
            Decision::Busy { .. } => Self::Waits,
            Decision::Replay => Self::Replays,
            Decision::GiveUp | Decision::InDoubt { .. } => Self::RefusedInDoubt,
            Decision::Mismatch(_) => Self::RefusedMismatch,
            Decision::Gone { .. } => Self::RefusedGone,
        }
    }
}

impl Shown {
    /// Why the next request under this key will be answered as it will. The machine decides that;
    /// this puts it into words.
    pub fn explain(&self) -> Explanation {
        let Some(record) = &self.record else {
            return Explanation {
                answer: ExpectedAnswer::Runs,
                another: ExpectedAnswer::Runs,
                because: "Nothing is stored under this key.".to_owned(),
                advice:
                    "Nothing to do. If you expected a record: it may be past its retention, or \
                         its tenant, scope or key are spelled otherwise."
                        .to_owned(),
            };
        };
        let same = arrive(record, record.fingerprint, self.now);
        let another = arrive(record, opposite(record.fingerprint), self.now);
        let (because, advice) = words(record, &same, self.now);
        Explanation {
            answer: ExpectedAnswer::to(&same),
            another: ExpectedAnswer::to(&another),
            because,
            advice,
        }
    }
}

/// What the machine tells a request with this fingerprint. The policy shapes what is written, never
/// what is decided, so any will do.
fn arrive(record: &Record, fingerprint: Fingerprint, now: Timestamp) -> Decision {
    let (operation, mode) = (record.operation.clone(), RunMode::Run { request: None });
    let arrival = Arrival { operation, fingerprint, owner: Owner(0), mode };
    decide(now, &arrival, Some(record), &Policy::default())
}

/// A fingerprint that has nothing in common with this one.
fn opposite(fingerprint: Fingerprint) -> Fingerprint {
    Fingerprint::from_bytes(fingerprint.as_bytes().map(|byte| !byte))
}

fn words(record: &Record, decision: &Decision, now: Timestamp) -> (String, String) {
    let attempt = record.fence.get();
    let (because, advice) = match decision {
        Decision::Execute(_) if record.tag() == StateTag::Released => (
            format!("Attempt {attempt} was given back: as far as is known, nothing happened."),
            "Nothing to do: the client's next retry runs.".to_owned(),
        ),
        Decision::Execute(_) => (
            "Its outcome is past its retention, so the key counts as new.".to_owned(),
            "Nothing to do. If clients retry this late, raise the retention.".to_owned(),
        ),
        Decision::TakeOver { recovery, .. } => (
            format!("{} {}", left_behind(record, now), recovered(*recovery)),
            "Nothing to do: the next retry or the sweeper finishes it. Resolve it yourself only if \
             you know better than the recovery does."
                .to_owned(),
        ),
        Decision::GiveUp => (
            format!("{} {}", left_behind(record, now), recovered(Recovery::Hold)),
            FIND_OUT.to_owned(),
        ),
        Decision::InDoubt { .. } => (
            format!("{} {}", left_behind(record, now), recovered(record.recovery)),
            FIND_OUT.to_owned(),
        ),
        Decision::Busy { until } => busy(record, until.after(now)),
        Decision::Replay => replayed(record, now),
        Decision::Gone { since } => (
            format!(
                "Its outcome expired {} ago, and its route keeps a tombstone after that.",
                span(now.after(*since))
            ),
            "Tell the client that this operation is over; a new one needs a new key.".to_owned(),
        ),
        Decision::Mismatch(_) => (
            "The key was used for another request.".to_owned(),
            "Tell the client to use a new key for every new operation.".to_owned(),
        ),
    };
    (because, advice)
}

const FIND_OUT: &str = "Find out, where the effect would show, whether it happened. Then resolve \
                        it: as completed with what it would have answered, as failed, or as \
                        released if it surely never happened.";

fn left_behind(record: &Record, now: Timestamp) -> String {
    let attempt = record.fence.get();
    let since = span(now.after(record.changed_at));
    match &record.state {
        hapax_core::State::InDoubt { doubt, .. } => {
            let how = match doubt {
                Doubt::Unanswered => "sent its request and never heard a complete answer",
                Doubt::Interrupted => "panicked or was cut off by its timeout",
                Doubt::OwnerVanished => "vanished without a word",
            };
            format!(
                "Attempt {attempt} {how} ({since} ago); nobody knows whether it had its effect."
            )
        }
        hapax_core::State::Running { lease_until, .. } => {
            let over = span(now.after(*lease_until));
            format!(
                "Attempt {attempt} began {since} ago; its lease ended {over} ago and its owner said nothing."
            )
        }
        hapax_core::State::Pending { .. }
        | hapax_core::State::Completed { .. }
        | hapax_core::State::Failed { .. }
        | hapax_core::State::Released
        | hapax_core::State::Buried => format!("Attempt {attempt} ended {since} ago."),
    }
}

fn recovered(recovery: Recovery) -> &'static str {
    match recovery {
        Recovery::Resend => "Its recovery is `resend`: it is sent again under the same key.",
        Recovery::Probe => "Its recovery is `probe`: it is asked for first, then finished or run.",
        Recovery::Hold => "Its recovery is `hold`: it is never run again by itself.",
    }
}

fn busy(record: &Record, left: Duration) -> (String, String) {
    let attempt = record.fence.get();
    if record.tag() == StateTag::Pending {
        let because = "It was accepted for later, and no worker has it yet.".to_owned();
        let advice = "Wait for a worker. If none runs, start one: the work is stored with it.";
        return (because, advice.to_owned());
    }
    let because = format!("Attempt {attempt} is at work; its lease lasts another {}.", span(left));
    let advice = "Wait. If its owner is dead, the lease ends by itself and its recovery decides. \
                  Releasing it while its owner is alive may make the effect happen twice.";
    (because, advice.to_owned())
}

fn replayed(record: &Record, now: Timestamp) -> (String, String) {
    let (attempt, status) = (record.fence.get(), record.outcome().map_or(0, Outcome::status));
    let (since, left) = (span(now.after(record.changed_at)), span(record.expires_at.after(now)));
    let how = if record.tag() == StateTag::Failed { "failed for good" } else { "completed" };
    let because = format!(
        "Attempt {attempt} {how} {since} ago with status {status}, which is answered again for \
         another {left}."
    );
    let advice = "Nothing to do, and nothing can be changed: what is finished stays as it is. A new \
                  operation needs a new key.";
    (because, advice.to_owned())
}

/// A span as people say it: its two largest units.
fn span(span: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let mut left = span.as_secs();
    let mut parts = Vec::new();
    for (seconds, unit) in UNITS {
        let count = left / seconds;
        left %= seconds;
        if count > 0 {
            parts.push(format!("{count} {unit}"));
        }
    }
    parts.truncate(2);
    if parts.is_empty() { "less than a second".to_owned() } else { parts.join(" ") }
}
