//! What a store keeps about its own past, so that a copy of it from earlier is noticed.

use hapax_core::{
    Reason, Store, Timestamp,
    incarnation::{
        Incarnation, IncarnationChange, IncarnationMark, IncarnationReading, Lifted, LossCause,
        Quarantine, first_mark,
    },
};

use super::{Backend, scene::StoreScene};

fn change(reading: &IncarnationReading, mark: &IncarnationMark) -> IncarnationChange {
    let expected = reading.mark.as_ref().map(|mark| mark.position);
    IncarnationChange { expected, mark: mark.clone(), present: None, gone: Vec::new() }
}

/// A new database has no past; every handle on it says that it is the same one.
pub async fn a_new_database_has_no_past<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let first = scene.store.incarnation().await.unwrap();
    assert_eq!((first.mark.clone(), first.processes.len()), (None, 0));
    assert!(scene.store.keep_incarnation(change(&first, &first_mark(&first))).await.unwrap());
    let again = scene.store.incarnation().await.unwrap();
    let other = scene.open().await.incarnation().await.unwrap();
    assert_eq!(again.incarnation, first.incarnation);
    assert_eq!(other.incarnation, first.incarnation);
    assert_eq!(other.mark, Some(first_mark(&first)));
}

/// What one handle keeps about the past every other reads, all of it.
pub async fn what_is_kept_about_the_past_comes_back_as_it_is<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let first = scene.store.incarnation().await.unwrap();
    assert!(scene.store.keep_incarnation(change(&first, &first_mark(&first))).await.unwrap());
    let reading = scene.store.incarnation().await.unwrap();
    for (number, cause) in LossCause::ALL.into_iter().enumerate() {
        let mark = IncarnationMark {
            incarnation: reading.incarnation.clone(),
            position: 7 + i64::try_from(number).unwrap(),
            began: 3,
            quarantine: Some(Quarantine {
                since: Timestamp::from_micros(1_800_000_000_000_000),
                cause,
                before: reading.incarnation.clone(),
                seen_before: Timestamp::from_micros(1_799_999_999_000_000),
            }),
            lifted: Some(Lifted {
                at: Timestamp::from_micros(1_700_000_000_000_000),
                reason: Reason::new("ada", "compared with the bank").unwrap(),
            }),
        };
        let now = scene.store.incarnation().await.unwrap();
        assert!(scene.store.keep_incarnation(change(&now, &mark)).await.unwrap());
        assert_eq!(scene.open().await.incarnation().await.unwrap().mark, Some(mark));
    }
}

/// Of two who write about the past at once, one does; and nobody does for another database.
pub async fn the_past_is_written_only_over_what_was_read<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let read = scene.store.incarnation().await.unwrap();
    let mark = first_mark(&read);
    assert!(scene.store.keep_incarnation(change(&read, &mark)).await.unwrap());
    assert!(!scene.store.keep_incarnation(change(&read, &mark)).await.unwrap());
    let read = scene.store.incarnation().await.unwrap();
    let next = IncarnationMark { position: 2, ..mark.clone() };
    let elsewhere =
        IncarnationMark { incarnation: Incarnation::new("elsewhere", 9), ..next.clone() };
    assert!(!scene.store.keep_incarnation(change(&read, &elsewhere)).await.unwrap());
    assert!(scene.store.keep_incarnation(change(&read, &next)).await.unwrap());
    assert!(!scene.open().await.keep_incarnation(change(&read, &next)).await.unwrap());
    assert_eq!(scene.store.incarnation().await.unwrap().mark, Some(next));
}
