//! Databases that acknowledged and then forgot: a standby that lagged and was promoted, restored backups, a copied file.

use std::fs;

use hapax_services::postgres::{Mode, Server, Settings};
use tokio_postgres::NoTls;

use crate::{
    hapax, text,
    world::{Answer, Behaviour, Gateway, Setup, Upstream, ask, post, until},
};

/// An API and a primary, to which a gateway's address may lead first.
struct Scene {
    upstream: Upstream,
    primary: Server,
    standby: Server,
}

impl Scene {
    /// With a standby that follows, and that commits wait for or not.
    async fn start(synchronous: bool) -> Self {
        let upstream = Upstream::start(Behaviour::default()).await;
        let primary = Server::start(Settings::default()).unwrap();
        let standby = primary.standby(Settings::default()).unwrap();
        if synchronous {
            let client = client(&primary.url()).await;
            client.batch_execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await.unwrap();
            client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
            let waits = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
            until("commits to wait for the standby", async || number(&client, waits).await == 1)
                .await;
        }
        Self { upstream, primary, standby }
    }

    /// Where both are; whichever takes writes is meant.
    fn address(&self) -> String {
        let (primary, standby) = (self.primary.port(), self.standby.port());
        format!(
            "postgres://postgres@127.0.0.1:{primary},127.0.0.1:{standby}/postgres\
             ?target_session_attrs=read-write"
        )
    }

    async fn gateway(&self) -> Gateway {
        Setup::new(self.upstream.address).store(&self.address()).start().await
    }

    /// Ends when the standby has everything that the primary has committed.
    async fn caught_up(&self) {
        let (primary, standby) =
            (client(&self.primary.url()).await, client(&self.standby.url()).await);
        let written: String =
            primary.query_one("SELECT pg_current_wal_lsn()::text", &[]).await.unwrap().get(0);
        let replayed =
            format!("SELECT (pg_last_wal_replay_lsn() >= '{written}'::pg_lsn)::int::bigint");
        until("the standby to catch up", async || number(&standby, &replayed).await == 1).await;
    }

    /// From now on the standby receives nothing.
    async fn cut_off(&mut self) {
        self.standby.follow(None).unwrap();
        let standby = client(&self.standby.url()).await;
        let receives = "SELECT count(*) FROM pg_stat_wal_receiver";
        until("the standby to be cut off", async || number(&standby, receives).await == 0).await;
    }

    /// The primary's machine is lost, and the standby takes its place.
    fn fail_over(&mut self) {
        self.primary.kill().unwrap();
        self.standby.promote().unwrap();
    }
}

pub(crate) async fn client(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) async fn number(client: &tokio_postgres::Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap().get(0)
}

pub(crate) async fn pay(gateway: &Gateway, key: &str) -> Answer {
    ask(gateway.address, post("/pay", key, "ten")).await.unwrap()
}

/// Pays, again and again where the store is away, as a client does that was told to.
async fn persist(gateway: &Gateway, key: &str) -> Answer {
    let mut last = None;
    until("an answer that is none of an outage", async || {
        let answer = pay(gateway, key).await;
        let is_away = answer.code().is_some_and(|code| code == "store-unavailable");
        last = Some(answer);
        !is_away
    })
    .await;
    last.unwrap()
}

pub(crate) async fn metric(gateway: &Gateway, name: &str) -> String {
    let page = ask(gateway.admin, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let line = page.text().lines().find(|line| line.starts_with(&format!("{name} ")));
    line.map(|line| line.rsplit(' ').next().unwrap().to_owned()).unwrap()
}

pub(crate) fn refused_by_quarantine(answer: &Answer) -> bool {
    answer.status == 503
        && answer.code().as_deref() == Some("store-quarantined")
        && answer.header("retry-after").is_some()
}

fn quarantine(task: &[&str], store: &str) -> String {
    let output = hapax(&[&["quarantine"], task, &["--store", store]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[tokio::test]
async fn what_an_asynchronous_standby_never_got_is_written_back_by_the_gateway_that_was_told() {
    let mut scene = Scene::start(false).await;
    let gateway = scene.gateway().await;
    assert_eq!(pay(&gateway, "kept").await.status, 201);
    scene.caught_up().await;
    scene.cut_off().await;
    let receipt = pay(&gateway, "lost").await;
    assert_eq!((receipt.status, receipt.is_replay()), (201, false));
    scene.fail_over();
    for key in ["lost", "kept"] {
        let again = persist(&gateway, key).await;
        assert_eq!((again.status, again.is_replay()), (201, true), "{key}: {}", gateway.log());
        assert_eq!(scene.upstream.effects(key), 1, "{key}");
    }
    until("the quarantine to be over", async || {
        metric(&gateway, "hapax_store_quarantined").await == "0"
            && metric(&gateway, "hapax_restored_total").await == "1"
    })
    .await;
    // Not from the memory of the gateway: another one finds it, too.
    let other = scene.gateway().await;
    let again = persist(&other, "lost").await;
    assert_eq!((again.is_replay(), again.text()), (true, receipt.text()));
    assert_eq!(persist(&other, "new").await.status, 201);
    assert_eq!(scene.upstream.twice(), Vec::<String>::new());
}

#[tokio::test]
async fn where_the_gateway_is_lost_with_the_primary_nothing_absent_runs_until_a_person_says_so() {
    let mut scene = Scene::start(false).await;
    let mut gateway = scene.gateway().await;
    assert_eq!(pay(&gateway, "kept").await.status, 201);
    scene.caught_up().await;
    scene.cut_off().await;
    assert_eq!(pay(&gateway, "lost").await.status, 201);
    gateway.kill();
    scene.fail_over();
    gateway.run().await;
    assert!(pay(&gateway, "kept").await.is_replay());
    for key in ["lost", "new"] {
        let answer = pay(&gateway, key).await;
        assert!(refused_by_quarantine(&answer), "{key}: {} {}", answer.status, answer.text());
    }
    let ready = ask(gateway.admin, "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert_eq!(
        (ready.status, ready.text()),
        (200, "{\"quarantined\":\"failover\",\"ready\":true}")
    );
    assert_eq!(metric(&gateway, "hapax_store_quarantined").await, "1");
    let shown = quarantine(&["show"], &scene.address());
    assert!(shown.starts_with("quarantined since 20"), "{shown}");
    assert!(shown.contains("timeline 2\nit was ") && shown.contains("timeline 1\n"), "{shown}");
    let why = "the bank has it until 12:04";
    quarantine(&["lift", "--why", why, "--who", "ada"], &scene.address());
    until("what is absent to run again", async || pay(&gateway, "new").await.status == 201).await;
    let shown = quarantine(&["show"], &scene.address());
    assert!(
        shown.starts_with("not quarantined\n") && shown.contains("by ada: the bank"),
        "{shown}"
    );
    assert_eq!(scene.upstream.effects("lost"), 1);
}

#[tokio::test]
async fn where_commits_wait_for_the_standby_a_failover_loses_nothing_and_stops_nobody() {
    let mut scene = Scene::start(true).await;
    let mut gateway = scene.gateway().await;
    for key in 0..20 {
        assert_eq!(pay(&gateway, &format!("k{key}")).await.status, 201);
    }
    gateway.kill();
    scene.fail_over();
    gateway.run().await;
    assert_eq!(metric(&gateway, "hapax_store_quarantined").await, "0", "{}", gateway.log());
    for key in 0..20 {
        assert!(pay(&gateway, &format!("k{key}")).await.is_replay());
    }
    assert_eq!(pay(&gateway, "new").await.status, 201);
    assert_eq!(scene.upstream.twice(), Vec::<String>::new());
}

#[tokio::test]
async fn an_old_primary_that_comes_back_is_neither_read_nor_written() {
    let mut scene = Scene::start(false).await;
    let gateway = scene.gateway().await;
    assert_eq!(pay(&gateway, "before").await.status, 201);
    scene.caught_up().await;
    scene.fail_over();
    assert_eq!(persist(&gateway, "after").await.status, 201);
    // It takes writes again, and the address names it first; and every connection is made anew.
    scene.primary.resume().unwrap();
    let old = client(&scene.primary.url()).await;
    let position = "SELECT position FROM hapax.incarnation";
    let left_at = number(&old, position).await;
    scene.standby.restart(Mode::Fast).unwrap();
    for key in ["before", "after"] {
        assert!(persist(&gateway, key).await.is_replay(), "{key}: {}", gateway.log());
    }
    assert_eq!(persist(&gateway, "new").await.status, 201);
    let new = client(&scene.standby.url()).await;
    let went_on_at = number(&new, position).await;
    until("two looks at the store", async || number(&new, position).await >= went_on_at + 2).await;
    assert_eq!(number(&old, position).await, left_at);
    assert_eq!(metric(&gateway, "hapax_store_quarantined").await, "0");
    assert_eq!((scene.upstream.total(), scene.upstream.twice()), (3, Vec::new()));
}

#[tokio::test]
async fn a_server_that_only_crashed_is_the_one_it_was() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut server = Server::start(Settings::default()).unwrap();
    let gateway = Setup::new(upstream.address).store(&server.url()).start().await;
    assert_eq!(pay(&gateway, "before").await.status, 201);
    server.kill().unwrap();
    server.resume().unwrap();
    assert_eq!(persist(&gateway, "after").await.status, 201);
    assert!(persist(&gateway, "before").await.is_replay());
    assert_eq!(metric(&gateway, "hapax_store_quarantined").await, "0");
    assert!(!gateway.log().contains("quarantine"), "{}", gateway.log());
}

#[tokio::test]
async fn a_database_that_was_restored_to_an_earlier_time_is_quarantined() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut server = Server::start(Settings::default()).unwrap();
    let mut gateway = Setup::new(upstream.address).store(&server.url()).start().await;
    assert_eq!(pay(&gateway, "kept").await.status, 201);
    let backup = server.backup(Settings::default()).unwrap();
    assert_eq!(pay(&gateway, "lost").await.status, 201);
    gateway.kill();
    server.kill().unwrap();
    let restored = backup.restore().unwrap();
    gateway.store = restored.url();
    gateway.run().await;
    assert!(pay(&gateway, "kept").await.is_replay());
    assert!(refused_by_quarantine(&pay(&gateway, "lost").await), "{}", gateway.log());
    assert_eq!((upstream.effects("kept"), upstream.effects("lost")), (1, 1));
}

#[tokio::test]
async fn a_database_that_was_recovered_to_a_point_in_time_is_quarantined() {
    for by_name in [true, false] {
        let upstream = Upstream::start(Behaviour::default()).await;
        let settings = Settings { archives: true, ..Settings::default() };
        let mut server = Server::start(settings).unwrap();
        let mut gateway = Setup::new(upstream.address).store(&server.url()).start().await;
        assert_eq!(pay(&gateway, "in the backup").await.status, 201);
        let backup = server.backup(Settings::default()).unwrap();
        assert_eq!(pay(&gateway, "in the log").await.status, 201);
        let database = client(&server.url()).await;
        let mark = "SELECT now()::text FROM pg_create_restore_point('before')";
        let time: String = database.query_one(mark, &[]).await.unwrap().get(0);
        assert_eq!(pay(&gateway, "lost").await.status, 201);
        archive_everything(&database).await;
        gateway.kill();
        server.kill().unwrap();
        let target = if by_name {
            "recovery_target_name = 'before'".to_owned()
        } else {
            format!("recovery_target_time = '{time}'")
        };
        let restored = backup.restore_up_to(&server.archive_dir(), &target).unwrap();
        gateway.store = restored.url();
        gateway.run().await;
        for key in ["in the backup", "in the log"] {
            assert!(persist(&gateway, key).await.is_replay(), "{key}: {}", gateway.log());
        }
        assert!(refused_by_quarantine(&persist(&gateway, "lost").await), "{}", gateway.log());
        assert_eq!((upstream.total(), upstream.twice()), (3, Vec::new()), "{target}");
    }
}

/// Ends when everything that was committed is in the archive.
async fn archive_everything(database: &tokio_postgres::Client) {
    let switch = "SELECT pg_walfile_name(pg_switch_wal())";
    let segment: String = database.query_one(switch, &[]).await.unwrap().get(0);
    let archived =
        format!("SELECT count(*) FROM pg_stat_archiver WHERE last_archived_wal >= '{segment}'");
    until("the log to be archived", async || number(database, &archived).await == 1).await;
}

#[tokio::test]
async fn a_dump_that_was_restored_into_another_database_is_quarantined() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let server = Server::start(Settings::default()).unwrap();
    let mut gateway = Setup::new(upstream.address).store(&server.url()).start().await;
    assert_eq!(pay(&gateway, "kept").await.status, 201);
    gateway.kill();
    server.dump_into("restored").unwrap();
    gateway.store = format!("postgres://postgres@127.0.0.1:{}/restored", server.port());
    gateway.run().await;
    assert!(pay(&gateway, "kept").await.is_replay());
    assert!(refused_by_quarantine(&pay(&gateway, "new").await), "{}", gateway.log());
}

#[tokio::test]
async fn a_file_that_was_copied_back_is_quarantined() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut gateway = Setup::new(upstream.address).start().await;
    let path = gateway.store.strip_prefix("sqlite:").unwrap().to_owned();
    assert_eq!(pay(&gateway, "kept").await.status, 201);
    gateway.signal("TERM");
    assert!(gateway.ended().await);
    fs::copy(&path, format!("{path}.backup")).unwrap();
    gateway.run().await;
    assert_eq!(metric(&gateway, "hapax_store_quarantined").await, "0");
    assert_eq!(pay(&gateway, "lost").await.status, 201);
    let beside = format!("{path}-position");
    let before = fs::read_to_string(&beside).unwrap();
    until("the position to be written", async || fs::read_to_string(&beside).unwrap() != before)
        .await;
    gateway.signal("TERM");
    assert!(gateway.ended().await);
    fs::copy(format!("{path}.backup"), &path).unwrap();
    gateway.run().await;
    assert!(pay(&gateway, "kept").await.is_replay());
    for key in ["lost", "new"] {
        assert!(refused_by_quarantine(&pay(&gateway, key).await), "{key}: {}", gateway.log());
    }
    let store = gateway.store.clone();
    quarantine(&["lift", "--why", "nothing of it was real"], &store);
    until("what is absent to run again", async || pay(&gateway, "new").await.status == 201).await;
    assert_eq!(upstream.effects("lost"), 1);
}

#[tokio::test]
async fn a_file_that_lost_its_position_or_was_begun_anew_beside_it_is_quarantined() {
    for lost in ["-position", ""] {
        let upstream = Upstream::start(Behaviour::default()).await;
        let mut gateway = Setup::new(upstream.address).start().await;
        let path = gateway.store.strip_prefix("sqlite:").unwrap().to_owned();
        assert_eq!(pay(&gateway, "told").await.status, 201);
        gateway.signal("TERM");
        assert!(gateway.ended().await);
        fs::remove_file(format!("{path}{lost}")).unwrap();
        gateway.run().await;
        assert!(refused_by_quarantine(&pay(&gateway, "new").await), "{}", gateway.log());
        let told = pay(&gateway, "told").await;
        let is_kept = !lost.is_empty();
        assert_eq!((told.is_replay(), refused_by_quarantine(&told)), (is_kept, !is_kept));
        assert_eq!(upstream.effects("told"), 1, "without {path}{lost}");
    }
}

#[tokio::test]
async fn a_person_can_quarantine_what_nothing_else_would_notice() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).start().await;
    assert_eq!(pay(&gateway, "kept").await.status, 201);
    quarantine(&["begin"], &gateway.store);
    let mut keys = 0;
    until("what is absent to be refused", async || {
        keys += 1;
        refused_by_quarantine(&pay(&gateway, &format!("new {keys}")).await)
    })
    .await;
    assert!(pay(&gateway, "kept").await.is_replay());
    assert!(quarantine(&["show"], &gateway.store).contains("somebody said so"));
}
