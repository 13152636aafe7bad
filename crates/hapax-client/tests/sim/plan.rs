//! What a run looks like, drawn from its seed.

use std::time::Duration;

use fastrand::Rng;
use hapax_core::Recovery;

/// What a run looks like.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) variation: Variation,
    pub(crate) recovery: Recovery,
    pub(crate) clients: usize,
    /// Whether the first two clients are processes of one machine with one journal and one list.
    pub(crate) shared: bool,
    pub(crate) operations: usize,
    /// The chance of a message to break its link until one gets through again.
    pub(crate) loss: f64,
    pub(crate) latency_max: Duration,
    pub(crate) chances: Chances,
    pub(crate) episodes: Vec<Episode>,
}

/// How often things go wrong by themselves, out of a thousand times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chances {
    /// A request arrives a second time, at some later moment.
    pub(crate) duplicated: u32,
    /// The service answers 503, and nothing happened.
    pub(crate) busy: u32,
    /// The service takes longer than anybody waits for it.
    pub(crate) slow: u32,
    /// The service breaks off after the effect.
    pub(crate) lost: u32,
}

/// What differs from how things are meant to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variation {
    /// Nothing.
    None,
    /// The wall clocks of the clients are never set.
    SteadyClocks,
    /// The service has no layer.
    NoLayer,
    /// Every attempt has a key of its own.
    KeyPerAttempt,
    /// A client that is started again finds no journal.
    JournalLost,
}

/// Something that goes wrong for a while.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Episode {
    pub(crate) from: Duration,
    pub(crate) until: Duration,
    pub(crate) fault: Fault,
}

/// What goes wrong. Clients are told by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing gets through between a client and the server.
    Partition(usize),
    /// No request gets through.
    PartitionOut(usize),
    /// No answer gets through.
    PartitionBack(usize),
    /// What is sent arrives when the episode is over.
    Hold(usize),
    /// A client is dead.
    ClientDown(usize),
    /// The server is dead.
    ServerDown,
    /// The wall clock of a client is set.
    ClockSet { client: usize, to: Wall },
}

/// By how much a wall clock is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wall {
    pub(crate) seconds_off: i64,
}

/// How long things go wrong.
pub(crate) const TROUBLED_FOR: Duration = Duration::from_secs(30);
const EPISODE_MAX: Duration = Duration::from_secs(6);
const CLOCK_OFF_SECONDS_MAX: i64 = 400 * 24 * 60 * 60;

impl Plan {
    pub(crate) fn new(seed: u64, variation: Variation) -> Self {
        let mut rng = Rng::with_seed(seed);
        let recovery = match variation {
            // A service that recognises repetitions would hide what the controls do.
            Variation::NoLayer | Variation::KeyPerAttempt | Variation::JournalLost => {
                Recovery::Hold
            }
            Variation::None | Variation::SteadyClocks => {
                [Recovery::Hold, Recovery::Resend, Recovery::Probe][rng.usize(..3)]
            }
        };
        let clients = rng.usize(2..=4);
        let mut episodes: Vec<_> =
            (0..rng.usize(6..=16)).map(|_| Episode::draw(&mut rng, clients)).collect();
        if variation == Variation::SteadyClocks {
            episodes.retain(|episode| !matches!(episode.fault, Fault::ClockSet { .. }));
        }
        Self {
            seed,
            variation,
            recovery,
            clients,
            shared: rng.bool() && variation != Variation::JournalLost,
            operations: rng.usize(6..=12),
            loss: [0.0, 0.005, 0.02][rng.usize(..3)],
            latency_max: Duration::from_millis(rng.u64(20..=300)),
            chances: Chances {
                duplicated: rng.u32(..=300),
                busy: rng.u32(..=100),
                slow: rng.u32(..=150),
                lost: rng.u32(..=100),
            },
            episodes,
        }
    }

    /// Whose operations and journal a client works on.
    pub(crate) fn group(&self, client: usize) -> usize {
        if self.shared && client == 1 { 0 } else { client }
    }

    /// The names of what a group wants to have done.
    pub(crate) fn names(&self, group: usize) -> Vec<String> {
        (0..self.operations).map(|number| format!("charge-{group}-{number}")).collect()
    }

    pub(crate) fn groups(&self) -> Vec<usize> {
        let mut groups: Vec<_> = (0..self.clients).map(|client| self.group(client)).collect();
        groups.dedup();
        groups
    }
}

/// Whether the service says no to it, each time it is asked.
pub(crate) fn is_refused(name: &str) -> bool {
    name.ends_with('3')
}

impl Episode {
    fn draw(rng: &mut Rng, clients: usize) -> Self {
        let client = rng.usize(..clients);
        let fault = match rng.u8(..8) {
            0 => Fault::Partition(client),
            1 => Fault::PartitionOut(client),
            2 => Fault::PartitionBack(client),
            3 => Fault::Hold(client),
            4 | 5 => Fault::ClientDown(client),
            6 => Fault::ServerDown,
            _ => {
                let seconds_off = rng.i64(-CLOCK_OFF_SECONDS_MAX..=CLOCK_OFF_SECONDS_MAX);
                Fault::ClockSet { client, to: Wall { seconds_off } }
            }
        };
        let from = up_to(rng, TROUBLED_FOR);
        Self { from, until: (from + up_to(rng, EPISODE_MAX)).min(TROUBLED_FOR), fault }
    }
}

/// A span from nothing to `max`.
pub(crate) fn up_to(rng: &mut Rng, max: Duration) -> Duration {
    Duration::from_millis(rng.u64(..=u64::try_from(max.as_millis()).unwrap_or(u64::MAX)))
}
