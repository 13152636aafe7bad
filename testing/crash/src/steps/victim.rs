//! A process that runs workflows of four steps, until it dies.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{
    AttemptAnswer, Body, DynStore, Key, Operation, Outcome, Policy, Recovery, RetainFrom,
    Retention, Scope, Tenant,
};
use hapax_engine::{Engine, Options, Probed, Ran, Run, WorkflowError, Workflows, steps::RunError};
use tokio::time::{Instant, sleep};

use super::{args::StepsVictimArgs, ledger::Ledger};
use crate::{error::CrashError, place::Doom, victim::live, watched::Watched};

/// Before an effect, after it, and after its result was kept.
pub const PLACES: &[&str] = &[
    "charge.before",
    "charge.after",
    "charge.kept",
    "record.before",
    "record.after",
    "record.kept",
    "publish.before",
    "publish.after",
    "publish.probed",
    "publish.kept",
    "mail.before",
    "mail.after",
    "mail.kept",
    "answered",
];

const LEASE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(60);

/// The operation with this number.
pub(super) fn operation(scope: &str, number: usize) -> Result<Operation, CrashError> {
    let tenant = Tenant::parse("crash").map_err(CrashError::name)?;
    let scope = Scope::parse(scope).map_err(CrashError::name)?;
    let key = Key::parse(format!("payment-{number}")).map_err(CrashError::name)?;
    Ok(Operation::new(tenant, scope, key))
}

/// Works as ordered: returns when every operation is finished, and not at all if it is to die.
pub fn run(args: &StepsVictimArgs) -> Result<(), CrashError> {
    let doom = Doom::new(args.die_at.clone());
    live(async {
        let store = args.store.open(doom.faults()).await?;
        work(store, args, doom).await
    })
}

async fn work(store: DynStore, args: &StepsVictimArgs, doom: Doom) -> Result<(), CrashError> {
    let ledger = Ledger::open(&args.dir).map_err(CrashError::io("open the books"))?;
    let payment = Arc::new(Payment { ledger, doom: doom.clone(), never_probe: args.never_probe });
    let workflows = Workflows::new().on(&args.scope, policy()?, move |run| {
        let payment = Arc::clone(&payment);
        async move { payment.pay(run).await }
    });
    let options = Options {
        finisher: Some(workflows.finisher()),
        sweep_every: Duration::from_millis(50),
        ..Options::default()
    };
    let engine = Engine::start(Watched::new(store, doom.clone()), options);
    let mut callers = Vec::new();
    for number in 0..args.keys {
        let operation = operation(&args.scope, number)?;
        let (engine, workflows, doom) = (engine.clone(), workflows.clone(), doom.clone());
        callers.push(tokio::spawn(async move {
            let finished = ask(&engine, &workflows, &operation).await;
            doom.pass("answered");
            finished.map_err(|unfinished| (operation, unfinished))
        }));
    }
    let mut keys = Vec::new();
    for caller in callers {
        if let Ok(Err((operation, unfinished))) = caller.await {
            keys.push(format!("{operation:?}: {unfinished}"));
        }
    }
    if keys.is_empty() { Ok(()) } else { Err(CrashError::Unsettled { keys }) }
}

/// Asks until it is answered.
async fn ask(engine: &Engine, workflows: &Workflows, operation: &Operation) -> Result<(), String> {
    let give_up_at = Instant::now() + LIMIT;
    let request = Bytes::copy_from_slice(operation.key().as_str().as_bytes());
    loop {
        let ran = workflows.run(engine, operation, request.clone()).await;
        match &ran {
            Ok(Ran::Answered(_) | Ran::Replayed(_)) => return Ok(()),
            Ok(Ran::Busy { .. } | Ran::Later { .. })
            | Err(RunError::Begin(_) | RunError::Settle(_))
                if Instant::now() < give_up_at => {}
            Ok(_) | Err(_) => return Err(format!("{ran:?}")),
        }
        sleep(PAUSE).await;
    }
}

fn policy() -> Result<Policy, CrashError> {
    let (window, tombstone) = (Duration::from_secs(3600), Duration::ZERO);
    let retention = Retention { window, from: RetainFrom::Creation, tombstone };
    Policy::new(LEASE, retention, Recovery::Resend).map_err(|error| {
        CrashError::io("make a policy")(io::Error::new(io::ErrorKind::InvalidInput, error))
    })
}

/// Charge, record, publish, mail.
struct Payment {
    ledger: Ledger,
    doom: Doom,
    never_probe: bool,
}

impl Payment {
    async fn pay(&self, run: Run) -> Result<AttemptAnswer, WorkflowError> {
        let payment = run.operation().key().as_str();
        let charge = |key: Key| async move {
            self.between("charge", || self.ledger.charge(&key, payment)).await
        };
        let receipt: String = run.step("charge", charge).await?;
        self.doom.pass("charge.kept");

        let record = |_| self.between("record", || Ok(fastrand::u64(..)));
        let number: u64 = run.step("record", record).await?;
        self.doom.pass("record.kept");

        let publish = |_| self.between("publish", || self.ledger.publish(payment));
        let publish = run.step("publish", publish);
        let publish = if self.never_probe { publish } else { publish.probe(|_| self.ask(payment)) };
        publish.await?;
        self.doom.pass("publish.kept");

        let mail = |key: Key| async move {
            self.between("mail", || self.ledger.mail(&key, payment)).await
        };
        let _: String = run.step("mail", mail).await?;
        self.doom.pass("mail.kept");
        let body = Body::Kept(format!("{receipt} {number}").into());
        let outcome = Outcome::new(201, Vec::new(), body).map_err(WorkflowError::later)?;
        Ok(AttemptAnswer::completed(outcome))
    }

    async fn between<T>(
        &self,
        name: &str,
        effect: impl FnOnce() -> io::Result<T> + Send,
    ) -> Result<T, io::Error> {
        self.doom.pass(&format!("{name}.before"));
        let happened = effect()?;
        self.doom.pass(&format!("{name}.after"));
        Ok(happened)
    }

    async fn ask(&self, payment: &str) -> Probed<()> {
        let published = self.ledger.is_published(payment);
        self.doom.pass("publish.probed");
        match published {
            Ok(true) => Probed::Happened(()),
            Ok(false) => Probed::DidNot,
            Err(_) => Probed::Unknown,
        }
    }
}
