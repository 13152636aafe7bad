//! Where a victim can be told to die.

use std::{
    fmt,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use hapax_core::Faults;
use rustix::process::{Signal, getpid, kill_process};

/// After the right to run was won, before the effect.
pub const BEGUN: &str = "victim.begun";
/// After the right to follow a vanished owner was won, before anything is done with it.
pub const TAKEN: &str = "victim.taken";
/// After the upstream was asked what happened, before acting on the answer.
pub const ASKED: &str = "victim.asked";
/// After the operation of a vanished owner has its effect, before it is settled.
pub const RECOVERED: &str = "victim.recovered";
/// After the effect, before it is settled.
pub const EFFECT: &str = "victim.effect";
/// After the effect is settled, before anybody is told.
pub const SETTLED: &str = "victim.settled";

/// The places in the victim's own code.
pub const VICTIM: &[&str] = &[BEGUN, TAKEN, ASKED, RECOVERED, EFFECT, SETTLED];
/// Those of them that a victim passes only where others have died before.
pub const RECOVERY: &[&str] = &[TAKEN, ASKED, RECOVERED];

/// Those of these places that are named; all of them if none is.
pub(crate) fn chosen(mut places: Vec<&'static str>, named: &[String]) -> Vec<&'static str> {
    places.retain(|place| named.is_empty() || named.iter().any(|name| name == place));
    places
}

/// The options of a command that name these places.
pub(crate) fn options(named: &[String]) -> String {
    named.iter().map(|place| format!(" --at {place}")).collect()
}

/// The place and the moment a process dies at: the `nth` time it passes `place`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DieAt {
    /// The name of the place.
    pub place: String,
    /// At which passing, counted from one.
    pub nth: u64,
}

impl fmt::Display for DieAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.place, self.nth)
    }
}

/// Why a place to die at was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write PLACE:NTH, NTH counted from one")]
pub struct InvalidDieAt;

impl FromStr for DieAt {
    type Err = InvalidDieAt;

    fn from_str(text: &str) -> Result<Self, InvalidDieAt> {
        let (place, nth) = text.rsplit_once(':').ok_or(InvalidDieAt)?;
        let nth = nth.parse().map_err(|_| InvalidDieAt)?;
        if place.is_empty() || nth == 0 {
            return Err(InvalidDieAt);
        }
        Ok(Self { place: place.to_owned(), nth })
    }
}

/// What awaits a process: nothing, or death at a place. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Doom(Option<Arc<Fated>>);

#[derive(Debug)]
struct Fated {
    die_at: DieAt,
    passed: AtomicU64,
}

impl Doom {
    /// Death at this place, or none.
    pub fn new(die_at: Option<DieAt>) -> Self {
        Self(die_at.map(|die_at| Arc::new(Fated { die_at, passed: AtomicU64::new(0) })))
    }

    /// Kills this process if it is to die here and now.
    pub fn pass(&self, place: &str) {
        let Some(fated) = self.0.as_ref().filter(|fated| fated.die_at.place == place) else {
            return;
        };
        if fated.passed.fetch_add(1, Relaxed) + 1 == fated.die_at.nth {
            die();
        }
    }

    /// Makes a call, with a place to die at before it and one after it.
    pub(crate) async fn around<T>(&self, name: &str, call: impl Future<Output = T>) -> T {
        self.pass(&format!("{name}.before"));
        let answer = call.await;
        self.pass(&format!("{name}.after"));
        answer
    }

    /// The same as [`pass`](Self::pass), asked by a store at its own places.
    pub fn faults(&self) -> Faults {
        let doom = self.clone();
        Faults::new(move |place| {
            doom.pass(place);
            Ok(())
        })
    }
}

/// Nothing of this process runs after this, and nothing is cleaned up.
fn die() -> ! {
    loop {
        // There is nobody left to tell if it fails, and nothing to do but to try again.
        let _ = kill_process(getpid(), Signal::KILL);
        thread::yield_now();
    }
}
