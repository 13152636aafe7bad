//! What a connection is doing, and how long it may go on doing it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::pace::Pace;

/// Watches one connection. All times are milliseconds since it was made, plus one; zero is never.
#[derive(Debug)]
pub(crate) struct ConnectionWatch {
    made_at: Instant,
    bounds: Bounds,
    /// Requests that were called, until their answers are taken.
    in_flight: AtomicU32,
    /// When a request was last begun or done with. Nothing else keeps an HTTP/2 connection open:
    /// its client can make us write without asking for anything.
    served: AtomicU64,
    /// When something was last written after the first request; on HTTP/1.1 that is an answer.
    last_written: AtomicU64,
    /// When the head of a request began that is not complete.
    head_since: AtomicU64,
    is_http2: AtomicBool,
    /// How many requests were taken back, less those that were answered.
    taken_back: AtomicU32,
    too_many_taken_back: Notify,
    /// The answers that are not taken yet.
    answers: Mutex<Vec<Arc<AnswerProgress>>>,
}

/// How long what may take, and how often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) head: Duration,
    pub(crate) idle: Duration,
    /// How fast an answer has to be taken.
    pub(crate) answer: Pace,
    /// How many more requests may be taken back than are answered.
    pub(crate) taken_back_max: u32,
}

/// What is to be done with a connection now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// Look again after this time.
    Good { look_again: Duration },
    /// It is unused, a head takes too long, or an answer is not taken: close it.
    Overdue,
}

impl ConnectionWatch {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            made_at: Instant::now(),
            bounds,
            in_flight: AtomicU32::new(0),
            served: AtomicU64::new(0),
            last_written: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
            is_http2: AtomicBool::new(false),
            taken_back: AtomicU32::new(0),
            too_many_taken_back: Notify::new(),
            answers: Mutex::default(),
        })
    }

    /// A request's head is complete.
    pub(crate) fn request_began(self: &Arc<Self>, is_http2: bool) -> InFlightCount {
        self.in_flight.fetch_add(1, Relaxed);
        self.head_since.store(0, Relaxed);
        self.served.store(self.now(), Relaxed);
        if is_http2 {
            self.is_http2.store(true, Relaxed);
        }
        InFlightCount { watch: Arc::clone(self), is_answered: false }
    }

    /// Ends when the client has taken back so many requests that the connection should.
    pub(crate) async fn too_many_taken_back(&self) {
        self.too_many_taken_back.notified().await;
    }

    pub(crate) fn standing(&self) -> Liveness {
        let (now, Bounds { head, idle, answer, .. }) = (self.now(), self.bounds);
        let age = |since: u64| Duration::from_millis(now.saturating_sub(since));
        let is_overdue = |answer: &Arc<AnswerProgress>| {
            let since = answer.since.load(Relaxed);
            since > 0 && age(since) >= self.bounds.answer.span
        };
        if self.answers().iter().any(is_overdue) {
            return Liveness::Overdue;
        }
        let good = Liveness::Good { look_again: head.min(idle).min(answer.span) };
        if self.in_flight.load(Relaxed) > 0 {
            // Whoever works on the request has deadlines of its own.
            return good;
        }
        let (served, head_since) = (self.served.load(Relaxed), self.head_since.load(Relaxed));
        let is_http2 = self.is_http2.load(Relaxed);
        let last_written = if is_http2 { 0 } else { self.last_written.load(Relaxed) };
        let overdue = if head_since > 0 {
            // A request that was sent before its turn waits for the answer that is being written.
            age(head_since.max(last_written)) >= head
        } else {
            age(served.max(last_written)) >= idle
        };
        if overdue { Liveness::Overdue } else { good }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.made_at.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    pub(super) fn saw_bytes_leave(&self) {
        // Before the first request they are greetings and echoes, which any client can have.
        if self.served.load(Relaxed) > 0 {
            self.last_written.store(self.now(), Relaxed);
        }
    }

    pub(super) fn saw_bytes_come(&self) {
        let is_head = self.in_flight.load(Relaxed) == 0
            && self.head_since.load(Relaxed) == 0
            && !self.is_http2.load(Relaxed);
        if is_head {
            self.head_since.store(self.now(), Relaxed);
        }
    }

    fn answers(&self) -> MutexGuard<'_, Vec<Arc<AnswerProgress>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a request as under way until it is dropped. One that was not answered by then was taken
/// back by its client.
#[derive(Debug)]
pub(crate) struct InFlightCount {
    watch: Arc<ConnectionWatch>,
    is_answered: bool,
}

impl InFlightCount {
    /// There is an answer, which the client has to take in time.
    pub(crate) fn answered(mut self) -> Owed {
        self.is_answered = true;
        let less = |taken_back: u32| taken_back.checked_sub(1);
        let _ = self.watch.taken_back.fetch_update(Relaxed, Relaxed, less);
        let since = AtomicU64::new(self.watch.now());
        let progress = Arc::new(AnswerProgress { since, bytes: AtomicU64::new(0) });
        self.watch.answers().push(Arc::clone(&progress));
        Owed { in_flight: self, progress }
    }
}

impl Drop for InFlightCount {
    fn drop(&mut self) {
        let watch = &self.watch;
        watch.in_flight.fetch_sub(1, Relaxed);
        watch.served.store(watch.now(), Relaxed);
        if !self.is_answered
            && watch.taken_back.fetch_add(1, Relaxed) >= watch.bounds.taken_back_max
        {
            watch.too_many_taken_back.notify_one();
        }
    }
}

/// An answer, until nothing of it is left in memory.
#[derive(Debug)]
pub(crate) struct Owed {
    in_flight: InFlightCount,
    progress: Arc<AnswerProgress>,
}

/// How far an answer has come in its present span.
#[derive(Debug)]
struct AnswerProgress {
    /// When the span began; zero while the client has taken all there is.
    since: AtomicU64,
    bytes: AtomicU64,
}

impl Owed {
    /// So much of it is handed on: the connection had taken what came before.
    pub(super) fn handed_on(&self, bytes: usize) {
        let AnswerProgress { since, bytes: so_far } = &*self.progress;
        let watch = &self.in_flight.watch;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let is_enough = so_far.fetch_add(bytes, Relaxed) + bytes >= watch.bounds.answer.bytes_min;
        if is_enough || since.load(Relaxed) == 0 {
            so_far.store(0, Relaxed);
            since.store(watch.now(), Relaxed);
        }
    }

    /// It waits for whoever makes it, not for the client.
    pub(super) fn waits(&self) {
        self.progress.since.store(0, Relaxed);
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        let mut answers = self.in_flight.watch.answers();
        if let Some(at) = answers.iter().position(|one| Arc::ptr_eq(one, &self.progress)) {
            answers.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SPAN: Duration = Duration::from_secs(60);
    const BOUNDS: Bounds = Bounds {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(75),
        answer: Pace { bytes_min: 100, span: SPAN },
        taken_back_max: 2,
    };

    #[tokio::test(start_paused = true)]
    async fn a_head_that_does_not_end_is_overdue_however_busy_its_sender_is() {
        let watch = ConnectionWatch::new(BOUNDS);
        for _ in 0..10 {
            watch.saw_bytes_come();
            assert_ne!(watch.standing(), Liveness::Overdue);
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(watch.standing(), Liveness::Overdue);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_came_before_its_turn_waits_for_the_answer_before_it() {
        let watch = ConnectionWatch::new(BOUNDS);
        drop(watch.request_began(false).answered());
        watch.saw_bytes_come();
        for _ in 0..20 {
            advance(Duration::from_secs(1)).await;
            watch.saw_bytes_leave();
            assert_ne!(watch.standing(), Liveness::Overdue);
        }
        advance(BOUNDS.head).await;
        assert_eq!(watch.standing(), Liveness::Overdue);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_under_way_may_take_as_long_as_its_own_deadlines_say() {
        let watch = ConnectionWatch::new(BOUNDS);
        watch.saw_bytes_come();
        let request = watch.request_began(false);
        advance(Duration::from_secs(600)).await;
        assert_ne!(watch.standing(), Liveness::Overdue);
        drop(request);
        advance(Duration::from_secs(74)).await;
        assert_ne!(watch.standing(), Liveness::Overdue);
        advance(Duration::from_secs(1)).await;
        assert_eq!(watch.standing(), Liveness::Overdue);
    }

    #[tokio::test(start_paused = true)]
    async fn an_http2_connection_that_only_pings_is_unused_and_no_slow_head() {
        let watch = ConnectionWatch::new(BOUNDS);
        drop(watch.request_began(true).answered());
        for second in 0..75 {
            assert_ne!(watch.standing(), Liveness::Overdue, "after {second} s");
            advance(Duration::from_secs(1)).await;
            watch.saw_bytes_come();
            watch.saw_bytes_leave();
        }
        assert_eq!(watch.standing(), Liveness::Overdue);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_pings_before_its_first_request_is_a_slow_head() {
        let watch = ConnectionWatch::new(BOUNDS);
        for _ in 0..10 {
            watch.saw_bytes_come();
            watch.saw_bytes_leave();
            assert_ne!(watch.standing(), Liveness::Overdue);
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(watch.standing(), Liveness::Overdue);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_overdue_that_is_not_taken_whatever_else_goes_on() {
        let watch = ConnectionWatch::new(BOUNDS);
        let _not_taken = watch.request_began(true).answered();
        for _ in 0..59 {
            advance(Duration::from_secs(1)).await;
            let other = watch.request_began(true).answered();
            other.handed_on(1000);
            watch.saw_bytes_come();
            watch.saw_bytes_leave();
            assert_ne!(watch.standing(), Liveness::Overdue);
        }
        advance(Duration::from_secs(1)).await;
        assert_eq!(watch.standing(), Liveness::Overdue);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_be_taken_slowly_but_not_in_drops() {
        let watch = ConnectionWatch::new(BOUNDS);
        let answer = watch.request_began(true).answered();
        for _ in 0..10 {
            advance(SPAN - Duration::from_secs(1)).await;
            answer.handed_on(100);
            assert_ne!(watch.standing(), Liveness::Overdue);
        }
        for _ in 0..60 {
            answer.handed_on(1);
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(watch.standing(), Liveness::Overdue);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_waits_for_the_upstream_is_not_the_clients_fault() {
        let watch = ConnectionWatch::new(BOUNDS);
        let answer = watch.request_began(false).answered();
        answer.handed_on(10);
        answer.waits();
        advance(Duration::from_secs(3600)).await;
        assert_ne!(watch.standing(), Liveness::Overdue);
        answer.handed_on(10);
        advance(SPAN).await;
        assert_eq!(watch.standing(), Liveness::Overdue);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_back_more_than_it_waits_for_is_noticed() {
        let watch = ConnectionWatch::new(BOUNDS);
        for _ in 0..10 {
            drop(watch.request_began(true));
            drop(watch.request_began(true).answered());
        }
        for _ in 0..2 {
            drop(watch.request_began(true));
        }
        let noticed = || tokio::time::timeout(Duration::ZERO, watch.too_many_taken_back());
        assert!(noticed().await.is_err());
        drop(watch.request_began(true));
        assert!(noticed().await.is_ok());
    }
}
