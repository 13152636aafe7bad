//! A process that asks for many operations at once on a real store, until it dies.

use std::time::Duration;

use super::{args::RecordVictimArgs, caller::Crew};
use crate::{
    error::CrashError,
    place::Doom,
    victim::{abort_after, live, say_ready},
};

const OVERTIME: Duration = Duration::from_secs(20);

/// Works as ordered. Returns when all operations are settled or, if told to linger, when time is
/// up; and not at all where it is to die.
pub fn run(args: &RecordVictimArgs) -> Result<(), CrashError> {
    abort_after(args.limit() + OVERTIME);
    let doom = Doom::new(args.die_at.clone());
    live(async {
        let store = args.store.open(doom.faults()).await?;
        let crew = Crew::new(store, args, doom)?;
        say_ready()?;
        crew.work(args.limit()).await
    })
}
