//! Consumers on real databases, fed by a queue and a log that deliver again what is not settled.

pub(crate) mod base;
mod batches;
mod crashes;
mod dead;
mod effects;
mod external;
mod guards;
mod log;
mod offsets;
pub(crate) mod queue;
pub(crate) mod scene;

/// Makes each of these tests one for every database.
macro_rules! on_every_base {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name::<crate::consumer::base::Sqlite>().await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name::<crate::consumer::base::Postgres>().await;
            })*
        }
    };
}
pub(crate) use on_every_base;
