//! Same-transaction mode, alike through both drivers.

mod commits;
mod concurrency;
pub(crate) mod doors;
mod lost;
mod records;
mod world;

/// Makes each of these tests one for every driver.
macro_rules! through_both_doors {
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
    };
}
use through_both_doors;
