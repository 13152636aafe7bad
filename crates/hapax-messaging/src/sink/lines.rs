//! Events as lines of JSON, for pipes, files and people.

use std::time::Duration;

use bytes::{Buf, BytesMut};
use hapax_core::outbox::Stored;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt, Stdout},
    sync::Mutex,
    time::timeout,
};

use super::{CloudEvents, Outage, Sink, Verdict};

/// Writes each event as one line: a CloudEvent in JSON.
///
/// An event is taken once its line has left this process: for a pipe or a file that means the
/// operating system has it. Lines are never torn by an outage: what was begun is ended first.
///
/// ```
/// use hapax_messaging::sink::{CloudEvents, Lines};
///
/// let sink = Lines::stdout().events(CloudEvents::from_source("/shop/orders")?);
/// # drop(sink);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lines<W> {
    events: CloudEvents,
    within: Duration,
    output: Mutex<LinesWriter<W>>,
}

impl Lines<Stdout> {
    /// To this program's standard output.
    pub fn stdout() -> Self {
        Self::to(tokio::io::stdout())
    }
}

impl<W> Lines<W> {
    /// To this writer, which nobody else writes to.
    pub fn to(writer: W) -> Self {
        let output = Mutex::new(LinesWriter { writer, begun: BytesMut::new() });
        Self { events: CloudEvents::default(), within: Duration::from_secs(30), output }
    }

    /// The same with events that say where they come from.
    #[must_use]
    pub fn events(self, events: CloudEvents) -> Self {
        Self { events, ..self }
    }

    /// The same with another time a call may take until it is an outage; 30 seconds if nothing is
    /// said.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Sink for Lines<W> {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        let mut lines = BytesMut::new();
        for event in events {
            lines.extend_from_slice(self.events.structured(event).as_bytes());
            lines.extend_from_slice(b"\n");
        }
        let writing = async { self.output.lock().await.write(lines).await };
        match timeout(self.within, writing).await {
            Ok(Ok(())) => Ok(vec![Verdict::Taken; events.len()]),
            Ok(Err(error)) => Err(Outage::new(error)),
            Err(elapsed) => Err(Outage::new(elapsed)),
        }
    }
}

#[derive(Debug)]
struct LinesWriter<W> {
    writer: W,
    /// What is left of a line whose beginning was written when its call ended.
    begun: BytesMut,
}

impl<W: AsyncWrite + Unpin> LinesWriter<W> {
    /// Writes all of it. When this is dropped, or fails, the line it was in is ended by the next.
    async fn write(&mut self, mut lines: BytesMut) -> std::io::Result<()> {
        while !self.begun.is_empty() {
            let count = self.writer.write(&self.begun).await?;
            advance(&mut self.begun, count)?;
        }
        while !lines.is_empty() {
            let count = self.writer.write(&lines).await?;
            let within_a_line = count > 0 && lines.get(count - 1) != Some(&b'\n');
            advance(&mut lines, count)?;
            let rest = lines.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            self.begun.clear();
            if within_a_line {
                self.begun.extend_from_slice(&lines[..rest]);
            }
        }
        self.begun.clear();
        self.writer.flush().await
    }
}

fn advance(bytes: &mut BytesMut, count: usize) -> std::io::Result<()> {
    if count == 0 {
        return Err(std::io::ErrorKind::WriteZero.into());
    }
    bytes.advance(count);
    Ok(())
}
