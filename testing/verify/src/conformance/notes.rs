//! Notes: what people did to records, kept in order and longer than the records.

use hapax_core::{
    Deed, Fence, Note, OperationId, Phase, Reason, Store,
    limits::{NOTE_KEPT, NOTE_WHO_BYTES_MAX, NOTE_WHY_BYTES_MAX},
};

use super::{
    Backend,
    scene::{LEASE, ScenarioCaller, StoreScene, WINDOW, complete, now, purge_all, record},
};

/// Every kind of note comes back as it was written, with the instant the store took it.
pub async fn a_note_comes_back_as_it_was_written<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let id = ScenarioCaller::new("noted").id();
    let (who, why) = ("\u{e9}".repeat(NOTE_WHO_BYTES_MAX / 2), "y".repeat(NOTE_WHY_BYTES_MAX));
    let reasons = [("ops@example.org", "the bank says\nit went through"), (&who, &why)];
    let fences = [Fence::FIRST, Fence::from_stored(i64::MAX).unwrap()];
    let mut written = Vec::new();
    let before = now(&scene.store).await;
    for (at, deed) in Deed::ALL.into_iter().enumerate() {
        for phase in Phase::ALL {
            let (who, why) = reasons[at % 2];
            let reason = Reason::new(who, why).unwrap();
            let note = Note { id, fence: fences[at % 2], deed, phase, reason };
            scene.store.note(note.clone()).await.unwrap();
            written.push(note);
        }
    }
    let after = now(&scene.store).await;
    let noted = scene.store.notes(id, 100).await.unwrap();
    assert!(noted.iter().all(|noted| before <= noted.at && noted.at <= after));
    assert!(noted.is_sorted_by_key(|noted| noted.at));
    assert_eq!(noted.into_iter().map(|noted| noted.note).collect::<Vec<_>>(), written);
}

/// Where there are more notes than asked for, the latest come, the oldest of them first.
pub async fn the_latest_notes_come_oldest_first<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let id = ScenarioCaller::new("noted").id();
    let whys = ["first", "second", "third", "fourth"];
    for why in whys {
        scene.store.note(note(id, why)).await.unwrap();
    }
    assert_eq!(whys_of(&scene.store, id, 2).await, ["third", "fourth"]);
    assert_eq!(whys_of(&scene.store, id, usize::MAX).await, whys);
    assert!(whys_of(&scene.store, id, 0).await.is_empty());
}

/// Notes belong to one operation, and need no record of it.
pub async fn notes_belong_to_their_operation<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let [one, other] = ["one", "other"].map(|key| ScenarioCaller::new(key).id());
    scene.store.note(note(one, "of one")).await.unwrap();
    assert_eq!(whys_of(&scene.store, one, 100).await, ["of one"]);
    assert!(whys_of(&scene.store, other, 100).await.is_empty());
    assert_eq!(record(&scene.store, one).await, None);
}

/// Another handle sees a note at once, and it outlives the record it is about.
pub async fn notes_outlive_their_record<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let caller = ScenarioCaller::new("noted");
    complete(&scene.store, &caller, "done").await;
    scene.store.note(note(caller.id(), "kept")).await.unwrap();
    assert_eq!(whys_of(&scene.open().await, caller.id(), 100).await, ["kept"]);
    scene.pass(WINDOW + LEASE).await;
    assert_eq!(purge_all(&scene.store).await.deleted, 1);
    assert_eq!(whys_of(&scene.open().await, caller.id(), 100).await, ["kept"]);
}

/// Purges remove notes that are old enough, in bounded calls and the oldest first.
pub async fn old_notes_are_removed_in_bounded_calls<B: Backend>() {
    let scene = StoreScene::<B>::new().await;
    let id = ScenarioCaller::new("noted").id();
    for why in ["first", "second", "third"] {
        scene.store.note(note(id, why)).await.unwrap();
    }
    scene.pass(NOTE_KEPT - LEASE).await;
    scene.store.note(note(id, "young")).await.unwrap();
    purge_all(&scene.store).await;
    assert_eq!(whys_of(&scene.store, id, 100).await.len(), 4, "none is old enough");
    scene.pass(LEASE).await;
    assert_eq!(scene.store.purge(2).await.unwrap().total(), 0, "notes are not counted");
    assert_eq!(whys_of(&scene.store, id, 100).await, ["third", "young"]);
    purge_all(&scene.store).await;
    assert_eq!(whys_of(&scene.store, id, 100).await, ["young"]);
}

fn note(id: OperationId, why: &str) -> Note {
    let reason = Reason::new("somebody", why).unwrap();
    Note { id, fence: Fence::FIRST, deed: Deed::Release, phase: Phase::Intended, reason }
}

async fn whys_of<S: Store>(store: &S, id: OperationId, limit: usize) -> Vec<String> {
    let noted = store.notes(id, limit).await.unwrap();
    noted.into_iter().map(|noted| noted.note.reason.why().to_owned()).collect()
}
