//! Asking before anything is changed.

use std::io::{self, BufRead, IsTerminal, Write};

use super::{
    error::KeysError,
    view::{Head, Stored},
};

/// Asks on a terminal; where there is none, whoever wrote the command has decided.
pub(super) fn ask(record: &Stored, consequence: &str) -> Result<(), KeysError> {
    if !io::stdin().is_terminal() {
        return Ok(());
    }
    let mut terminal = io::stderr().lock();
    let Head { tenant, scope, key, state, fence, .. } = &record.head;
    writeln!(terminal, "{tenant}, {scope}, {key}: {state}, attempt {fence}")?;
    write!(terminal, "From now on {consequence}. Type yes to go on: ")?;
    terminal.flush()?;
    let mut said = String::new();
    io::stdin().lock().read_line(&mut said)?;
    if said.trim() == "yes" { Ok(()) } else { Err(KeysError::Declined) }
}
