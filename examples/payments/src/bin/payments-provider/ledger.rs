//! Every charge it ever made: one line of JSON each, on disk before anybody hears of it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

/// What is to be charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) order: String,
    pub(crate) cents: u32,
}

/// What was charged, under which key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Charge {
    id: String,
    key: String,
    #[serde(flatten)]
    order: Order,
}

/// The charges, and the file they are in.
#[derive(Debug)]
pub(crate) struct Ledger(Mutex<Book>);

#[derive(Debug)]
struct Book {
    file: File,
    charges: Vec<Charge>,
}

/// Why nothing was charged.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The key stands for another order.
    KeyReused,
    /// The file cannot be written.
    Io(io::Error),
}

impl Ledger {
    /// The ledger in this file, which need not exist yet.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let charges = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(Mutex::new(Book { file, charges })))
    }

    /// Charges, unless it did so under this key before; answers the same either way.
    pub(crate) fn charge(&self, key: &str, order: Order) -> Result<Charge, Refused> {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(charge) = book.charges.iter().find(|charge| charge.key == key) {
            let same = charge.order == order;
            return if same { Ok(charge.clone()) } else { Err(Refused::KeyReused) };
        }
        let id = format!("ch_{}", book.charges.len() + 1);
        let charge = Charge { id, key: key.to_owned(), order };
        book.write(&charge).map_err(Refused::Io)?;
        book.charges.push(charge.clone());
        Ok(charge)
    }

    /// The charge under this key.
    pub(crate) fn find(&self, key: &str) -> Option<Charge> {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.charges.iter().find(|charge| charge.key == key).cloned()
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<Charge> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).charges.clone()
    }
}

impl Book {
    fn write(&mut self, charge: &Charge) -> io::Result<()> {
        let mut line = serde_json::to_vec(charge)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()
    }
}
