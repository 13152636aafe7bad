//! `hapax demo`: one bad day at a payments API, without Hapax and with it.
//!
//! - `plan` says who pays what and what goes wrong, `customer` and `client` do it;
//! - `api` is the payments API, `ledger` what it charged, `traffic` what it and its clients saw;
//! - `gateway` is the `process` in front of one of them, `drive` runs the day and kills it;
//! - `report` says what came out, `invite` what to try next, `console` is the page to try it on.

mod api;
mod client;
mod console;
mod customer;
mod drive;
mod error;
mod gateway;
mod invite;
mod ledger;
mod order;
mod plan;
mod process;
mod progress;
mod report;
mod traffic;

use std::{
    io::{self, Write},
    net::SocketAddr,
    sync::Arc,
};

use tempfile::TempDir;
use tokio::{net::TcpListener, runtime::Builder, sync::watch, task::block_in_place};

pub(crate) use self::error::DemoError;
use self::{
    api::Api,
    console::Console,
    drive::{Killer, drive},
    gateway::DemoGateway,
    ledger::ChargeLedger,
    plan::{DayPlan, Manner},
    progress::DemoProgress,
    report::{DayReport, Side},
    traffic::{Storefront, TrafficLog},
};
use crate::{args::DemoArgs, signals::Signals};

const WITHOUT: &str = "without Hapax";
const WITH: &str = "with Hapax";

/// Shows it. Says whether every payment behind the gateway was charged exactly once.
pub(crate) fn run(args: &DemoArgs) -> Result<bool, DemoError> {
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(DemoError::Runtime)?;
    runtime.block_on(async {
        let mut signals = Signals::listen().map_err(DemoError::Runtime)?;
        let played = async {
            let mut stage = DemoStage::set(args).await?;
            let report = stage.play().await?;
            report.print(&mut io::stdout().lock()).map_err(DemoError::Print)?;
            Ok::<_, DemoError>((stage, report))
        };
        let (stage, report) = tokio::select! {
            played = played => played?,
            _ = signals.next() => return Err(DemoError::Interrupted),
        };
        if args.keep {
            let listener = TcpListener::bind("127.0.0.1:0").await.map_err(DemoError::Page)?;
            let page = listener.local_addr().map_err(DemoError::Page)?;
            let invitation = invite::text(&stage.gateway, page)?;
            let _console = Console::open(listener, page, stage)?;
            say(&invitation);
            signals.next().await;
            say("\nStopped. Nothing is left behind.");
        } else {
            say("Look at it and try it yourself: hapax demo --keep");
        }
        Ok(report.is_well())
    })
}

/// Everything that runs. The fields are dropped in this order: the gateway before its files.
struct DemoStage {
    gateway: DemoGateway,
    behind: Venue,
    direct: Venue,
    plan: Arc<DayPlan>,
    directory: TempDir,
}

/// A payments API, and what is known about it.
#[derive(Debug)]
struct Venue {
    name: &'static str,
    api: Api,
    ledger: Arc<ChargeLedger>,
    traffic: Arc<TrafficLog>,
}

impl Venue {
    async fn start(name: &'static str, plan: &DayPlan) -> Result<Self, DemoError> {
        let (ledger, traffic) = (Arc::<ChargeLedger>::default(), Arc::<TrafficLog>::default());
        let api = Api::start(Arc::clone(&ledger), Arc::clone(&traffic)).await;
        let api = api.map_err(DemoError::Api)?;
        api.plan_answers(&plan.payments);
        Ok(Self { name, api, ledger, traffic })
    }

    /// Where its customers pay: here, or at the gateway in front of it.
    fn storefront(&self, address: SocketAddr) -> Storefront {
        Storefront { address, traffic: Arc::clone(&self.traffic) }
    }
}

impl DemoStage {
    async fn set(args: &DemoArgs) -> Result<Self, DemoError> {
        let plan = Arc::new(DayPlan::new(args.seed, args.payments));
        let directory = tempfile::Builder::new().prefix("hapax-demo-").tempdir();
        let directory = directory.map_err(DemoError::Directory)?;
        let direct = Venue::start(WITHOUT, &plan).await?;
        let behind = Venue::start(WITH, &plan).await?;
        let gateway = block_in_place(|| DemoGateway::start(behind.api.address, directory.path()))?;
        say(&prologue(&plan, args.seed));
        Ok(Self { gateway, behind, direct, plan, directory })
    }

    /// Lets the day pass at both places at once.
    async fn play(&mut self) -> Result<DayReport, DemoError> {
        let payments = self.plan.payments.len();
        let progress = DemoProgress::new();
        let (without, with) = (progress.bar(WITHOUT, payments), progress.bar(WITH, payments));
        let (done_direct, done_behind) = (watch::Sender::new(0), watch::Sender::new(0));
        let mut kills = 0;
        let direct = self.direct.storefront(self.direct.api.address);
        let behind = self.behind.storefront(self.gateway.address);
        let killer = Killer {
            gateway: &mut self.gateway,
            payments,
            done: done_behind.subscribe(),
            withheld: self.behind.api.withheld(),
            kills: &mut kills,
            progress: &progress,
        };
        let driving = async {
            tokio::try_join!(
                drive(&self.plan, &direct, &done_direct, &without),
                drive(&self.plan, &behind, &done_behind, &with),
            )
        };
        let (seen_direct, seen_behind) = tokio::select! {
            seen = driving => seen?,
            killed = killer.kill() => match killed? {},
        };
        progress.clear();
        let side = |seen, ledger: &ChargeLedger| Side { seen, balance: ledger.balance() };
        Ok(DayReport {
            payments,
            customers: self.plan.customers(),
            without: side(seen_direct, &self.direct.ledger),
            with: side(seen_behind, &self.behind.ledger),
            faults: self.behind.ledger.faults(&self.plan),
            kills,
        })
    }
}

fn prologue(plan: &DayPlan, seed: u64) -> String {
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
