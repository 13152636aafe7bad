//! Ways into a server: encrypted or not, with passwords from everywhere, to one of several hosts.

mod credentials;
mod forms;
mod hosts;
mod modes;
#[cfg(feature = "deadpool")]
mod pools;
mod rotation;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use hapax_core::OneLine;
use hapax_postgres::{Address, ConnectFailure};
use hapax_services::{
    certificates::{Authority, Certified},
    postgres::{Server, Settings},
};
use tempfile::TempDir;
use tokio_postgres::Client;

use crate::backend;

/// A server that encrypts, its authority, and files for its clients.
pub(crate) struct SecuredServer {
    pub(crate) server: Server,
    authority: Authority,
    files: TempDir,
}

/// Anybody comes in as they like; roles with these endings have to show something.
const RULES: &str = "\
local   all postgres                   trust
host    all +with_password all         scram-sha-256
hostssl all +with_certificate all      cert
host    all all 127.0.0.1/32           trust
host    all all ::1/128                trust
";

impl SecuredServer {
    /// One for all tests that run at the same time.
    pub(crate) fn shared() -> Arc<Self> {
        static SERVER: Mutex<Weak<SecuredServer>> = Mutex::new(Weak::new());
        let mut known = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = known.upgrade() {
            return server;
        }
        let server = Arc::new(Self::start(RULES));
        *known = Arc::downgrade(&server);
        server
    }

    /// One with these rules.
    pub(crate) fn start(rules: &str) -> Self {
        let authority = Authority::new("the authority of these tests").unwrap();
        let Certified { certificate, key } = authority.server(&["localhost"]).unwrap();
        let config = [
            "ssl=on",
            "ssl_ca_file=authority.crt",
            "password_encryption=scram-sha-256",
            "wal_level=logical",
            "max_slot_wal_keep_size=1GB",
        ];
        let files = vec![
            ("server.crt", certificate),
            ("server.key", key),
            ("authority.crt", authority.certificate().to_owned()),
            ("pg_hba.conf", rules.to_owned()),
        ];
        let config = config.iter().map(|&setting| setting.to_owned()).collect();
        let server = Server::start(Settings { config, files, ..Settings::default() }).unwrap();
        let files = tempfile::tempdir().unwrap();
        let this = Self { server, authority, files };
        this.write("authority.crt", this.authority.certificate());
        this
    }

    pub(crate) fn port(&self) -> u16 {
        port(&self.server)
    }

    /// An address by the name that its certificate is for.
    pub(crate) fn address(&self, user: &str, parameters: &str) -> String {
        let root = self.path("authority.crt");
        let (port, root) = (self.port(), root.display());
        format!("postgres://{user}@localhost:{port}/postgres?sslrootcert={root}&{parameters}")
    }

    /// A file that its owner alone may read.
    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        allow(&path, 0o600);
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// The certificate and the key of a client of this name, as parameters.
    fn certified(&self, name: &str) -> String {
        let Certified { certificate, key } = self.authority.client(name).unwrap();
        let certificate = self.write(&format!("{name}.crt"), &certificate);
        let key = self.write(&format!("{name}.key"), &key);
        format!("sslcert={}&sslkey={}", certificate.display(), key.display())
    }

    /// Whoever runs the server, by its socket.
    pub(crate) async fn superuser(&self) -> Client {
        let dir = self.server.data_dir();
        let mut config = tokio_postgres::Config::new();
        config.host_path(dir.parent().unwrap()).port(self.port()).user("postgres");
        backend::connect(&config).await
    }

    /// A role of this name that has to show something.
    pub(crate) async fn role(&self, name: &str, group: &str, more: &str) {
        let text = format!(
            "DO $$ BEGIN CREATE ROLE {group}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$; \
             CREATE ROLE {name} LOGIN {more} IN ROLE {group}"
        );
        self.superuser().await.batch_execute(&text).await.unwrap();
    }
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn port(server: &Server) -> u16 {
    let url = server.url();
    url.rsplit_once(':').unwrap().1.split('/').next().unwrap().parse().unwrap()
}

/// How a connection came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Encrypted,
    Plain,
}

/// Connects, and asks the server how.
async fn way(address: &str) -> Result<Way, ConnectFailure> {
    let address: Address = address.parse()?;
    let (client, connection) = address.connect().await?;
    tokio::spawn(connection);
    let text = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let row = client.query_one(text, &[]).await.unwrap();
    Ok(if row.get(0) { Way::Encrypted } else { Way::Plain })
}

/// What people are told when no connection comes about.
async fn refusal(address: &str) -> String {
    let failure = way(address).await.expect_err("it was let in");
    OneLine::of(&failure).to_string()
}
