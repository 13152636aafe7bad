//! Where effects happen, outside of the store: one file per key, locked while it is used.
//!
//! It plays every kind of upstream. Which one it is for a key is up to the caller, as in life: a
//! blind one is told to act and acts.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::PathBuf,
};

use hapax_core::Attempt;

use super::work::Work;
use crate::error::CrashError;

/// The upstream whose books are in a directory.
#[derive(Debug, Clone)]
pub struct FileUpstream {
    dir: PathBuf,
}

/// A newer attempt was here before this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outdated;

impl FileUpstream {
    /// What its directory is called.
    pub const NAME: &str = "upstream";

    /// The upstream in `dir`, which is made if it does not exist.
    pub fn at(dir: impl Into<PathBuf>) -> Result<Self, CrashError> {
        let dir = dir.into();
        fs::create_dir_all(&dir).map_err(CrashError::io(format!("make {}", dir.display())))?;
        Ok(Self { dir })
    }

    /// Has the effect, however often it is told to. Returns the effect's name.
    pub fn act(&self, work: Work, attempt: &Attempt) -> Result<String, CrashError> {
        self.book(work)?.effect(attempt)
    }

    /// Has the effect once per key; later calls get the name of the first.
    pub fn act_once(&self, work: Work, attempt: &Attempt) -> Result<String, CrashError> {
        let mut book = self.book(work)?;
        match book.effects().into_iter().next() {
            Some(effect) => Ok(effect),
            None => book.effect(attempt),
        }
    }

    /// Has the effect unless a newer attempt was here; it does not look whether it had it before.
    pub fn act_fenced(
        &self,
        work: Work,
        attempt: &Attempt,
    ) -> Result<Result<String, Outdated>, CrashError> {
        let mut book = self.book(work)?;
        if attempt.fence.get() < book.newest_fence() {
            return Ok(Err(Outdated));
        }
        book.effect(attempt).map(Ok)
    }

    /// Says which effect there was, if any, and from then on refuses older attempts.
    pub fn ask(
        &self,
        work: Work,
        attempt: &Attempt,
    ) -> Result<Result<Option<String>, Outdated>, CrashError> {
        let mut book = self.book(work)?;
        if attempt.fence.get() < book.newest_fence() {
            return Ok(Err(Outdated));
        }
        book.append(&format!("asked {}\n", attempt.fence.get()))?;
        Ok(Ok(book.effects().into_iter().next()))
    }

    /// The names of the effects that happened under a key.
    pub fn effects(&self, work: Work) -> Result<Vec<String>, CrashError> {
        Ok(self.book(work)?.effects())
    }

    fn book(&self, work: Work) -> Result<Book, CrashError> {
        let path = self.dir.join(work.to_string());
        let open = || {
            let mut file = File::options().read(true).append(true).create(true).open(&path)?;
            file.lock()?;
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            Ok(Book { file, text })
        };
        open().map_err(CrashError::io(format!("open {}", path.display())))
    }
}

/// What an upstream knows about one key. The lock goes with the file, or with the process.
struct Book {
    file: File,
    text: String,
}

impl Book {
    fn effect(&mut self, attempt: &Attempt) -> Result<String, CrashError> {
        let name = format!("{:016x}", fastrand::u64(..));
        let (fence, owner) = (attempt.fence.get(), attempt.owner.0);
        self.append(&format!("effect {fence} {owner} {name}\n"))?;
        Ok(name)
    }

    fn effects(&self) -> Vec<String> {
        self.lines("effect").filter_map(|line| line.split(' ').nth(2)).map(str::to_owned).collect()
    }

    fn newest_fence(&self) -> i64 {
        let fences = self.lines("asked").chain(self.lines("effect"));
        fences.filter_map(|line| line.split(' ').next()?.parse().ok()).max().unwrap_or(0)
    }

    fn lines(&self, word: &'static str) -> impl Iterator<Item = &str> {
        self.text.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
    }

    fn append(&mut self, line: &str) -> Result<(), CrashError> {
        let mut write = || {
            self.file.write_all(line.as_bytes())?;
            self.file.sync_data()
        };
        write().map_err(CrashError::io("write down an effect"))?;
        self.text.push_str(line);
        Ok(())
    }
}
