//! How much may be in memory, or under way, at one time: in all, and for one connection.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Room for so many bytes, or so much of anything else that is counted. Clones share it.
///
/// ```
/// use hapax_tower::Room;
///
/// let room = Room::of(1 << 20);
/// let guard = room.take(1 << 20);
/// assert!(guard.is_some() && !room.fits(1));
/// drop(guard);
/// assert!(room.fits(1));
/// ```
#[derive(Debug, Clone)]
pub struct Room(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    taken: AtomicUsize,
    max: usize,
}

impl Room {
    /// Room for this much.
    pub fn of(max: usize) -> Self {
        Self(Arc::new(Inner { taken: AtomicUsize::new(0), max }))
    }

    /// How much of it is taken.
    pub fn taken(&self) -> usize {
        self.0.taken.load(Relaxed)
    }

    /// Whether this much more would fit.
    pub fn fits(&self, more: usize) -> bool {
        self.taken().checked_add(more).is_some_and(|taken| taken <= self.0.max)
    }

    /// Takes this much until the answer is dropped; `None` if it is not free.
    pub fn take(&self, wanted: usize) -> Option<RoomGuard> {
        let mut taken = self.take_nothing();
        taken.grow(wanted).then_some(taken)
    }

    /// Takes this much, free or not, for what is there already.
    #[must_use]
    pub fn take_anyway(&self, wanted: usize) -> RoomGuard {
        let mut taken = self.take_nothing();
        taken.grow_anyway(wanted);
        taken
    }

    /// Takes nothing yet.
    #[must_use]
    pub fn take_nothing(&self) -> RoomGuard {
        RoomGuard { room: self.clone(), amount: 0 }
    }
}

/// Room that is taken, and given back when this is dropped.
#[derive(Debug)]
pub struct RoomGuard {
    room: Room,
    amount: usize,
}

impl RoomGuard {
    /// Takes more; says whether that was free.
    pub fn grow(&mut self, more: usize) -> bool {
        let Inner { taken, max } = &*self.room.0;
        let grown = |taken: usize| taken.checked_add(more).filter(|taken| taken <= max);
        let is_free = taken.fetch_update(Relaxed, Relaxed, grown).is_ok();
        if is_free {
            self.amount += more;
        }
        is_free
    }

    /// Takes more if that is free, or if nobody else takes any: alone one may be larger than the
    /// room.
    fn grow_alone(&mut self, more: usize) -> bool {
        let is_alone = self.room.taken() == self.amount;
        if is_alone {
            self.grow_anyway(more);
        }
        is_alone || self.grow(more)
    }

    fn grow_anyway(&mut self, more: usize) {
        self.room.0.taken.fetch_add(more, Relaxed);
        self.amount += more;
    }
}

impl Drop for RoomGuard {
    fn drop(&mut self) {
        self.room.0.taken.fetch_sub(self.amount, Relaxed);
    }
}

/// What one connection may use: an extension of every request that came over it. Clones share it.
///
/// Without one in its extensions a request is bounded by what all of them together may use.
///
/// ```
/// use hapax_tower::{Body, Share};
///
/// // One for each connection: at most 4 MiB of bodies, and a hundred requests.
/// let share = Share::new(4 << 20, 100);
/// let mut request = http::Request::post("/payments").body(Body::empty())?;
/// request.extensions_mut().insert(share.clone());
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Share(Arc<ShareRooms>);

#[derive(Debug)]
struct ShareRooms {
    bytes: Room,
    under_way: Room,
}

impl Share {
    /// At most this many bytes of request bodies at one time, unless a single one is larger, and
    /// this many requests, those included whose client did not wait for the answer.
    pub fn new(bytes_max: usize, under_way_max: usize) -> Self {
        let (bytes, under_way) = (Room::of(bytes_max), Room::of(under_way_max));
        Self(Arc::new(ShareRooms { bytes, under_way }))
    }
}

/// What a request takes of both, from its first byte until nothing is done for it any more.
#[derive(Debug)]
pub(crate) struct RequestRoom {
    of_all: Option<RoomGuard>,
    of_connection: Option<RoomGuard>,
    _under_way: Option<RoomGuard>,
}

impl RequestRoom {
    /// Counts a request as under way; `None` if its connection has too many.
    pub(crate) fn begin(all: Option<&Room>, share: Option<&Share>) -> Option<Self> {
        let under_way = match share {
            None => None,
            Some(share) => Some(share.0.under_way.take(1)?),
        };
        Some(Self {
            of_all: all.map(Room::take_nothing),
            of_connection: share.map(|share| share.0.bytes.take_nothing()),
            _under_way: under_way,
        })
    }

    /// Whether this many bytes would fit now. Nothing is taken: what is announced may never come.
    pub(crate) fn could_take(&self, bytes: usize) -> bool {
        let fits = |taken: &RoomGuard| taken.room.fits(bytes);
        self.of_all.as_ref().is_none_or(fits)
    }

    /// Takes room for bytes that have come; says whether there was any.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        self.of_connection.as_mut().is_none_or(|taken| taken.grow_alone(bytes))
            && self.of_all.as_mut().is_none_or(|taken| taken.grow(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_never_more_than_there_is_and_comes_back() {
        let room = Room::of(10);
        let mut some = room.take(6).unwrap();
        assert!(room.take(5).is_none() && room.fits(4) && !room.fits(5));
        assert!(some.grow(4) && !some.grow(1));
        assert_eq!(room.taken(), 10);
        drop(some);
        assert_eq!(room.taken(), 0);
    }

    #[test]
    fn what_is_there_already_is_counted_even_if_it_does_not_fit() {
        let room = Room::of(10);
        let over = room.take_anyway(12);
        assert!(!room.fits(0) && room.take(1).is_none());
        drop(over);
        assert!(room.fits(10));
    }

    #[test]
    fn a_connection_may_have_one_large_body_or_several_within_its_share() {
        let (all, share) = (Room::of(100), Share::new(10, 3));
        let begin = || RequestRoom::begin(Some(&all), Some(&share)).unwrap();
        let (mut large, mut other) = (begin(), begin());
        assert!(large.take(8) && large.take(8), "alone it may be larger");
        assert!(!other.take(1));
        assert!(
            RequestRoom::begin(Some(&all), Some(&share)).is_some_and(|held| held.could_take(84))
        );
        drop(large);
        assert!(other.take(5) && !begin().take(6) && begin().take(5));
    }

    #[test]
    fn a_connection_has_so_many_requests_under_way_and_no_more() {
        let share = Share::new(10, 2);
        let begin = || RequestRoom::begin(None, Some(&share));
        let (one, two) = (begin(), begin());
        assert!(one.is_some() && two.is_some() && begin().is_none());
        drop(one);
        assert!(begin().is_some());
    }
}
