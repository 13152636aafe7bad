//! Several gateways on one PostgreSQL are one gateway.

use std::net::SocketAddr;

use tokio::task::JoinSet;

use crate::world::{
    Answer, Behaviour, Database, Gateway, Setup, Upstream, ask, persist_among, post, until,
};

const DUPLICATES: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_on_all_of_them_are_one_execution_and_hear_one_answer() {
    let fleet = Fleet::start(Behaviour::default(), PATIENT).await;
    let asking = fleet.ask_at_once();
    fleet.all_wait(DUPLICATES).await;
    fleet.upstream.silence(false);
    fleet.all_hear_the_receipt(asking.join_all().await);
    fleet.executed_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_that_may_not_wait_are_refused_but_for_the_first() {
    let fleet = Fleet::start(Behaviour::default(), "in_flight = \"reject\"").await;
    let mut asking = JoinSet::new();
    for (at, request) in (0..DUPLICATES).map(|at| (at, post("/pay", "k", "ten"))) {
        asking.spawn(ask(fleet.address(at), request));
    }
    for refused in 1..DUPLICATES {
        let answer = asking.join_next().await.unwrap().unwrap().unwrap();
        let told = (answer.status, answer.code());
        assert_eq!(told, (409, Some("key-in-flight".to_owned())), "after {refused}");
        assert!(answer.header("retry-after").is_some());
    }
    fleet.upstream.silence(false);
    let first = asking.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!((first.status, first.is_replay()), (201, false));
    fleet.executed_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_death_of_a_bystander_changes_nothing() {
    let mut fleet = Fleet::start(Behaviour::default(), PATIENT).await;
    let first = fleet.first_on(0).await;
    let asking = fleet.ask_at_once();
    fleet.all_wait(DUPLICATES + 1).await;
    fleet.gateways[1].kill();
    fleet.upstream.silence(false);
    fleet.all_hear_the_receipt(asking.join_all().await);
    assert_eq!(first.await.unwrap().unwrap().status, 201);
    fleet.executed_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_death_of_the_owner_is_made_good_by_another_where_the_upstream_deduplicates() {
    let behaviour = Behaviour { deduplicates: true, ..Behaviour::default() };
    let mut fleet = Fleet::start(behaviour, "recovery = \"resend\"\nin_flight = \"wait\"").await;
    let first = fleet.first_on(0).await;
    let asking = fleet.ask_at_once();
    fleet.all_wait(DUPLICATES + 1).await;
    fleet.gateways[0].kill();
    fleet.upstream.silence(false);
    fleet.all_hear_the_receipt(asking.join_all().await);
    assert!(first.await.unwrap().is_none());
    let heads = fleet.upstream.heads();
    assert_eq!(heads.len(), 2, "by the first owner, and by the one after it: {heads:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_death_of_the_owner_is_a_doubt_for_all_where_that_is_held() {
    let mut fleet = Fleet::start(Behaviour::default(), "in_flight = \"wait\"").await;
    let first = fleet.first_on(0).await;
    let asking = fleet.ask_at_once();
    fleet.all_wait(DUPLICATES + 1).await;
    fleet.gateways[0].kill();
    fleet.upstream.silence(false);
    for answer in asking.join_all().await {
        let told = (answer.status, answer.code());
        assert_eq!(told, (409, Some("outcome-in-doubt".to_owned())));
    }
    assert!(first.await.unwrap().is_none());
    fleet.executed_once();
}

/// Nobody's time is over before everybody is there.
const PATIENT: &str = "in_flight = \"wait\"\nwait = \"25s\"\ntimeout = \"25s\"\nlease = \"30s\"";

/// Three gateways; the upstream keeps its answers back until it is told otherwise.
struct Fleet {
    upstream: Upstream,
    gateways: Vec<Gateway>,
}

impl Fleet {
    async fn start(behaviour: Behaviour, defaults: &str) -> Self {
        let upstream = Upstream::start(behaviour).await;
        upstream.silence(true);
        let database = Database::create().await;
        let short = "timeout = \"5s\"\nlease = \"6s\"";
        let times = if defaults.contains("timeout") { "" } else { short };
        let config = format!("sweep = \"500ms\"\n[defaults]\n{times}\n{defaults}\n");
        let mut gateways = Vec::new();
        for _ in 0..3 {
            let setup = Setup::new(upstream.address).store(&database.url).config(&config);
            gateways.push(setup.start().await);
        }
        Self { upstream, gateways }
    }

    fn address(&self, at: usize) -> SocketAddr {
        self.gateways[at % self.gateways.len()].address
    }

    /// The first request, once it had its effect.
    async fn first_on(&self, at: usize) -> tokio::task::JoinHandle<Option<Answer>> {
        let first = tokio::spawn(ask(self.address(at), post("/pay", "k", "ten")));
        until("the effect", async || self.upstream.total() == 1).await;
        first
    }

    /// Clients spread over all gateways. One whose gateway dies, or who is told to come back, goes
    /// to the next.
    fn ask_at_once(&self) -> JoinSet<Answer> {
        let addresses: Vec<_> = self.gateways.iter().map(|gateway| gateway.address).collect();
        let mut asking = JoinSet::new();
        for first in 0..DUPLICATES {
            let addresses = addresses.clone();
            asking.spawn(async move {
                persist_among(&addresses, first, &post("/pay", "k", "ten")).await
            });
        }
        asking
    }

    async fn all_wait(&self, clients: usize) {
        until("the effect, and all clients to be connected", async || {
            let mut connected = 0;
            for gateway in &self.gateways {
                let metrics = ask(gateway.admin, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await;
                let metrics = metrics.unwrap();
                let mut lines = metrics.text().lines();
                let open = lines.find_map(|line| line.strip_prefix("hapax_connections_open "));
                connected += open.unwrap().parse::<usize>().unwrap();
            }
            connected == clients && self.upstream.total() == 1
        })
        .await;
    }

    fn executed_once(&self) {
        let heads = self.upstream.heads();
        assert_eq!(heads.len(), 1, "{heads:#?}");
    }

    fn all_hear_the_receipt(&self, answers: Vec<Answer>) {
        let receipts = self.upstream.receipts("k");
        for answer in answers {
            assert_eq!((answer.status, &[answer.body.into()][..]), (201, &receipts[..]));
        }
    }
}
