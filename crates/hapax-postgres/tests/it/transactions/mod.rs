//! Same-transaction mode, alike through every driver.

mod commits;
mod concurrency;
pub(crate) mod doors;
mod events;
mod lost;
mod meetings;
mod records;
mod unseen;
mod world;

/// Makes each of these tests one for every driver.
macro_rules! through_every_door {
    ($($name:ident),* $(,)?) => {
        mod deadpool {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name::<crate::transactions::doors::Deadpool>().await;
            })*
        }
        mod sqlx {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name::<crate::transactions::doors::Sqlx>().await;
            })*
        }
        mod sqlx_0_8 {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name::<crate::transactions::doors::Sqlx08>().await;
            })*
        }
    };
}
use through_every_door;
