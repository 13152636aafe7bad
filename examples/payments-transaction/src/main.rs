//! Serves payments on port 3000 of this machine, from the database that `DATABASE_URL` names.

use std::{env, error::Error};

use deadpool_postgres::Pool;
use hapax::postgres::Address;
use payments_transaction::{TABLES, app};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is a program for people")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = env::var("DATABASE_URL").map_err(|_| "set DATABASE_URL to a PostgreSQL database")?;
    let address: Address = url.parse()?;
    // In a service of your own, `hapax migrate` does this when you deploy.
    hapax::postgres::Store::migrate(&address).await?;
    // As the address says: encrypted, with the password that is right when a connection is made.
    let pool = Pool::builder(address.manager()).max_size(20).build()?;
    pool.get().await?.batch_execute(TABLES).await?;

    let address = env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app(pool).await?).await?;
    Ok(())
}
