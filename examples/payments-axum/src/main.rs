//! Serves payments on port 3000 of this machine.

use std::{error::Error, path::Path};

use payments_axum::{Bank, app};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is a program for people")]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = app(Path::new("payments-keys.db"), Bank::default()).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
