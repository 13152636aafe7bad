//! PostgreSQL as production has it: encrypted, behind passwords, named by files and the environment.

mod addresses;
mod encrypted;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Output},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use hapax_services::{
    certificates::{Authority, Certified},
    postgres::{Server, Settings},
};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::text;

/// The owner of each database, and its password.
pub(crate) const OWNER: (&str, &str) = ("owner", "s3cret");

/// Nobody comes in unencrypted or without a password but whoever runs the server, by its socket.
const RULES: &str = "\
local   all postgres     trust
hostssl all all      all scram-sha-256
";

/// A server that lets nobody in who does not encrypt, and files for its clients.
pub(crate) struct Fortress {
    server: Server,
    files: TempDir,
}

impl Fortress {
    /// One for all tests that run at the same time.
    pub(crate) fn shared() -> Arc<Self> {
        static SERVER: Mutex<Weak<Fortress>> = Mutex::new(Weak::new());
        let mut known = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
        known.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *known = Arc::downgrade(&server);
            server
        })
    }

    fn start() -> Self {
        let authority = Authority::new("the authority of these tests").unwrap();
        let Certified { certificate, key } = authority.server(&["localhost"]).unwrap();
        let config = ["ssl=on", "wal_level=logical", "max_slot_wal_keep_size=1GB"];
        let settings = Settings {
            config: config.iter().map(|&setting| setting.to_owned()).collect(),
            files: vec![
                ("server.crt", certificate),
                ("server.key", key),
                ("pg_hba.conf", RULES.to_owned()),
            ],
            ..Settings::default()
        };
        let this =
            Self { server: Server::start(settings).unwrap(), files: tempfile::tempdir().unwrap() };
        this.write("authority.crt", authority.certificate());
        this
    }

    fn port(&self) -> String {
        let url = self.server.url();
        url.rsplit_once(':').unwrap().1.split('/').next().unwrap().to_owned()
    }

    fn authority(&self) -> String {
        self.files.path().join("authority.crt").display().to_string()
    }

    /// A file that its owner alone may read.
    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.files.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// Whoever runs the server, in this database.
    pub(crate) async fn superuser(&self, dbname: &str) -> Client {
        let data = self.server.data_dir();
        let mut config = tokio_postgres::Config::new();
        config.host_path(data.parent().unwrap()).port(self.port().parse().unwrap());
        let (client, connection) =
            config.user("postgres").dbname(dbname).connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// A database of its own, which belongs to [`OWNER`].
    pub(crate) async fn database(&self, name: &str) {
        let (owner, password) = OWNER;
        let superuser = self.superuser("postgres").await;
        let role = format!(
            "DO $$ BEGIN CREATE ROLE {owner} LOGIN REPLICATION PASSWORD '{password}'; \
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        );
        superuser.batch_execute(&role).await.unwrap();
        superuser.batch_execute(&format!("CREATE DATABASE {name} OWNER {owner}")).await.unwrap();
    }

    /// The address of a database, with everything in it.
    pub(crate) fn url(&self, name: &str) -> String {
        let ((owner, password), port, authority) = (OWNER, self.port(), self.authority());
        format!(
            "postgres://{owner}:{password}@localhost:{port}/{name}?sslmode=verify-full\
             &sslrootcert={authority}&channel_binding=require"
        )
    }
}

/// Runs the program with these variables and no others that PostgreSQL's clients heed.
fn hapax(variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.env_clear().env("PATH", "/usr/bin:/bin");
    command.envs(variables.iter().copied()).args(args).output().unwrap()
}

/// What the program prints, which must succeed.
fn said(variables: &[(&str, &str)], args: &[&str]) -> String {
    let output = hapax(variables, args);
    assert!(output.status.success(), "{variables:?} {args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}
