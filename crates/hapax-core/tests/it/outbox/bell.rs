//! The hint inside one process.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use hapax_core::outbox::Bell;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn heard(bell: &Bell) -> bool {
    pin!(bell.rung()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn rings_that_nobody_waited_for_are_heard_once_by_the_next() {
    let bell = Bell::new();
    let ringer = bell.clone();
    assert!(!heard(&bell));
    bell.ring();
    ringer.ring();
    assert!(heard(&bell));
    assert!(!heard(&ringer));
}

#[test]
fn whoever_waits_is_woken() {
    let (bell, woken) = (Bell::new(), Arc::new(Woken::default()));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut rung = pin!(bell.rung());
    for _ in 0..2 {
        assert_eq!(rung.as_mut().poll(&mut context), Poll::Pending);
    }
    bell.ring();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert_eq!(rung.as_mut().poll(&mut context), Poll::Ready(()));
}

#[test]
fn everybody_who_waits_hears_the_same_ring() {
    let bell = Bell::new();
    let mut context = Context::from_waker(Waker::noop());
    let (mut one, mut other) = (pin!(bell.rung()), pin!(bell.rung()));
    assert_eq!(one.as_mut().poll(&mut context), Poll::Pending);
    assert_eq!(other.as_mut().poll(&mut context), Poll::Pending);
    bell.ring();
    assert_eq!(one.as_mut().poll(&mut context), Poll::Ready(()));
    assert_eq!(other.as_mut().poll(&mut context), Poll::Ready(()));
    assert!(!heard(&bell));
}
