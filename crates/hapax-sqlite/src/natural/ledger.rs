use rusqlite::{Connection, ToSql};

use super::{Field, NaturalError, NaturalRow, atomically, sql::Sql};

/// An entry of a ledger: an amount, for an account, under a natural key.
///
/// ```
/// use hapax_sqlite::natural::{LedgerEntry, NaturalRow, Posted, post};
///
/// let connection = rusqlite::Connection::open_in_memory()?;
/// connection.execute_batch("CREATE TABLE ledger (id TEXT PRIMARY KEY, name TEXT, cents INT)")?;
/// let payment = LedgerEntry {
///     row: NaturalRow { table: "ledger", key: &[("id", &"payment-1")] },
///     fields: &[],
///     account: ("name", &"ada"),
///     amount: ("cents", 100),
///     floor: Some(0),
/// };
/// assert_eq!(post(&connection, &payment)?, Posted::Posted { balance: 100 });
/// assert_eq!(post(&connection, &payment)?, Posted::AlreadyPosted { balance: 100 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct LedgerEntry<'a> {
    /// The ledger and the entry's key.
    pub row: NaturalRow<'a>,
    /// What is kept with the entry beside its key and amount.
    pub fields: &'a [Field<'a>],
    /// The column of the account, and the account. It may be one of the key's columns.
    pub account: Field<'a>,
    /// The column of the amount, and the amount.
    pub amount: (&'a str, i64),
    /// The least an account may be left with by an entry that takes something out.
    pub floor: Option<i64>,
}

impl std::fmt::Debug for LedgerEntry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (row, amount, floor) = (&self.row, self.amount.1, self.floor);
        let mut shown = f.debug_struct("LedgerEntry");
        shown.field("row", row).field("amount", &amount).field("floor", &floor);
        shown.finish_non_exhaustive()
    }
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// It was written.
    Posted {
        /// What the account holds now.
        balance: i64,
    },
    /// It was written before: nothing was written now.
    AlreadyPosted {
        /// What the account holds.
        balance: i64,
    },
    /// Its key was used for another entry: somebody should look.
    Differs,
    /// It would leave the account with less than the floor: nothing was written.
    BelowFloor {
        /// What the account holds.
        balance: i64,
    },
}

/// Appends an entry to a ledger once, and tells the balance, which is the sum of the entries.
///
/// *The race:* `balance = balance + 10` twice is 20 more, and two withdrawals that both saw 100
/// leave less than nothing. Here an entry has a natural key and is written once, and the write
/// lock is held from before the sum is taken until the entry is committed.
///
/// ```
/// use hapax_sqlite::natural::{LedgerEntry, NaturalRow, Posted, post};
///
/// # let connection = rusqlite::Connection::open_in_memory()?;
/// # connection.execute_batch("CREATE TABLE ledger (id TEXT PRIMARY KEY, name TEXT, cents INT)")?;
/// let withdrawal = LedgerEntry {
///     row: NaturalRow { table: "ledger", key: &[("id", &"withdrawal-1")] },
///     fields: &[],
///     account: ("name", &"ada"),
///     amount: ("cents", -100),
///     floor: Some(0),
/// };
/// assert_eq!(post(&connection, &withdrawal)?, Posted::BelowFloor { balance: 0 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn post(connection: &Connection, entry: &LedgerEntry<'_>) -> Result<Posted, NaturalError> {
    let LedgerEntry { row, account, amount: (column, amount), floor, .. } = entry;
    row.check()?;
    let mut fields: Vec<Field<'_>> = entry.fields.to_vec();
    if !row.key.iter().any(|(name, _)| *name == account.0) {
        fields.push(*account);
    }
    fields.push((column, amount));
    atomically(connection, |connection| {
        // Written first, which takes the lock before the sum, and taken back if it may not stay.
        connection.execute_batch("SAVEPOINT hapax_entry")?;
        let posted = row.touch(connection, &Sql::insert(row.table, row.key, &fields)?)?;
        let balance = balance(connection, row.table, *account, column)?;
        if !posted {
            let same = row.read(connection, |sql| sql.same(&fields))?;
            let is_same = same == Some(true);
            return Ok(if is_same { Posted::AlreadyPosted { balance } } else { Posted::Differs });
        }
        if *amount < 0 && floor.is_some_and(|floor| balance < floor) {
            connection.execute_batch("ROLLBACK TO hapax_entry")?;
            return Ok(Posted::BelowFloor { balance: balance.saturating_sub(*amount) });
        }
        Ok(Posted::Posted { balance })
    })
}

/// What an account of a ledger holds: the sum of its entries.
///
/// ```
/// use hapax_sqlite::natural::balance;
///
/// # let connection = rusqlite::Connection::open_in_memory()?;
/// # connection.execute_batch("CREATE TABLE ledger (id TEXT PRIMARY KEY, name TEXT, cents INT)")?;
/// connection.execute("INSERT INTO ledger VALUES ('a', 'ada', 70), ('b', 'ada', 30)", [])?;
/// assert_eq!(balance(&connection, "ledger", ("name", &"ada"), "cents")?, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn balance(
    connection: &Connection,
    table: &str,
    (account, value): (&str, &dyn ToSql),
    amount: &str,
) -> Result<i64, NaturalError> {
    let mut sql = Sql::new("SELECT coalesce(sum(");
    sql.column(amount)?.text("), 0) FROM ").name(table)?.text(" AS t WHERE ");
    sql.column(account)?.text(" = ").value(value);
    Ok(sql.read(connection)?.unwrap_or(0))
}
