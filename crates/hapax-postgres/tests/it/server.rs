//! Servers, and what stands in front of them: what cannot keep the promise is refused at the door.

use std::{
    error::Error as _,
    io,
    sync::atomic::{AtomicU32, Ordering},
};

use hapax_core::Store as _;
use hapax_postgres::{OpenError, Options, Outbox, OutboxOptions, Store, schema_version};
use hapax_services::pgbouncer::PoolMode;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_postgres::{Config, config::SslMode};

use crate::{backend::Postgres, functions::pool, reference::complete};

/// What opening comes to, by every door.
async fn refusals(config: &Config) -> Vec<OpenError> {
    let mut refusals = Vec::new();
    for migrate in [false, true] {
        let options = Options { migrate, ..Options::default() };
        refusals.extend(Store::connect(config, options).await.err());
        let options = OutboxOptions { migrate, ..OutboxOptions::default() };
        refusals.extend(Outbox::connect(config, options).await.err());
    }
    refusals.extend(Store::migrate(config).await.err());
    refusals.extend(schema_version(config).await.err());
    assert_eq!(refusals.len(), 6, "every door must refuse: {refusals:?}");
    refusals
}

/// Something that speaks the protocol: it says that it is of this version, and answers so when it is
/// asked for an advisory lock.
#[derive(Debug, Clone, Copy)]
struct Impostor {
    version: &'static str,
    lock: Result<&'static str, &'static str>,
}

impl Impostor {
    async fn start(self) -> Config {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = Config::new();
        config.host("127.0.0.1").port(listener.local_addr().unwrap().port());
        config.user("anybody").dbname("anything").ssl_mode(SslMode::Disable);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(self.serve(stream));
            }
        });
        config
    }

    async fn serve(self, mut stream: TcpStream) -> io::Result<()> {
        static SESSIONS: AtomicU32 = AtomicU32::new(1);
        let session = SESSIONS.fetch_add(1, Ordering::Relaxed).to_string();
        let length = stream.read_u32().await?;
        stream.read_exact(&mut vec![0; length as usize - 4]).await?;
        stream.write_all(&message(b'R', &[0, 0, 0, 0])).await?;
        stream.write_all(&message(b'Z', b"I")).await?;
        loop {
            let kind = stream.read_u8().await?;
            let length = stream.read_u32().await?;
            let mut body = vec![0; length as usize - 4];
            stream.read_exact(&mut body).await?;
            let text = String::from_utf8_lossy(&body);
            let answer = match kind {
                b'Q' if text.contains("advisory") => match self.lock {
                    Ok(got) => row(&[&session, got]),
                    Err(code) => {
                        message(b'E', format!("SERROR\0VERROR\0C{code}\0Mno\0\0").as_bytes())
                    }
                },
                b'Q' if text.contains("server_version_num") => row(&[&session, self.version]),
                b'Q' => message(b'C', b"OK\0"),
                _ => return Ok(()),
            };
            stream.write_all(&answer).await?;
            stream.write_all(&message(b'Z', b"I")).await?;
        }
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// One row of texts, with its description and the end of its statement.
fn row(columns: &[&str]) -> Vec<u8> {
    let count = u16::try_from(columns.len()).unwrap().to_be_bytes();
    let field = [b"c\0".as_slice(), &[0; 6], &25_u32.to_be_bytes(), &[0; 8]].concat();
    let described = [&count[..], &field.repeat(columns.len())].concat();
    let length = |column: &str| u32::try_from(column.len()).unwrap().to_be_bytes();
    let values =
        columns.iter().flat_map(|column| [&length(column)[..], column.as_bytes()].concat());
    let values = [count.to_vec(), values.collect()].concat();
    [message(b'T', &described), message(b'D', &values), message(b'C', b"SELECT 1\0")].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_advisory_locks_do_nothing_is_refused() {
    for lock in [Ok("t"), Err("0A000")] {
        let config = Impostor { version: "150000", lock }.start().await;
        for refusal in refusals(&config).await {
            assert!(matches!(refusal, OpenError::NoLocks(_)), "{refusal:?}");
            assert!(refusal.to_string().contains("CockroachDB"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_too_old_is_refused() {
    let config = Impostor { version: "130023", lock: Ok("t") }.start().await;
    for refusal in refusals(&config).await {
        assert!(matches!(refusal, OpenError::TooOld { found: 13 }), "{refusal:?}");
        assert!(refusal.to_string().contains("14 or newer"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_does_not_keep_sessions_apart_is_refused_by_name() {
    let database = Postgres::empty().await;
    database.store().await;
    for mode in [PoolMode::Transaction, PoolMode::Statement] {
        let (_pooler, config) = pool(&database, mode).await;
        for refusal in refusals(&config).await {
            assert!(matches!(refusal, OpenError::Pooled(_)), "{mode:?}: {refusal:?}");
            assert!(refusal.to_string().contains("PgBouncer"), "{mode:?}");
            assert!(refusal.to_string().contains("pool_mode = session"), "{mode:?}");
            assert_eq!(refusal.source().is_some(), mode == PoolMode::Statement);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_pools_by_session_is_in_nobodys_way() {
    let database = Postgres::empty().await;
    let (_pooler, config) = pool(&database, PoolMode::Session).await;
    let store = Store::connect(&config, Options::default()).await.unwrap();
    complete(&store, "key", b"body").await;
    assert_eq!(store.purge(10).await.unwrap().total(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_have_a_name_that_is_ours_unless_the_address_has_one() {
    let database = Postgres::empty().await;
    for (own, shown) in [(None, "hapax"), (Some("billing"), "billing")] {
        let mut config = database.config();
        own.map(|own| config.application_name(own));
        let store = Store::connect(&config, Options::default()).await.unwrap();
        complete(&store, shown, b"body").await;
        let named = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = '{shown}'"
        );
        assert!(database.number(&named).await > 0, "{shown}");
    }
}
