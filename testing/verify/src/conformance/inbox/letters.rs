//! Messages that could not be acted on.

use hapax_core::inbox::{Inbox, Letter, LetterReason, Message, MessageAnswer, MessageEnd, Proof};

use super::{
    InboxBackend,
    scene::{InboxScene, message, saying},
};

fn letter<B: InboxBackend>(scene: &InboxScene<B>, message: Message) -> Letter {
    Letter { kept: scene.kept(message), reason: LetterReason::id_conflict() }
}

/// Each message has its own count.
pub async fn failed_attempts_are_counted_one_by_one<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let (one, other) = (message("m-1").id, message("m-2").id);
    let mut counts = Vec::new();
    for id in [&one, &one, &other, &one] {
        counts.push(scene.inbox.missed(&scene.consumer, id).await.unwrap());
    }
    assert_eq!(counts, [1, 2, 1, 3]);
}

/// A broker may deliver it again before it hears of it.
pub async fn a_letter_is_kept_once_however_often_it_is_told<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    for _ in 0..2 {
        scene.inbox.bury(&scene.consumer, &letter(&scene, message("m-1"))).await.unwrap();
    }
    assert_eq!(scene.backend.dead().await, [("m-1".to_owned(), "id-conflict".to_owned())]);
}

/// Both are there or neither is.
pub async fn a_dead_message_is_kept_with_its_record<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let poison = LetterReason::poison(5, "it explodes");
    let dead = Letter { kept: scene.kept(message("m-1")), reason: poison.clone() };
    scene.end(message("m-1"), Proof::Record, MessageEnd::Dead(dead)).await.unwrap();
    assert_eq!(scene.backend.dead().await, [("m-1".to_owned(), "poison".to_owned())]);
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Failed(poison.to_string()));
}

/// Nobody knows which of them is right.
pub async fn two_contents_of_one_name_are_two_letters<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    for payload in ["a", "b"] {
        let letter = letter(&scene, saying("m-1", payload));
        scene.inbox.bury(&scene.consumer, &letter).await.unwrap();
    }
    assert_eq!(scene.backend.dead().await.len(), 2);
}
