//! Failovers by a cluster manager: leaders that are lost, or cut off from everybody but their clients, under load.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use hapax_core::OneLine;
use hapax_services::patroni::{Cluster, Replication};
use tokio::{
    task::{JoinSet, block_in_place},
    time::{Instant, sleep},
};

use crate::{
    failover::{client, metric, number, pay, refused_by_quarantine},
    foreign::not_checked,
    world::{Answer, Behaviour, Gateway, Many, Setup, Upstream, persist, post, until},
};

const CLIENTS: usize = 8;
const IN_RECOVERY: &str = "SELECT pg_is_in_recovery()::int::bigint";
/// How long a client takes between an answer and its next key.
const PAUSE: Duration = Duration::from_millis(50);
/// Answers after which a load counts as going on.
const ANSWERS: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn patroni_replaces_a_leader_cut_off_and_one_lost_and_synchronous_commits_survive() {
    let Some(mut managed) = Managed::start(Replication::Synchronous).await else { return };
    let load = Load::start(managed.gateway.address);
    load.goes_on().await;
    let old = managed.leader(None).await;
    load.forget_silence();
    managed.cut_off(old).await;
    let next = managed.leader(Some(old)).await;
    load.goes_on().await;
    say("cut off, synchronous", &load);
    block_in_place(|| managed.cluster.heal(old).and_then(|()| managed.cluster.wait_until_whole()))
        .unwrap();
    load.goes_on().await;
    managed.is_left_alone(old).await;
    load.forget_silence();
    block_in_place(|| managed.cluster.kill(next)).unwrap();
    managed.leader(Some(next)).await;
    load.goes_on().await;
    say("lost, synchronous", &load);
    managed.check(load.stop().await).await;
    assert_eq!(metric(&managed.gateway, "hapax_restored_total").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn patroni_replaces_a_leader_and_what_it_alone_was_told_is_written_back_or_quarantined() {
    let Some(mut managed) = Managed::start(Replication::Asynchronous).await else { return };
    let load = Load::start(managed.gateway.address);
    load.goes_on().await;
    let old = managed.leader(None).await;
    load.forget_silence();
    managed.cut_off(old).await;
    managed.leader(Some(old)).await;
    load.goes_on().await;
    say("cut off, asynchronous", &load);
    let restored = metric(&managed.gateway, "hapax_restored_total").await;
    assert_ne!(restored, "0", "nothing was lost: {}", managed.gateway.log());
    managed.check(load.stop().await).await;

    block_in_place(|| managed.cluster.heal(old).and_then(|()| managed.cluster.wait_until_whole()))
        .unwrap();
    let kept = persist(managed.gateway.address, &post("/pay", "kept", "ten")).await;
    assert_eq!(kept.status, 201);
    let leader = managed.leader(None).await;
    let database = client(&managed.cluster.url(leader)).await;
    let behind = "SELECT count(*) FROM pg_stat_replication \
                  WHERE state <> 'streaming' OR replay_lsn IS DISTINCT FROM pg_current_wal_lsn()";
    until("the others to have it", async || number(&database, behind).await == 0).await;
    managed.cut_off(leader).await;
    assert_eq!(pay(&managed.gateway, "lost").await.status, 201);
    managed.gateway.kill();
    managed.leader(Some(leader)).await;
    managed.gateway.run().await;
    assert!(pay(&managed.gateway, "kept").await.is_replay());
    for key in ["lost", "new"] {
        let answer = pay(&managed.gateway, key).await;
        assert!(refused_by_quarantine(&answer), "{key}: {} {}", answer.status, answer.text());
    }
    assert_eq!((managed.upstream.effects("lost"), managed.upstream.effects("new")), (1, 0));
}

/// A gateway on a cluster that is managed, in front of an API.
struct Managed {
    gateway: Gateway,
    upstream: Upstream,
    cluster: Cluster,
}

impl Managed {
    /// `None`, and said so, where there can be no cluster.
    async fn start(replication: Replication) -> Option<Self> {
        let cluster = match block_in_place(|| Cluster::start(replication)) {
            Ok(cluster) => cluster,
            Err(error) => {
                not_checked("failover by Patroni", &OneLine::of(&error).to_string());
                return None;
            }
        };
        let upstream = Upstream::start(Behaviour::default()).await;
        let gateway = gateway(&upstream, &cluster).await;
        Some(Self { gateway, upstream, cluster })
    }

    /// Who leads, once it takes writes: Patroni calls it so a moment before.
    async fn leader(&self, but: Option<usize>) -> usize {
        let leader = block_in_place(|| self.cluster.wait_for_leader(but)).unwrap();
        let server = client(&self.cluster.url(leader)).await;
        until("the leader to take writes", async || number(&server, IN_RECOVERY).await == 0).await;
        leader
    }

    /// Cuts the leader off, which still takes connections as one that leads.
    async fn cut_off(&self, leader: usize) {
        block_in_place(|| self.cluster.cut_off(leader)).unwrap();
        let leader = client(&self.cluster.url(leader)).await;
        assert_eq!(number(&leader, IN_RECOVERY).await, 0);
    }

    /// A leader that was replaced follows, and nobody of ours is connected to it.
    async fn is_left_alone(&self, old: usize) {
        let old = client(&self.cluster.url(old)).await;
        assert_eq!(number(&old, IN_RECOVERY).await, 1);
        // Whoever looks for the leader asks here too, and goes.
        let ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hapax'";
        until("nobody of ours to stay", async || number(&old, ours).await == 0).await;
    }

    /// How often another leader was made: each begins a timeline.
    async fn changes_of_leaders(&self) -> usize {
        let database = client(&self.cluster.url(self.leader(None).await)).await;
        let timeline =
            "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int::int8";
        usize::try_from(number(&database, timeline).await - 1).unwrap()
    }

    /// What clients were told stands, for a gateway that was not there too, and nothing ran twice.
    async fn check(&self, answers: Vec<(String, Answer)>) {
        let other = gateway(&self.upstream, &self.cluster).await;
        let to = other.address;
        assert_eq!(self.upstream.twice(), Vec::<String>::new());
        let is_paid = |(_, answer): &(String, Answer)| answer.status == 201;
        let (answers, doubts): (Vec<_>, Vec<_>) = answers.into_iter().partition(is_paid);
        // No more than what was under way when a leader went away, which on a busy machine happens by itself, too.
        let changes = self.changes_of_leaders().await;
        assert!(doubts.len() <= changes * CLIENTS, "{changes}: {doubts:?}");
        for (key, answer) in &answers {
            assert_eq!(self.upstream.receipts(key), std::slice::from_ref(&answer.body), "{key}");
        }
        let check = |(key, before): (String, Answer)| async move {
            let answer = persist(to, &post("/pay", &key, &key)).await;
            assert_eq!((answer.is_replay(), answer.body), (true, before.body), "{key}");
        };
        Many { at_once: 16 }.each(answers, check).await;
        assert_eq!(metric(&self.gateway, "hapax_store_quarantined").await, "0");
    }
}

/// One that soon gives up a machine that says nothing, with leases that outlast a failover.
async fn gateway(upstream: &Upstream, cluster: &Cluster) -> Gateway {
    let store = format!("{}&connect_timeout=2&tcp_user_timeout=3000", cluster.address());
    let setup = Setup::new(upstream.address).store(&store);
    setup.config("[defaults]\nlease = \"90s\"\n").start().await
}

/// Clients that send one key after the other, each again and again until it is answered.
struct Load {
    clients: JoinSet<Vec<(String, Answer)>>,
    done: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    silence: Arc<Mutex<Silence>>,
}

/// How long nobody was answered.
struct Silence {
    since: Instant,
    longest: Duration,
}

impl Silence {
    fn ends(&mut self) {
        let now = Instant::now();
        self.longest = self.longest.max(now - self.since);
        self.since = now;
    }
}

impl Load {
    fn start(to: SocketAddr) -> Self {
        let silence = Silence { since: Instant::now(), longest: Duration::ZERO };
        let mut load = Self {
            clients: JoinSet::new(),
            done: Arc::default(),
            answered: Arc::default(),
            silence: Arc::new(Mutex::new(silence)),
        };
        for client in 0..CLIENTS {
            let (done, answered) = (Arc::clone(&load.done), Arc::clone(&load.answered));
            let silence = Arc::clone(&load.silence);
            load.clients.spawn(async move {
                let mut answers = Vec::new();
                while !done.load(Relaxed) {
                    let key = format!("{client}-{}", answers.len());
                    let answer = persist(to, &post("/pay", &key, &key)).await;
                    silence.lock().unwrap().ends();
                    answered.fetch_add(1, Relaxed);
                    answers.push((key, answer));
                    sleep(PAUSE).await;
                }
                answers
            });
        }
        load
    }

    async fn goes_on(&self) {
        let enough = self.answered.load(Relaxed) + ANSWERS;
        until("answers", async || self.answered.load(Relaxed) >= enough).await;
    }

    fn forget_silence(&self) {
        self.silence.lock().unwrap().longest = Duration::ZERO;
    }

    async fn stop(self) -> Vec<(String, Answer)> {
        self.done.store(true, Relaxed);
        self.clients.join_all().await.into_iter().flatten().collect()
    }
}

#[expect(clippy::print_stdout, reason = "a figure for people")]
fn say(what: &str, load: &Load) {
    let (longest, answered) = (load.silence.lock().unwrap().longest, load.answered.load(Relaxed));
    println!("leader {what}: nobody was answered for {longest:?}; {answered} keys answered so far");
}
