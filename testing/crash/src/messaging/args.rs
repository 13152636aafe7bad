use std::{path::Path, process::Command, time::Duration};

use super::line::Line;
use crate::{open::DurableAddress, place::DieAt, victim::abort_after};

/// What a victim is told to do; relays and consumers alike.
#[derive(Debug, Clone, clap::Args)]
pub struct MessagingVictimArgs {
    /// Where the events are: `sqlite:PATH` or a PostgreSQL URL.
    #[arg(long)]
    pub outbox: DurableAddress,
    /// The PostgreSQL database of the effects.
    #[arg(long)]
    pub inbox: String,
    /// Where the broker is.
    #[arg(long)]
    pub nats: String,
    /// Which line it works on.
    #[arg(long)]
    pub line: usize,
    /// How long it works before it stops in good order.
    #[arg(long)]
    pub work_ms: u64,
    /// Where it dies, as PLACE:NTH.
    #[arg(long)]
    pub die_at: Option<DieAt>,
    /// How many messages it acts on in one transaction.
    #[arg(long, default_value_t = 1)]
    pub batch: usize,
    /// Refuses some events, so that they are parked.
    #[arg(long)]
    pub choosy: bool,
    /// How far its clock is stepped soon after it begins, where it has one of its own.
    #[arg(long, allow_hyphen_values = true, default_value_t = 0)]
    pub clock_step_ms: i64,
    /// What it does wrong, to see whether that is noticed.
    #[arg(long, value_enum)]
    pub broken: Option<MessagingMistake>,
}

/// What is done wrong, to see whether that is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MessagingMistake {
    /// The relay takes events for sent before they are.
    AckBeforeSend,
    /// The consumer acknowledges messages before it has acted on them.
    AckBeforeCommit,
    /// The consumer acts outside of the transaction that holds the record.
    ActOutside,
}

/// What a victim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It sends events.
    Relay,
    /// It acts on them.
    Consumer,
}

impl Role {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Relay, Self::Consumer];

    /// The command that starts one.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Relay => "relay-victim",
            Self::Consumer => "consumer-victim",
        }
    }
}

impl MessagingVictimArgs {
    /// The command that starts a victim with these arguments.
    pub fn command(&self, program: &Path, role: Role) -> Command {
        let mut command = Command::new(program);
        command.arg(role.as_str()).arg("--outbox").arg(self.outbox.to_string());
        command.arg("--inbox").arg(&self.inbox).arg("--nats").arg(&self.nats);
        command.arg("--line").arg(self.line.to_string());
        command.arg("--work-ms").arg(self.work_ms.to_string());
        command.arg("--clock-step-ms").arg(self.clock_step_ms.to_string());
        command.arg("--batch").arg(self.batch.to_string());
        if let Some(die_at) = &self.die_at {
            command.arg("--die-at").arg(die_at.to_string());
        }
        if self.choosy {
            command.arg("--choosy");
        }
        if let Some(broken) = self.broken {
            command.arg("--broken").arg(broken.as_str());
        }
        command
    }

    /// Which line it works on.
    pub fn line(&self) -> Line {
        Line(self.line)
    }

    /// How long it works.
    pub fn work(&self) -> Duration {
        Duration::from_millis(self.work_ms)
    }

    /// Ends this process some time after it should have ended.
    pub(super) fn abort_when_overdue(&self) {
        const OVERTIME: Duration = Duration::from_secs(30);
        abort_after(self.work() + OVERTIME);
    }
}

impl MessagingMistake {
    /// As it is written on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AckBeforeSend => "ack-before-send",
            Self::AckBeforeCommit => "ack-before-commit",
            Self::ActOutside => "act-outside",
        }
    }
}
