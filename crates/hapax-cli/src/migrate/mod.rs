//! `hapax migrate`: the schema, made or brought up to date by hand.
//!
//! - `target` is where the schema is: which version it has, and what brings it further;
//! - `error` says what went wrong.

mod error;
mod target;

use std::{
    fmt,
    io::{self, Write},
};

pub(crate) use self::error::MigrateCommandError;
use self::target::MigrationTarget;
use crate::args::MigrateArgs;

/// Does it, or says what would be done.
pub(crate) fn run(args: &MigrateArgs) -> Result<(), MigrateCommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(MigrateCommandError::Runtime)?.block_on(perform(args))
}

async fn perform(args: &MigrateArgs) -> Result<(), MigrateCommandError> {
    let mut out = io::stdout().lock();
    // Clap has made sure that without a store the SQL is asked for.
    let Some(store) = args.file.address().or_else(|| args.store.clone()) else {
        write!(out, "{}", target::whole_script(args.role.as_deref()))?;
        return Ok(());
    };
    let target = MigrationTarget::new(store.parse()?, args.role.as_deref())?;
    let way = MigrationPath { from: target.version().await?, to: target.newest() };
    if args.print {
        write!(out, "-- {target}: {}.\n{}", way.foreseen(), target.script(way.from))?;
        return Ok(());
    }
    if args.dry_run {
        writeln!(out, "{target}: {}; nothing was done", way.foreseen())?;
        if let Some(role) = &args.role {
            writeln!(out, "role {role:?} would be let call the functions")?;
        }
        return Ok(());
    }
    target.migrate().await?;
    writeln!(out, "{target}: {way}")?;
    if let Some(role) = &args.role {
        target.grant(role).await?;
        writeln!(out, "role {role:?} may call the functions")?;
    }
    Ok(())
}

/// From the version that was found to the one that is needed.
struct MigrationPath {
    from: usize,
    to: usize,
}

impl MigrationPath {
    fn foreseen(&self) -> String {
        let Self { from, to } = self;
        match from {
            0 => format!("the schema would be created, version {to}"),
            from if from < to => format!("the schema would go from version {from} to {to}"),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for MigrationPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        match from {
            0 => write!(f, "the schema was created, version {to}"),
            from if from < to => write!(f, "the schema went from version {from} to {to}"),
            from if from > to => {
                write!(f, "the schema has version {from}, newer than {to}; left alone")
            }
            _ => write!(f, "the schema is up to date, version {to}"),
        }
    }
}
