//! Webhooks, to a receiver that verifies what it gets.

mod answers;
mod receiver;
mod signature;

use std::time::Duration;

use hapax_core::outbox::Stored;
use hapax_messaging::sink::{
    CloudEvents,
    webhook::{Secret, Webhook, WebhookOptions},
};

use self::receiver::{Receiver, SECRET};
use super::{
    suite::{sink_conformance, sink_copies, sink_outages, sink_refusals},
    world::{Arrived, Breakable, Choosy, World},
};

sink_conformance!(Receiver);
sink_refusals!(Receiver);
sink_copies!(Receiver);
sink_outages!(Receiver);

impl World for Receiver {
    type Sink = Webhook;

    const PAYLOAD_BYTES_MAX: usize = 1 << 20;

    async fn open() -> Self {
        Self::start()
    }

    fn topic(&self) -> String {
        "orders.placed".to_owned()
    }

    async fn sink(&self) -> Webhook {
        let options = WebhookOptions {
            events: CloudEvents::from_source("/suite").unwrap(),
            attempt_timeout: Duration::from_secs(2),
            ..WebhookOptions::default()
        };
        Webhook::new(&self.address(), vec![Secret::parse(SECRET).unwrap()], options).unwrap()
    }

    async fn arrived(&mut self) -> Vec<Arrived> {
        self.taken().iter().map(receiver::Taken::arrived).collect()
    }
}

impl Choosy for Receiver {
    fn unwelcome(&self, event: Stored) -> Stored {
        Stored { payload: "unwelcome".into(), ..event }
    }
}

impl Breakable for Receiver {
    const PATIENCE: Duration = Duration::from_secs(5);

    async fn alone() -> Self {
        Self::start()
    }

    async fn kill(&mut self) {
        self.stop();
    }

    async fn revive(&mut self) {
        self.listen();
    }

    fn freeze(&mut self) {
        self.hold(true);
    }

    fn thaw(&mut self) {
        self.hold(false);
    }
}
