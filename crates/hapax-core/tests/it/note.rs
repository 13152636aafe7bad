use hapax_core::{
    Deed, Fence, InvalidReason, Note, OperationId, Phase, Reason, Timestamp,
    codec::Unreadable,
    note::{NoteRow, Noted},
};

fn note() -> Note {
    Note {
        id: OperationId::from_bytes([3; 16]),
        fence: Fence::FIRST,
        deed: Deed::ResolveFailed,
        phase: Phase::Done,
        reason: Reason::new("ops", "the bank refused it\nfor good").unwrap(),
    }
}

#[test]
fn a_reason_says_who_and_why_within_bounds() {
    assert_eq!(note().reason.who(), "ops");
    assert_eq!(note().reason.why(), "the bank refused it\nfor good");
    assert!(Reason::new(&"w".repeat(255), &"y".repeat(4096)).is_ok());
    let refused = |who: &str, why: &str| Reason::new(who, why).unwrap_err();
    assert_eq!(refused(" ", "why"), InvalidReason::Blank { field: "who" });
    assert_eq!(refused("who", "\n"), InvalidReason::Blank { field: "why" });
    assert_eq!(refused("who", "\u{1b}[2J"), InvalidReason::Control { field: "why" });
    assert_eq!(refused("a\0b", "why"), InvalidReason::Control { field: "who" });
    let too_long = InvalidReason::TooLong { field: "who", len: 256, max: 255 };
    assert_eq!(refused(&"w".repeat(256), "why"), too_long);
    let too_long = InvalidReason::TooLong { field: "why", len: 4097, max: 4096 };
    assert_eq!(refused("who", &"y".repeat(4097)), too_long);
}

#[test]
fn a_note_comes_back_from_its_row() {
    let at = Timestamp::from_micros(5);
    assert_eq!(NoteRow::seal(at, &note()).open(), Ok(Noted { at, note: note() }));
}

#[test]
fn what_hapax_notes_is_told_apart_from_what_people_did_and_too_new_for_who_knows_only_them() {
    for deed in Deed::ALL {
        let row = NoteRow::seal(Timestamp::ZERO, &Note { deed, ..note() });
        assert_eq!(row.format, if deed.is_of_hapax() { 2 } else { 1 }, "{deed:?}");
    }
    let notes = |fence| {
        let fence = Fence::from_stored(fence).unwrap();
        Note::of_hapax(note().id, fence, Deed::LeftInDoubt, "nobody answered")
    };
    assert_eq!(notes(32).unwrap().reason.who(), "hapax");
    let kept = (1..=100_000).filter(|fence| notes(*fence).is_some()).count();
    assert_eq!(kept, 32 + 11, "the first ones, and a few of however many follow");
}

#[test]
fn what_no_version_ever_wrote_is_refused() {
    type Change = fn(&mut NoteRow);
    let refused = |change: Change| {
        let mut row = NoteRow::seal(Timestamp::ZERO, &note());
        change(&mut row);
        row.open().unwrap_err()
    };
    assert_eq!(refused(|row| row.format = 3), Unreadable::TooNew { found: 3 });
    let columns: [(&str, Change); 7] = [
        ("format", |row| row.format = 0),
        ("format", |row| row.format = 2),
        ("format", |row| row.deed = 5),
        ("fence", |row| row.fence = 0),
        ("deed", |row| row.deed = 10),
        ("phase", |row| row.phase = 4),
        ("reason", |row| row.why.clear()),
    ];
    for (named, change) in columns {
        let unreadable = refused(change);
        let found =
            matches!(&unreadable, Unreadable::Impossible { column, .. } if *column == named);
        assert!(found, "{unreadable:?}");
    }
}
