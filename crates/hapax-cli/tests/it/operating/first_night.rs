//! The first night on call, by the pages alone: each command stands on the page that is named, and is typed as it stands.

use std::{
    env,
    fs::{self, File},
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use hapax_services::{postgres, prometheus::PrometheusServer};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::{
    alerts::{document, read},
    dashboard::values,
};
use crate::{
    postgres::{Fortress, OWNER},
    text,
    world::{Answer, Raw, ask, free_address, post, until},
};

/// The desk of whoever is on call, and the gateway beside it.
struct Night {
    desk: TempDir,
    clients: SocketAddr,
    admin: SocketAddr,
    gateway: Option<Child>,
}

impl Night {
    /// With the file that is handed out, and the address of the store beside it.
    fn begin(upstream: SocketAddr, store: &str) -> Self {
        let (clients, admin) = (free_address(), free_address());
        let desk = tempfile::tempdir().unwrap();
        let packaged = fs::read_to_string(document("../packaging/gateway.toml")).unwrap();
        let lines = packaged.lines().map(|line| match line.split_once(" = ") {
            Some(("store", _)) => stands("deploy.md", "store_file = \"hapax-store\""),
            Some(("listen", _)) => format!("listen = \"{clients}\""),
            Some(("admin", _)) => format!("admin = \"{admin}\""),
            Some(("url", _)) => format!("url = \"http://{upstream}\""),
            Some(_) | None => line.to_owned(),
        });
        let file = lines.collect::<Vec<_>>().join("\n") + "\n[defaults]\nretention = \"9d\"\n";
        fs::write(desk.path().join("gateway.toml"), file).unwrap();
        let night = Self { desk, clients, admin, gateway: None };
        night.store_is(store);
        night
    }

    fn store_is(&self, address: &str) {
        let file = self.desk.path().join("hapax-store");
        fs::write(&file, address).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Types a command of a page, with what is meant in the places of what is said there.
    fn types(&self, page: &str, command: &str, places: &[(&str, &str)]) -> (i32, String) {
        // The runbook names the store once, for all that follows.
        let mut typed = match page {
            "runbook.md" => {
                let named = stands(page, &format!("export HAPAX_STORE=address-file:{STORE}"));
                named.replace(STORE, "hapax-store") + "; " + &stands(page, command)
            }
            _ => stands(page, command),
        };
        for (said, meant) in places {
            assert!(typed.contains(said), "{typed} has no {said}");
            typed = typed.replace(said, meant);
        }
        let output = self.shell(&typed).output().unwrap();
        (output.status.code().unwrap(), text(&output.stdout) + &text(&output.stderr))
    }

    /// The same, which must succeed.
    fn does(&self, page: &str, command: &str, places: &[(&str, &str)]) -> String {
        let (code, said) = self.types(page, command, places);
        assert_eq!(code, 0, "{command}: {said}");
        said
    }

    fn shell(&self, typed: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_hapax")).parent().unwrap().to_owned();
        let places = [program, postgres::programs().unwrap(), "/usr/bin".into(), "/bin".into()];
        let mut shell = Command::new("sh");
        shell.args(["-c", typed]).current_dir(self.desk.path()).env_clear().env("USER", "ada");
        shell.env("PATH", env::join_paths::<_, PathBuf>(places).unwrap()).stdin(Stdio::null());
        shell
    }

    async fn serve(&mut self) {
        let log = File::options().create(true).append(true).open(self.desk.path().join("log"));
        let mut command = self.shell("exec hapax serve --config gateway.toml");
        self.gateway = Some(command.stderr(log.unwrap()).spawn().unwrap());
        let ready = "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n";
        until("the gateway to be ready", async || {
            let ended = self.gateway.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {}", self.log());
            ask(self.admin, ready).await.is_some_and(|answer| answer.status == 200)
        })
        .await;
    }

    async fn stop(&mut self) {
        let mut gateway = self.gateway.take().unwrap();
        let pid = gateway.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        until("it to end", async || gateway.try_wait().unwrap().is_some()).await;
    }

    async fn pay(&self, key: &str) -> Answer {
        ask(self.clients, post("/pay", key, "ten")).await.unwrap()
    }

    async fn readiness(&self) -> String {
        let ready = "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n";
        ask(self.admin, ready).await.unwrap().text().to_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.desk.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Night {
    fn drop(&mut self) {
        if let Some(gateway) = &mut self.gateway {
            let _ = gateway.kill();
            let _ = gateway.wait();
        }
    }
}

/// These words, which stand on this page.
fn stands(page: &str, words: &str) -> String {
    assert!(read(page).contains(words), "docs/{page} does not say: {words}");
    words.to_owned()
}

/// An API that can be made to die in the middle of an answer.
async fn mortal_upstream(dying: &Arc<AtomicBool>) -> Raw {
    let dying = Arc::clone(dying);
    Raw::start(move |_| {
        let paid = "HTTP/1.1 201 Created\r\ncontent-length: 4\r\n";
        let end = if dying.load(Relaxed) { "connection: close\r\n\r\npa" } else { "\r\npaid" };
        format!("{paid}{end}").into_bytes()
    })
    .await
}

/// The id of the only key that was listed.
fn listed(said: &str) -> String {
    let ids = said
        .split_whitespace()
        .filter(|word| word.len() == 32 && word.chars().all(|digit| digit.is_ascii_hexdigit()));
    let ids: Vec<_> = ids.collect();
    assert_eq!(ids.len(), 1, "{said}");
    ids[0].to_owned()
}

/// What the runbook has in the places of an id, of where the address of the store is, and of a reason.
const ID: &str = "1a0fb49b3048c68ad311324a449becfe";
const STORE: &str = "/etc/hapax/store";
const REASON: &str = "'…'";

#[tokio::test(flavor = "multi_thread")]
async fn a_night_on_call_goes_by_the_pages() {
    let fortress = Fortress::shared();
    fortress.database("night").await;
    let dying = Arc::<AtomicBool>::default();
    let upstream = mortal_upstream(&dying).await;
    let mut night = Night::begin(upstream.address, &fortress.url("night"));
    night.does("deploy.md", "hapax check-config gateway.toml", &[]);
    night.does("deploy.md", "hapax migrate --store-file hapax-store", &[]);
    night.serve().await;
    assert_eq!(night.pay("evening").await.status, 201);
    let visit = "hapax doctor --config gateway.toml --client-retries-for 72h";
    let (code, said) = night.types("deploy.md", visit, &[]);
    assert!(code < 2, "{said}");
    assert!(!night.log().contains(OWNER.1) && !said.contains(OWNER.1), "{said}");

    dying.store(true, Relaxed);
    assert_eq!(night.pay("midnight").await.status, 502);
    dying.store(false, Relaxed);
    alarm(&night, "HapaxKeysInDoubt").await;
    night.decides_what_is_in_doubt().await;
    night.loses_the_database(&fortress).await;
    alarm(&night, "HapaxStoreQuarantined").await;
    night.decides_what_may_be_missing().await;
    assert_eq!(sent(&upstream, "midnight"), 1, "{:#?}", upstream.heads());
}

/// How often this key was sent to the API.
fn sent(upstream: &Raw, key: &str) -> usize {
    upstream.heads().iter().filter(|head| head.contains(&format!("\"{key}\""))).count()
}

/// Ends when a Prometheus with the rules that are handed out raises this alarm; they wait for a minute there.
async fn alarm(night: &Night, alert: &str) {
    let (admin, rules) = (night.admin, read("alerts.yml").replace("for: 1m", "for: 1s"));
    let start = spawn_blocking(move || PrometheusServer::with_rules(&[admin], &rules).unwrap());
    let prometheus = start.await.unwrap();
    let firing = format!("ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}}");
    until(alert, async || values(&prometheus, &firing).await == ["1"]).await;
}

impl Night {
    async fn decides_what_is_in_doubt(&self) {
        let said = self.does("runbook.md", "hapax keys list --state in_doubt --order age", &[]);
        let id = listed(&said);
        let explained = format!("hapax keys explain {ID}");
        let said = self.does("runbook.md", &explained, &[(ID, &id)]);
        assert!(said.contains("nobody knows whether it had its effect"), "{said}");
        fs::write(self.desk.path().join("receipt.json"), "{\"paid\":true}").unwrap();
        let resolve = format!(
            "hapax keys resolve {ID} --as completed --status 201 --body @receipt.json --why 'ledger entry 4711'"
        );
        self.does("runbook.md", &resolve, &[(ID, &id)]);
        let again = self.pay("midnight").await;
        assert_eq!((again.status, again.is_replay()), (201, true), "{}", again.text());
    }

    /// It was dumped, something was paid after that, and the dump is all that is left.
    async fn loses_the_database(&mut self, fortress: &Fortress) {
        let dump = "pg_dump --format=custom --file=hapax-monday.dump \"$(cat hapax-store)\"";
        self.does("backup.md", dump, &[]);
        assert_eq!(self.pay("lost").await.status, 201);
        self.stop().await;
        let superuser = fortress.superuser("postgres").await;
        superuser.batch_execute("DROP DATABASE night WITH (FORCE)").await.unwrap();
        fortress.database("night_restored").await;
        self.store_is(&fortress.url("night_restored"));
        let restore = "pg_restore --dbname=\"$(cat hapax-store)\" hapax-monday.dump";
        self.does("backup.md", restore, &[]);
        self.serve().await;
        assert!(self.readiness().await.contains("\"quarantined\""), "{}", self.log());
        assert!(self.pay("midnight").await.is_replay());
        for key in ["lost", "morning"] {
            let refused = self.pay(key).await;
            let told = (refused.status, refused.code());
            assert_eq!(told, (503, Some("store-quarantined".to_owned())), "{key}");
        }
    }

    async fn decides_what_may_be_missing(&self) {
        let visit = "hapax doctor --after-restore --client-retries-for 72h";
        let (_, said) = self.types("runbook.md", visit, &[]);
        assert!(
            said.contains("quarantined since") && said.contains("hapax quarantine lift"),
            "{said}"
        );
        let lift = format!("hapax quarantine lift --why {REASON}");
        self.does("runbook.md", &lift, &[(REASON, "'compared with the bank until Monday'")]);
        let morning = async || self.pay("morning").await.status == 201;
        until("what is absent to run again", morning).await;
        let again = self.pay("midnight").await;
        assert_eq!((again.status, again.text()), (201, "{\"paid\":true}"));
    }
}
