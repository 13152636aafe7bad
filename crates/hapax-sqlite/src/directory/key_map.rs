//! Rows by the beginnings of their ids, in eight bytes for each, and room.

/// Parts that grow one by one, so that nobody waits for all of them.
const SHARDS: usize = 256;
/// Room in a shard that holds something, at least.
const SLOTS_MIN: usize = 16;

/// Which rows may have an id that begins like this. Nothing is ever taken out.
#[derive(Debug)]
pub(super) struct KeyMap {
    shards: Vec<Shard>,
    keys: usize,
}

impl KeyMap {
    /// An empty one, with room for so many keys.
    pub(super) fn with_room(keys: usize) -> Self {
        let slots = if keys == 0 { 0 } else { keys / SHARDS * 3 / 2 + SLOTS_MIN };
        let shards = (0..SHARDS).map(|_| Shard { slots: vec![EMPTY; slots], used: 0 }).collect();
        Self { shards, keys: 0 }
    }

    /// How many keys are in it.
    pub(super) fn len(&self) -> usize {
        self.keys
    }

    /// Adds a key, unless it is there.
    pub(super) fn insert(&mut self, prefix: u32, row: i64) {
        let (shard, place) = split(prefix);
        if self.shards[shard].insert(place, u64::from(prefix) << 32 | u64::from(low(row))) {
            self.keys += 1;
        }
    }

    /// The rows of keys that begin like this. Only the lower half of their numbers is kept: they are
    /// taken for the last ones, up to `newest`, that end like that.
    pub(super) fn rows(&self, prefix: u32, newest: i64) -> Vec<i64> {
        let (shard, place) = split(prefix);
        let found = self.shards[shard].from(place);
        let found = found.filter(|slot| slot >> 32 == u64::from(prefix));
        found.map(|slot| newest - i64::from(low(newest).wrapping_sub(low_half(slot)))).collect()
    }
}

/// No key: the lower half of a row's number is never zero.
const EMPTY: u64 = 0;

#[derive(Debug)]
struct Shard {
    slots: Vec<u64>,
    used: usize,
}

impl Shard {
    fn insert(&mut self, place: u32, key: u64) -> bool {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let mut at = self.start(place);
        while self.slots[at] != EMPTY {
            if self.slots[at] == key {
                return false;
            }
            at = (at + 1) % self.slots.len();
        }
        self.slots[at] = key;
        self.used += 1;
        true
    }

    /// The keys from this place on, up to the next gap.
    fn from(&self, place: u32) -> impl Iterator<Item = u64> {
        let (before, after) = self.slots.split_at(self.start(place));
        after.iter().chain(before).copied().take_while(|slot| *slot != EMPTY)
    }

    fn start(&self, place: u32) -> usize {
        let slots = u64::try_from(self.slots.len()).unwrap_or(u64::MAX);
        usize::try_from((u64::from(place) * slots) >> 32).unwrap_or(0)
    }

    fn grow(&mut self) {
        let room = (self.slots.len() * 3 / 2).max(SLOTS_MIN);
        let keys = std::mem::replace(&mut self.slots, vec![EMPTY; room]);
        self.used = 0;
        for key in keys.into_iter().filter(|key| *key != EMPTY) {
            let (_, place) = split(low_half(key >> 32));
            self.insert(place, key);
        }
    }
}

/// The shard of keys that begin like this, and where in it they are.
fn split(prefix: u32) -> (usize, u32) {
    let [first, ..] = prefix.to_be_bytes();
    (usize::from(first), prefix << 8)
}

fn low(row: i64) -> u32 {
    low_half(row.cast_unsigned())
}

fn low_half(number: u64) -> u32 {
    let [.., a, b, c, d] = number.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}
