//! `orders place N`, `orders relay`, `orders mailer`, `orders mails`.

use std::env;

use orders::{Failure, Places, TABLES, mail, place, relay};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

const USAGE: &str = "usage: orders place N | relay | mailer | mails";

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is a program for people")]
async fn main() -> Result<(), Failure> {
    let database =
        env::var("DATABASE_URL").map_err(|_| "set DATABASE_URL to a PostgreSQL database")?;
    let places = Places {
        database: database.parse()?,
        brokers: env::var("KAFKA").unwrap_or_else(|_| "127.0.0.1:9092".to_owned()),
        prefix: env::var("TOPIC_PREFIX").unwrap_or_default(),
    };
    // In services of your own, `hapax migrate` does this when you deploy.
    hapax::postgres::Store::migrate(&places.database).await?;
    let pool = places.pool()?;
    pool.get().await?.batch_execute(TABLES).await?;

    let mut args = env::args().skip(1);
    match (args.next().as_deref(), args.next()) {
        (Some("place"), Some(count)) => {
            let first: i64 =
                pool.get().await?.query_one("SELECT count(*) FROM orders", &[]).await?.get(0);
            for number in first..first + count.parse::<i64>()? {
                place(&pool, &format!("order-{number}"), "ada").await?;
            }
            println!("placed {count} orders");
            Ok(())
        }
        (Some("relay"), None) => relay(&places, stop()?).await,
        (Some("mailer"), None) => mail(&places, stop()?).await,
        (Some("mails"), None) => {
            let ask = "SELECT count(*), count(DISTINCT order_number) FROM mails";
            let row = pool.get().await?.query_one(ask, &[]).await?;
            println!("{} mails about {} orders", row.get::<_, i64>(0), row.get::<_, i64>(1));
            Ok(())
        }
        (_, _) => Err(USAGE.into()),
    }
}

/// Says when to end: SIGTERM or Ctrl-C.
fn stop() -> Result<watch::Receiver<bool>, Failure> {
    let (sender, receiver) = watch::channel(false);
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        // Whoever runs has ended already, if nobody hears it.
        let _ = sender.send(true);
    });
    Ok(receiver)
}
