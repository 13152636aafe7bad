//! Mails, one of a kind for each payment.

use std::{
    fmt, fs,
    io::{self, ErrorKind, Write},
    path::PathBuf,
};

use deadpool_postgres::Pool;
use hapax_core::{Faults, Injected};

/// A mail that is to be sent once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Letter<'a> {
    pub(crate) payment: i64,
    pub(crate) kind: &'static str,
    pub(crate) to: &'a str,
}

/// Why a mail is not known to be sent. The next attempt finds out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MailError {
    #[error("there is no connection to the database")]
    Connect(#[from] deadpool_postgres::PoolError),
    #[error("the mail log could not be used")]
    Log(#[from] tokio_postgres::Error),
    #[error("the mail server could not be used")]
    Server(#[from] io::Error),
    #[error(transparent)]
    Injected(#[from] Injected),
}

pub(crate) struct Mail {
    pool: Pool,
    server: Postbox,
    faults: Faults,
}

impl Mail {
    pub(crate) fn new(pool: Pool, mails: PathBuf, faults: Faults) -> Self {
        Self { pool, server: Postbox { file: mails }, faults }
    }

    /// Sends a mail, unless one of its kind was sent for the payment.
    ///
    /// The log has the mail before it is sent. It is marked as sent by a transaction that is open
    /// while it is sent: nobody else can mark the row meanwhile, and if this process dies, the mark is
    /// undone and the row is free. Whether the dead one came to send is what the mail server is asked.
    pub(crate) async fn send_once(&self, letter: Letter<'_>) -> Result<(), MailError> {
        let Letter { payment, kind, .. } = letter;
        let mut connection = self.pool.get().await?;
        let note = "INSERT INTO mail_log (payment, kind) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        connection.execute(note, &[&payment, &kind]).await?;
        self.faults.at("mail.noted")?;

        let alone = connection.transaction().await?;
        alone.batch_execute("SET LOCAL lock_timeout = '2s'").await?;
        let mark = "UPDATE mail_log SET state = 'sent'
            WHERE payment = $1 AND kind = $2 AND state = 'sending'";
        if alone.execute(mark, &[&payment, &kind]).await? == 0 {
            return Ok(());
        }
        self.faults.at("mail.alone")?;
        let id = format!("<payment-{payment}.{kind}@payments.example>");
        if !self.server.has(&id)? {
            self.server.send(&id, letter.to)?;
        }
        self.faults.at("mail.sent")?;
        alone.commit().await?;
        self.faults.at("mail.logged")?;
        Ok(())
    }
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Stands in for a mail server: one line for each mail, as often as it is told, and it can be asked
/// for a `Message-ID`.
#[derive(Debug)]
struct Postbox {
    file: PathBuf,
}

impl Postbox {
    fn has(&self, id: &str) -> io::Result<bool> {
        match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            read => Ok(read?.lines().any(|line| line.starts_with(id))),
        }
    }

    fn send(&self, id: &str, to: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.file)?;
        file.write_all(format!("{id} {to}\n").as_bytes())?;
        file.sync_data()
    }
}
