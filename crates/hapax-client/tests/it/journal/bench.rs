//! A journal in a directory of its own, with clocks that only tests move.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use hapax_client::journal::{
    Begin, Boot, Journal, JournalClock, JournalCredentials, JournalEncryption, JournalOptions,
    JournalRequest, LocalMasterKey, Moment, Name, OpenError, PursuitAdmission, PursuitGrant,
    PursuitProgress,
};
use hapax_core::{Key, Timestamp};
use http::{HeaderMap, HeaderValue, Method, header::CONTENT_TYPE};
use rusqlite::Connection;
use tempfile::TempDir;

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

pub(crate) struct Bench {
    directory: TempDir,
    now: Arc<Mutex<Moment>>,
    encryption: Option<JournalEncryption>,
}

/// A master key of its own for each number.
pub(crate) fn master(number: u8) -> LocalMasterKey {
    LocalMasterKey::from_bytes(&[number; 32])
}

impl Bench {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let boot = Some(Boot { id: [1; 16], since: Duration::from_secs(1000) });
        let wall = Timestamp::from_micros(1_800_000_000_000_000);
        Self { directory, now: Arc::new(Mutex::new(Moment { wall, boot })), encryption: None }
    }

    /// Where journals are encrypted under the first master key.
    pub(crate) fn encrypted() -> Self {
        Self { encryption: Some(JournalEncryption::new(master(1))), ..Self::new() }
    }

    /// One in the clear and one that is encrypted.
    pub(crate) fn both() -> [Self; 2] {
        [Self::new(), Self::encrypted()]
    }

    /// As on a system that has only a wall clock.
    pub(crate) fn without_boot_clock() -> Self {
        let bench = Self::new();
        bench.change(|now| now.boot = None);
        bench
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("client.db")
    }

    pub(crate) fn options(&self) -> JournalOptions {
        let now = Arc::clone(&self.now);
        let clock = JournalClock::new(move || *now.lock().expect("not poisoned"));
        let (busy, encryption) = (Duration::from_millis(500), self.encryption.clone());
        JournalOptions { clock, busy, encryption, ..JournalOptions::default() }
    }

    /// Opens it with this instead of what it is encrypted with.
    pub(crate) fn open(&self, encryption: Option<JournalEncryption>) -> Result<Journal, OpenError> {
        Journal::open(self.path(), JournalOptions { encryption, ..self.options() })
    }

    /// Whether the files of the journal hold this text.
    pub(crate) fn holds(&self, text: &str) -> bool {
        let files = fs::read_dir(self.directory.path()).expect("listed");
        files.into_iter().any(|file| {
            let bytes = fs::read(file.expect("listed").path()).expect("read");
            bytes.windows(text.len()).any(|part| part == text.as_bytes())
        })
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::open(self.path(), self.options()).expect("it opens")
    }

    /// As any SQLite client sees the file.
    pub(crate) fn client(&self) -> Connection {
        Connection::open(self.path()).expect("the file opens")
    }

    pub(crate) fn sql(&self, statement: &str) {
        assert_eq!(self.client().execute(statement, []).expect("it runs"), 1, "{statement}");
    }

    /// Time passes.
    pub(crate) fn pass(&self, span: Duration) {
        self.change(|now| {
            now.wall = now.wall.plus(span);
            if let Some(boot) = &mut now.boot {
                boot.since += span;
            }
        });
    }

    /// Somebody sets the wall clock.
    pub(crate) fn set_wall(&self, set: impl FnOnce(Timestamp) -> Timestamp) {
        self.change(|now| now.wall = set(now.wall));
    }

    /// The machine was off for a while, and has been on again for five seconds.
    pub(crate) fn reboot(&self, off: Duration) {
        self.change(|now| {
            let id = now.boot.map_or([1; 16], |boot| boot.id.map(|byte| byte + 1));
            now.boot = Some(Boot { id, since: Duration::from_secs(5) });
            now.wall = now.wall.plus(off + Duration::from_secs(5));
        });
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Moment)) {
        change(&mut self.now.lock().expect("not poisoned"));
    }

    pub(crate) fn now(&self) -> Moment {
        *self.now.lock().expect("not poisoned")
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

pub(crate) fn request(body: &'static str) -> JournalRequest {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.append("x-trace", HeaderValue::from_static("a: b"));
    headers.append("x-trace", HeaderValue::from_bytes(b"\xff").expect("a value"));
    let url = "https://api.example.com/charges?x=1".parse().expect("a URL");
    let body = Bytes::from_static(body.as_bytes());
    JournalRequest::new(Method::POST, url, headers, body, JournalCredentials::Withhold)
        .expect("it is within limits")
}

/// The wish for an operation of this name; its key tells who came first.
pub(crate) fn wish(text: &str, key: &str) -> Begin {
    Begin::new(name(text), Key::parse(key).expect("a key"), request("{}"), DEADLINE)
}

pub(crate) async fn granted(journal: &Journal, wish: Begin) -> PursuitGrant {
    grant(journal.begin(wish).await.expect("the journal answers"))
}

pub(crate) fn grant(begun: PursuitAdmission) -> PursuitGrant {
    let PursuitAdmission::Granted(granted) = begun else { panic!("{begun:?}") };
    *granted
}

pub(crate) fn progress(attempts: u32) -> PursuitProgress {
    PursuitProgress { attempts, left: DEADLINE / 2 }
}
