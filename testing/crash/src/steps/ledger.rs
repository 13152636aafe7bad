//! Where the effects of workflows happen: files that survive the process that wrote them.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use hapax_core::Key;

/// What three other systems wrote down.
#[derive(Debug, Clone)]
pub struct Ledger {
    dir: PathBuf,
}

/// What was written down, read back.
#[derive(Debug, Default)]
pub struct LedgerBooks {
    /// The payments of a provider that deduplicates by key: the operation each was made for.
    pub charges: Vec<String>,
    /// The mails of one that does as well.
    pub mails: Vec<String>,
    /// The events of a broker that takes whatever it is sent.
    pub events: Vec<String>,
}

impl Ledger {
    /// The books in this directory.
    pub fn open(dir: &Path) -> io::Result<Self> {
        for name in [CHARGES, MAILS] {
            fs::create_dir_all(dir.join(name))?;
        }
        Ok(Self { dir: dir.to_owned() })
    }

    /// Charges once per key; answers with the receipt of the first time.
    pub fn charge(&self, key: &Key, operation: &str) -> io::Result<String> {
        self.once(CHARGES, key, operation)
    }

    /// Sends a mail once per key.
    pub fn mail(&self, key: &Key, operation: &str) -> io::Result<String> {
        self.once(MAILS, key, operation)
    }

    /// Publishes an event, again if asked again.
    pub fn publish(&self, operation: &str) -> io::Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(self.dir.join(EVENTS));
        log?.write_all(format!("{operation}\n").as_bytes())
    }

    /// Whether an event was published.
    pub fn is_published(&self, operation: &str) -> io::Result<bool> {
        Ok(self.books()?.events.iter().any(|event| event == operation))
    }

    /// Everything that was written down.
    pub fn books(&self) -> io::Result<LedgerBooks> {
        let events = match fs::read_to_string(self.dir.join(EVENTS)) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let events = events.lines().map(str::to_owned).collect();
        Ok(LedgerBooks { charges: self.read(CHARGES)?, mails: self.read(MAILS)?, events })
    }

    /// A file per key, complete or absent: written beside its place and then linked there.
    fn once(&self, book: &str, key: &Key, operation: &str) -> io::Result<String> {
        let dir = self.dir.join(book);
        let (draft, place) = (tempfile::NamedTempFile::new_in(&self.dir)?, dir.join(key.as_str()));
        fs::write(draft.path(), operation)?;
        match fs::hard_link(draft.path(), &place) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => File::open(&dir)?.sync_all()?,
        }
        Ok(format!("{book} {}", key.as_str()))
    }

    fn read(&self, book: &str) -> io::Result<Vec<String>> {
        fs::read_dir(self.dir.join(book))?.map(|entry| fs::read_to_string(entry?.path())).collect()
    }
}

const CHARGES: &str = "charges";
const MAILS: &str = "mails";
const EVENTS: &str = "events.log";
