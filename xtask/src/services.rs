//! `cargo xtask services`: real servers for tests, left running between commands.

use std::{error::Error, path::Path};

use clap::{Subcommand, ValueEnum};
use hapax_services::{
    ServiceError,
    roster::{Roster, Service},
};

use crate::{TaskFailure, ci::in_ci};

/// What to do with the servers.
#[derive(Debug, Clone, Subcommand)]
pub enum Action {
    /// Start those that do not run.
    Up {
        /// Which ones.
        #[arg(default_value = "postgres")]
        which: Vec<WhichServer>,
    },
    /// Stop those we started and remove their files.
    Down {
        /// Which ones.
        #[arg(default_value = "all")]
        which: Vec<WhichServer>,
    },
    /// Tell which ones run.
    Status,
}

/// A server, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names say it")]
pub enum WhichServer {
    Postgres,
    Kafka,
    Nats,
    Rabbitmq,
    Sqs,
    Kms,
    All,
}

/// Does `action` to the servers of the workspace at `root`.
///
/// A server that cannot be had is told in the last lines; only in CI is that a failure.
pub fn run(root: &Path, action: Action) -> Result<(), TaskFailure> {
    match action {
        Action::Up { which } => up(root, &which),
        Action::Down { which } => down(root, &which),
        Action::Status => {
            for service in Service::ALL {
                match roster(root).of(service).url() {
                    Some(url) => println!("{} runs: {url}", service.name()),
                    None => println!("{} does not run", service.name()),
                }
            }
            Ok(())
        }
    }
}

fn up(root: &Path, which: &[WhichServer]) -> Result<(), TaskFailure> {
    let mut missing = Vec::new();
    for service in chosen(which) {
        match roster(root).of(service).up() {
            Ok(up) => println!("{} {up}", service.name()),
            Err(error) => missing.push(unavailable(service, &error).to_string()),
        }
    }
    match missing.join("\n") {
        told if told.is_empty() => Ok(()),
        told if in_ci() => Err(TaskFailure::new(told)),
        told => {
            println!("{told}");
            Ok(())
        }
    }
}

fn down(root: &Path, which: &[WhichServer]) -> Result<(), TaskFailure> {
    for service in chosen(which) {
        let name = service.name();
        match roster(root).of(service).down() {
            Ok(true) => println!("{name} stopped, its files removed"),
            Ok(false) => println!("{name} was not running"),
            Err(error) => return Err(TaskFailure::new(format!("{name}: {}", describe(&error)))),
        }
    }
    Ok(())
}

fn chosen(which: &[WhichServer]) -> impl Iterator<Item = Service> {
    Service::ALL.into_iter().filter(|service| {
        let one = match service {
            Service::Postgres => WhichServer::Postgres,
            Service::Kafka => WhichServer::Kafka,
            Service::Nats => WhichServer::Nats,
            Service::RabbitMq => WhichServer::Rabbitmq,
            Service::Sqs => WhichServer::Sqs,
            Service::Kms => WhichServer::Kms,
        };
        which.contains(&one) || which.contains(&WhichServer::All)
    })
}

/// The servers of the workspace at `root`.
pub fn roster(root: &Path) -> Roster {
    Roster::at(root.join(".services"))
}

/// The failure to have a server, with all its causes.
pub fn unavailable(service: Service, error: &ServiceError) -> TaskFailure {
    TaskFailure::new(format!("{} cannot be had: {}", service.name(), describe(error)))
}

pub(crate) fn describe(error: &ServiceError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
