//! What becomes of the servers, and of their clock, while victims die.

use std::{fmt, thread, time::Duration};

use hapax_services::broker::Mode;
use tokio::runtime::Handle;

use super::world::{Servers, connect};
use crate::error::CrashError;

/// Something that befalls all victims at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// The broker is killed, and comes back.
    BrokerKilled,
    /// The database is stopped as in a crash, and comes back.
    PostgresStopped,
    /// The broker answers nobody for a while.
    BrokerFrozen,
    /// The database's clock is set ahead: leases end early.
    ClockAhead,
    /// The broker is stopped in good order, and comes back.
    BrokerEnded,
    /// The database's clock is set back: the leases of the dead last longer.
    ClockBack,
}

impl Trouble {
    /// All there are, in the order in which they come.
    pub const ALL: [Self; 6] = [
        Self::BrokerKilled,
        Self::PostgresStopped,
        Self::BrokerFrozen,
        Self::ClockAhead,
        Self::BrokerEnded,
        Self::ClockBack,
    ];

    /// Brings it about; when this returns, the servers are well again.
    pub(super) fn befall(
        self,
        (servers, url): (&mut Servers, &str),
        runtime: &Handle,
        frozen: Duration,
    ) -> Result<(), CrashError> {
        match self {
            Self::BrokerKilled => servers.restart_broker(Mode::Kill),
            Self::BrokerEnded => servers.restart_broker(Mode::Orderly),
            Self::PostgresStopped => servers.restart_postgres(),
            Self::BrokerFrozen => {
                servers.freeze_broker()?;
                thread::sleep(frozen);
                servers.thaw_broker();
                Ok(())
            }
            Self::ClockAhead => runtime.block_on(step_clock(url, AHEAD_MICROS)),
            Self::ClockBack => runtime.block_on(step_clock(url, BACK_MICROS)),
        }
    }
}

/// More than the lease of a relay.
const AHEAD_MICROS: i64 = 3_000_000;
const BACK_MICROS: i64 = -2_000_000;

async fn step_clock(url: &str, micros: i64) -> Result<(), CrashError> {
    let client = connect(url).await?;
    client.execute("UPDATE clock_step SET micros = micros + $1", &[&micros]).await?;
    Ok(())
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BrokerKilled => "the broker was killed",
            Self::BrokerEnded => "the broker was stopped in good order",
            Self::BrokerFrozen => "the broker was frozen",
            Self::PostgresStopped => "PostgreSQL was stopped at once",
            Self::ClockAhead => "the clock was set ahead",
            Self::ClockBack => "the clock was set back",
        })
    }
}
