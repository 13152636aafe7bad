//! The ways a topic of Kafka is sent to.

use std::time::Duration;

use hapax_core::outbox::Stored;
use hapax_messaging::sink::{Kafka, KafkaOptions};

use super::cluster::Topic;
use crate::{
    servers::unique,
    sink::world::{Arrived, Breakable, Choosy, World},
};

/// What the client itself lets pass, headers included, less those.
const CLIENT_BYTES_MAX: usize = 990_000;
/// What the topic takes where the broker is to refuse.
const NARROW: &[(&str, &str)] = &[("max.message.bytes", "20000")];

/// An idempotent producer.
pub(super) struct Plain(Topic);

/// The same, to a topic that takes small events.
pub(super) struct Narrow(Topic);

/// A transactional producer, to a topic that takes small events in the suite's refusals.
pub(super) struct Transactional {
    topic: Topic,
    id: String,
}

macro_rules! world {
    ($world:ty, $topic:tt, $settings:expr, $max:expr, |$it:ident| $options:expr, $new:expr) => {
        impl World for $world {
            type Sink = Kafka;

            const PAYLOAD_BYTES_MAX: usize = $max;

            async fn open() -> Self {
                $new(Topic::on_shared($settings).await)
            }

            fn topic(&self) -> String {
                self.$topic.name.clone()
            }

            async fn sink(&self) -> Kafka {
                let $it = self;
                $it.$topic.sink($options)
            }

            async fn arrived(&mut self) -> Vec<Arrived> {
                self.$topic.arrived().await
            }
        }

        impl Choosy for $world {
            fn unwelcome(&self, event: Stored) -> Stored {
                Stored { payload: vec![b' '; $max + 20_000].into(), ..event }
            }
        }
    };
}

macro_rules! breakable {
    ($world:ty, $topic:tt, $new:expr) => {
        impl Breakable for $world {
            const PATIENCE: Duration = Duration::from_secs(8);

            async fn alone() -> Self {
                $new(Topic::alone().await)
            }

            async fn kill(&mut self) {
                self.$topic.own.as_mut().unwrap().kill().await;
            }

            async fn revive(&mut self) {
                self.$topic.own.as_mut().unwrap().revive().await;
            }

            fn freeze(&mut self) {
                self.$topic.own.as_ref().unwrap().freeze();
            }

            fn thaw(&mut self) {
                self.$topic.own.as_ref().unwrap().thaw();
            }
        }
    };
}

fn options() -> KafkaOptions {
    KafkaOptions { call_timeout: Duration::from_secs(4), ..KafkaOptions::default() }
}

fn transactional(topic: Topic) -> Transactional {
    Transactional { topic, id: unique("relay") }
}

world!(Plain, 0, &[], CLIENT_BYTES_MAX, |_plain| options(), Plain);
world!(Narrow, 0, NARROW, 15_000, |_narrow| options(), Narrow);
world!(
    Transactional,
    topic,
    NARROW,
    15_000,
    |it| KafkaOptions { transactional_id: Some(it.id.clone()), ..options() },
    transactional
);
breakable!(Plain, 0, Plain);
breakable!(Transactional, topic, transactional);
