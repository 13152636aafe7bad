//! Finds, installs and starts real servers in temporary directories, for tests and benchmarks.
//!
//! A server is one file here and a shared way to run a process:
//!
//! - [`postgres`]: a PostgreSQL cluster of its own, on a free loopback port;
//! - [`pg_cron`]: one that calls statements at set times;
//! - [`postgres_versions`]: one of each version; [`certificates`]: for those who encrypt;
//! - [`pgbouncer`]: a connection pooler in front of one;
//! - [`patroni`]: three of them under a cluster manager, whose machines can be lost or cut off;
//! - [`kafka`], [`nats`], [`rabbitmq`], [`sqs`]: message brokers, all alike in use: [`broker`];
//! - [`haproxy`], [`nginx`]: proxies, with [the configurations that are handed out](proxy);
//! - [`kms`]: a key service, started alike;
//! - [`openid`]: an OpenID provider, with people in groups;
//! - [`redis`]: a Redis server, for those who compare with it;
//! - [`chromium`]: a browser without a window;
//! - [`faketime`]: a clock that can be set, for one process;
//! - [`collector`]: who is told traces and metrics;
//! - [`prometheus`]: who scrapes metrics, and checks rules about them;
//! - [`h2spec`]: no server, but cases for ours;
//! - [`debian`]: installs what is missing, where that is possible;
//! - [`roster`]: servers that outlive the command that started them;
//! - [`process`]: spawn, wait until ready, stop by steps, every one of them bounded in time.
//!
//! Everything here blocks and keeps no global state: two servers in one program do not know of each
//! other.
//!
//! ```no_run
//! use hapax_services::postgres::{Mode, Server, Settings};
//!
//! let mut server = Server::start(Settings::default())?;
//! println!("psql {}", server.url());
//! server.restart(Mode::Immediate)?;
//! # Ok::<(), hapax_services::ServiceError>(())
//! ```
//!
//! ```no_run
//! use hapax_services::{broker::Mode, kafka};
//!
//! let mut kafka = kafka::start()?;
//! println!("kcat -b {} -L", kafka.address());
//! kafka.restart(Mode::Kill)?;
//! # Ok::<(), hapax_services::ServiceError>(())
//! ```

pub mod broker;
pub mod certificates;
pub mod chromium;
pub mod collector;
pub mod debian;
pub mod faketime;
pub mod h2spec;
pub mod haproxy;
pub mod kafka;
pub mod kms;
pub mod nats;
pub mod nginx;
pub mod openid;
pub mod patroni;
pub mod pg_cron;
pub mod pgbouncer;
pub mod postgres;
pub mod postgres_versions;
pub mod process;
pub mod prometheus;
pub mod proxy;
pub mod rabbitmq;
pub mod redis;
pub mod roster;
pub mod sqs;

mod cache;
mod error;
mod go;
mod jvm;
mod ports;
mod programs;

pub use self::error::ServiceError;
