//! Whether a store has forgotten something, decided from what it says and what was seen.

use std::time::Duration;

use hapax_core::{
    Fence, Fingerprint, Key, Operation, Outcome, Owner, Record, Recovery, RequestParts, Salt,
    Scope, State, StateTag, Tenant, Timestamp,
    incarnation::{
        Finding, Incarnation, IncarnationMark, IncarnationReading, IncarnationSeen, LossCause,
        Missing, ProcessMark, Quarantine, Remembered, compare, first_mark, may_end, missing, noted,
    },
    store::Over,
};

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn on(timeline: i64) -> Incarnation {
    Incarnation::new("system 7", timeline)
}

fn mark(timeline: i64, position: i64) -> IncarnationMark {
    let incarnation = on(timeline);
    IncarnationMark { incarnation, position, began: 0, quarantine: None, lifted: None }
}

fn reading(timeline: i64, mark: Option<IncarnationMark>) -> IncarnationReading {
    IncarnationReading {
        now: NOW,
        incarnation: on(timeline),
        synchronous: false,
        mark,
        remembered: Remembered::NotKept,
        processes: Vec::new(),
    }
}

fn seen(timeline: i64, position: i64) -> IncarnationSeen {
    IncarnationSeen { incarnation: on(timeline), position, began: 0 }
}

#[test]
fn a_store_is_the_same_new_or_changed() {
    let kept = || Some(mark(3, 40));
    let elsewhere =
        IncarnationReading { incarnation: Incarnation::new("system 8", 3), ..reading(3, kept()) };
    let beside = |remembered, mark| IncarnationReading { remembered, ..reading(3, mark) };
    let copied = beside(Remembered::Position(41), kept());
    let current = beside(Remembered::Position(40), kept());
    let emptied = beside(Remembered::Position(7), None);
    let fresh = beside(Remembered::Nothing, None);
    let alone = beside(Remembered::Nothing, kept());
    let begun_anew = beside(Remembered::Another, None);
    let swapped = beside(Remembered::Another, kept());
    let noted_by_others = reading(4, Some(IncarnationMark { began: 40, ..mark(4, 44) }));
    for (what, reading, seen, finding) in [
        ("never used", reading(3, None), None, Finding::New),
        ("as a fresh process finds it", reading(3, kept()), None, Finding::Same),
        ("as it was left", reading(3, kept()), Some(seen(3, 40)), Finding::Same),
        ("others went on", reading(3, kept()), Some(seen(3, 12)), Finding::Same),
        ("remembered beside it", current, None, Finding::Same),
        ("a standby", reading(4, kept()), None, Finding::Changed(LossCause::Failover)),
        ("the same", reading(4, kept()), Some(seen(3, 41)), Finding::Changed(LossCause::Failover)),
        ("an old server", reading(2, kept()), None, Finding::Changed(LossCause::Restore)),
        ("another server", elsewhere, None, Finding::Changed(LossCause::Restore)),
        ("a copy", reading(3, kept()), Some(seen(3, 41)), Finding::Changed(LossCause::Restore)),
        ("a copied file", copied, None, Finding::Changed(LossCause::Restore)),
        ("emptied", reading(3, None), Some(seen(3, 1)), Finding::Changed(LossCause::Restore)),
        ("an empty file", emptied, None, Finding::Changed(LossCause::Restore)),
        ("a file never used", fresh, None, Finding::New),
        ("a file that came alone", alone, None, Finding::Changed(LossCause::Restore)),
        ("a new file for a lost one", begun_anew, None, Finding::Changed(LossCause::Restore)),
        ("the file of another", swapped, None, Finding::Changed(LossCause::Restore)),
        ("noted by others", noted_by_others, Some(seen(3, 41)), Finding::Noted),
        ("an old primary", reading(2, Some(mark(2, 40))), Some(seen(3, 41)), Finding::Outdated),
        (
            "the same, with more in it",
            reading(2, Some(mark(2, 99))),
            Some(seen(3, 41)),
            Finding::Outdated,
        ),
        ("an old copy, emptied", reading(2, None), Some(seen(3, 41)), Finding::Outdated),
    ] {
        assert_eq!(compare(&reading, seen.as_ref()), finding, "{what}");
    }
}

#[test]
fn what_is_noted_is_above_whatever_anybody_remembers() {
    let remembered = Remembered::Position(60);
    let copied = IncarnationReading { remembered, ..reading(3, Some(mark(3, 40))) };
    let next = noted(&copied, Some(&seen(3, 57)), LossCause::Restore);
    assert_eq!((next.position, next.began), (61, 40));
    assert_eq!(compare(&reading(3, Some(next)), None), Finding::Same);
    assert_eq!(first_mark(&reading(3, None)), mark(3, 1));
}

#[test]
fn a_second_change_before_the_first_was_settled_is_for_a_person() {
    let first = noted(&reading(4, Some(mark(3, 40))), None, LossCause::Failover);
    assert_eq!(first.quarantine.as_ref().unwrap().cause, LossCause::Failover);
    let second = noted(&reading(5, Some(first)), None, LossCause::Failover);
    assert_eq!(second.quarantine.unwrap().cause, LossCause::Restore);
}

fn process(name: i64, timeline: i64, seconds_ago: u64) -> ProcessMark {
    let seen_at = NOW.minus(Duration::from_secs(seconds_ago));
    let (synchronous, vouches) = (false, false);
    ProcessMark { process: name, incarnation: on(timeline), seen_at, synchronous, vouches }
}

/// A standby was promoted ten seconds after the last sign of life.
fn failed_over(cause: LossCause, processes: Vec<ProcessMark>) -> IncarnationReading {
    let (since, seen_before) = (NOW, NOW.minus(Duration::from_secs(10)));
    let quarantine = Some(Quarantine { since, cause, before: on(3), seen_before });
    IncarnationReading {
        processes,
        ..reading(4, Some(IncarnationMark { quarantine, ..mark(4, 9) }))
    }
}

#[test]
fn a_quarantine_ends_once_everybody_who_was_at_work_is_accounted_for() {
    let vouching = |name| ProcessMark { vouches: true, ..process(name, 4, 0) };
    let waited = |name, ago| ProcessMark { synchronous: true, ..process(name, 3, ago) };
    for (what, processes, ends) in [
        ("nobody was there", vec![], false),
        ("somebody new", vec![process(1, 4, 0)], false),
        ("the only one vouches", vec![vouching(1)], true),
        ("one is missing", vec![vouching(1), process(2, 3, 11)], false),
        ("one was gone long before", vec![vouching(1), process(2, 3, 71)], true),
        ("one was gone for too short a time", vec![vouching(1), process(2, 3, 69)], false),
        ("one is missing that had waited for a standby", vec![vouching(1), waited(2, 11)], true),
        ("all had waited for a standby", vec![process(3, 4, 0), waited(2, 11)], true),
        ("they had, in a backup", vec![process(3, 4, 0), waited(2, 601)], false),
    ] {
        assert_eq!(may_end(&failed_over(LossCause::Failover, processes.clone())), ends, "{what}");
        for cause in [LossCause::Restore, LossCause::Declared] {
            assert!(!may_end(&failed_over(cause, processes.clone())), "{what}, {cause:?}");
        }
    }
}

#[test]
fn a_cause_is_known_by_its_number() {
    for cause in LossCause::ALL {
        assert_eq!(LossCause::from_stored(cause as i64), Some(cause));
    }
    assert_eq!(LossCause::from_stored(4), None);
    assert_eq!(LossCause::ALL.map(LossCause::as_str), ["failover", "restore", "declared"]);
}

fn record(fence: i64, owner: i64, tag: StateTag) -> Record {
    let (tenant, scope) = (Tenant::parse("acme").unwrap(), Scope::parse("pay").unwrap());
    let operation = Operation::new(tenant, scope, Key::parse("k").unwrap());
    let fingerprint: Fingerprint = Salt::from_bytes([1; 32])
        .tenant_key(operation.tenant())
        .fingerprint(&RequestParts::default());
    let hour = Duration::from_secs(3600);
    let state = match tag {
        StateTag::Pending => State::Pending { pick_up_by: NOW, request: "later".into() },
        StateTag::Running => State::Running { lease_until: NOW, request: None },
        StateTag::Completed => State::Completed { outcome: Outcome::bare(201) },
        StateTag::Failed => State::Failed { outcome: Outcome::bare(402) },
        StateTag::InDoubt => State::InDoubt { doubt: hapax_core::Doubt::Unanswered, request: None },
        StateTag::Released => State::Released,
        StateTag::Buried => State::Buried,
    };
    Record {
        operation,
        fingerprint,
        fence: Fence::from_stored(fence).unwrap(),
        owner: Owner(owner),
        recovery: Recovery::Hold,
        created_at: NOW,
        changed_at: NOW,
        expires_at: NOW.plus(hour),
        tombstone: Duration::ZERO,
        state,
    }
}

#[test]
fn what_is_missing_is_the_claim_or_its_end_and_what_came_later_is_left() {
    use StateTag::{Completed, InDoubt, Pending, Released, Running};
    for (what, told, found, is_missing) in [
        ("all of it", record(1, 5, Completed), None, "claim over nothing"),
        ("nothing", record(1, 5, Completed), Some(record(1, 5, Completed)), "nothing"),
        ("its end", record(1, 5, Completed), Some(record(1, 5, Running)), "end"),
        ("its end, in doubt", record(1, 5, Completed), Some(record(1, 5, InDoubt)), "end"),
        ("a doubt", record(1, 5, InDoubt), Some(record(1, 5, Running)), "end"),
        ("no doubt twice", record(1, 5, InDoubt), Some(record(1, 5, InDoubt)), "nothing"),
        (
            "the takeover",
            record(2, 6, Running),
            Some(record(1, 5, Running)),
            "claim over abandoned",
        ),
        ("the next life", record(2, 6, Running), Some(record(1, 5, Released)), "claim over spent"),
        ("what was queued", record(1, 5, Pending), None, "claim over nothing"),
        ("nothing of a claim", record(1, 5, Running), Some(record(1, 5, InDoubt)), "nothing"),
        ("somebody followed", record(1, 5, Completed), Some(record(2, 9, Running)), "nothing"),
        ("another life", record(1, 5, Completed), Some(record(1, 9, Running)), "nothing"),
    ] {
        let said = match missing(&told, found.as_ref(), NOW) {
            Missing::Nothing => "nothing",
            Missing::End => "end",
            Missing::Claim(Over::Nothing) => "claim over nothing",
            Missing::Claim(Over::Spent(_)) => "claim over spent",
            Missing::Claim(Over::Abandoned(_)) => "claim over abandoned",
        };
        assert_eq!(said, is_missing, "{what}");
    }
    let later = NOW.plus(Duration::from_secs(7200));
    assert_eq!(missing(&record(1, 5, Completed), None, later), Missing::Nothing);
    assert_ne!(missing(&record(1, 5, Running), None, later), Missing::Nothing);
}
