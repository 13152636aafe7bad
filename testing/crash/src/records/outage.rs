//! The database server itself stops at once in mid-load, and comes back.

use std::{thread, time::Duration};

use hapax_services::postgres::{Mode, Server};

use super::{check::RecordViolation, hunt::RecordHunt, report::RecordReport, scene::Scene};
use crate::{
    error::CrashError,
    hunt::{Home, VictimEnd},
};

/// So many that a victim is still busy with them when the server goes.
const KEYS: usize = 420;
const STOP_MIN_MS: u64 = 10;
const STOP_MAX_MS: u64 = 120;

/// Stops the server as often as the hunt wants, checking every time that everything settles after
/// it is back. Every other time one of the two victims dies while the server is down.
pub(super) fn stop_under_load(
    hunt: &RecordHunt,
    server: &mut Server,
    report: &mut RecordReport,
    progress: &(dyn Fn(&RecordReport) + Sync),
) -> Result<(), CrashError> {
    if hunt.server_stops == 0 {
        return Ok(());
    }
    let mut home = Home::make(Some(&server.url()))?;
    let mut dice = fastrand::Rng::with_seed(hunt.seed);
    for number in 0..hunt.server_stops {
        let scene = Scene::new(hunt, &home, &format!("outage {number}"))?;
        let survivor = scene.start("survivor", KEYS, |args| args.finish = true)?;
        let dies = number % 2 == 1;
        let mut mortal = scene.start("mortal", KEYS, |args| {
            args.seed ^= 1;
            args.linger = dies;
        })?;
        thread::sleep(Duration::from_millis(dice.u64(STOP_MIN_MS..=STOP_MAX_MS)));
        server.stop(Mode::Immediate)?;
        if dies {
            mortal.kill_after(Duration::ZERO)?;
        }
        server.resume()?;
        let mut failures = Vec::new();
        for victim in [survivor, mortal] {
            match victim.wait()? {
                VictimEnd::Ended => {}
                VictimEnd::Killed => report.deaths.at_random += 1,
                VictimEnd::Failed(how) => failures.push(RecordViolation::Failed { how }),
            }
        }
        report.servers_stopped += 1;
        let repeat = hunt.repeat(&format!("--kills 0 --server-stops {}", hunt.server_stops));
        scene.finish(&home, KEYS, failures, report, &repeat)?;
        if report.findings.iter().any(|finding| finding.dir == scene.dir()) {
            home.keep();
        }
        progress(report);
    }
    Ok(())
}
