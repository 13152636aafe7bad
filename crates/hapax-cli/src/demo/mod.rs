//! `hapax demo`: one bad day at a payments API, without Hapax and with it.
//!
//! - `plan` says who pays what and what goes wrong, `customer` and `client` do it;
//! - `api` is the payments API, `ledger` what it charged, `page` what it looks like;
//! - `gateway` is the process in front of one of them, `drive` runs the day and kills it;
//! - `report` says what came out, `invite` what to try next.

mod api;
mod client;
mod customer;
mod drive;
mod error;
mod gateway;
mod invite;
mod ledger;
mod order;
mod page;
mod plan;
mod progress;
mod report;
mod stop;

use std::{
    io::{self, Write},
    sync::Arc,
};

use tempfile::TempDir;
use tokio::{runtime::Builder, sync::watch, task::block_in_place};

pub(crate) use self::error::DemoError;
use self::{
    api::Api,
    drive::{Killer, drive},
    gateway::Gateway,
    ledger::Ledger,
    page::Shown,
    plan::{Manner, Plan},
    progress::Progress,
    report::{Report, Side},
    stop::Stop,
};
use crate::args::DemoArgs;

const WITHOUT: &str = "without Hapax";
const WITH: &str = "with Hapax";

/// Shows it. Says whether every payment behind the gateway was charged exactly once.
pub(crate) fn run(args: &DemoArgs) -> Result<bool, DemoError> {
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(DemoError::Runtime)?;
    runtime.block_on(async {
        let mut stop = Stop::listen().map_err(DemoError::Runtime)?;
        let played = async {
            let mut stage = Stage::set(args).await?;
            let report = stage.play().await?;
            report.print(&mut io::stdout().lock()).map_err(DemoError::Print)?;
            Ok::<_, DemoError>((stage, report))
        };
        let (stage, report) = tokio::select! {
            played = played => played?,
            () = stop.heard() => return Err(DemoError::Interrupted),
        };
        if args.keep {
            let text = invite::text(&stage.gateway)?;
            say(&text);
            stop.heard().await;
            say("\nStopped. Nothing is left behind.");
        } else {
            say("Look at it and try it yourself: hapax demo --keep");
        }
        Ok(report.is_well())
    })
}

/// Everything that runs. The fields are dropped in this order: the gateway before its files.
struct Stage {
    gateway: Gateway,
    behind: Api,
    direct: Api,
    ledger_behind: Arc<Ledger>,
    ledger_direct: Arc<Ledger>,
    plan: Arc<Plan>,
    _directory: TempDir,
}

impl Stage {
    async fn set(args: &DemoArgs) -> Result<Self, DemoError> {
        let plan = Arc::new(Plan::new(args.seed, args.payments));
        let directory = tempfile::Builder::new().prefix("hapax-demo-").tempdir();
        let directory = directory.map_err(DemoError::Directory)?;
        let (ledger_direct, ledger_behind) = (Arc::<Ledger>::default(), Arc::<Ledger>::default());
        let shown = || {
            [(WITHOUT, &ledger_direct), (WITH, &ledger_behind)]
                .map(|(name, ledger)| Shown { name, ledger: Arc::clone(ledger) })
                .to_vec()
        };
        let start = |ledger: &Arc<Ledger>| Api::start(Arc::clone(ledger), &plan, shown());
        let direct = start(&ledger_direct).await.map_err(DemoError::Api)?;
        let behind = start(&ledger_behind).await.map_err(DemoError::Api)?;
        let gateway = block_in_place(|| Gateway::start(behind.address, directory.path()))?;
        say(&prologue(&plan, args.seed));
        let _directory = directory;
        Ok(Self { gateway, behind, direct, ledger_behind, ledger_direct, plan, _directory })
    }

    /// Lets the day pass at both places at once.
    async fn play(&mut self) -> Result<Report, DemoError> {
        let payments = self.plan.payments.len();
        let progress = Progress::new();
        let (without, with) = (progress.bar(WITHOUT, payments), progress.bar(WITH, payments));
        let (done_direct, done_behind) = (watch::Sender::new(0), watch::Sender::new(0));
        let mut kills = 0;
        let address = self.gateway.address;
        let killer = Killer {
            gateway: &mut self.gateway,
            payments,
            done: done_behind.subscribe(),
            withheld: self.behind.withheld(),
            kills: &mut kills,
            progress: &progress,
        };
        let driving = async {
            tokio::try_join!(
                drive(&self.plan, self.direct.address, &done_direct, &without),
                drive(&self.plan, address, &done_behind, &with),
            )
        };
        let (seen_direct, seen_behind) = tokio::select! {
            seen = driving => seen?,
            killed = killer.kill() => match killed? {},
        };
        progress.clear();
        let side = |seen, ledger: &Ledger| Side { seen, balance: ledger.balance() };
        Ok(Report {
            payments,
            customers: self.plan.customers(),
            without: side(seen_direct, &self.ledger_direct),
            with: side(seen_behind, &self.ledger_behind),
            faults: self.ledger_behind.faults(&self.plan),
            kills,
        })
    }
}

fn prologue(plan: &Plan, seed: u64) -> String {
    let count = |number: usize, what: &str| {
        let ending = if number == 1 { "" } else { "s" };
        format!("{number} {what}{ending}")
    };
    let clients = |manner| count(plan.count(manner), "client");
    format!(
        "Two copies of a careless payments API, which charges every request it gets: one on its own,\n\
         one behind the Hapax gateway. Both have the same bad day (seed {seed}):\n\
         \n  {payments} wanted by {customers}, whose clients lose patience and try again\
         \n  {dying} dying while they wait, and replaced\
         \n  {crowding} sending three times at once\
         \n  {mistaken} using one key for two amounts\
         \n  late answers, and connections dropped after the charge was made\n",
        payments = count(plan.payments.len(), "payment"),
        customers = count(plan.customers(), "customer"),
        dying = clients(Manner::Dies),
        crowding = clients(Manner::Crowds),
        mistaken = clients(Manner::Mistakes),
    )
}

fn say(what: &str) {
    // Nobody is left to be told when the terminal is gone.
    let _ = writeln!(io::stdout(), "{what}");
}
