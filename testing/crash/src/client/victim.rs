//! A process that sends named operations by a real client with a journal, until it dies.

use std::{sync::Arc, time::Duration};

use hapax_client::{
    Answer, CallError, Client, Conclusion, Destinations, Proxies, PursuitEvent, ReqwestOptions,
    RetryOptions, Watch,
    journal::{EntryFilter, EntryStateTag, Force, Journal, JournalOptions, Name},
};
use hapax_core::retry::{Backoff, BreakerOptions, Jitter, Schedule, Terms};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    args::{ClientVictimArgs, VictimTask},
    check::ERRAND,
    told::Told,
};
use crate::{
    error::CrashError,
    place::Doom,
    victim::{abort_after, live, say_ready},
};

/// An attempt sets out.
const BEGUN: &str = "client.attempt.begun";
/// An attempt is over, and nothing is done about it yet.
const ENDED: &str = "client.attempt.ended";
/// The next attempt is waited for.
const PAUSING: &str = "client.attempt.pausing";
/// It is over and written down, and the caller is not told yet.
const ANSWERED: &str = "client.answered";
/// The caller was told.
const TOLD: &str = "client.told";

/// The places of a client besides those of its journal.
pub const PLACES: &[&str] = &[BEGUN, ENDED, PAUSING, ANSWERED, TOLD];

/// How long an owner that says nothing is taken to be alive.
pub(super) const LEASE: Duration = Duration::from_millis(250);

const ATTEMPTS: u32 = 6;
const ATTEMPT: Duration = Duration::from_millis(150);
const DEADLINE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(25);
const LIMIT: Duration = Duration::from_secs(20);
const OVERTIME: Duration = Duration::from_secs(20);
/// One caller in so many loses its patience and asks again.
const IMPATIENT: u32 = 3;
/// One operation in so many is declined.
const DECLINED: usize = 5;

/// Works as ordered: returns when everything is over, and not at all if it is to die.
pub fn run(args: &ClientVictimArgs) -> Result<(), CrashError> {
    abort_after(LIMIT + OVERTIME);
    live(async {
        let sender = Arc::new(Sender::new(args.clone())?);
        say_ready()?;
        match args.task {
            VictimTask::Send => sender.send_all().await,
            VictimTask::Resume => sender.resume().await,
            VictimTask::AskAgain => sender.ask_again().await,
        }
    })
}

struct Sender {
    client: Client,
    args: ClientVictimArgs,
    doom: Doom,
    ends: Instant,
}

/// Dies where an attempt is watched.
struct Watching(Doom);

impl Watch for Watching {
    fn saw(&self, event: PursuitEvent<'_>) {
        self.0.pass(match event {
            PursuitEvent::Begun { .. } => BEGUN,
            PursuitEvent::Ended { .. } => ENDED,
            PursuitEvent::Pausing { .. } => PAUSING,
        });
    }
}

impl Sender {
    fn new(args: ClientVictimArgs) -> Result<Self, CrashError> {
        let doom = Doom::new(args.die_at.clone());
        let path = args.journal();
        let options = JournalOptions { lease: LEASE, faults: doom.faults(), ..args.options() };
        let journal = Journal::open(&path, options).map_err(|error| CrashError::Open {
            address: path.display().to_string(),
            source: error.into(),
        })?;
        let direct = ReqwestOptions { proxies: Proxies::Never, ..ReqwestOptions::default() };
        let client = Client::builder()
            .journal_opened(journal)
            .retry(retry().map_err(failed)?)
            .connections(direct)
            .build()
            .map_err(failed)?;
        Ok(Self { client, args, doom, ends: Instant::now() + LIMIT })
    }

    /// Sends every operation while it finishes what others have left behind.
    async fn send_all(self: Arc<Self>) -> Result<(), CrashError> {
        let resumer = self.client.resumer(PAUSE);
        let mut all = JoinSet::new();
        for number in 0..self.args.operations {
            let sender = Arc::clone(&self);
            all.spawn(async move { sender.pursue(number).await });
        }
        let sender = Arc::clone(&self);
        all.spawn(async move { sender.errand().await });
        while let Some(ended) = all.join_next().await {
            ended.map_err(failed)??;
        }
        resumer.stop().await;
        Ok(())
    }

    async fn pursue(&self, number: usize) -> Result<(), CrashError> {
        let mut dice = fastrand::Rng::with_seed(self.args.seed ^ number as u64);
        let name = format!("op-{number}");
        let verb = if number % DECLINED == DECLINED - 1 { "decline" } else { "pay" };
        if dice.u32(..IMPATIENT) == 0 {
            let patience = Duration::from_millis(dice.u64(5..120));
            // Whatever it came to, this caller has not waited for it.
            let _ = timeout(patience, self.send(&name, verb)).await;
        }
        let times = dice.u32(1..=2);
        self.ask(&name, verb, times).await
    }

    /// An operation that nobody else asks for, forgotten once it is over.
    async fn errand(&self) -> Result<(), CrashError> {
        let name = format!("{ERRAND}{}", self.args.seed);
        self.ask(&name, "pay", 1).await?;
        let name = Name::parse(&name).map_err(CrashError::name)?;
        let journal = self.client.journal().map_err(failed)?;
        journal.forget(&name, Force::No).await.map_err(failed)?;
        Ok(())
    }

    /// Asks until somebody knows what it came to; so often for what is left without an answer.
    async fn ask(&self, name: &str, verb: &str, times: u32) -> Result<(), CrashError> {
        let mut left = times;
        while Instant::now() < self.ends {
            match self.send(name, verb).await {
                Err(CallError::Held { .. } | CallError::Journal(_)) => {}
                ended => {
                    self.doom.pass(ANSWERED);
                    let conclusion = self.tell(name, &ended)?;
                    let open = matches!(conclusion, Conclusion::Unknown | Conclusion::GaveUp);
                    left -= 1;
                    if !open || left == 0 {
                        return Ok(());
                    }
                }
            }
            sleep(PAUSE).await;
        }
        Err(CrashError::Unsettled { keys: vec![name.to_owned()] })
    }

    async fn send(&self, name: &str, verb: &str) -> Result<Answer, CallError> {
        let call = if self.args.forgetful {
            self.client.post(&self.args.url)
        } else {
            self.client.operation(name).post(&self.args.url)
        };
        let watching = Arc::new(Watching(self.doom.clone()));
        call.body(format!("{verb} {name}")).watch(watching).send().await
    }

    fn tell(
        &self,
        name: &str,
        ended: &Result<Answer, CallError>,
    ) -> Result<Conclusion, CrashError> {
        let (conclusion, answer) = match ended {
            Ok(answer) => (Conclusion::Done, answer.text()),
            Err(CallError::Refused(answer)) => (Conclusion::Refused, answer.text()),
            Err(error) => match error.conclusion() {
                Some(conclusion) => (conclusion, String::new()),
                None => return Err(failed(format!("{name}: {error:?}"))),
            },
        };
        let told = Told { name: name.to_owned(), conclusion, answer };
        told.write(&self.args.dir).map_err(CrashError::io("write down what was told"))?;
        self.doom.pass(TOLD);
        Ok(conclusion)
    }

    /// Finishes what is pending, however long its owners are taken to be alive.
    async fn resume(&self) -> Result<(), CrashError> {
        loop {
            self.client.resume().await.map_err(failed)?;
            let pending = self.names(EntryStateTag::Pending).await?;
            if pending.is_empty() {
                return Ok(());
            }
            if Instant::now() >= self.ends {
                let keys = pending.iter().map(ToString::to_string).collect();
                return Err(CrashError::Unsettled { keys });
            }
            sleep(PAUSE).await;
        }
    }

    /// Asks again for what is unknown or was given up.
    async fn ask_again(&self) -> Result<(), CrashError> {
        for state in [EntryStateTag::Unknown, EntryStateTag::GaveUp] {
            for name in self.names(state).await? {
                match self.client.take_up(name.as_str()).send().await {
                    Ok(Some(answer)) => self.tell(name.as_str(), &Ok(answer))?,
                    Ok(None) => return Err(failed(format!("{name} is gone"))),
                    Err(error) => self.tell(name.as_str(), &Err(error))?,
                };
            }
        }
        Ok(())
    }

    async fn names(&self, state: EntryStateTag) -> Result<Vec<Name>, CrashError> {
        let journal = self.client.journal().map_err(failed)?;
        let filter = EntryFilter { state: Some(state), ..EntryFilter::default() };
        let listed = journal.list(filter).await.map_err(failed)?;
        let names = listed.into_iter().map(|listed| listed.entry.map(|entry| entry.name));
        names.collect::<Result<_, _>>().map_err(failed)
    }
}

/// Many short attempts, and neither a budget nor a breaker that would stop them.
fn retry() -> Result<RetryOptions, Box<dyn std::error::Error + Send + Sync>> {
    let backoff = Backoff {
        jitter: Jitter::Full,
        base: Duration::from_millis(5),
        cap: Duration::from_millis(50),
    };
    let terms = Terms::Share { percent: 100, floor_per_second: 1000, saved_max: 1000 };
    let never = BreakerOptions { calls_min: 1_000_000, ..BreakerOptions::default() };
    Ok(RetryOptions {
        schedule: Schedule::new(backoff, ATTEMPTS)?,
        deadline: DEADLINE,
        attempt_timeout: ATTEMPT,
        destinations: Destinations::new(terms, never)?,
        ..RetryOptions::default()
    })
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> CrashError {
    CrashError::refused("go on")(error)
}
