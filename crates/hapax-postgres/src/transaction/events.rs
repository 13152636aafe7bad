//! Events that wait for the commit of their transaction, and how they are written.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicI64, Ordering::Relaxed},
};

use hapax_core::{
    Event, Salt,
    limits::{CLAIM_ROUNDS_MAX, OUTBOX_SEGMENTS},
    outbox::{Lane, Ringer},
};

use hapax_sql::{ResultRow as _, Session, TransactionFault, Value};

/// Events that one statement writes.
const AT_ONCE_MAX: usize = 256;

const EMIT: &str = include_str!("../sql/tx_emit.sql");
const EMIT_ONE: &str = include_str!("../sql/tx_emit_one.sql");
/// Where the log is written now.
const SEGMENT: &str = "SELECT hapax.outbox_segment()";

/// For each table of the ring, the statement that writes one event, and the one that writes several.
static STATEMENTS: LazyLock<Vec<[String; 2]>> = LazyLock::new(|| {
    let into = |table: i64| {
        [EMIT_ONE, EMIT].map(|statement| statement.replace("{table}", &table.to_string()))
    };
    (0..OUTBOX_SEGMENTS).map(into).collect()
});

/// The log of a database, as far as those who write it here know it. Clones share that.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventLog {
    ringer: Option<Ringer>,
    /// Where it was last seen to be written.
    segment: Arc<AtomicI64>,
}

impl EventLog {
    /// The same, ringing this one after each commit that wrote something.
    pub(crate) fn ringing(self, ringer: Ringer) -> Self {
        Self { ringer: Some(ringer), ..self }
    }
}

/// Events of one transaction.
///
/// They are written right before the commit, sorted by topic and key: the locks that keep each
/// key's order are then taken in the same order by everybody, so that no two transactions wait for
/// each other.
#[derive(Debug)]
pub(crate) struct EmittedEvents {
    waiting: Vec<Event>,
    /// Whether some were written.
    written: bool,
    log: EventLog,
    salt: Salt,
}

impl EmittedEvents {
    /// None yet.
    pub(crate) fn none(log: &EventLog, salt: Salt) -> Self {
        Self { waiting: Vec::new(), written: false, log: log.clone(), salt }
    }

    /// These.
    pub(crate) fn of(log: &EventLog, salt: Salt, waiting: Vec<Event>) -> Self {
        Self { waiting, ..Self::none(log, salt) }
    }

    /// The transaction was committed.
    pub(crate) fn committed(&self) {
        if let Some(ringer) = self.log.ringer.as_ref().filter(|_| self.written) {
            ringer.ring();
        }
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.waiting.push(event);
    }

    /// Writes those that wait.
    pub(crate) async fn publish(
        &mut self,
        session: &mut impl Session,
    ) -> Result<(), TransactionFault> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.written = true;
        let waiting = self.sorted();
        for events in waiting.chunks(AT_ONCE_MAX) {
            let headers: Vec<_> = events.iter().map(json_object).collect();
            self.write(session, &EventColumns::of(&self.salt, events, &headers)).await?;
        }
        Ok(())
    }

    /// Writes those that wait in a transaction of their own: one statement is one by itself.
    pub(crate) async fn publish_alone(
        &mut self,
        session: &mut impl Session,
    ) -> Result<(), TransactionFault> {
        if self.waiting.len() <= AT_ONCE_MAX {
            return self.publish(session).await;
        }
        session.ask("BEGIN", &[]).await?;
        self.publish(session).await?;
        session.ask("COMMIT", &[]).await.map(|_| ())
    }

    /// Those that wait, in the order they are written in.
    fn sorted(&mut self) -> Vec<Event> {
        let mut waiting = std::mem::take(&mut self.waiting);
        // Stable: events of one key stay in the order they were emitted in.
        waiting.sort_by(|a, b| (a.topic(), a.key()).cmp(&(b.topic(), b.key())));
        waiting
    }

    /// Writes these together, where the log is written now.
    async fn write(
        &self,
        session: &mut impl Session,
        events: &EventColumns<'_>,
    ) -> Result<(), TransactionFault> {
        for _ in 0..CLAIM_ROUNDS_MAX {
            let segment = self.log.segment.load(Relaxed);
            let written = session.ask(events.statement(segment), &events.values(segment)).await?;
            if !written.is_empty() {
                return Ok(());
            }
            let rows = session.ask(SEGMENT, &[]).await?;
            let now = rows.first().ok_or_else(|| TransactionFault::unexpected(0))?.number(0)?;
            self.log.segment.store(now, Relaxed);
        }
        Err(TransactionFault::conflict("the log moved on each time"))
    }
}

/// Events as columns.
#[derive(Debug, Default)]
struct EventColumns<'a> {
    locks: Vec<i64>,
    lanes: Vec<i64>,
    topics: Vec<&'a str>,
    keys: Vec<&'a str>,
    content_types: Vec<&'a str>,
    headers: Vec<&'a str>,
    payloads: Vec<&'a [u8]>,
}

impl<'a> EventColumns<'a> {
    fn of(salt: &Salt, events: &'a [Event], headers: &'a [String]) -> Self {
        let mut columns = Self::default();
        for (event, headers) in events.iter().zip(headers) {
            let (topic, key) = (event.topic(), event.key());
            columns.locks.push(salt.lock_number("event", &format!("{topic}\n{key}")));
            columns.lanes.push(Lane::of(topic, key).number().into());
            columns.topics.push(topic);
            columns.keys.push(key);
            columns.content_types.push(event.payload_type());
            columns.headers.push(headers);
            columns.payloads.push(event.payload());
        }
        columns
    }

    /// The statement that writes them into this segment.
    fn statement(&self, segment: i64) -> &'static str {
        let table = usize::try_from(segment.rem_euclid(OUTBOX_SEGMENTS)).unwrap_or(0);
        &STATEMENTS[table][usize::from(self.locks.len() > 1)]
    }

    /// What the statement takes, in its order.
    fn values(&self, segment: i64) -> [Value<'_>; 8] {
        if self.locks.len() == 1 {
            return [
                segment.into(),
                self.locks[0].into(),
                self.lanes[0].into(),
                self.topics[0].into(),
                self.keys[0].into(),
                self.content_types[0].into(),
                self.headers[0].into(),
                self.payloads[0].into(),
            ];
        }
        [
            segment.into(),
            Value::Numbers(&self.locks),
            Value::Numbers(&self.lanes),
            Value::Texts(&self.topics),
            Value::Texts(&self.keys),
            Value::Texts(&self.content_types),
            Value::Texts(&self.headers),
            Value::ManyBytes(&self.payloads),
        ]
    }
}

/// The headers as a JSON object of texts.
fn json_object(event: &Event) -> String {
    let mut json = String::from("{");
    for (at, header) in event.headers().iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        quote(&mut json, &header.name);
        json.push(':');
        quote(&mut json, &String::from_utf8_lossy(&header.value));
    }
    json.push('}');
    json
}

fn quote(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            // PostgreSQL keeps no zero in text; what cannot be kept is marked, as everywhere.
            '\0' => json.push('\u{fffd}'),
            control if control < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => json.push(other),
        }
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sorted_by_key_and_keep_their_order_within_it() {
        let salt = Salt::from_bytes([7; 32]);
        let mut events = EmittedEvents::none(&EventLog::default(), salt);
        for (key, payload) in [("b", "1"), ("a", "2"), ("b", "3"), ("a", "4")] {
            events.push(Event::new("t", key, payload).unwrap());
        }
        let sorted = events.sorted();
        let payloads: Vec<_> = sorted.iter().map(|event| &event.payload()[..]).collect();
        assert_eq!(payloads, [b"2", b"4", b"1", b"3"]);
        assert!(events.sorted().is_empty());
    }

    #[test]
    fn headers_become_an_object_whatever_they_hold() {
        let event = Event::new("t", "k", "{}").unwrap();
        let event = event.header("a\"b", "c\\d\n\u{e9}").unwrap().header("x", "").unwrap();
        assert_eq!(json_object(&event), "{\"a\\\"b\":\"c\\\\d\\u000a\u{e9}\",\"x\":\"\"}");
    }
}
