//! What must be true before anything is asked.

use std::fs;

use hapax_examine::{ConsentScope, Examination, Hook, HttpAddress};

use super::{error::VerifyError, oracle::count_address};
use crate::args::{VerifyConsentArgs, VerifySettings};

/// Who allowed that others than this machine are asked; nobody where none is.
///
/// Refuses credentials that look live, hosts that nobody allowed, and more effects than were agreed to.
pub(super) fn check(
    examination: &Examination,
    settings: &VerifySettings,
    consent: &VerifyConsentArgs,
) -> Result<Vec<String>, VerifyError> {
    if let Some(live) = examination.api.live_credential() {
        return Err(VerifyError::LiveCredential(live));
    }
    let allowed = allowed(examination, settings, consent)?;
    let (outline, most) = (examination.outline(), examination.bounds.effects_max);
    let operations = outline.operations_max();
    if operations > most {
        let dearest = outline.to_leave_out(most);
        let dearest: Vec<_> = dearest.iter().map(|run| run.probe.id).collect();
        let dearest = dearest.join(",");
        return Err(VerifyError::TooManyEffects { operations, allowed: most, dearest });
    }
    Ok(allowed)
}

fn allowed(
    examination: &Examination,
    settings: &VerifySettings,
    consent: &VerifyConsentArgs,
) -> Result<Vec<String>, VerifyError> {
    let scope = match &settings.scope_file {
        Some(path) => {
            let text = fs::read_to_string(path)
                .map_err(|source| VerifyError::Read { path: path.clone(), source })?;
            let read = ConsentScope::read(&text);
            read.map_err(|source| VerifyError::Scope { path: path.clone(), source })?
        }
        None => ConsentScope::default(),
    };
    let mut allowed = Vec::new();
    for address in addresses(examination, settings) {
        if let Some(whose) = address.known_production() {
            return Err(VerifyError::Production { address, whose });
        }
        if address.is_loopback() {
            continue;
        }
        match scope.who_allowed(&address.host).filter(|_| consent.i_am_authorised) {
            Some(by) => allowed.push(format!("{}: {by}", address.host)),
            None => return Err(VerifyError::NotAllowed { address }),
        }
    }
    allowed.dedup();
    Ok(allowed)
}

/// All that would be asked: the API, who counts, and what is done to the server by requests.
fn addresses(examination: &Examination, settings: &VerifySettings) -> Vec<HttpAddress> {
    let hooks = &examination.hooks;
    let hooks = [
        &hooks.kill,
        &hooks.start,
        &hooks.fail_before,
        &hooks.fail_after,
        &hooks.slow,
        &hooks.fast,
        &hooks.clean_up,
    ];
    let hooks = hooks.into_iter().flatten().filter_map(|hook| match hook {
        Hook::Request { url, .. } => HttpAddress::parse(url).ok().map(|(address, _)| address),
        Hook::Command(_) => None,
    });
    let api = examination.api.addresses.iter().cloned();
    api.chain(count_address(settings)).chain(hooks).collect()
}

/// Whether only this machine is asked.
pub(super) fn is_at_home(examination: &Examination, settings: &VerifySettings) -> bool {
    addresses(examination, settings).iter().all(HttpAddress::is_loopback)
}
