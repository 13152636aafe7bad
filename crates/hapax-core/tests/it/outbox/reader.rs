//! A reader, shown what a test likes to show it.

use hapax_core::{
    Fence, Timestamp,
    limits::OUTBOX_GAPS_MAX,
    outbox::{
        DeliverySource, EventBatch, EventId, Lane, LaneHeld, Position, ReadLimits, Reader, Seen,
        SeenRow, Stored, Writer,
    },
};

pub(super) fn lane(number: i16) -> Lane {
    Lane::from_number(number).unwrap()
}

pub(super) fn reader(lows: &[(i16, Position)]) -> Reader {
    let mut reader = Reader::new();
    for (number, low) in lows {
        reader.add(held(*number, *low));
    }
    reader
}

fn held(number: i16, low: Position) -> LaneHeld {
    LaneHeld { lane: lane(number), fence: Fence::FIRST, low }
}

fn event(position: Position, number: i16) -> Stored {
    Stored {
        position,
        lane: lane(number),
        id: EventId::from_bytes([0; 16]),
        at: Timestamp::ZERO,
        topic: "t".to_owned(),
        key: number.to_string(),
        content_type: "application/json".to_owned(),
        headers: Vec::new(),
        payload: "{}".into(),
    }
}

fn seen(rows: &[(Position, i16)]) -> Seen {
    let row = |(position, number): &(Position, i16)| SeenRow {
        position: *position,
        event: Some(event(*position, *number)),
        held: false,
    };
    let rows = rows.iter().map(row).collect();
    Seen { now: Timestamp::ZERO, session: 0, rows, complete: true, replay: Vec::new() }
}

/// Shows what it asks for of these rows; the positions it delivers.
pub(super) fn show(reader: &mut Reader, rows: &[(Position, i16)]) -> Vec<Position> {
    let look = reader.look(ReadLimits::default());
    let mut seen = seen(rows);
    seen.rows.retain(|row| look.covers(row.position));
    for row in &mut seen.rows {
        row.event = row.event.take().filter(|event| look.wants(event.lane, event.position));
    }
    delivered(&reader.take(seen))
}

fn delivered(batch: &EventBatch) -> Vec<Position> {
    batch.events.iter().map(|delivery| delivery.event.position).collect()
}

fn low(reader: &Reader, number: i16) -> Position {
    reader.lanes().find(|held| held.lane == lane(number)).unwrap().low
}

#[test]
fn what_is_shown_is_delivered_once_and_final_when_it_is_acknowledged() {
    let mut reader = reader(&[(0, 0), (1, 0)]);
    let rows = [(1, 0), (2, 1), (3, 0)];
    assert_eq!(show(&mut reader, &rows), [1, 2, 3]);
    assert_eq!(show(&mut reader, &rows), []);
    assert_eq!((low(&reader, 0), low(&reader, 1), reader.unacknowledged()), (0, 1, 3));
    reader.acknowledge(lane(0), 3);
    assert_eq!(low(&reader, 0), 0, "the first one is missing");
    reader.acknowledge(lane(0), 1);
    reader.acknowledge(lane(1), 2);
    assert_eq!((low(&reader, 0), low(&reader, 1), reader.unacknowledged()), (3, 3, 0));
}

#[test]
fn what_is_acknowledged_is_told_to_the_store_once() {
    let mut reader = reader(&[(0, 0)]);
    show(&mut reader, &[(1, 0)]);
    assert!(reader.progress().is_empty());
    reader.acknowledge(lane(0), 1);
    let progress = reader.progress();
    assert_eq!(progress.lows.iter().map(|low| low.low).collect::<Vec<_>>(), [1]);
    reader.stored(&progress, &[]);
    assert!(reader.progress().is_empty());
    reader.stored(&progress, &[lane(0)]);
    assert_eq!(reader.fence(lane(0)), None, "a lost lane is let go");
}

#[test]
fn a_gap_holds_every_lane_back_until_it_is_filled() {
    let mut reader = reader(&[(0, 0), (1, 0)]);
    assert_eq!(show(&mut reader, &[(1, 0), (3, 0)]), [1, 3]);
    reader.acknowledge(lane(0), 1);
    reader.acknowledge(lane(0), 3);
    assert_eq!((low(&reader, 0), low(&reader, 1)), (1, 1));
    assert_eq!(show(&mut reader, &[(1, 0), (2, 1), (3, 0)]), [2]);
    assert_eq!((low(&reader, 0), low(&reader, 1)), (3, 1));
}

#[test]
fn a_lane_that_comes_late_gets_its_own_and_what_was_missing() {
    let mut reader = reader(&[(0, 0)]);
    assert_eq!(show(&mut reader, &[(1, 0), (2, 1), (4, 0)]), [1, 4]);
    reader.add(held(1, 0));
    assert_eq!(show(&mut reader, &[(1, 0), (2, 1), (3, 0), (4, 0), (5, 1)]), [2, 3, 5]);
}

#[test]
fn a_lane_that_is_ahead_is_not_read_again() {
    let mut reader = reader(&[(0, 0), (1, 2)]);
    assert_eq!(show(&mut reader, &[(1, 1), (2, 0), (3, 1)]), [2, 3]);
}

#[test]
fn another_session_begins_again_from_what_is_stored() {
    let mut reader = reader(&[(0, 0)]);
    show(&mut reader, &[(1, 0), (2, 0)]);
    reader.acknowledge(lane(0), 1);
    let progress = reader.progress();
    reader.stored(&progress, &[]);
    reader.look(ReadLimits::default());
    let batch = reader.take(Seen { session: 1, ..seen(&[(9, 0)]) });
    assert!(batch.restarted && batch.events.is_empty(), "what was asked for was of another time");
    reader.look(ReadLimits::default());
    assert_eq!(delivered(&reader.take(Seen { session: 1, ..seen(&[(2, 0)]) })), [2]);
}

#[test]
fn an_answer_that_was_not_asked_for_counts_for_nothing() {
    let mut reader = reader(&[(0, 0)]);
    assert_eq!(reader.take(seen(&[(1, 0)])), EventBatch::default());
    show(&mut reader, &[(2, 0)]);
    reader.listed(&[]);
    show(&mut reader, &[]);
    assert!(reader.gaps().contains(1), "the listing was not asked for");
}

#[test]
fn a_cut_off_read_says_nothing_about_what_lies_beyond() {
    let mut reader = reader(&[(0, 0)]);
    show(&mut reader, &[(2, 0), (4, 0)]);
    assert!(reader.inquire_at_once());
    reader.listed(&[]);
    reader.look(ReadLimits::default());
    reader.take(Seen { complete: false, ..seen(&[(1, 0)]) });
    assert!(reader.gaps().contains(3), "it was not looked at");
    reader.look(ReadLimits::default());
    reader.take(seen(&[]));
    assert!(reader.gaps().is_empty());
}

#[test]
fn writers_are_not_asked_for_more_often_than_is_good() {
    let mut reader = reader(&[(0, 0)]);
    let at = |millis: i64| Timestamp::from_micros(1_000_000 + millis * 1000);
    assert!(!reader.inquire(at(0)), "nothing is missing");
    show(&mut reader, &[(2, 0)]);
    let writer = Writer { segment: 0, name: "w".to_owned(), prepared: false };
    for (millis, asks) in [(0, true), (49, false), (50, true), (-1, true)] {
        assert_eq!(reader.inquire(at(millis)), asks, "{millis}");
        reader.listed(std::slice::from_ref(&writer));
    }
}

#[test]
fn a_reader_with_too_many_gaps_reads_no_further() {
    let mut reader = reader(&[(0, 0)]);
    let last = 2 * Position::try_from(OUTBOX_GAPS_MAX).unwrap();
    let rows: Vec<_> = (1..=last).filter(|position| position % 2 == 0).map(|at| (at, 0)).collect();
    show(&mut reader, &rows);
    let look = reader.look(ReadLimits::default());
    assert_eq!((look.until, look.gaps.len()), (last, OUTBOX_GAPS_MAX));
    reader.take(seen(&[(1, 0)]));
    assert_eq!(reader.look(ReadLimits::default()).until, Position::MAX);
}

#[test]
fn a_replayed_event_is_delivered_once_and_then_removed() {
    let mut reader = reader(&[(0, 9)]);
    let replay = || Seen { replay: vec![event(3, 0), event(4, 1)], ..seen(&[]) };
    reader.look(ReadLimits::default());
    let batch = reader.take(replay());
    assert_eq!((delivered(&batch), batch.events[0].source), (vec![3], DeliverySource::Parked));
    reader.look(ReadLimits::default());
    assert!(reader.take(replay()).events.is_empty(), "it is on its way");
    reader.acknowledge(lane(0), 3);
    let progress = reader.progress();
    assert_eq!(progress.replayed.iter().map(|sent| sent.position).collect::<Vec<_>>(), [3]);
    reader.look(ReadLimits::default());
    assert!(reader.take(replay()).events.is_empty(), "it was sent");
    reader.stored(&progress, &[]);
    assert!(reader.progress().is_empty());
}

#[test]
fn an_event_that_is_parked_is_no_longer_the_readers_concern() {
    let mut reader = reader(&[(0, 0)]);
    show(&mut reader, &[(1, 0)]);
    reader.parked(lane(0), 1);
    assert_eq!(low(&reader, 0), 1);
    reader.look(ReadLimits::default());
    reader.take(Seen { replay: vec![event(1, 0)], ..seen(&[]) });
    reader.parked(lane(0), 1);
    assert!(reader.progress().replayed.is_empty(), "it stays parked");
    assert_eq!(reader.unacknowledged(), 0);
}
