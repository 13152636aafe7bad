//! One way as a server, in a process of its own.

use std::error::Error;

use axum::{Router, serve::ListenerExt};
use tokio::{net::TcpListener, runtime::Builder};

use crate::{
    args::Serve,
    effect::{self, Effects},
    error::BenchError,
    ways::{self, Maker},
};

/// Serves until the process is ended.
pub(crate) fn run(serve: &Serve) -> Result<(), BenchError> {
    let mut builder = match serve.way.maker() {
        // The gateway's workers have threads and runtimes of their own.
        Maker::HapaxGateway => Builder::new_current_thread(),
        Maker::Nobody | Maker::Hapax | Maker::Idempotent | Maker::Sessions | Maker::Proxy => {
            Builder::new_multi_thread()
        }
    };
    let runtime = builder.enable_all().build().map_err(BenchError::system("a runtime"))?;
    let served = runtime.block_on(async {
        match serve.way.maker() {
            Maker::HapaxGateway => ways::serve_gateway(serve).await,
            Maker::Nobody | Maker::Hapax | Maker::Idempotent | Maker::Sessions | Maker::Proxy => {
                service(serve).await
            }
        }
    });
    served.map_err(|source| BenchError::Serve { way: serve.way.label(), source })
}

async fn service(serve: &Serve) -> Result<(), Box<dyn Error + Send + Sync>> {
    let effects = Effects::new(serve.effects.as_deref());
    let inner = effect::effect(effects.clone());
    let protected: Router = match serve.way.maker() {
        Maker::Hapax => ways::protect_by_hapax(inner, serve).await?,
        Maker::Idempotent => ways::protect_by_idempotent(inner, serve).await?,
        Maker::Sessions => ways::protect_by_sessions(inner, serve).await?,
        Maker::Nobody => inner,
        Maker::HapaxGateway | Maker::Proxy => return Err("it is not a layer".into()),
    };
    let listener = TcpListener::bind(("127.0.0.1", serve.port)).await?.tap_io(|stream| {
        // A connection that cannot be set up so is as good as any other.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, protected.merge(effect::ledger(effects))).await?;
    Ok(())
}
