//! When a missing position is known never to come.

use std::collections::BTreeSet;

use hapax_core::outbox::{Position, Reader, Writer};
use proptest::prelude::*;

use super::reader::{reader, show};

fn writer(segment: i64, name: &str) -> Writer {
    Writer { segment, name: name.to_owned(), prepared: false }
}

/// A reader that misses position 1.
fn missing() -> Reader {
    let mut reader = reader(&[(0, 0)]);
    show(&mut reader, &[(2, 0)]);
    reader
}

fn list(reader: &mut Reader, writers: &[Writer]) {
    if reader.inquire_at_once() {
        reader.listed(writers);
    }
}

#[test]
fn a_gap_dies_with_the_first_read_after_its_writers_are_gone() {
    let mut reader = missing();
    list(&mut reader, &[writer(0, "a"), writer(0, "b")]);
    for writers in [&[writer(0, "a"), writer(0, "c")][..], &[writer(0, "b")]] {
        show(&mut reader, &[]);
        list(&mut reader, writers);
        assert!(reader.gaps().contains(1), "{writers:?}");
    }
    list(&mut reader, &[writer(0, "c")]);
    assert!(reader.gaps().contains(1), "a read must show that it did not come");
    show(&mut reader, &[]);
    assert!(reader.gaps().is_empty());
}

#[test]
fn a_gap_whose_writer_commits_at_last_is_filled() {
    let mut reader = missing();
    list(&mut reader, &[writer(0, "a")]);
    list(&mut reader, &[]);
    assert_eq!(show(&mut reader, &[(1, 0)]), [1]);
    assert!(reader.gaps().is_empty());
}

#[test]
fn writers_of_other_segments_do_not_matter() {
    let mut reader = missing();
    list(&mut reader, &[writer(1, "a")]);
    show(&mut reader, &[]);
    assert!(reader.gaps().is_empty());
}

#[test]
fn a_prepared_transaction_keeps_what_it_may_have() {
    let mut reader = missing();
    list(&mut reader, &[writer(0, "a")]);
    let prepared = Writer { prepared: true, ..writer(0, "-1/7") };
    for _ in 0..3 {
        list(&mut reader, std::slice::from_ref(&prepared));
        show(&mut reader, &[]);
        assert!(reader.gaps().contains(1), "it may be the one that was listed under another name");
    }
    list(&mut reader, &[]);
    show(&mut reader, &[]);
    assert!(reader.gaps().is_empty());
}

#[test]
fn a_gap_over_several_segments_waits_for_the_writers_of_each() {
    let mut reader = reader(&[(0, 0)]);
    show(&mut reader, &[(200_000, 0)]);
    let ranges = [(1, 65_535), (65_536, 196_607), (196_608, 199_999)];
    assert_eq!(reader.gaps().ranges().collect::<Vec<_>>(), ranges);
    list(&mut reader, &[writer(2, "a"), writer(3, "b")]);
    list(&mut reader, &[writer(2, "a"), writer(4, "c")]);
    show(&mut reader, &[]);
    assert_eq!(reader.gaps().ranges().collect::<Vec<_>>(), ranges[1..2]);
    list(&mut reader, &[writer(4, "c")]);
    show(&mut reader, &[]);
    assert!(reader.gaps().is_empty());
}

proptest! {
    #[test]
    fn gaps_are_exactly_what_was_not_shown(
        reads in prop::collection::vec(prop::collection::btree_set(1_i64..60, 0..12), 1..8),
    ) {
        let mut reader = reader(&[(0, 0)]);
        let mut visible: BTreeSet<Position> = BTreeSet::new();
        let mut delivered: BTreeSet<Position> = BTreeSet::new();
        for read in reads {
            visible.extend(read);
            let rows: Vec<_> = visible.iter().map(|position| (*position, 0)).collect();
            for position in show(&mut reader, &rows) {
                prop_assert!(delivered.insert(position), "{position} came twice");
            }
            prop_assert_eq!(&delivered, &visible);
            for position in 1..60 {
                let missing = position <= reader.scanned() && !visible.contains(&position);
                prop_assert_eq!(reader.gaps().contains(position), missing);
            }
            let mut last = 0;
            for (first, end) in reader.gaps().ranges() {
                prop_assert!(last < first && first <= end, "ranges do not overlap");
                last = end;
            }
        }
    }
}
