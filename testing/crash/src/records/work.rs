//! The operations victims ask for. Each is known by its key alone, so that whoever takes one over
//! knows what to do.

use std::{fmt, str::FromStr, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Fingerprint, InvalidName, Key, Operation, Policy, Record, Recovery, RequestParts, RetainFrom,
    Retention, RunMode, Scope, Tenant, TenantKey,
};

/// The lease of every operation: short, so that recovery need not be waited for.
pub const LEASE: Duration = Duration::from_millis(250);

const RETENTION: Retention = Retention {
    window: Duration::from_secs(24 * 60 * 60),
    from: RetainFrom::Creation,
    tombstone: Duration::ZERO,
};

/// What kind of effect an operation has, and so what may be done when its owner vanishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkKind {
    /// The upstream does whatever it is told: held when in doubt.
    Hold,
    /// The upstream deduplicates by key: sent again.
    Resend,
    /// The upstream can be asked, and refuses older fences: asked, then finished or sent again.
    Probe,
    /// Accepted first, run later by a finisher; the upstream deduplicates by key.
    Queue,
}

impl WorkKind {
    /// How often each kind comes, in the order of numbers.
    const MIX: [Self; 7] =
        [Self::Hold, Self::Resend, Self::Probe, Self::Hold, Self::Probe, Self::Resend, Self::Queue];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Resend => "resend",
            Self::Probe => "probe",
            Self::Queue => "queue",
        }
    }
}

/// One operation: its number says what kind it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// The kind.
    pub kind: WorkKind,
    /// The number.
    pub number: usize,
}

impl Work {
    /// The operation with this number.
    pub fn new(number: usize) -> Self {
        Self { kind: WorkKind::MIX[number % WorkKind::MIX.len()], number }
    }

    /// What the store knows it as, in this scope.
    pub fn operation(self, scope: &Scope) -> Result<Operation, InvalidName> {
        let key = Key::parse(self.to_string())?;
        Ok(Operation::new(Self::tenant()?, scope.clone(), key))
    }

    /// Who asks for every operation.
    pub fn tenant() -> Result<Tenant, InvalidName> {
        Tenant::parse("crash")
    }

    /// The scope of operations that are forgotten at once.
    pub fn fleeting_scope() -> Result<Scope, InvalidName> {
        Scope::parse("fleeting")
    }

    /// What makes it the same request every time.
    pub fn fingerprint(self, keys: &TenantKey) -> Fingerprint {
        keys.fingerprint(&RequestParts { body: &self.request(), ..RequestParts::default() })
    }

    /// How it enters: every other one leaves its request behind for a finisher.
    pub fn mode(self) -> RunMode {
        match self.kind {
            WorkKind::Queue => RunMode::Queue { request: self.request() },
            WorkKind::Hold | WorkKind::Resend | WorkKind::Probe => {
                RunMode::Run { request: (self.number % 2 == 1).then(|| self.request()) }
            }
        }
    }

    /// The request a finisher finds.
    pub fn request(self) -> Bytes {
        Bytes::from(format!("please do {self}"))
    }

    /// What may be done when its owner vanishes.
    pub fn recovery(self) -> Recovery {
        match self.kind {
            WorkKind::Hold => Recovery::Hold,
            WorkKind::Resend | WorkKind::Queue => Recovery::Resend,
            WorkKind::Probe => Recovery::Probe,
        }
    }

    /// How the work of a record is treated.
    pub fn policy_of(record: &Record) -> Policy {
        let work = record.operation.key().as_str().parse::<Self>();
        work.map_or_else(|_| Policy::default(), Self::policy)
    }

    /// How it is treated.
    pub fn policy(self) -> Policy {
        #[expect(clippy::expect_used, reason = "the constants above do not contradict each other")]
        Policy::new(LEASE, RETENTION, self.recovery()).expect("a lease within the limits")
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind.as_str(), self.number)
    }
}

/// Why a key is not one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no victim ever asked for this key")]
pub struct UnknownWork;

impl FromStr for Work {
    type Err = UnknownWork;

    fn from_str(key: &str) -> Result<Self, UnknownWork> {
        let (_, number) = key.split_once('.').ok_or(UnknownWork)?;
        let work = Self::new(number.parse().map_err(|_| UnknownWork)?);
        if work.to_string() == key { Ok(work) } else { Err(UnknownWork) }
    }
}
