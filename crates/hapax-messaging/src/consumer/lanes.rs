//! Which messages wait for which: those of one key, or one partition, go one after the other.

use std::collections::{HashMap, VecDeque};

use hapax_core::inbox::{Message, Partition};

/// What goes one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum DeliveryLane {
    /// Messages of one key of one source.
    Key(String, String),
    /// Messages of one partition.
    Partition(Partition),
}

impl DeliveryLane {
    /// The lane of a message; `None` if it need not wait for any other.
    pub(super) fn of(message: &Message, by_partition: bool) -> Option<Self> {
        match (&message.place, &message.key) {
            (Some(place), _) if by_partition => Some(Self::Partition(place.partition.clone())),
            (_, Some(key)) => Some(Self::Key(message.source.clone(), key.clone())),
            (_, None) => None,
        }
    }
}

/// Lanes in which a message is being acted on, and what waits behind it.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    busy: HashMap<DeliveryLane, VecDeque<T>>,
    waiting: usize,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self { busy: HashMap::new(), waiting: 0 }
    }
}

impl<T> Lanes<T> {
    /// The item, if its lane is free, which it then is not; otherwise it waits.
    pub(super) fn enter(&mut self, lane: Option<&DeliveryLane>, item: T) -> Option<T> {
        let Some(lane) = lane else { return Some(item) };
        match self.busy.get_mut(lane) {
            Some(behind) => {
                behind.push_back(item);
                self.waiting += 1;
                None
            }
            None => {
                self.busy.insert(lane.clone(), VecDeque::new());
                Some(item)
            }
        }
    }

    /// What goes next in this lane; without any, the lane is free.
    pub(super) fn next(&mut self, lane: Option<&DeliveryLane>) -> Option<T> {
        let lane = lane?;
        let next = self.busy.get_mut(lane)?.pop_front();
        if next.is_some() {
            self.waiting -= 1;
        } else {
            self.busy.remove(lane);
        }
        next
    }

    /// What waits first in this lane, if it is like this; the lane stays busy.
    pub(super) fn behind(
        &mut self,
        lane: Option<&DeliveryLane>,
        is_like: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        let next = self.busy.get_mut(lane?)?.pop_front_if(|item| is_like(item))?;
        self.waiting -= 1;
        Some(next)
    }

    /// Everything that waits in this lane, which is free afterwards.
    pub(super) fn clear(&mut self, lane: Option<&DeliveryLane>) -> VecDeque<T> {
        let cleared = lane.and_then(|lane| self.busy.remove(lane)).unwrap_or_default();
        self.waiting -= cleared.len();
        cleared
    }

    /// Takes out whatever waits and is like this; lanes stay as they are.
    pub(super) fn remove(&mut self, is_like: impl Fn(&T) -> bool) {
        for behind in self.busy.values_mut() {
            behind.retain(|item| !is_like(item));
        }
        self.waiting = self.busy.values().map(VecDeque::len).sum();
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(key: &str) -> Option<DeliveryLane> {
        Some(DeliveryLane::Key("orders".to_owned(), key.to_owned()))
    }

    #[test]
    fn a_lane_lets_one_after_the_other_pass() {
        let mut lanes = Lanes::default();
        let (a, b) = (lane("a"), lane("b"));
        assert_eq!(lanes.enter(a.as_ref(), 1), Some(1));
        assert_eq!(lanes.enter(a.as_ref(), 2), None);
        assert_eq!(lanes.enter(b.as_ref(), 3), Some(3));
        assert_eq!(lanes.enter(a.as_ref(), 4), None);
        assert_eq!(lanes.enter(None, 5), Some(5));
        assert_eq!(lanes.waiting(), 2);
        assert_eq!(lanes.next(a.as_ref()), Some(2));
        assert_eq!(lanes.next(a.as_ref()), Some(4));
        assert_eq!(lanes.next(a.as_ref()), None);
        assert_eq!(lanes.enter(a.as_ref(), 6), Some(6));
    }

    #[test]
    fn a_lane_stays_busy_when_those_behind_go_along() {
        let mut lanes = Lanes::default();
        let a = lane("a");
        for item in 0..4 {
            lanes.enter(a.as_ref(), item);
        }
        assert_eq!(lanes.behind(a.as_ref(), |item| *item == 1), Some(1));
        assert_eq!(lanes.behind(a.as_ref(), |item| *item == 3), None);
        assert_eq!(lanes.waiting(), 2);
        assert_eq!(lanes.enter(a.as_ref(), 9), None);
        assert_eq!(lanes.next(a.as_ref()), Some(2));
        assert_eq!(lanes.behind(None, |_| true), None);
    }

    #[test]
    fn a_cleared_lane_is_free() {
        let mut lanes = Lanes::default();
        let a = lane("a");
        for item in 0..3 {
            lanes.enter(a.as_ref(), item);
        }
        assert_eq!(lanes.clear(a.as_ref()), [1, 2]);
        assert_eq!(lanes.waiting(), 0);
        assert_eq!(lanes.enter(a.as_ref(), 9), Some(9));
    }

    #[test]
    fn what_is_removed_no_longer_waits() {
        let mut lanes = Lanes::default();
        let a = lane("a");
        for item in 0..4 {
            lanes.enter(a.as_ref(), item);
        }
        lanes.remove(|item| item % 2 == 1);
        assert_eq!(lanes.waiting(), 1);
        assert_eq!(lanes.next(a.as_ref()), Some(2));
        assert_eq!(lanes.next(a.as_ref()), None);
    }
}
