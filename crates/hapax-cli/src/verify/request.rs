//! What is examined, put together from settings. Nothing has been sent when this fails.

use std::{fs, path::Path, time::Duration};

use hapax::wall_clock;
use hapax_examine::{
    ApiCredentials, ApiUnderTest, CredentialHeaders, DeclaredConduct, Examination,
    ExaminationBounds, Hook, Hooks, HttpAddress, KeyHeader, KeySyntax, PROBES, Probe,
    VendorProfile, Wire,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};

use super::{
    body,
    error::VerifyError,
    headers,
    interrupted_run::InterruptedRun,
    oracle::oracle,
    safety::{self, GivenConsent},
};
use crate::args::{VerifyConsentArgs, VerifySettings, WrittenKey};

/// Trials of each race, for each number of duplicates, where all of them are to be a thousand: a few come to none,
/// because duplicates did not meet.
const THOROUGH_TRIALS: u32 = 350;
const THOROUGH_KEYS: u32 = 10_000;
/// What is made less of so that everything fits into the effects that are allowed: at least this much is left.
const TRIALS_LEAST: u32 = 5;
const KEYS_LEAST: u32 = 20;
/// Probes that are never left out unasked: without them, no grade is a good one.
const FOR_A_GRADE: [&str; 18] = [
    "V01", "V02", "V03", "V04", "V05", "V06", "V07", "V08", "V09", "V10", "V11", "V12", "V13",
    "V16", "V19", "V20", "V21", "V25",
];

/// An examination, and what there are not enough effects for.
pub(super) struct AffordedExamination {
    pub(super) examination: Examination,
    pub(super) left_out: Vec<&'static Probe>,
    pub(super) consent: GivenConsent,
}

/// An examination as these settings say, where it may be.
pub(super) async fn examination(
    settings: &VerifySettings,
    consent: &VerifyConsentArgs,
    interrupted: Option<&InterruptedRun>,
) -> Result<AffordedExamination, VerifyError> {
    let wire = Wire::new(&certificates(settings.ca.as_deref())?)?;
    let profile = match &settings.profile {
        Some(name) => {
            let found = VendorProfile::named(name);
            Some(found.ok_or_else(|| VerifyError::Profile(name.clone()))?)
        }
        None => None,
    };
    let (api, hooks) = (api(settings, profile)?, hooks(settings));
    let consent = safety::consent(&api, &hooks, settings, consent)?;
    let oracle = oracle(settings, &api, &wire).await?;
    if oracle.is_some() && ![&api.path, &api.body.text].iter().any(|text| text.contains("{marker}"))
    {
        return Err(VerifyError::NoMarker);
    }
    let mut examination = Examination {
        api,
        oracle,
        hooks,
        declared: declared(settings, profile),
        bounds: bounds(settings),
        only: probes(settings, interrupted)?,
        seed: settings.seed.unwrap_or_else(|| fastrand::u32(..).into()),
        wire,
        earlier: interrupted.map(|run| run.memory.clone()).unwrap_or_default(),
        now: wall_clock(),
    };
    let left_out = fit(&mut examination, settings);
    Ok(AffordedExamination { examination, left_out, consent })
}

fn api(
    settings: &VerifySettings,
    profile: Option<&VendorProfile>,
) -> Result<ApiUnderTest, VerifyError> {
    let url = settings.url.as_deref().ok_or(VerifyError::NoTarget)?;
    let method = settings.method.clone().unwrap_or_else(|| "POST".to_owned());
    if matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE") {
        return Err(VerifyError::Harmless(method));
    }
    let (address, path) = HttpAddress::parse(url)?;
    let mut addresses = vec![address];
    for also in &settings.also {
        addresses.push(HttpAddress::parse(also)?.0);
    }
    let body = body::template(settings)?;
    let key = key(settings, profile);
    if key.name.is_empty() && !body.text.contains("{key}") {
        return Err(VerifyError::NoKeyPlace);
    }
    let others = |given: &[String]| -> Result<Option<CredentialHeaders>, VerifyError> {
        if given.is_empty() { Ok(None) } else { headers::read(given).map(Some) }
    };
    Ok(ApiUnderTest {
        addresses,
        method,
        path,
        headers: headers::read(&settings.header)?,
        body,
        key,
        credentials: ApiCredentials {
            main: headers::read(&settings.credential)?,
            other: others(&settings.other_credential)?,
            revoked: others(&settings.revoked_credential)?,
        },
        id: settings.id.clone().map(hapax_examine::JsonPath::new),
        other_path: own_path("--other-path", settings.other_path.as_deref())?,
        large_path: own_path("--large-path", settings.large_path.as_deref())?,
    })
}

/// A path of the API: with a host before it, requests would be for somebody else.
fn own_path(option: &'static str, given: Option<&str>) -> Result<Option<String>, VerifyError> {
    match given {
        Some(path) if !path.starts_with('/') => Err(VerifyError::NoPath { option }),
        Some(_) | None => Ok(given.map(str::to_owned)),
    }
}

fn key(settings: &VerifySettings, profile: Option<&VendorProfile>) -> KeyHeader {
    let usual = || KeyHeader {
        name: "Idempotency-Key".to_owned(),
        syntax: None,
        uuids: false,
        first_sent: None,
    };
    let usual = profile.map_or_else(usual, VendorProfile::key);
    let syntax = settings.key_syntax.map(|written| match written {
        WrittenKey::Bare => KeySyntax::Bare,
        WrittenKey::Quoted => KeySyntax::Quoted,
    });
    KeyHeader {
        name: settings.key_header.clone().unwrap_or(usual.name),
        syntax: syntax.or(usual.syntax),
        uuids: settings.uuid_keys || usual.uuids,
        first_sent: settings.first_sent_header.clone().or(usual.first_sent),
    }
}

fn declared(settings: &VerifySettings, profile: Option<&VendorProfile>) -> DeclaredConduct {
    let usual = profile.map(VendorProfile::declared).unwrap_or_default();
    DeclaredConduct {
        refusals_kept: settings.refusals_kept.or(usual.refusals_kept),
        errors_kept: settings.errors_kept.or(usual.errors_kept),
        key_required: settings.key_required.or(usual.key_required),
        retention: settings.ttl.map(|ttl| ttl.0).or(usual.retention),
        refusals: usual.refusals,
    }
}

fn hooks(settings: &VerifySettings) -> Hooks {
    let read = |given: &Option<String>| given.as_deref().map(hook);
    Hooks {
        kill: read(&settings.kill_cmd),
        start: read(&settings.start_cmd),
        fail_before: read(&settings.fail_hook),
        fail_after: read(&settings.fail_after_hook),
        slow: read(&settings.slow_hook),
        fast: read(&settings.fast_hook),
        clean_up: read(&settings.clean_up),
        slow_by: Duration::ZERO,
    }
}

/// `POST http://…` is a request, everything else a command.
fn hook(given: &str) -> Hook {
    match given.trim().split_once(' ') {
        Some((method, url))
            if method.chars().all(|char| char.is_ascii_uppercase())
                && (url.starts_with("http://") || url.starts_with("https://")) =>
        {
            Hook::Request { method: method.to_owned(), url: url.to_owned() }
        }
        Some(_) | None => Hook::Command(given.to_owned()),
    }
}

fn bounds(settings: &VerifySettings) -> ExaminationBounds {
    let usual = ExaminationBounds::default();
    let (race_trials, keys_between) = if settings.thorough {
        (THOROUGH_TRIALS, THOROUGH_KEYS)
    } else {
        (usual.race_trials, usual.keys_between)
    };
    ExaminationBounds {
        effects_max: settings.max_effects.unwrap_or(usual.effects_max),
        race_trials: settings.race_trials.unwrap_or(race_trials),
        recovery: settings.recovery.map_or(usual.recovery, |recovery| recovery.0),
        keys_between: settings.keys_between.unwrap_or(keys_between),
        ..usual
    }
}

/// Makes as little of races and keys as is needed for all of it to stay within what is allowed, and then leaves out
/// what a grade does not need, which is returned. Who asks to be thorough is allowed what that takes.
///
/// Where a number was given, or probes, that is what is meant: it fits, or is refused.
fn fit(examination: &mut Examination, settings: &VerifySettings) -> Vec<&'static Probe> {
    if settings.thorough {
        if settings.max_effects.is_none() {
            examination.bounds.effects_max = examination.operations_max();
        }
        return Vec::new();
    }
    let usual = ExaminationBounds::default();
    let most = examination.bounds.effects_max;
    let keys = [usual.keys_between, usual.keys_between / 2, KEYS_LEAST];
    for keys_between in keys {
        for trials in (TRIALS_LEAST..=usual.race_trials).rev() {
            examination.bounds.keys_between = settings.keys_between.unwrap_or(keys_between);
            examination.bounds.race_trials = settings.race_trials.unwrap_or(trials);
            if examination.operations_max() <= most {
                return Vec::new();
            }
        }
    }
    if settings.max_effects.is_some() || !settings.only.is_empty() {
        return Vec::new();
    }
    let mut left_out = Vec::new();
    let mut dearest = examination.outline().runs;
    dearest.retain(|run| !FOR_A_GRADE.contains(&run.probe.id));
    dearest.sort_by_key(|run| std::cmp::Reverse(run.operations_max));
    for run in dearest {
        if examination.operations_max() <= most {
            break;
        }
        examination.only.retain(|probe| probe.id != run.probe.id);
        left_out.push(run.probe);
    }
    left_out
}

/// The probes that are asked for; all, where nothing is left out.
fn probes(
    settings: &VerifySettings,
    interrupted: Option<&InterruptedRun>,
) -> Result<Vec<&'static Probe>, VerifyError> {
    let read = |names: &[String]| -> Result<Vec<&'static Probe>, VerifyError> {
        let named = |name: &String| {
            let all = || PROBES.iter().map(|probe| probe.id).collect::<Vec<_>>().join(", ");
            let name = name.trim();
            let unknown = || VerifyError::Probe { name: name.to_owned(), all: all() };
            Probe::named(name).ok_or_else(unknown)
        };
        names.iter().map(named).collect()
    };
    let (only, skip) = (read(&settings.only)?, read(&settings.skip)?);
    let is_left = |probe: &&'static Probe| {
        (only.is_empty() || only.iter().any(|only| only.id == probe.id))
            && skip.iter().all(|skip| skip.id != probe.id)
            && !interrupted.is_some_and(|run| run.has_done(probe.id))
    };
    let left: Vec<_> = PROBES.iter().filter(is_left).collect();
    if left.is_empty() { Err(VerifyError::NothingLeft) } else { Ok(left) }
}

fn certificates(path: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, VerifyError> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let bytes =
        fs::read(path).map_err(|source| VerifyError::Read { path: path.to_owned(), source })?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) | Err(_) => Err(VerifyError::Certificates { path: path.to_owned() }),
    }
}
