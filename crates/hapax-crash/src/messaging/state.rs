//! How far a drive has come.

use super::{
    check::Violation, drive::Drive, orders::Role, strike, summary::Summary, trouble::Trouble,
};
use crate::drive::{Fate, Strike};

/// How far a drive has come.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) summary: Summary,
    pub(super) violations: Vec<Violation>,
    begun: [usize; 2],
}

/// Times as many victims as have to die, after which it is over in any case.
const VICTIMS_FOR_A_KILL: usize = 6;

pub(super) const ROLES: [Role; 2] = [Role::Relay, Role::Consumer];

impl State {
    /// The number and the strike of the next victim of this role; none if enough have died.
    pub(super) fn next(&mut self, drive: &Drive, role: Role) -> Option<(usize, Strike)> {
        if self.is_over(drive) {
            return None;
        }
        let begun = &mut self.begun[role as usize];
        let number = *begun;
        *begun += 1;
        Some((number, strike::draw(drive.seed, number, &drive.places(role))))
    }

    /// Counts how a victim ended.
    pub(super) fn bury(&mut self, role: Role, fate: Fate, strike: &Strike) {
        let failed = self.summary.deaths_mut(role).count(fate, strike);
        self.violations.extend(failed.map(|how| Violation::Failed { role, how }));
    }

    /// Whether enough have died, everywhere, and everything has befallen the servers.
    pub(super) fn is_over(&self, drive: &Drive) -> bool {
        let everything = drive.frozen.is_none()
            || Trouble::ALL.iter().all(|trouble| self.summary.troubles.contains_key(trouble));
        let is_enough = |role| {
            let deaths = self.summary.deaths(role);
            let everywhere = drive.places(role).iter().all(|place| deaths.at.contains_key(*place));
            deaths.kills() >= drive.kills / 2 && everywhere
        };
        let begun: usize = self.begun.iter().sum();
        everything && ROLES.into_iter().all(is_enough)
            || begun >= (drive.kills + strike::MARGIN) * VICTIMS_FOR_A_KILL
    }
}
