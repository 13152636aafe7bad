//! What survives every restart, and whoever judges looks at: the ledger, and what was said.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use fastrand::Rng;
use hapax_client::journal::{Boot, JournalClock, Moment};
use hapax_core::{Salt, Timestamp, memory};

use super::plan::{Plan, Wall, up_to};

/// Everything outside the simulated machines. Clones share it.
#[derive(Clone)]
pub(crate) struct World(Arc<Shared>);

struct Shared {
    plan: Plan,
    store: memory::Store,
    directory: PathBuf,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    /// When the last thing was noted.
    now: Duration,
    is_healed: bool,
    walls: Vec<Wall>,
    starts: u64,
    receipts: u32,
    ledger: BTreeMap<String, Account>,
    heard: Vec<Heard>,
    lines: Vec<String>,
    counts: Counts,
}

/// What really happened to one operation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    /// One number for each effect.
    pub(crate) receipts: Vec<u32>,
    /// How often the service was asked.
    pub(crate) asked: u32,
}

/// What a client was told about one operation.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) name: String,
    pub(crate) word: Word,
    /// How many effects there were at that moment.
    pub(crate) effects: usize,
    pub(crate) took: Duration,
    /// Whether nothing went wrong any more when it was asked.
    pub(crate) is_final: bool,
}

/// What an operation came to, in its client's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Word {
    Done { receipt: u32 },
    Refused,
    Unknown,
    GaveUp,
}

/// What a run was made of, to show that it was not empty.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) client_restarts: u64,
    pub(crate) server_restarts: u64,
    pub(crate) network_faults: u64,
    pub(crate) clocks_set: u64,
    pub(crate) duplicates: u64,
    pub(crate) replays: u64,
    pub(crate) effects: u64,
    pub(crate) left_unknown: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.client_restarts += other.client_restarts;
        self.server_restarts += other.server_restarts;
        self.network_faults += other.network_faults;
        self.clocks_set += other.clocks_set;
        self.duplicates += other.duplicates;
        self.replays += other.replays;
        self.effects += other.effects;
        self.left_unknown += other.left_unknown;
    }

    /// Everything happened at least once, and most operations came to an end.
    pub(crate) fn cover_everything(self) {
        let all = [
            self.client_restarts,
            self.server_restarts,
            self.network_faults,
            self.clocks_set,
            self.duplicates,
            self.replays,
            self.effects,
            self.left_unknown,
        ];
        assert!(all.iter().all(|count| *count > 0), "{self:?}");
        assert!(self.left_unknown * 4 < self.effects, "{self:?}");
    }
}

/// The wall clock at the start of a run.
const EPOCH: Duration = Duration::from_secs(1_800_000_000);
const BOOT: [u8; 16] = [7; 16];

impl World {
    pub(crate) fn new(plan: Plan, directory: PathBuf) -> Self {
        let state = State {
            rng: Rng::with_seed(plan.seed ^ 0x0068_6170_6178),
            now: Duration::ZERO,
            is_healed: false,
            walls: vec![Wall { seconds_off: 0 }; plan.clients],
            starts: 0,
            receipts: 0,
            ledger: BTreeMap::new(),
            heard: Vec::new(),
            lines: Vec::new(),
            counts: Counts::default(),
        };
        Self(Arc::new_cyclic(|world: &std::sync::Weak<Shared>| {
            let world = world.clone();
            let store = memory::Store::new(Salt::from_bytes([7; 32]), move || {
                let now = world.upgrade().map(|shared| Self(shared).now());
                Timestamp::ZERO.plus(EPOCH + now.unwrap_or_default())
            });
            Shared { plan, store, directory, state: Mutex::new(state) }
        }))
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.0.plan
    }

    pub(crate) fn store(&self) -> memory::Store {
        self.0.store.clone()
    }

    pub(crate) fn journal_path(&self, group: usize) -> PathBuf {
        self.0.directory.join(format!("{group}.db"))
    }

    /// The time since the start of the run; it never goes back.
    pub(crate) fn now(&self) -> Duration {
        let mut state = self.state();
        state.now = turmoil::sim_elapsed().unwrap_or_default().max(state.now);
        state.now
    }

    /// Says how late it is where no machine runs.
    pub(crate) fn tell_time(&self, now: Duration) {
        let mut state = self.state();
        state.now = state.now.max(now);
    }

    /// The clocks of a client's machine.
    pub(crate) fn clock(&self, client: usize) -> JournalClock {
        let world = self.clone();
        JournalClock::new(move || {
            let since = world.now();
            let off = world.state().walls[client].seconds_off;
            let span = Duration::from_secs(off.unsigned_abs());
            let right = Timestamp::ZERO.plus(EPOCH + since);
            let wall = if off < 0 { right.minus(span) } else { right.plus(span) };
            Moment { wall, boot: Some(Boot { id: BOOT, since }) }
        })
    }

    pub(crate) fn set_clock(&self, client: usize, wall: Wall) {
        self.state().walls[client] = wall;
    }

    /// From now on nothing goes wrong.
    pub(crate) fn heal(&self) {
        self.state().is_healed = true;
    }

    pub(crate) fn is_healed(&self) -> bool {
        self.state().is_healed
    }

    /// Whether something goes wrong that does so this often out of a thousand times.
    pub(crate) fn goes_wrong(&self, chance: u32) -> bool {
        let mut state = self.state();
        !state.is_healed && state.rng.u32(..1000) < chance
    }

    /// A span from nothing to `max`.
    pub(crate) fn up_to(&self, max: Duration) -> Duration {
        up_to(&mut self.state().rng, max)
    }

    /// A key nobody has used before.
    pub(crate) fn draw_key(&self) -> String {
        format!("{:032x}", self.state().rng.u128(..))
    }

    /// A number for each start of the server.
    pub(crate) fn next_start(&self) -> u64 {
        let mut state = self.state();
        state.starts += 1;
        state.starts
    }

    /// The service is asked.
    pub(crate) fn asked(&self, name: &str) {
        self.state().account(name).asked += 1;
        self.note(&format!("asked {name}"));
    }

    /// The effect; where repetitions are recognised, there is one however often it is asked for.
    pub(crate) fn effect(&self, name: &str, recognises: bool) -> u32 {
        let mut state = self.state();
        if let Some(receipt) = state.account(name).receipts.first().copied().filter(|_| recognises)
        {
            return receipt;
        }
        state.receipts += 1;
        state.counts.effects += 1;
        let receipt = state.receipts;
        state.account(name).receipts.push(receipt);
        drop(state);
        self.note(&format!("effect {name} {receipt}"));
        receipt
    }

    pub(crate) fn account(&self, name: &str) -> Account {
        self.state().account(name).clone()
    }

    /// A client is told something.
    pub(crate) fn heard(&self, name: &str, word: Word, took: Duration) {
        self.note(&format!("heard {name} {word:?} {took:?}"));
        let mut state = self.state();
        let (effects, is_final) = (state.account(name).receipts.len(), state.is_healed);
        state.heard.push(Heard { name: name.to_owned(), word, effects, took, is_final });
    }

    pub(crate) fn all_heard(&self) -> Vec<Heard> {
        self.state().heard.clone()
    }

    pub(crate) fn count(&self, what: impl FnOnce(&mut Counts)) {
        what(&mut self.state().counts);
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state().counts
    }

    /// Adds a line to the history.
    pub(crate) fn note(&self, line: &str) {
        let now = self.now();
        self.state().lines.push(format!("{now:>10.3?} {line}"));
    }

    pub(crate) fn history(&self) -> Vec<String> {
        self.state().lines.clone()
    }

    /// A digest of the history without what was done to wall clocks, which must not matter.
    pub(crate) fn trace(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let state = self.state();
        state
            .lines
            .iter()
            .filter(|line| !line.contains("ClockSet"))
            .for_each(|line| line.hash(&mut hasher));
        hasher.finish()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
}

impl State {
    fn account(&mut self, name: &str) -> &mut Account {
        self.ledger.entry(name.to_owned()).or_default()
    }
}
