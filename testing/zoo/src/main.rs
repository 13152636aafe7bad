//! Lists the species, and serves one as a process that can be killed.

use std::{
    error::Error,
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use clap::{Parser, Subcommand};
use hapax_zoo::{Options, SPECIES, Species};

#[derive(Debug, Parser)]
#[command(about = "Servers with exactly one fault each, and correct ones")]
struct ZooArgs {
    #[command(subcommand)]
    task: ZooTask,
}

#[derive(Debug, Subcommand)]
enum ZooTask {
    /// Every species: its name, the probes meant for it, and what is wrong with it.
    List,
    /// Serves one, until it is killed.
    Serve {
        /// Which.
        name: String,
        /// Where it listens.
        #[arg(long, value_name = "ADDRESS", default_value_t = free_port())]
        listen: SocketAddr,
        /// Where its second instance listens.
        #[arg(long, value_name = "ADDRESS", default_value_t = free_port())]
        also: SocketAddr,
        /// What it keeps over its end; begun if it is not there.
        #[arg(long, value_name = "FILE")]
        state: Option<PathBuf>,
    },
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match ZooArgs::parse().task {
        ZooTask::List => list()?,
        ZooTask::Serve { name, listen, also, state } => {
            let species = Species::named(&name).ok_or("no species has this name: see `list`")?;
            let running = species.start_with(Options { listen, also, state }).await?;
            let mut out = io::stdout();
            writeln!(out, "listening on http://{} and http://{}", running.address, running.also)?;
            out.flush()?;
            std::future::pending::<()>().await;
        }
    }
    Ok(())
}

fn list() -> io::Result<()> {
    let mut out = io::stdout();
    for species in SPECIES {
        let (probes, sentence) = match &species.fault {
            Some(fault) => (fault.found_by.join(" "), fault.sentence),
            None => (String::new(), "correct"),
        };
        writeln!(out, "{:<30} {probes:<16} {sentence}", species.name)?;
    }
    Ok(())
}

fn free_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}
