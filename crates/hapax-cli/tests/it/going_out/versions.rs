//! Gateways of two versions at the same time, on one PostgreSQL: each is owner and successor of the other.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::task::JoinSet;

use super::clients::some_load;
use crate::{
    hapax, text,
    world::{
        Answer, Behaviour, Database, Gateway, Setup, Upstream, ask, persist_among, post,
        program_before, until,
    },
};

/// Whoever takes over asks the upstream what happened, which does not deduplicate.
const ASKED: &str = "sweep = \"300ms\"\n[defaults]\ntimeout = \"1s\"\nlease = \"1500ms\"\n\
    recovery = \"probe\"\nprobe = \"/by-key/{key}\"\nupstream_works_for = \"500ms\"\n";

/// The gateway of the version before, then this one's.
const BOTH: [usize; 2] = [0, 1];
/// Clients who ask for the same keys at about the same time, the first of them at the other gateway than the second.
const RIVALS: usize = 2;
const TEAMS: usize = 3;

struct Mixed {
    upstream: Upstream,
    gateways: [Gateway; 2],
}

impl Mixed {
    /// The version before has made the schema, and this one has brought it up to date meanwhile.
    async fn start() -> Self {
        let takes = Duration::from_millis(50);
        let upstream = Upstream::start(Behaviour { takes, ..Behaviour::default() }).await;
        let database = Database::create().await;
        let setup = || Setup::new(upstream.address).store(&database.url).config(ASKED);
        let before = setup().program(program_before()).start().await;
        let migrated = hapax(&["migrate", "--store", &database.url]);
        assert!(migrated.status.success(), "{}", text(&migrated.stderr));
        let gateways = [before, setup().start().await];
        Self { upstream, gateways }
    }

    fn addresses(&self) -> [SocketAddr; 2] {
        self.gateways.each_ref().map(|gateway| gateway.address)
    }

    /// One of them dies in the middle of a request; the other one finds out what became of it, and its client hears it.
    async fn is_succeeded(&mut self, dies: usize) {
        let key = format!("begun-by-{dies}");
        let (to, request) = (self.addresses(), post("/pay", &key, "ten"));
        self.upstream.silence(true);
        let first = tokio::spawn(ask(to[dies], request.clone()));
        until("the effect", async || self.upstream.effects(&key) == 1).await;
        self.gateways[dies].kill();
        self.upstream.silence(false);
        assert!(first.await.unwrap().is_none());
        let answer = persist_among(&[to[1 - dies]], 0, &request).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        assert_eq!(self.upstream.receipts(&key), [answer.body]);
        self.gateways[dies].run().await;
    }
}

/// What a key was answered with, by whichever gateway it began at, and after that by the other one.
struct Heard {
    key: String,
    first: Answer,
    again: Answer,
}

fn ask_both(to: [SocketAddr; 2], done: &Arc<AtomicBool>) -> JoinSet<Vec<Heard>> {
    let mut asking = JoinSet::new();
    for client in 0..TEAMS * RIVALS {
        let done = Arc::clone(done);
        asking.spawn(async move {
            let mut heard = Vec::new();
            for number in (0..).take_while(|_| !done.load(Relaxed)) {
                let key = format!("{}-{number}", client / RIVALS);
                let (at, request) = (client + number, post("/pay", &key, "ten"));
                let first = persist_among(&to, at, &request).await;
                let again = persist_among(&to, at + 1, &request).await;
                heard.push(Heard { key, first, again });
            }
            heard
        });
    }
    asking
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_of_two_versions_on_one_store_are_one_gateway_whichever_of_them_dies() {
    let mut mixed = Mixed::start().await;
    let done = Arc::<AtomicBool>::default();
    let asking = ask_both(mixed.addresses(), &done);
    for dies in BOTH {
        some_load(&mixed.upstream).await;
        mixed.is_succeeded(dies).await;
    }
    some_load(&mixed.upstream).await;
    done.store(true, Relaxed);
    let heard: Vec<_> = asking.join_all().await.into_iter().flatten().collect();
    for Heard { key, first, again } in &heard {
        let receipts = mixed.upstream.receipts(key);
        assert_eq!((first.status, again.status), (201, 201), "{key}");
        assert_eq!(receipts, std::slice::from_ref(&first.body), "{key}");
        assert_eq!((again.is_replay(), &again.body), (true, &first.body), "{key}");
    }
    assert_eq!(mixed.upstream.twice(), Vec::<String>::new());
    assert!(heard.len() > 50, "{}", heard.len());
}
