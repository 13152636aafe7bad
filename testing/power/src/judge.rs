//! Opens what is left after the loss of power, and compares it with what was told.

use std::{collections::BTreeMap, fmt, fs, path::Path};

use fastrand::Rng;
use hapax_core::{
    OneLine, OperationId, Record, Store as _, StoreError, Timestamp,
    store::{Filter, Page, Write, Written},
};
use hapax_sqlite::{Clock, Options, Store};
use rusqlite::Connection;
use tokio::runtime::Runtime;

use crate::{
    disk::DiskImage,
    error::PowerError,
    expectation::Expectation,
    plan::{KeyState, newcomer},
    work::{STORE_FILE, hex, runtime},
};

/// The most notes that a key has in any plan.
const NOTES_MAX: usize = 1000;
/// With more keys than this some of them are looked up, and none is listed.
const LISTED_KEYS_MAX: usize = 1000;
const PAGE_RECORDS: usize = 100;
/// Shared memory that outlived its processes is as long as this, and says anything.
const SHARED_MEMORY_BYTES: usize = 32 << 10;

/// A broken promise.
#[derive(Debug, Clone)]
pub enum PowerViolation {
    /// The store does not open.
    Unopened(String),
    /// It has a salt that is not the one it was made with.
    Salt {
        /// What was told, or would have been.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Something that is there cannot be read.
    Unreadable {
        /// What was read.
        what: String,
        /// How it was refused.
        error: String,
    },
    /// What is kept under a key is nothing that may be.
    Illegal {
        /// Which key.
        id: OperationId,
        /// What may be there.
        legal: Vec<KeyState>,
        /// What is.
        found: Box<KeyState>,
    },
    /// There is a record of a key that nobody used.
    Unasked(OperationId),
    /// There is an effect without its record.
    Alone,
    /// Work does not go on.
    Stuck(String),
    /// What was there a moment ago is another thing after the next opening.
    Changed(OperationId),
    /// SQLite finds the file inconsistent.
    Inconsistent(String),
    /// What the client's journal says of an operation is nothing that may be.
    Journal(String),
}

impl fmt::Display for PowerViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unopened(error) => write!(f, "the store does not open: {error}"),
            Self::Salt { expected, found } => write!(f, "the salt is {found}, not {expected}"),
            Self::Unreadable { what, error } => write!(f, "{what} cannot be read: {error}"),
            Self::Illegal { id, legal, found } => {
                write!(f, "under {id} there is\n    {found:?}\n  and may be")?;
                legal.iter().try_for_each(|state| write!(f, "\n    {state:?}"))
            }
            Self::Unasked(id) => write!(f, "there is a record of {id}, which nobody asked for"),
            Self::Alone => f.write_str("there is an effect without its record"),
            Self::Stuck(error) => write!(f, "work does not go on: {error}"),
            Self::Changed(id) => write!(f, "{id} is another thing after the next opening"),
            Self::Journal(found) => write!(f, "the journal is wrong about {found}"),
            Self::Inconsistent(found) => write!(f, "the file is inconsistent: {found}"),
        }
    }
}

/// Opens images in one directory, one after the other.
#[derive(Debug)]
pub struct Judge<'d> {
    dir: &'d Path,
    runtime: Runtime,
    /// The salt the store was made with, as it is told later on.
    salt: String,
}

type Found<T> = Result<T, PowerViolation>;
type Observed = BTreeMap<OperationId, KeyState>;

/// How much of a key is read: each further read takes as long as the record's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Its record and its effect.
    Record,
    /// Its steps and its notes, too.
    Whole,
}

impl Extent {
    /// What has to be read of a key that may be in these states.
    fn of(states: &[KeyState]) -> Self {
        let is_bare = |state: &KeyState| state.steps.is_empty() && state.notes.is_empty();
        if states.iter().all(is_bare) { Self::Record } else { Self::Whole }
    }
}

impl<'d> Judge<'d> {
    /// A judge who may use this directory, of a store that was made with this salt.
    pub fn new(dir: &'d Path, salt: String) -> Result<Self, PowerError> {
        Ok(Self { dir, runtime: runtime()?, salt })
    }

    /// What is wrong with the image, if anything.
    pub fn judge(
        &self,
        image: &DiskImage,
        expected: &Expectation<'_>,
        chance: &mut Rng,
    ) -> Result<Option<PowerViolation>, PowerError> {
        lay_out(image, self.dir)?;
        if chance.bool() {
            let mut shared = vec![0; SHARED_MEMORY_BYTES];
            chance.fill(&mut shared);
            let path = self.dir.join(format!("{STORE_FILE}-shm"));
            fs::write(path, shared).map_err(PowerError::io("lay out shared memory"))?;
        }
        let legal = expected.legal(chance)?;
        Ok(self.check(expected, &legal).err())
    }

    fn check(
        &self,
        expected: &Expectation<'_>,
        legal: &BTreeMap<OperationId, Vec<KeyState>>,
    ) -> Found<()> {
        // To read first: an opening that may write makes what is missing.
        let before = Store::open_to_read(self.dir.join(STORE_FILE), options()).ok();
        let salt = expected.promised_salt().map(str::to_owned);
        let salt = salt.or_else(|| before.is_some().then(|| self.salt.clone()));
        drop(before);
        let store = self.open(salt.as_deref())?;
        let salt = hex(store.salt());
        let keys: Vec<_> = legal.iter().map(|(id, states)| (*id, Extent::of(states))).collect();
        let found = self.read(&store, &keys)?;
        for (id, found) in &found {
            let states = &legal[id];
            let is_legal = |state: &KeyState| is_same(state, found, expected.is_owner_unknown(*id));
            if !states.iter().any(is_legal) {
                let (legal, found) = (states.clone(), Box::new(found.clone()));
                return Err(PowerViolation::Illegal { id: *id, legal, found });
            }
        }
        if expected.keys() <= LISTED_KEYS_MAX {
            self.check_listing(&store, &found)?;
        }
        let added = self.go_on(&store)?;
        drop(store);
        self.check_consistency()?;
        let store = self.open(Some(&salt))?;
        let again =
            self.read(&store, &[&keys[..], &[(added.operation.id(), Extent::Whole)]].concat())?;
        let kept = again.get(&added.operation.id()).and_then(|state| state.record.as_ref());
        if kept != Some(&added) {
            return Err(PowerViolation::Changed(added.operation.id()));
        }
        match found.iter().find(|(id, state)| again.get(*id) != Some(*state)) {
            Some((id, _)) => Err(PowerViolation::Changed(*id)),
            None => Ok(()),
        }
    }

    fn open(&self, salt: Option<&str>) -> Found<Store> {
        let opened = Store::open(self.dir.join(STORE_FILE), options());
        let store =
            opened.map_err(|error| PowerViolation::Unopened(OneLine::of(&error).to_string()))?;
        let found = hex(store.salt());
        match salt {
            Some(expected) if expected != found => {
                Err(PowerViolation::Salt { expected: expected.to_owned(), found })
            }
            Some(_) | None => Ok(store),
        }
    }

    /// What is kept under these keys; steps and notes only of those that are read whole.
    fn read(&self, store: &Store, keys: &[(OperationId, Extent)]) -> Found<Observed> {
        let effects = Effects::open(&self.dir.join(STORE_FILE))?;
        let ids = keys.iter().map(|(id, _)| *id).collect();
        let records = self.runtime.block_on(store.load(ids));
        let mut found = Observed::new();
        for ((id, extent), loaded) in keys.iter().zip(records) {
            let record = loaded.map_err(unreadable(id))?.record.map(|record| *record);
            let mut state = KeyState { record, ..KeyState::default() };
            if *extent == Extent::Whole {
                let steps = self.runtime.block_on(store.steps(*id));
                state.steps = steps.map_err(unreadable(id))?;
                let notes = self.runtime.block_on(store.notes(*id, NOTES_MAX));
                state.notes = notes.map_err(unreadable(id))?;
            }
            if let Some(record) = &state.record {
                state.has_effect = effects.has(record.operation.key().as_str())?;
            }
            found.insert(*id, state);
        }
        let with_effect = found.values().filter(|state| state.has_effect).count();
        if with_effect == effects.count()? { Ok(found) } else { Err(PowerViolation::Alone) }
    }

    /// Every record that is listed was found by its id, and the other way round.
    fn check_listing(&self, store: &Store, found: &Observed) -> Found<()> {
        let mut listed = Vec::new();
        loop {
            let page = Page { after: listed.last().copied(), limit: PAGE_RECORDS };
            let records = self.runtime.block_on(store.list(Filter::default(), page));
            let records = records.map_err(unreadable("the listing"))?;
            if records.is_empty() {
                break;
            }
            for record in records {
                record.summary.map_err(unreadable(record.id))?;
                listed.push(record.id);
            }
        }
        let is_there = |id: &OperationId| found.get(id).is_some_and(|it| it.record.is_some());
        if let Some(id) = listed.iter().find(|id| !is_there(id)) {
            return Err(PowerViolation::Unasked(*id));
        }
        match found.keys().find(|id| is_there(id) && !listed.contains(id)) {
            Some(id) => {
                let error = "it is found by its id and not listed".to_owned();
                Err(PowerViolation::Unreadable { what: id.to_string(), error })
            }
            None => Ok(()),
        }
    }

    /// Claims and ends an operation that nobody asked for before.
    fn go_on(&self, store: &Store) -> Found<Record> {
        let (claim, end, record) =
            newcomer(now()).map_err(|error| PowerViolation::Stuck(error.to_string()))?;
        for write in [Write::Claim(claim), Write::Settle(end)] {
            for answer in self.runtime.block_on(store.commit(vec![write])) {
                match answer {
                    Ok(Written::Done { .. }) => {}
                    other => return Err(PowerViolation::Stuck(format!("{other:?}"))),
                }
            }
        }
        Ok(record)
    }

    fn check_consistency(&self) -> Found<()> {
        let inconsistent = |error: rusqlite::Error| PowerViolation::Inconsistent(error.to_string());
        let connection = Connection::open(self.dir.join(STORE_FILE)).map_err(inconsistent)?;
        let checked = connection.pragma_query_value(None, "integrity_check", |row| row.get(0));
        let checked: String = checked.map_err(inconsistent)?;
        if checked == "ok" { Ok(()) } else { Err(PowerViolation::Inconsistent(checked)) }
    }
}

/// Makes the directory hold this image and nothing else.
pub(crate) fn lay_out(image: &DiskImage, dir: &Path) -> Result<(), PowerError> {
    let refused = || PowerError::io("lay out an image");
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(refused())?;
    }
    fs::create_dir_all(dir).map_err(refused())?;
    image
        .files
        .iter()
        .try_for_each(|(name, bytes)| fs::write(dir.join(name), bytes).map_err(refused()))
}

/// The table of effects, as the program reads it whose file it is.
struct Effects(Option<Connection>);

impl Effects {
    fn open(path: &Path) -> Found<Self> {
        let opened = Connection::open(path).and_then(|connection| {
            let is_there = "SELECT count(*) FROM sqlite_schema WHERE name = 'effects'";
            let is_there: i64 = connection.query_row(is_there, [], |row| row.get(0))?;
            Ok((is_there > 0).then_some(connection))
        });
        opened.map(Self).map_err(|error| Self::unreadable(&error))
    }

    fn has(&self, key: &str) -> Found<bool> {
        self.ask("SELECT count(*) FROM effects WHERE key = ?1", [key]).map(|count| count > 0)
    }

    fn count(&self) -> Found<usize> {
        self.ask("SELECT count(*) FROM effects", [])
    }

    fn ask(&self, sql: &str, parameters: impl rusqlite::Params) -> Found<usize> {
        let Some(connection) = &self.0 else { return Ok(0) };
        let asked = connection.query_row(sql, parameters, |row| row.get::<_, i64>(0));
        let count = asked.map_err(|error| Self::unreadable(&error))?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    fn unreadable(error: &rusqlite::Error) -> PowerViolation {
        let error = OneLine::of(error).to_string();
        PowerViolation::Unreadable { what: "the table of effects".to_owned(), error }
    }
}

fn unreadable(what: impl fmt::Display) -> impl FnOnce(StoreError) -> PowerViolation {
    move |error| {
        let error = OneLine::of(&error).to_string();
        PowerViolation::Unreadable { what: what.to_string(), error }
    }
}

fn is_same(expected: &KeyState, found: &KeyState, is_owner_unknown: bool) -> bool {
    match (&expected.record, &found.record) {
        (Some(record), Some(other)) if is_owner_unknown => {
            let record = Record { owner: other.owner, ..record.clone() };
            KeyState { record: Some(record), ..expected.clone() } == *found
        }
        _ => expected == found,
    }
}

/// Long before anything that is kept is over.
fn now() -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000)
}

fn options() -> Options {
    Options { clock: Clock::new(now), readers: 1, ..Options::default() }
}
