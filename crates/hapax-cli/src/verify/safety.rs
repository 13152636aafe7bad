//! What must be true before anything is asked.

use std::fs;

use hapax_examine::{
    ApiUnderTest, ConsentScope, Examination, Hook, Hooks, HttpAddress, LiveCredential, ReachedHost,
};
use toml::{Table, Value};

use super::{error::VerifyError, headers::from_environment};
use crate::{
    args::{VerifyConsentArgs, VerifySettings},
    store::StoreAddress,
};

/// Settings whose URLs lead nobody there: what requests say, and where to count, which is read as what it is.
const SAYS: [&str; 9] = [
    "json",
    "body",
    "changed_body",
    "invalid_body",
    "header",
    "credential",
    "other_credential",
    "revoked_credential",
    "count_store",
];

/// Everything that would be reached was looked at, and may be.
#[derive(Debug)]
pub(super) struct GivenConsent {
    /// Who allowed that others than this machine are reached: nobody where none is.
    pub(super) by: Vec<String>,
    /// Whether only this machine is.
    pub(super) is_at_home: bool,
}

/// Refuses credentials that look live, and hosts that nobody allowed. Nobody was asked, and nothing listens, when this
/// is looked at.
pub(super) fn consent(
    api: &ApiUnderTest,
    hooks: &Hooks,
    settings: &VerifySettings,
    given: &VerifyConsentArgs,
) -> Result<GivenConsent, VerifyError> {
    let texts = texts(settings)?;
    let store = count_store(settings)?;
    let in_settings = texts.iter().find_map(|(name, text)| {
        LiveCredential::in_text(&format!("--{}", name.replace('_', "-")), text)
    });
    let in_store = || LiveCredential::in_text("--count-store", store.as_deref()?);
    if let Some(live) = api.live_credential().or(in_settings).or_else(in_store) {
        return Err(VerifyError::LiveCredential(live));
    }
    let scope = scope(settings)?;
    let (mut by, mut is_at_home) = (Vec::new(), true);
    for reached in reached(api, hooks, settings, &texts, store.as_deref())? {
        if let Some(whose) = reached.known_production() {
            return Err(VerifyError::Production { reached, whose });
        }
        if reached.is_loopback() {
            continue;
        }
        is_at_home = false;
        match scope.who_allowed(&reached.host).filter(|_| given.i_am_authorised) {
            Some(who) => by.push(format!("{}: {who}", reached.host)),
            None => return Err(VerifyError::NotAllowed { reached }),
        }
    }
    by.dedup();
    Ok(GivenConsent { by, is_at_home })
}

/// Refuses more effects than were agreed to.
pub(super) fn check_effects(examination: &Examination) -> Result<(), VerifyError> {
    let (outline, most) = (examination.outline(), examination.bounds.effects_max);
    let operations = outline.operations_max();
    if operations > most {
        let dearest = outline.to_leave_out(most);
        let dearest: Vec<_> = dearest.iter().map(|run| run.probe.id).collect();
        let dearest = dearest.join(",");
        return Err(VerifyError::TooManyEffects { operations, allowed: most, dearest });
    }
    Ok(())
}

fn scope(settings: &VerifySettings) -> Result<ConsentScope, VerifyError> {
    let Some(path) = &settings.scope_file else { return Ok(ConsentScope::default()) };
    let text = fs::read_to_string(path)
        .map_err(|source| VerifyError::Read { path: path.clone(), source })?;
    let read = ConsentScope::read(&text);
    read.map_err(|source| VerifyError::Scope { path: path.clone(), source })
}

/// All that would be reached: the API, whoever counts, what is done to the server, and where we listen.
///
/// Any URL in any setting counts, but for those that requests only say: so a setting that is new cannot be forgotten.
fn reached(
    api: &ApiUnderTest,
    hooks: &Hooks,
    settings: &VerifySettings,
    texts: &[(String, String)],
    store: Option<&str>,
) -> Result<Vec<ReachedHost>, VerifyError> {
    let mut reached: Vec<_> = api.addresses.iter().map(ReachedHost::from).collect();
    for (_, hook) in hooks.given() {
        if let Hook::Request { url, .. } = hook {
            reached.push(ReachedHost::from(&HttpAddress::parse(url)?.0));
        }
    }
    let texts = texts.iter().filter(|(name, _)| !SAYS.contains(&name.as_str()));
    reached.extend(texts.flat_map(|(_, text)| ReachedHost::in_text(text)));
    for listen in [settings.webhook_sink, settings.upstream_double].into_iter().flatten() {
        // Others could send there, and be counted.
        reached.push(ReachedHost { host: listen.ip().to_string(), shown: listen.to_string() });
    }
    if let Some(store) = store {
        let address: StoreAddress = store.parse().map_err(VerifyError::CountStore)?;
        if let StoreAddress::Postgres(address) = address {
            let unusable = |error| VerifyError::CountStore(hapax::InvalidAddress::Postgres(error));
            let hosts = address.hosts().map_err(unusable)?;
            let shown = address.to_string();
            reached
                .extend(hosts.into_iter().map(|host| ReachedHost { host, shown: shown.clone() }));
        }
    }
    Ok(reached)
}

/// Where a statement counts, with what stands in the environment.
fn count_store(settings: &VerifySettings) -> Result<Option<String>, VerifyError> {
    let store = settings.count_store.as_deref();
    store.map(|store| from_environment(store, "--count-store")).transpose()
}

/// All that was said, setting by setting.
fn texts(settings: &VerifySettings) -> Result<Vec<(String, String)>, VerifyError> {
    let settings = Table::try_from(settings).map_err(VerifyError::Settings)?;
    let mut texts = Vec::new();
    for (name, value) in settings {
        let values = match value {
            Value::Array(values) => values,
            value @ (Value::String(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::Table(_)) => vec![value],
        };
        let said = values.iter().filter_map(Value::as_str);
        texts.extend(said.map(|text| (name.clone(), text.to_owned())));
    }
    Ok(texts)
}
