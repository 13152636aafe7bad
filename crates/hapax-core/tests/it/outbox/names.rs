//! Lanes, ids, topics and segments.

use hapax_core::outbox::{Destination, EventId, InvalidDestination, Lane, Topics, segment};

#[test]
fn the_lane_of_a_key_is_fixed_because_sql_computes_it_too() {
    let lanes =
        [("t", "k"), ("orders", "42"), ("", "\u{e9}")].map(|(t, k)| Lane::of(t, k).number());
    assert_eq!(lanes, [45, 58, 56]);
    assert_eq!(Lane::of("a\nb", "c"), Lane::of("a", "b\nc"), "what is joined alike goes together");
}

#[test]
fn a_lane_has_a_number_below_the_number_of_lanes() {
    let all: Vec<_> = Lane::all().collect();
    assert_eq!(all.len(), 64);
    for (at, lane) in all.iter().enumerate() {
        assert_eq!((lane.index(), Lane::from_number(lane.number())), (at, Some(*lane)));
    }
    assert_eq!((Lane::from_number(64), Lane::from_number(-1)), (None, None));
}

#[test]
fn an_id_is_spelled_as_a_uuid_and_read_back() {
    let text = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let id = EventId::parse(text).unwrap();
    assert_eq!(id.to_string(), text);
    assert_eq!(EventId::parse(&text.to_uppercase()), Some(id));
    for bad in
        ["", "6ba7b810", "6ba7b8109dad11d180b400c04fd430c8", "zba7b810-9dad-11d1-80b4-00c04fd430c8"]
    {
        assert_eq!(EventId::parse(bad), None, "{bad}");
    }
    assert_eq!(EventId::parse(&format!("{text}0")), None);
}

#[test]
fn topics_are_names_beginnings_or_all() {
    let topics = Topics::parse(["orders.*", "payment"]).unwrap();
    for (topic, wanted) in [
        ("orders.new", true),
        ("orders.", true),
        ("orders", false),
        ("ordersx", false),
        ("payment", true),
        ("payments", false),
    ] {
        assert_eq!(topics.wants(topic), wanted, "{topic}");
        assert!(Topics::all().wants(topic));
    }
}

#[test]
fn topics_that_cannot_be_meant_are_refused() {
    let none: [&str; 0] = [];
    assert_eq!(Topics::parse(none), Err(InvalidDestination::Topics { count: 0 }));
    assert_eq!(Topics::parse(vec!["t"; 257]), Err(InvalidDestination::Topics { count: 257 }));
    for bad in ["orders*", "*.new", "a.*.b", "**", "a.**"] {
        let refused = Topics::parse([bad]);
        assert_eq!(refused, Err(InvalidDestination::Star { pattern: bad.to_owned() }));
    }
    assert!(matches!(Topics::parse([""]), Err(InvalidDestination::Name(_))));
    assert!(matches!(Destination::new("", Topics::all()), Err(InvalidDestination::Name(_))));
}

#[test]
fn a_segment_is_of_positions_in_a_row() {
    assert_eq!([1, 65_535, 65_536, 131_072].map(segment), [0, 0, 1, 2]);
}
