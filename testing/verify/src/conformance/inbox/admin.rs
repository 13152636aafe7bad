//! What the people who look after consumers are told, and what they change.

use std::time::Duration;

use hapax_core::{
    Timestamp,
    inbox::{
        BoundedCount, CONSUMER_TENANT, ConsumerName, ConsumerSummary, Digest, Inbox, InboxAdmin,
        Letter, LetterId, LetterReason, Message, MessageAnswer, MessageEnd, NextDelivery, Proof,
        StoredLetter,
    },
};

use super::{
    InboxBackend,
    scene::{InboxScene, WEEK, at, message, of, saying, scope, under, version},
};

const MINUTE: Duration = Duration::from_secs(60);

fn named(name: &str) -> ConsumerName {
    ConsumerName { tenant: CONSUMER_TENANT.to_owned(), name: name.to_owned() }
}

async fn summary<B: InboxBackend>(scene: &InboxScene<B>) -> ConsumerSummary {
    scene.backend.admin().await.consumer(named("mailer")).await.unwrap().unwrap()
}

/// How many messages are remembered, tried again, held, and dead.
async fn counts<B: InboxBackend>(scene: &InboxScene<B>) -> [u64; 4] {
    let ConsumerSummary { remembered, retried, held, dead, .. } = summary(scene).await;
    [remembered, retried, held, dead].map(|BoundedCount { count, is_more }| {
        assert!(!is_more);
        count
    })
}

async fn letters<B: InboxBackend>(scene: &InboxScene<B>) -> Vec<StoredLetter> {
    let admin = scene.backend.admin().await;
    admin.letters(scene.consumer.number, None, 100).await.unwrap()
}

async fn die<B: InboxBackend>(scene: &InboxScene<B>, message: Message) -> LetterReason {
    let poison = LetterReason::poison(5, "it explodes");
    let dead = Letter { kept: scene.kept(message.clone()), reason: poison.clone() };
    let dead = MessageEnd::Dead(dead);
    scene.end(message, Proof::Record, dead).await.unwrap();
    poison
}

async fn miss<B: InboxBackend>(scene: &InboxScene<B>, id: &str, times: usize) {
    for _ in 0..times {
        scene.inbox.missed(&scene.consumer, &message(id).id).await.unwrap();
    }
}

/// In order, by pages, each with its own.
pub async fn consumers_are_told_with_how_much_they_have<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let admin = scene.backend.admin().await;
    for name in ["auditor", "printer"] {
        scene.inbox.enlist(&scope(name), WEEK * 2).await.unwrap();
    }
    scene.deliver(message("m-1")).await;
    scene.hold(version("k", 2)).await;
    die(&scene, message("m-2")).await;
    miss(&scene, "m-3", 2).await;
    let told = admin.consumers(None, 2).await.unwrap();
    let names: Vec<_> = told.iter().map(|one| one.name.name.as_str()).collect();
    assert_eq!(names, ["auditor", "mailer"]);
    assert_eq!((told[0].retention, told[1].retention), (WEEK * 2, WEEK));
    assert_eq!(told[1], summary(&scene).await);
    assert_eq!(told[1].number, scene.consumer.number);
    assert_eq!(counts(&scene).await, [3, 1, 1, 1]);
    let rest = admin.consumers(Some(named("mailer")), 2).await.unwrap();
    assert_eq!(rest.len(), 1);
    let nothing = BoundedCount { count: 0, is_more: false };
    assert_eq!((rest[0].name.name.as_str(), rest[0].remembered), ("printer", nothing));
    assert_eq!(admin.consumers(Some(named("printer")), 2).await.unwrap(), []);
    for stranger in [named("nobody"), ConsumerName { tenant: "acme".to_owned(), ..named("mailer") }]
    {
        assert_eq!(admin.consumer(stranger).await.unwrap(), None);
    }
}

/// Whatever the count of its attempts says that is still there.
pub async fn a_message_that_is_done_is_not_being_tried_again<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let admin = scene.backend.admin().await;
    miss(&scene, "m-1", 1).await;
    miss(&scene, "m-2", 3).await;
    miss(&scene, "m-3", 2).await;
    scene.deliver(message("m-1")).await;
    let page = admin.retried(scene.consumer.number, None, 2).await.unwrap();
    let told: Vec<_> =
        page.messages.iter().map(|one| (one.message_id.as_str(), one.attempts)).collect();
    assert_eq!((told, page.next.as_deref()), (vec![("m-2", 3)], Some("m-2")));
    let page = admin.retried(scene.consumer.number, page.next, 2).await.unwrap();
    assert_eq!((page.messages.len(), page.next), (1, None));
    assert_eq!((page.messages[0].message_id.as_str(), page.messages[0].attempts), ("m-3", 2));
    assert_eq!(counts(&scene).await, [1, 2, 0, 0]);
    // What was done is forgotten, and so is news again.
    scene.pass(WEEK).await;
    miss(&scene, "m-1", 1).await;
    let page = admin.retried(scene.consumer.number, None, 1).await.unwrap();
    assert_eq!((page.messages[0].message_id.as_str(), page.messages[0].attempts), ("m-1", 2));
    assert_eq!(counts(&scene).await[1], 3);
}

/// It may fail when its turn has come.
pub async fn a_held_message_may_be_one_that_is_tried_again<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    scene.hold(version("k", 2)).await;
    miss(&scene, "k-2", 1).await;
    assert_eq!(counts(&scene).await, [1, 1, 1, 0]);
}

/// What is missing, and since when that is waited for.
pub async fn held_messages_are_told_by_key_with_the_gap_before_them<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let admin = scene.backend.admin().await;
    scene.end(version("b", 1), Proof::Record, MessageEnd::Done).await.unwrap();
    let mut since = Vec::new();
    for held in [version("b", 5), version("b", 4), version("a", 9), version("c", 2)] {
        since.push(scene.inbox.clock().await.unwrap().now);
        scene.hold(held).await;
        scene.pass(MINUTE).await;
    }
    let held = admin.held(scene.consumer.number, None, 2).await.unwrap();
    let told: Vec<_> = held
        .iter()
        .map(|one| (one.key.as_str(), one.held.count, one.lowest, one.come_to))
        .collect();
    assert_eq!(told, [("a", 1, 9, None), ("b", 2, 4, Some(1))]);
    let late = |at: Timestamp, since: Timestamp| at.after(since) < MINUTE;
    assert!(late(held[1].since, since[1]) && late(held[0].since, since[2]), "{held:?} {since:?}");
    let rest = admin.held(scene.consumer.number, Some("b".to_owned()), 2).await.unwrap();
    assert_eq!(rest.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(), ["c"]);
    assert_eq!(admin.held(scene.consumer.number, Some("c".to_owned()), 2).await.unwrap(), []);
}

/// One row for each, whoever has them now.
pub async fn partitions_are_told_with_how_far_they_have_come<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let admin = scene.backend.admin().await;
    assert!(!summary(&scene).await.keeps_offsets);
    let mut fences = Vec::new();
    for number in [1, 0, 1] {
        fences.push(scene.inbox.take(&scene.consumer, &of(number)).await.unwrap().fence);
    }
    scene.end(at(1, 7), under(fences[2]), MessageEnd::Done).await.unwrap();
    let told = admin.partitions(scene.consumer.number, 10).await.unwrap();
    let told: Vec<_> =
        told.iter().map(|one| (one.partition.clone(), one.fence, one.next)).collect();
    assert_eq!(told, [(of(0), fences[1], None), (of(1), fences[2], Some(8))]);
    assert_eq!(admin.partitions(scene.consumer.number, 1).await.unwrap().len(), 1);
    assert!(summary(&scene).await.keeps_offsets);
}

/// Its payload as far as somebody wants to see it.
pub async fn letters_come_by_pages_with_their_payload_on_demand<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let admin = scene.backend.admin().await;
    let number = scene.consumer.number;
    for content in ["four", "sevens!"] {
        let letter = Letter {
            kept: scene.kept(saying("m-1", content)),
            reason: LetterReason::id_conflict(),
        };
        scene.inbox.bury(&scene.consumer, &letter).await.unwrap();
    }
    let dead = Message { key: Some("k".to_owned()), ..message("m-2") };
    let poison = die(&scene, dead.clone()).await;
    let all = letters(&scene).await;
    let ids: Vec<_> = all.iter().map(|letter| letter.id.message_id.as_str()).collect();
    assert_eq!(ids, ["m-1", "m-1", "m-2"]);
    let mut sizes = [all[0].payload_bytes, all[1].payload_bytes];
    sizes.sort_unstable();
    assert_eq!(sizes, [4, 7].map(|size| size + B::KEPT_BYTES_MORE));
    let last = &all[2];
    assert_eq!((&*last.reason, &*last.detail), (poison.code(), poison.detail()));
    assert_eq!((&*last.source, last.key.as_deref(), last.come_to), ("orders", Some("k"), None));
    assert_eq!(last.id.content, dead.digest());
    let mut paged = Vec::new();
    while let Some(letter) = {
        let after = paged.last().map(|letter: &StoredLetter| letter.id.clone());
        let after = after.map(|id| (id.message_id, id.content));
        admin.letters(number, after, 1).await.unwrap().pop()
    } {
        paged.push(letter);
    }
    assert_eq!(paged, all);
    let one = admin.letter(number, "m-2".to_owned(), last.id.content, 4).await.unwrap().unwrap();
    let payload_bytes = one.letter.payload_bytes + B::KEPT_BYTES_MORE;
    assert_eq!((payload_bytes, &one.payload[..]), (last.payload_bytes, &b"hell"[..]));
    assert_eq!(StoredLetter { payload_bytes, ..one.letter.clone() }, *last);
    assert_eq!(one.headers.unwrap(), dead.headers);
    let other = Digest::of(b"other");
    assert_eq!(admin.letter(number, "m-2".to_owned(), other, 3).await.unwrap(), None);
}

/// By the rule that decides about deliveries.
pub async fn a_letter_tells_what_the_next_delivery_meets<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    scene.deliver(message("m-1")).await;
    let conflict =
        Letter { kept: scene.kept(saying("m-1", "other")), reason: LetterReason::id_conflict() };
    scene.inbox.bury(&scene.consumer, &conflict).await.unwrap();
    die(&scene, message("m-2")).await;
    let meets = async || {
        let all = letters(&scene).await;
        all.iter().map(|letter| letter.next_delivery).collect::<Vec<_>>()
    };
    assert_eq!(meets().await, [NextDelivery::Conflict, NextDelivery::Failed]);
    scene.pass(WEEK).await;
    assert_eq!(meets().await, [NextDelivery::IsFirst, NextDelivery::IsFirst]);
    scene.deliver(message("m-2")).await;
    assert_eq!(meets().await, [NextDelivery::IsFirst, NextDelivery::Duplicate]);
}

/// It was looked at, and nothing is to follow.
pub async fn a_discarded_letter_leaves_its_message_failed<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let admin = scene.backend.admin().await;
    let poison = die(&scene, message("m-1")).await;
    die(&scene, message("m-2")).await;
    let id = letters(&scene).await[0].id.clone();
    assert!(admin.discard(scene.consumer.number, id.clone()).await.unwrap());
    assert!(!admin.discard(scene.consumer.number, id).await.unwrap(), "it is gone");
    assert_eq!(scene.backend.dead().await, [("m-2".to_owned(), "poison".to_owned())]);
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Failed(poison.to_string()));
}

/// With all its attempts before it.
pub async fn a_forgiven_message_is_the_first_again<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let admin = scene.backend.admin().await;
    miss(&scene, "m-1", 5).await;
    die(&scene, message("m-1")).await;
    let poison = die(&scene, message("m-2")).await;
    let id = letters(&scene).await[0].id.clone();
    assert!(admin.forgive(scene.consumer.number, id.clone()).await.unwrap());
    assert!(!admin.forgive(scene.consumer.number, id).await.unwrap(), "it is gone");
    assert_eq!(scene.backend.dead().await, [("m-2".to_owned(), "poison".to_owned())]);
    assert_eq!(scene.inbox.missed(&scene.consumer, &message("m-1").id).await.unwrap(), 1);
    scene.deliver(message("m-1")).await;
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Duplicate);
    assert_eq!(scene.answer(message("m-2")).await, MessageAnswer::Failed(poison.to_string()));
    assert_eq!(scene.effects().await, ["m-1"]);
}

/// The record of another message, or of another end, is not touched.
pub async fn a_letter_is_changed_only_while_it_is_the_one_that_was_seen<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    let admin = scene.backend.admin().await;
    let number = scene.consumer.number;
    let poison = die(&scene, message("m-1")).await;
    let conflict =
        Letter { kept: scene.kept(saying("m-1", "other")), reason: LetterReason::id_conflict() };
    scene.inbox.bury(&scene.consumer, &conflict).await.unwrap();
    let all = letters(&scene).await;
    let of = |digest| all.iter().find(|letter| letter.id.content == digest).unwrap().id.clone();
    let (dead, other) = (of(message("m-1").digest()), of(Digest::of(b"other")));
    let earlier = LetterId { dead_at: Timestamp::ZERO, ..dead.clone() };
    let unknown = LetterId { content: Digest::of(b"third"), ..dead.clone() };
    for id in [earlier, unknown] {
        assert!(!admin.discard(number, id.clone()).await.unwrap());
        assert!(!admin.forgive(number, id).await.unwrap());
    }
    assert!(!admin.forgive(number, other.clone()).await.unwrap(), "the failure is another's");
    assert!(!admin.forgive(number + 1, dead.clone()).await.unwrap());
    assert_eq!(letters(&scene).await, all);
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Failed(poison.to_string()));
    scene.pass(WEEK).await;
    scene.deliver(message("m-1")).await;
    assert!(!admin.forgive(number, dead).await.unwrap(), "it was acted on since");
    assert_eq!(scene.answer(message("m-1")).await, MessageAnswer::Duplicate);
}

/// One of them finds it, whoever is first.
pub async fn of_many_who_forgive_a_letter_at_once_one_does<B: InboxBackend>() {
    let scene = InboxScene::<B>::new().await;
    die(&scene, message("m-1")).await;
    let (number, id) = (scene.consumer.number, letters(&scene).await[0].id.clone());
    let mut people = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (admin, id) = (scene.backend.admin().await, id.clone());
        people.spawn(async move { admin.forgive(number, id).await.unwrap() });
    }
    let forgiven = people.join_all().await.into_iter().filter(|done| *done).count();
    assert_eq!((forgiven, letters(&scene).await.len()), (1, 0));
}
