//! Asking before anything is changed.

use std::io::{self, BufRead, IsTerminal, Write};

use hapax_gateway::admin::documents::OperationDocument;

use super::error::KeysError;

/// Asks on a terminal; where there is none, whoever wrote the command has decided.
pub(super) fn ask(operation: &OperationDocument, consequence: &str) -> Result<(), KeysError> {
    if !io::stdin().is_terminal() {
        return Ok(());
    }
    let mut terminal = io::stderr().lock();
    let OperationDocument { tenant, scope, key, state, fence, .. } = operation;
    writeln!(terminal, "{tenant}, {scope}, {key}: {state}, attempt {fence}")?;
    write!(terminal, "From now on {consequence}. Type yes to go on: ")?;
    terminal.flush()?;
    let mut said = String::new();
    io::stdin().lock().read_line(&mut said)?;
    if said.trim() == "yes" { Ok(()) } else { Err(KeysError::Declined) }
}
