//! Instants stop at the ends of time instead of wrapping, and are written as people write them.

use std::time::{Duration, UNIX_EPOCH};

use hapax_core::{Timestamp, time::micros};

const END: Timestamp = Timestamp::from_micros(i64::MAX);
const BEGINNING: Timestamp = Timestamp::from_micros(i64::MIN);

#[test]
fn adding_and_taking_away_are_exact_to_the_microsecond() {
    let instant = Timestamp::from_micros(1_000_000);
    assert_eq!(instant.plus(Duration::from_micros(1)).as_micros(), 1_000_001);
    assert_eq!(instant.minus(Duration::from_micros(1)).as_micros(), 999_999);
    assert_eq!(instant.plus(Duration::from_nanos(1999)).as_micros(), 1_000_001);
    assert_eq!(Timestamp::ZERO.as_micros(), 0);
}

#[test]
fn time_stops_at_its_ends() {
    assert_eq!(END.plus(Duration::from_micros(1)), END);
    assert_eq!(Timestamp::ZERO.plus(Duration::MAX), END);
    assert_eq!(BEGINNING.minus(Duration::from_micros(1)), BEGINNING);
    assert_eq!(BEGINNING.minus(Duration::MAX), BEGINNING);
}

#[test]
fn a_reading_of_the_systems_clock_is_never_before_the_epoch() {
    let second = Duration::from_secs(1);
    assert_eq!(Timestamp::from(UNIX_EPOCH + second).as_micros(), 1_000_000);
    assert_eq!(Timestamp::from(UNIX_EPOCH - second), Timestamp::ZERO);
}

#[test]
fn the_span_until_an_instant_is_zero_once_it_has_passed() {
    let (early, late) = (Timestamp::from_micros(-5), Timestamp::from_micros(7));
    assert_eq!(late.after(early), Duration::from_micros(12));
    assert_eq!(late.after(late), Duration::ZERO);
    assert_eq!(early.after(late), Duration::ZERO);
    assert_eq!(END.after(BEGINNING), Duration::from_micros(i64::MAX.unsigned_abs()));
}

#[test]
fn spans_are_whole_microseconds_up_to_the_largest() {
    assert_eq!(micros(Duration::from_millis(3)), 3000);
    assert_eq!(micros(Duration::from_nanos(999)), 0);
    assert_eq!(micros(Duration::MAX), i64::MAX);
}

#[test]
fn an_instant_is_written_as_a_date_in_utc() {
    for (micros, expected) in [
        (0, "1970-01-01T00:00:00.000000Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (951_782_399_000_000, "2000-02-28T23:59:59.000000Z"),
        (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
        (951_868_800_000_000, "2000-03-01T00:00:00.000000Z"),
        (1_800_000_000_123_456, "2027-01-15T08:00:00.123456Z"),
        (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
        (i64::MAX, "294247-01-10T04:00:54.775807Z"),
    ] {
        assert_eq!(Timestamp::from_micros(micros).to_string(), expected);
    }
}
