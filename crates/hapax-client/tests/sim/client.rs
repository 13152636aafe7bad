//! A client: the real one, with the real journal, killed and started again at any moment.

use std::{fs, time::Duration};

use futures_util::{StreamExt, stream};
use hapax_client::{
    Answer, CallError, Client, RetryOptions,
    journal::{EntryFilter, EntryStateTag, Journal, JournalOptions, Name},
};
use hapax_core::retry::{Backoff, Conclusion, Jitter, Schedule};
use tokio::time::{Instant, sleep};

use super::{
    network::Network,
    plan::{TROUBLED_FOR, Variation},
    world::{Word, World},
};

const URL: &str = "http://server/charges";
pub(crate) const DEADLINE: Duration = Duration::from_secs(24);
const ATTEMPT: Duration = Duration::from_secs(2);
const JOURNAL_LEASE: Duration = Duration::from_secs(2);
const RESUME_EVERY: Duration = Duration::from_secs(3);
const AT_ONCE: usize = 2;

/// Has everything on its list done, as far as it can, and then looks after what is pending.
pub(crate) async fn run(world: World, number: usize) -> turmoil::Result {
    world.note(&format!("client {number} starts"));
    let group = world.plan().group(number);
    if world.plan().variation == Variation::JournalLost && !world.is_healed() {
        let _ = fs::remove_file(world.journal_path(group));
    }
    let client = client(&world, number)?;
    if world.is_healed() {
        return finish(&world, &client, group).await;
    }
    let _resumer = client.resumer(RESUME_EVERY);
    let names = stream::iter(world.plan().names(group));
    names
        .for_each_concurrent(AT_ONCE, |name| {
            let (world, client) = (&world, &client);
            async move {
                sleep(world.up_to(TROUBLED_FOR / 3)).await;
                send(world, client, &name).await;
            }
        })
        .await;
    std::future::pending().await
}

/// Nothing goes wrong any more: what is pending is resumed, and everything is asked for once more.
async fn finish(world: &World, client: &Client<Network>, group: usize) -> turmoil::Result {
    let pending = EntryFilter { state: Some(EntryStateTag::Pending), ..EntryFilter::default() };
    while !client.journal()?.list(pending).await?.is_empty() {
        client.resume().await?;
        sleep(Duration::from_secs(1)).await;
    }
    for name in world.plan().names(group) {
        send(world, client, &name).await;
    }
    Ok(())
}

fn client(world: &World, number: usize) -> turmoil::Result<Client<Network>> {
    let journal = JournalOptions {
        lease: JOURNAL_LEASE,
        clock: world.clock(number),
        ..JournalOptions::default()
    };
    let journal = Journal::open_inline(world.journal_path(world.plan().group(number)), journal)?;
    let backoff = Backoff {
        jitter: Jitter::Full,
        base: Duration::from_millis(100),
        cap: Duration::from_secs(1),
    };
    let retry = RetryOptions {
        schedule: Schedule::new(backoff, 8)?,
        deadline: DEADLINE,
        attempt_timeout: ATTEMPT,
        ..RetryOptions::default()
    };
    let builder = Client::builder().retry(retry).journal_opened(journal);
    Ok(builder.build_on(Network { world: world.clone() })?)
}

async fn send(world: &World, client: &Client<Network>, name: &str) {
    loop {
        let began = Instant::now();
        let mut call = client.operation(name).post(URL).body(name.to_owned());
        if is_new(client, name).await {
            // Chosen here, so that the same seed gives the same keys; afterwards the journal has it.
            call = call.key(world.draw_key());
        }
        let ended = call.send().await;
        match word(&ended) {
            Some(word) => {
                if let Ok(answer) = &ended {
                    world.count(|counts| counts.replays += u64::from(answer.replayed()));
                }
                return world.heard(name, word, began.elapsed());
            }
            None => {
                let Err(CallError::Held { ends_in, .. }) = ended else {
                    panic!("{name}: {ended:?}");
                };
                sleep(ends_in.max(Duration::from_millis(200))).await;
            }
        }
    }
}

async fn is_new(client: &Client<Network>, name: &str) -> bool {
    let journal = client.journal().unwrap();
    journal.find(&Name::parse(name).unwrap()).await.unwrap().is_none()
}

/// What it came to; `None` if somebody else pursues it.
fn word(ended: &Result<Answer, CallError>) -> Option<Word> {
    let error = match ended {
        Ok(answer) => return Some(Word::Done { receipt: answer.text().parse().unwrap_or(0) }),
        Err(error) => error,
    };
    error.conclusion().map(|conclusion| match conclusion {
        Conclusion::Done | Conclusion::Unknown => Word::Unknown,
        Conclusion::Refused => Word::Refused,
        Conclusion::GaveUp => Word::GaveUp,
    })
}
