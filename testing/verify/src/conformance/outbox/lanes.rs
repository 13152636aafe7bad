//! Lanes: shared among relays, taken over from the dead, and fenced against those who come back.

use std::collections::BTreeSet;

use hapax_core::{
    Fence, Owner,
    outbox::{Lane, LaneProgress, Low, OutboxAdmin, OutboxLog, RelayLease, share},
};

use super::{
    OutboxBackend,
    scene::{OutboxScene, SINK, SPAN, payloads},
};

fn lanes() -> usize {
    Lane::all().count()
}

/// A relay that is alone has every lane, and keeps it under the same fence as long as it asks.
pub async fn one_relay_has_every_lane<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    let first = relay.lease().await;
    assert_eq!((first.lanes.len(), first.give_back, first.paused), (lanes(), 0, false));
    assert_eq!(first.until, first.now.plus(SPAN));
    assert!(first.lanes.iter().all(|leased| leased.fence == Fence::FIRST && leased.low == 0));
    scene.pass(SPAN / 2).await;
    let second = relay.lease().await;
    assert_eq!(second.lanes, first.lanes);
    assert!(second.until >= first.until.plus(SPAN / 2));
}

/// Each relay gets a fair share, once those who have more have given back.
pub async fn relays_share_the_lanes<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut first = scene.relay(1).await;
    let mut second = scene.relay(2).await;
    assert_eq!(second.reader.lanes().count(), 0, "nothing is taken from the living");
    let asked = first.lease().await;
    assert_eq!(asked.give_back, lanes() - share(2));
    let back = asked.lanes.iter().take(asked.give_back).map(|leased| (leased.lane, leased.fence));
    scene.outbox.release(SINK, first.owner, back.collect()).await.unwrap();
    let taken = second.lease().await;
    assert_eq!((taken.lanes.len(), taken.give_back), (share(2), 0));
    assert!(taken.lanes.iter().all(|leased| leased.fence == Fence::FIRST.next()));
    let kept = first.lease().await;
    assert_eq!((kept.lanes.len(), kept.give_back), (share(2), 0));
    let all: BTreeSet<_> = taken.lanes.iter().chain(&kept.lanes).map(|held| held.lane).collect();
    assert_eq!(all.len(), lanes());
}

/// Of relays that ask at the same moment no two get the same lane, and together they get all.
pub async fn racing_relays_never_have_the_same_lane<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut racing = tokio::task::JoinSet::new();
    for owner in 1..=4 {
        let outbox = scene.backend.open().await;
        racing.spawn(async move {
            let destination = SINK.to_owned();
            let lease = RelayLease { destination, owner: Owner(owner), span: SPAN };
            outbox.lease(lease).await.map(|leases| leases.expect("it is registered").lanes)
        });
    }
    let mut had = BTreeSet::new();
    for leased in racing.join_all().await.into_iter().flat_map(|lanes| lanes.unwrap_or_default()) {
        assert!(had.insert(leased.lane), "{leased:?} was taken twice");
    }
    assert!(!had.is_empty(), "somebody must get something");
}

/// When a relay is silent for longer than its lease, others take its lanes under higher fences.
pub async fn the_lanes_of_a_dead_relay_are_taken_over_under_higher_fences<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let first = scene.relay(1).await;
    scene.pass(SPAN).await;
    let second = scene.relay(2).await;
    assert_eq!(second.reader.lanes().count(), lanes());
    for held in first.reader.lanes() {
        let fence = second.reader.fence(held.lane);
        assert_eq!(fence, Some(held.fence.next()));
    }
    let lag = scene.outbox.lag(SINK).await.unwrap().unwrap();
    assert_eq!(lag.relays, 1);
}

/// What a relay says about lanes that were taken over changes nothing, and it is told.
pub async fn a_stale_relay_changes_nothing<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut first = scene.relay(1).await;
    scene.emit("k", "1").await;
    let sent = first.read().await;
    scene.pass(SPAN).await;
    let mut second = scene.relay(2).await;
    let lane = Lane::of("t", "k");
    assert!(first.acknowledge(&sent).await.contains(&lane));
    assert_eq!(first.reader.fence(lane), None, "it lets go of what it lost");
    assert_eq!(payloads(&second.read().await), ["1"]);
    assert_eq!(scene.outbox.lag(SINK).await.unwrap().unwrap().events(), 1);
    assert_eq!(first.lease().await.lanes, [], "nothing comes back by itself");
}

/// A low that is behind what is stored is not stored.
pub async fn a_low_never_goes_back<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut relay = scene.relay(1).await;
    for payload in ["1", "2"] {
        scene.emit("k", payload).await;
    }
    let (lane, last) = (Lane::of("t", "k"), {
        relay.drain().await;
        relay.reader.scanned()
    });
    let fence = relay.reader.fence(lane).unwrap();
    let lows = vec![Low { lane, fence, low: last - 1 }];
    let progress = LaneProgress { lows, replayed: Vec::new() };
    assert_eq!(scene.outbox.acknowledge(SINK, progress).await.unwrap(), []);
    let lag = scene.outbox.lag(SINK).await.unwrap().unwrap();
    assert_eq!(lag.lanes[lane.index()].low, last);
}

/// When a relay leaves, its lanes are free at once.
pub async fn a_relay_that_leaves_is_not_waited_for<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let first = scene.relay(1).await;
    scene.outbox.leave(SINK, first.owner).await.unwrap();
    let second = scene.relay(2).await;
    assert_eq!(second.reader.lanes().count(), lanes());
}

/// A lane goes back only from whoever has it, under the fence it has.
pub async fn a_lane_is_given_back_only_under_its_fence<B: OutboxBackend>() {
    let scene = OutboxScene::<B>::new().await;
    let mut first = scene.relay(1).await;
    let held: Vec<_> = first.reader.lanes().map(|held| (held.lane, held.fence)).collect();
    let later = held.iter().map(|(lane, fence)| (*lane, fence.next())).collect();
    scene.outbox.release(SINK, first.owner, later).await.unwrap();
    scene.outbox.release(SINK, Owner(9), held.clone()).await.unwrap();
    assert_eq!(first.lease().await.lanes.len(), lanes());
    assert_eq!(scene.relay(2).await.reader.lanes().count(), 0);
}
