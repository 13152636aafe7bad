//! Gateways killed at random instants while clients send every key several times.
//!
//! `cargo xtask chaos --kills N` kills more often.

use std::{
    collections::{BTreeSet, HashMap},
    env,
    net::SocketAddr,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use fastrand::Rng;
use serde_json::Value;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    text,
    world::{
        Behaviour, Database, Gateway, Many, Setup, Upstream, ask, is_final, persist, post, until,
    },
};

#[tokio::test(flavor = "multi_thread")]
async fn killed_on_sqlite_what_was_sent_is_sent_again_to_an_upstream_that_deduplicates() {
    Trial { name: "sqlite, resend", recovery: "resend", store: None }.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_on_sqlite_an_upstream_that_can_be_asked_is_asked() {
    Trial { name: "sqlite, probe", recovery: "probe", store: None }.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_on_sqlite_what_nobody_knows_is_held() {
    Trial { name: "sqlite, hold", recovery: "hold", store: None }.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_on_postgresql_what_was_sent_is_sent_again_to_an_upstream_that_deduplicates() {
    let store = Some(Database::create().await.url);
    Trial { name: "postgresql, resend", recovery: "resend", store }.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_on_postgresql_an_upstream_that_can_be_asked_is_asked() {
    let store = Some(Database::create().await.url);
    Trial { name: "postgresql, probe", recovery: "probe", store }.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_on_postgresql_what_nobody_knows_is_held() {
    let store = Some(Database::create().await.url);
    Trial { name: "postgresql, hold", recovery: "hold", store }.run().await;
}

const KILLS: usize = 12;
const CLIENTS: usize = 12;
/// How often a key is sent at about the same time; more often later.
const TIMES_AT_ONCE: usize = 3;

struct Trial {
    name: &'static str,
    recovery: &'static str,
    store: Option<String>,
}

impl Trial {
    async fn run(self) {
        let seed = number("HAPAX_CHAOS_SEED").unwrap_or_else(|| fastrand::u64(..));
        let kills = number("HAPAX_CHAOS_KILLS").unwrap_or(KILLS);
        self.say(&format!("{kills} kills, HAPAX_CHAOS_SEED={seed}"));
        let mut dice = Rng::with_seed(seed);
        let deduplicates = self.recovery == "resend";
        let takes = Duration::from_millis(20);
        let behaviour = Behaviour { deduplicates, takes, ..Behaviour::default() };
        let upstream = Upstream::start(behaviour).await;
        let mut gateway = self.start(&upstream).await;
        let storm = Storm::start(gateway.address, &mut dice);
        for _ in 1..kills {
            kill_at_random(&mut gateway, &mut dice).await;
            if dice.u8(..4) == 0 {
                gateway.spawn();
                kill_at_random(&mut gateway, &mut dice).await;
            }
            gateway.run().await;
        }
        kill_at_random(&mut gateway, &mut dice).await;
        let heard = storm.stop().await;
        gateway.run().await;
        until("nothing to be running", async || keys(&gateway, "running").is_empty()).await;
        let doubts = keys(&gateway, "in_doubt");
        let heads = upstream.heads();
        let recovered = match self.recovery {
            "resend" => heads.len() - upstream.total(),
            "probe" => heads.iter().filter(|head| head.starts_with("GET ")).count(),
            _ => 0,
        };
        let (answered, effects, held) = (heard.answers.len(), upstream.total(), doubts.len());
        self.say(&format!(
            "{} keys sent, {answered} answered before the end, {effects} effects, {recovered} \
             found out, {held} in doubt",
            heard.sent
        ));
        assert_ne!(recovered == 0, doubts.is_empty(), "unknown outcomes are found out, or held");
        heard.check(gateway, upstream, doubts).await;
    }

    #[expect(clippy::print_stdout, reason = "a failure is repeated by its seed")]
    fn say(&self, what: &str) {
        println!("{}: {what}", self.name);
    }

    async fn start(&self, upstream: &Upstream) -> Gateway {
        let recovery = self.recovery;
        let probe = match recovery {
            "probe" => "probe = \"/by-key/{key}\"\nupstream_works_for = \"500ms\"",
            _ => "",
        };
        let config = format!(
            "sweep = \"300ms\"\n[defaults]\ntimeout = \"1s\"\nlease = \"1500ms\"\nrecovery = \
             \"{recovery}\"\n{probe}\n"
        );
        let setup = Setup::new(upstream.address).config(&config);
        let setup = match &self.store {
            Some(url) => setup.store(url),
            None => setup,
        };
        setup.start().await
    }
}

/// The instant is what is tried: it is waited for, not for anything to happen.
async fn kill_at_random(gateway: &mut Gateway, dice: &mut Rng) {
    sleep(Duration::from_millis(dice.u64(1..400))).await;
    gateway.kill();
}

/// Clients that send each key several times, and take what they get.
struct Storm {
    clients: JoinSet<()>,
    stop: Arc<AtomicBool>,
    sendings: Arc<AtomicUsize>,
    answers: Arc<Mutex<HashMap<String, Vec<u8>>>>,
}

/// What the clients of a storm were told.
struct Heard {
    sent: usize,
    answers: HashMap<String, Vec<u8>>,
}

impl Storm {
    fn start(to: SocketAddr, dice: &mut Rng) -> Self {
        let mut storm = Self {
            clients: JoinSet::new(),
            stop: Arc::default(),
            sendings: Arc::default(),
            answers: Arc::default(),
        };
        for _ in 0..CLIENTS {
            let (stop, answers) = (Arc::clone(&storm.stop), Arc::clone(&storm.answers));
            let (sendings, mut dice) = (Arc::clone(&storm.sendings), dice.fork());
            storm.clients.spawn(async move {
                while !stop.load(Relaxed) {
                    let newest = sendings.fetch_add(1, Relaxed) / TIMES_AT_ONCE;
                    let key = name(newest.saturating_sub(dice.usize(..8)));
                    let Some(answer) = ask(to, post("/pay", &key, &key)).await else {
                        sleep(Duration::from_millis(10)).await;
                        continue;
                    };
                    if is_final(&answer) && answer.status == 201 {
                        note(&mut answers.lock().unwrap(), key, answer.body);
                    }
                }
            });
        }
        storm
    }

    async fn stop(self) -> Heard {
        self.stop.store(true, Relaxed);
        self.clients.join_all().await;
        let sent = self.sendings.load(Relaxed) / TIMES_AT_ONCE;
        let answers = std::mem::take(&mut *self.answers.lock().unwrap());
        Heard { sent, answers }
    }
}

fn note(answers: &mut HashMap<String, Vec<u8>>, key: String, body: Vec<u8>) {
    if let Some(before) = answers.get(&key) {
        assert_eq!(*before, body, "{key} was answered in two ways");
    }
    answers.insert(key, body);
}

impl Heard {
    /// Asks for every key once more: what it was told stands, and the ledger agrees.
    async fn check(self, gateway: Gateway, upstream: Upstream, doubts: BTreeSet<String>) {
        let keys = (0..=self.sent).map(name).collect();
        let world = Arc::new((self, gateway, upstream, doubts));
        let check = |key: String| {
            let world = Arc::clone(&world);
            async move {
                let (heard, gateway, upstream, doubts) = &*world;
                let answer = persist(gateway.address, &post("/pay", &key, &key)).await;
                let receipts = upstream.receipts(&key);
                if answer.status == 201 {
                    assert!(heard.answers.get(&key).is_none_or(|before| *before == answer.body));
                    assert_eq!(receipts, [answer.body], "{key}");
                } else {
                    assert!(!heard.answers.contains_key(&key), "{key} was answered before");
                    assert!(receipts.len() <= 1 && doubts.contains(&key), "{key}");
                }
            }
        };
        Many { at_once: 32 }.each(keys, check).await;
        assert_eq!(world.2.twice(), Vec::<String>::new());
    }
}

fn name(number: usize) -> String {
    format!("k{number}")
}

fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    env::var(variable).ok()?.parse().ok()
}

/// The keys in this state, as an operator lists them.
fn keys(gateway: &Gateway, state: &str) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.args(["keys", "list", "--json", "--limit", "100000", "--state", state]);
    let output = command.args(["--store", &gateway.store]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let operations = listed["operations"].as_array().unwrap().iter();
    operations.map(|operation| operation["key"].as_str().unwrap().to_owned()).collect()
}
