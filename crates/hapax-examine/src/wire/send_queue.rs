//! What the kernel has of ours and the other side has not yet.

use std::{fs, time::Duration};

use tokio::time::{Instant, sleep};

/// The longest that is waited for the other side to have it.
const DRAIN_PATIENCE: Duration = Duration::from_millis(500);
/// How long is waited where the kernel does not say.
const UNKNOWN_DRAIN: Duration = Duration::from_millis(5);
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Waits until the other side's kernel has all that was written to connections of these ports (ours, theirs).
///
/// It may take some 40 ms, as long as the other side may wait before it confirms. The number is that of `SIOCOUTQ`, read from the tables of the kernel because asking for it needs unsafe code. Where
/// there are no such tables it is a short wait, which is enough on one machine and for most networks.
pub(super) async fn drain(ports: &[(u16, u16)]) {
    let until = Instant::now() + DRAIN_PATIENCE;
    loop {
        match is_empty(ports) {
            None => return sleep(UNKNOWN_DRAIN).await,
            Some(true) => return,
            Some(false) if Instant::now() >= until => return,
            Some(false) => sleep(Duration::from_millis(1)).await,
        }
    }
}

/// Whether nothing is left to be taken; nothing if the kernel does not say.
fn is_empty(ports: &[(u16, u16)]) -> Option<bool> {
    let tables: Vec<_> = TABLES.iter().filter_map(|table| fs::read_to_string(table).ok()).collect();
    if tables.is_empty() {
        return None;
    }
    let mut queues = tables.iter().flat_map(|table| table.lines().filter_map(queue));
    Some(!queues.any(|(pair, bytes)| bytes > 0 && ports.contains(&pair)))
}

/// The ports of a line of the table, ours first, and the bytes that wait to be taken.
fn queue(line: &str) -> Option<((u16, u16), u64)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let port = |field: &str| u16::from_str_radix(field.rsplit_once(':')?.1, 16).ok();
    let (ours, theirs) = (port(fields.next()?)?, port(fields.next()?)?);
    let (waiting, _) = fields.nth(1)?.split_once(':')?;
    Some(((ours, theirs), u64::from_str_radix(waiting, 16).ok()?))
}
