//! Receives webhooks on port 3001 of this machine, signed with the secret in `WEBHOOK_SECRET`.

use std::{env, error::Error, path::Path};

use hapax::messaging::sink::webhook::Secret;
use webhook_receiver::app;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is a program for people")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let secret = env::var("WEBHOOK_SECRET").map_err(|_| "set WEBHOOK_SECRET to whsec_...")?;
    let app = app(Path::new("mails.db"), vec![Secret::parse(&secret)?]).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3001").await?;
    println!("listening on http://{}/events", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
