//! The store in memory. That it keeps the contract is proven with the other stores.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use hapax_core::{
    Arrival, Decision, Fence, Outcome, Owner, Recovery, Salt, Scope, StateTag, Store, StoreError,
    Tenant, Timestamp, decide,
    limits::PAGE_RECORDS_MAX,
    memory,
    store::{By, Claim, Entry, Filter, Page, Purged, Renew, Settle, Settlement, Write, Written},
    time::micros,
};

use crate::given::{CREATED, LEASE, TOMBSTONE, WINDOW, arrival, operation, policy};

struct Scene {
    store: memory::Store,
    clock: Arc<AtomicI64>,
}

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(AtomicI64::new(CREATED.as_micros()));
        let hand = Arc::clone(&clock);
        let now = move || Timestamp::from_micros(hand.load(Ordering::SeqCst));
        Self { store: memory::Store::new(Salt::from_bytes([7; 32]), now), clock }
    }

    fn pass(&self, span: Duration) {
        self.clock.fetch_add(micros(span), Ordering::SeqCst);
    }

    fn write(&self, write: Write) -> Written {
        at_once(self.store.commit(vec![write])).remove(0).unwrap()
    }

    fn claim(&self, key: &str) -> Written {
        self.write(Write::Claim(claim(key)))
    }

    fn settle(&self, key: &str, owner: i64) -> Written {
        let by = By::Owner { fence: Fence::FIRST, owner: Owner(owner) };
        let to = Settlement::Completed(Outcome::bare(200));
        self.write(Write::Settle(Settle { id: operation(key).id(), by, to, keep: LEASE }))
    }

    fn renew(&self, key: &str, owner: i64) -> Written {
        let (id, owner) = (operation(key).id(), Owner(owner));
        self.write(Write::Renew(Renew { id, fence: Fence::FIRST, owner, lease: LEASE }))
    }

    fn tag(&self, key: &str) -> Option<StateTag> {
        let loaded = at_once(self.store.load(vec![operation(key).id()])).remove(0).unwrap();
        loaded.record.map(|record| record.tag())
    }
}

fn claim(key: &str) -> Claim {
    let arrival = Arrival { operation: operation(key), ..arrival("any") };
    let decision = decide(CREATED, &arrival, None, &policy(Recovery::Hold));
    let Decision::Execute(claim) = decision else { panic!("it must execute") };
    claim
}

/// The store in memory never waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it must not wait"),
    }
}

#[test]
fn writes_count_once_and_are_seen_by_every_clone() {
    let scene = Scene::new();
    assert!(matches!(scene.claim("k"), Written::Done { now: CREATED }));
    let Written::Refused { now, record } = scene.claim("k") else { panic!("it must be found") };
    assert_eq!((now, record.unwrap().tag()), (CREATED, StateTag::Running));
    assert!(matches!(scene.renew("k", 9), Written::Refused { now: CREATED, record: Some(_) }));
    assert_eq!(scene.renew("k", 2), Written::Done { now: CREATED });
    assert!(matches!(scene.settle("k", 9), Written::Refused { now: CREATED, record: Some(_) }));
    assert_eq!(scene.settle("k", 2), Written::Done { now: CREATED });
    let clone = Scene { store: scene.store.clone(), ..scene };
    assert_eq!(clone.tag("k"), Some(StateTag::Completed));
    assert_eq!(clone.tag("absent"), None);
}

#[test]
fn overdue_and_purge_follow_the_clock_and_their_limits() {
    let scene = Scene::new();
    for key in ["a", "b", "c"] {
        scene.claim(key);
    }
    assert_eq!(at_once(scene.store.overdue(9)).unwrap().len(), 0);
    scene.pass(LEASE);
    assert_eq!(at_once(scene.store.overdue(9)).unwrap().len(), 3);
    assert_eq!(at_once(scene.store.overdue(2)).unwrap().len(), 2);
    for key in ["a", "b", "c"] {
        scene.settle(key, 2);
    }
    let purge = |limit| at_once(scene.store.purge(limit)).unwrap();
    assert_eq!(purge(9), Purged::default());
    scene.pass(WINDOW);
    assert_eq!(purge(0), Purged::default());
    assert_eq!(purge(2), Purged { buried: 2, ..Purged::default() });
    assert_eq!(purge(9), Purged { buried: 1, ..Purged::default() });
    assert_eq!(scene.tag("a"), Some(StateTag::Buried));
    scene.pass(TOMBSTONE);
    assert_eq!(purge(2), Purged { deleted: 2, ..Purged::default() });
    assert_eq!(purge(9), Purged { deleted: 1, ..Purged::default() });
    assert_eq!(scene.tag("a"), None);
}

#[test]
fn a_pending_record_past_retention_is_counted_as_timed_out() {
    let scene = Scene::new();
    let entry = Entry::Queue { pick_up: LEASE, request: "later".into() };
    let batch = vec![Write::Claim(Claim { entry, ..claim("k") })];
    at_once(scene.store.commit(batch));
    scene.pass(WINDOW);
    let purged = at_once(scene.store.purge(1)).unwrap();
    assert_eq!(purged, Purged { timed_out: 1, ..Purged::default() });
    assert_eq!(scene.tag("k"), Some(StateTag::Failed));
}

#[test]
fn no_call_answers_more_than_a_page() {
    let scene = Scene::new();
    let many = PAGE_RECORDS_MAX + 1;
    let claims = (0..many).map(|at| Write::Claim(claim(&at.to_string()))).collect();
    at_once(scene.store.commit(claims));
    scene.pass(LEASE);
    let page = Page { after: None, limit: usize::MAX };
    let listed = at_once(scene.store.list(Filter::default(), page)).unwrap();
    assert_eq!(listed.len(), PAGE_RECORDS_MAX);
    assert_eq!(at_once(scene.store.overdue(usize::MAX)).unwrap().len(), PAGE_RECORDS_MAX);
    for at in 0..many {
        scene.settle(&at.to_string(), 2);
    }
    scene.pass(WINDOW);
    assert_eq!(at_once(scene.store.purge(usize::MAX)).unwrap().buried, PAGE_RECORDS_MAX);
}

#[test]
fn a_listing_keeps_to_its_filter_and_starts_after_its_id() {
    let scene = Scene::new();
    let mut ids = ["a", "b", "c"].map(|key| operation(key).id());
    ids.sort_unstable();
    for key in ["a", "b", "c"] {
        scene.claim(key);
    }
    scene.settle("b", 2);
    let list = |filter: Filter, after, limit| {
        let listed = at_once(scene.store.list(filter, Page { after, limit })).unwrap();
        listed.into_iter().map(|listed| listed.id).collect::<Vec<_>>()
    };
    assert_eq!(list(Filter::default(), None, 9), ids);
    assert_eq!(list(Filter::default(), None, 1), ids[..1]);
    assert_eq!(list(Filter::default(), Some(ids[0]), 9), ids[1..]);
    let state = |state| Filter { state: Some(state), ..Filter::default() };
    assert_eq!(list(state(StateTag::Completed), None, 9), [operation("b").id()]);
    assert_eq!(list(state(StateTag::Running), None, 9).len(), 2);
    let tenant = |name| Filter { tenant: Some(Tenant::parse(name).unwrap()), ..Filter::default() };
    assert_eq!(list(tenant("acme"), None, 9).len(), 3);
    assert_eq!(list(tenant("other"), None, 9).len(), 0);
    let scope = |name| Filter { scope: Some(Scope::parse(name).unwrap()), ..Filter::default() };
    assert_eq!(list(scope("POST /payments"), None, 9).len(), 3);
    assert_eq!(list(scope("other"), None, 9).len(), 0);
}

#[test]
fn a_row_changed_behind_its_back_is_not_served() {
    let scene = Scene::new();
    scene.claim("k");
    scene.store.tamper(operation("absent").id(), |_| panic!("there is nothing to change"));
    scene.store.tamper(operation("k").id(), |row| row.format = 2);
    let loaded = at_once(scene.store.load(vec![operation("k").id()])).remove(0);
    assert!(matches!(loaded, Err(StoreError::TooNew(_))));
    let batch = vec![Write::Claim(claim("k"))];
    let claimed = at_once(scene.store.commit(batch)).remove(0);
    assert!(matches!(claimed, Err(StoreError::TooNew(_))));
    let page = Page { after: None, limit: 9 };
    let listed = at_once(scene.store.list(Filter::default(), page)).unwrap().remove(0);
    assert_eq!(listed.id, operation("k").id());
    assert!(matches!(listed.summary, Err(StoreError::TooNew(_))));
}

#[test]
fn it_says_what_it_is() {
    let scene = Scene::new();
    scene.claim("k");
    assert!(scene.store.salt() == Salt::from_bytes([7; 32]));
    assert_eq!(scene.store.lanes(), 1);
    assert_eq!(format!("{:?}", scene.store), "Store { records: 1, .. }");
    let watching = pin!(scene.store.watch(operation("k").id()));
    assert!(watching.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}
