use std::fmt;

use hapax_core::outbox::{EventId, Position};

/// Something that is wrong with an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// Which event.
    pub id: EventId,
    /// Where it stands in the log, if it was emitted.
    pub position: Option<Position>,
    /// Its topic, if it is known.
    pub topic: String,
    /// Its key, if it is known.
    pub key: String,
    /// How often it arrived or was acted on, where that is what is wrong.
    pub times: u64,
}

/// What can be wrong with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// It was committed and never arrived.
    Lost,
    /// It arrived after a later one of its key.
    Swapped,
    /// It arrived more than once, and no repetition was to be expected.
    Repeated,
    /// It arrived under another topic or key.
    Misplaced,
    /// It arrived, and was never committed.
    Unknown,
    /// It was to have arrived, and waits or is parked.
    Undelivered,
    /// Nobody acted on it.
    EffectMissing,
    /// It was acted on more than once.
    EffectDoubled,
}

impl Kind {
    /// Every kind, in the order of a report.
    pub const ALL: [Self; 8] = [
        Self::Lost,
        Self::Swapped,
        Self::Repeated,
        Self::Misplaced,
        Self::Unknown,
        Self::Undelivered,
        Self::EffectMissing,
        Self::EffectDoubled,
    ];

    /// The word used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Swapped => "swapped",
            Self::Repeated => "repeated",
            Self::Misplaced => "misplaced",
            Self::Unknown => "unknown",
            Self::Undelivered => "undelivered",
            Self::EffectMissing => "effect_missing",
            Self::EffectDoubled => "effect_doubled",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, id, topic, key, times, .. } = self;
        write!(f, "{id} ({topic}/{key}")?;
        if let Some(position) = self.position {
            write!(f, ", position {position}")?;
        }
        f.write_str(")")?;
        match kind {
            Kind::Lost => f.write_str(" was committed and never arrived"),
            Kind::Swapped => f.write_str(" arrived after a later one of its key"),
            Kind::Repeated => write!(f, " arrived {times} times"),
            Kind::Misplaced => f.write_str(" arrived under another topic or key"),
            Kind::Unknown => f.write_str(" arrived and was never committed"),
            Kind::Undelivered => f.write_str(" has not been sent"),
            Kind::EffectMissing => f.write_str(" had no effect"),
            Kind::EffectDoubled => write!(f, " had {times} effects"),
        }
    }
}
