//! The gateway of `hapax`, as `hapax serve` runs it.

use std::{error::Error, fmt::Write as _, path::Path};

use hapax::Store;
use hapax_gateway::{Config, Gateway, config::Overrides};

use super::hapax::{file, memory, within};
use crate::{args::Serve, ways::Keeping};

/// Serves until the process is ended.
pub(crate) async fn serve(serve: &Serve) -> Result<(), Box<dyn Error + Send + Sync>> {
    match serve.way.keeping() {
        Keeping::Memory => run(serve, memory()?).await,
        Keeping::File => run(serve, file(&serve.store)?).await,
        Keeping::Postgres | Keeping::Redis(_) => Err("the gateway is not compared there".into()),
    }
}

async fn run<S: Store>(serve: &Serve, store: S) -> Result<(), Box<dyn Error + Send + Sync>> {
    let config = Config::parse(Path::new("gateway.toml"), &settings(serve), &Overrides::default())?;
    let _gateway = Gateway::start(config, store).await?;
    std::future::pending().await
}

/// Default settings, but for where it is, how many may come, and the lease.
fn settings(serve: &Serve) -> String {
    let mut text = format!(
        "listen = \"127.0.0.1:{}\"\nadmin = \"off\"\notherwise = \"protect\"\n\
         [upstream]\nurl = \"http://127.0.0.1:{}\"\n[limits]\nconnections = 20000\n",
        serve.port, serve.upstream
    );
    if let Some(lease) = serve.lease {
        let timeout = within(lease).as_millis();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "[defaults]\nlease = \"{}ms\"\ntimeout = \"{timeout}ms\"",
            lease.as_millis()
        );
    }
    text
}
