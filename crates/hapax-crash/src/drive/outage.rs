//! The database server itself stops at once in mid-load, and comes back.

use std::{thread, time::Duration};

use hapax_services::postgres::{Mode, Server};

use super::{
    Drive, Summary,
    home::Home,
    process::{Fate, Victim},
    runtime,
    scene::Scene,
};
use crate::{check::Violation, error::CrashError};

/// So many that a victim is still busy with them when the server goes.
const KEYS: usize = 420;
const STOP_MIN_MS: u64 = 10;
const STOP_MAX_MS: u64 = 120;

/// Stops the server as often as the drive wants, checking every time that everything settles after
/// it is back. Every other time one of the two victims dies while the server is down.
pub(crate) fn stop_under_load(
    drive: &Drive,
    server: &mut Server,
    summary: &mut Summary,
    progress: &(dyn Fn(&Summary) + Sync),
) -> Result<(), CrashError> {
    if drive.server_stops == 0 {
        return Ok(());
    }
    let runtime = runtime()?;
    let mut home = runtime.block_on(Home::postgres(&server.url()))?;
    let mut dice = fastrand::Rng::with_seed(drive.seed);
    for number in 0..drive.server_stops {
        let scene = Scene::new(drive, &home, &format!("outage {number}"))?;
        let survivor = scene.start("survivor", KEYS, |orders| orders.finish = true)?;
        let dies = number % 2 == 1;
        let mut mortal = scene.start("mortal", KEYS, |orders| {
            orders.seed ^= 1;
            orders.linger = dies;
        })?;
        thread::sleep(Duration::from_millis(dice.u64(STOP_MIN_MS..=STOP_MAX_MS)));
        server.stop(Mode::Immediate)?;
        if dies {
            mortal.kill_after(Duration::ZERO)?;
        }
        server.resume()?;
        let mut failures = Vec::new();
        for victim in [survivor, mortal] {
            match Victim::wait(victim)? {
                Fate::Ended => {}
                Fate::Killed => summary.killed_at_random += 1,
                Fate::Failed(how) => failures.push(Violation::Failed { how }),
            }
        }
        summary.servers_stopped += 1;
        let repeat = drive.repeat(&format!("--kills 0 --server-stops {}", drive.server_stops));
        scene.finish(&runtime, KEYS, failures, summary, &repeat)?;
        if summary.findings.iter().any(|finding| finding.dir == scene.dir()) {
            home.keep();
        }
        progress(summary);
    }
    Ok(())
}
