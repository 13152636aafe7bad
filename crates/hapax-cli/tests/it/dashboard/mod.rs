//! The dashboard of the real program, in a real browser.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use hapax::{Event, sqlite};
use hapax_core::OneLine;
use hapax_services::chromium;
use tokio::{
    io::AsyncBufReadExt as _,
    time::{sleep, timeout},
};

use crate::{
    consumers::mailer_on_file,
    foreign::not_checked,
    operating::Scrape,
    relay::{Receiver, SECRET},
    text,
    world::{Behaviour, Connection, Gateway, PATIENCE, Setup, Upstream, ask, post, until},
};

const TOKEN: &str = "operate-token";
const READ_TOKEN: &str = "read-token";
/// The key of the payment that nobody answered.
const KEY: &str = "order-4711";
const TEN: &str = "{\"amount\":10}";
const ELEVEN: &str = "{\"amount\":11}";
const LIMIT: Duration = Duration::from_secs(300);

/// What a browser is driven by, and the pages it is driven over.
const FILES: [(&str, &str); 4] = [
    ("package.json", include_str!("package.json")),
    ("package-lock.json", include_str!("package-lock.json")),
    ("browser.mjs", include_str!("browser.mjs")),
    ("visitor.mjs", include_str!("visitor.mjs")),
];

/// A folder with the script and its packages; `None` if they cannot be had, which has been told.
fn script() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard");
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    for (name, content) in FILES {
        fs::write(folder.join(name), content).unwrap();
    }
    let mark = folder.join("installed");
    if fs::read_to_string(&mark).ok().as_deref() == Some(FILES[1].1) {
        return Some(folder);
    }
    let install = ["ci", "--no-audit", "--no-fund", "--ignore-scripts"];
    let output = Command::new("npm").args(install).current_dir(&folder).output();
    let why = match output {
        Ok(output) if output.status.success() => {
            fs::write(mark, FILES[1].1).unwrap();
            return Some(folder);
        }
        Ok(output) => text(&output.stderr),
        Err(error) => format!("npm: {error}"),
    };
    not_checked("the dashboard in a browser", &why);
    None
}

fn browser() -> Option<PathBuf> {
    let told = |error| not_checked("the dashboard in a browser", &OneLine::of(&error).to_string());
    chromium::program().map_err(told).ok()
}

/// A gateway that has seen requests of every kind, with a key in doubt, an event that was refused
/// and messages that could not be acted on.
async fn busy_gateway(upstream: &Upstream, receiver: &Receiver) -> Gateway {
    let config = format!(
        "sweep = \"200ms\"\nadmin_read_token = \"{READ_TOKEN}\"\n\
         [[route]]\nmatch = \"POST /pay\"\ntimeout = \"1s\"\n\
         amount = \"/amount\"\ncurrency = \"EUR\"\n\
         [[relay]]\nname = \"billing\"\nto = \"http://{}/events\"\nsecret_file = \"secret\"\n",
        receiver.address
    );
    let setup = Setup::new(upstream.address).config(&config).file("secret", SECRET).token(TOKEN);
    let gateway = setup.start().await;
    for key in 0..20 {
        let paid = ask(gateway.address, post("/pay", &format!("order-{key}"), TEN)).await;
        assert_eq!(paid.unwrap().status, 201);
    }
    for body in [TEN, TEN, ELEVEN] {
        ask(gateway.address, post("/pay", "order-1", body)).await.unwrap();
    }
    upstream.silence(true);
    let unanswered = ask(gateway.address, post("/pay", KEY, TEN)).await.unwrap();
    assert_eq!(unanswered.code().as_deref(), Some("execution-timed-out"));
    upstream.silence(false);
    receiver.refuse("{\"paid\":1}");
    let path = gateway.store.strip_prefix("sqlite:").unwrap().to_owned();
    mailer_on_file(&sqlite::inbox::Database::open(&path).unwrap()).await;
    let connection = rusqlite::Connection::open(path).unwrap();
    let event = Event::new("orders.paid", "4711", "{\"paid\":1}").unwrap();
    sqlite::emit(&connection, &event).unwrap();
    let parked = r#"hapax_outbox_parked_total{destination="billing"}"#;
    until("the event to be parked", async || {
        Scrape::of(&gateway).await.value(parked) == Some("1".to_owned())
    })
    .await;
    gateway
}

#[tokio::test]
async fn a_person_decides_a_doubt_and_sends_an_event_again_with_a_keyboard() {
    let (Some(folder), Some(browser)) = (script(), browser()) else { return };
    let upstream = Upstream::start(Behaviour::default()).await;
    let receiver = Receiver::start().await;
    let gateway = busy_gateway(&upstream, &receiver).await;
    // From now on it would take what it refused.
    receiver.refuse("");
    let said = tempfile::NamedTempFile::new().unwrap();
    let file = said.reopen().unwrap();
    let mut command = Command::new("node");
    command.arg("browser.mjs").current_dir(&folder).env("CHROMIUM", browser).env("KEY", KEY);
    command.env("DASHBOARD", format!("http://{}", gateway.admin));
    command.env("PROGRAM", env!("CARGO_BIN_EXE_hapax")).env("STORE", &gateway.store);
    command.env("TOKEN", TOKEN).env("READ_TOKEN", READ_TOKEN).stdin(Stdio::null());
    let mut child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let ended = timeout(LIMIT, async {
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            sleep(Duration::from_millis(50)).await;
        }
    });
    let ended = ended.await;
    if ended.is_err() {
        child.kill().unwrap();
    }
    let said = text(&fs::read(said.path()).unwrap());
    assert!(ended.is_ok_and(|status| status.success()), "{said}\n{}", gateway.log());
    // What was decided is what the client hears, and the event arrived.
    let retried = ask(gateway.address, post("/pay", KEY, TEN)).await.unwrap();
    assert!(retried.is_replay());
    assert_eq!((retried.status, retried.text()), (201, "{\"paid\":true}"));
    until("the event to arrive", async || receiver.taken() == ["{\"paid\":1}"]).await;
    assert_eq!(upstream.effects(KEY), 1);
    let log = gateway.log();
    assert!(log.contains("a person changed an operation") && log.contains("who=\"ada\""), "{log}");
    assert!(log.contains("a person had parked events sent again"), "{log}");
    assert!(log.contains("a person lifted the quarantine of the store"), "{log}");
    assert!(log.contains("a person changed a dead letter") && log.contains("done=\"forgiven\""));
}

/// A request of somebody who has the token.
fn look(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\n\r\n")
}

#[tokio::test]
async fn the_program_says_where_its_dashboard_is_and_what_is_in_force_after_a_reload_too() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).token(TOKEN).start().await;
    let said = format!("health, metrics and dashboard on http://{}", gateway.admin);
    assert!(gateway.log().contains(&said), "{}", gateway.log());
    let page = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", gateway.admin);
    let page = ask(gateway.admin, page).await.unwrap();
    assert_eq!(page.status, 200);
    assert!(page.text().contains("<title>Hapax</title>"));
    let in_force = async || {
        let answer = ask(gateway.admin, look("/v1/configuration")).await.unwrap();
        assert_eq!(answer.status, 200);
        answer.text().to_owned()
    };
    let before = in_force().await;
    assert!(before.contains(&upstream.address.to_string()) && !before.contains(TOKEN), "{before}");
    gateway.configure("[[route]]\nmatch = \"POST /refunds\"\n");
    gateway.signal("HUP");
    until("the new route to be shown", async || in_force().await.contains("POST /refunds")).await;
    let token_less = Setup::new(upstream.address).start().await;
    assert!(token_less.log().contains("HAPAX_ADMIN_TOKEN opens its dashboard"));
}

#[tokio::test]
async fn a_stream_of_figures_tells_its_end_while_the_gateway_lets_requests_finish() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut gateway = Setup::new(upstream.address).token(TOKEN).start().await;
    let mut stream = Connection::open(gateway.admin).await;
    stream.send(look("/v1/events")).await;
    let mut told = String::new();
    let mut until_told = async |what: &str| {
        let reading = async {
            while !told.contains(what) {
                assert_ne!(stream.socket().read_line(&mut told).await.unwrap(), 0, "{told}");
            }
        };
        assert!(timeout(PATIENCE, reading).await.is_ok(), "no {what}: {told}");
    };
    until_told("event: figures\n").await;
    upstream.silence(true);
    let asking = tokio::spawn(ask(gateway.address, post("/pay", "k", "ten")));
    until("the request to arrive", async || upstream.total() == 1).await;
    gateway.signal("TERM");
    until_told("event: end\n").await;
    upstream.silence(false);
    assert_eq!(asking.await.unwrap().unwrap().status, 201);
    assert!(gateway.ended().await);
}
