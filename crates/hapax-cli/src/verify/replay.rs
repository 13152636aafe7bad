//! The command by which an examination is repeated, without its seed and its probes.

use hapax_examine::{Examination, ExaminationBounds};
use toml::{Table, Value};

use super::{
    error::VerifyError,
    headers::{has_secret_name, names_no_secret},
    settings,
};
use crate::{
    args::{VerifyArgs, VerifySettings},
    shell::quoted,
};

/// What says where reports go, or is said again for the one probe that is repeated.
const LEFT_OUT: [&str; 15] = [
    "method",
    "url",
    "only",
    "skip",
    "seed",
    "thorough",
    "race_trials",
    "keys_between",
    "max_effects",
    "json_report",
    "html",
    "junit",
    "sarif",
    "badge",
    "compare",
];

/// As a shell takes it. What a secret was given as itself is taken from the environment there.
pub(super) fn command(
    args: &VerifyArgs,
    settings: &VerifySettings,
    examination: &Examination,
) -> Result<String, VerifyError> {
    let mut words = vec!["hapax".to_owned(), "verify".to_owned()];
    let said = match &args.source.config {
        Some(file) => {
            option(&mut words, "config", &file.display().to_string());
            if let Some(route) = &args.source.route_name {
                option(&mut words, "route", route);
            }
            settings::typed(args)?
        }
        None => settings.clone(),
    };
    let target = [said.method.clone().filter(|_| said.url.is_some()), said.url.clone()];
    words.splice(2..2, target.iter().flatten().map(|word| quoted(word)));
    for (name, value) in without_secrets(&said)? {
        let one = std::slice::from_ref(&value);
        for value in value.as_array().map_or(one, Vec::as_slice) {
            said_option(&mut words, &name, value);
        }
    }
    let ExaminationBounds { effects_max, race_trials, keys_between, .. } = &examination.bounds;
    for (name, number) in
        [("race-trials", race_trials), ("keys-between", keys_between), ("max-effects", effects_max)]
    {
        option(&mut words, name, &number.to_string());
    }
    if args.consent.i_am_authorised {
        words.push("--i-am-authorised".to_owned());
    }
    Ok(words.join(" "))
}

fn said_option(words: &mut Vec<String>, name: &str, value: &Value) {
    let is_answer = settings::is_answer(name);
    let name = name.replace('_', "-");
    match value {
        Value::Boolean(true) if !is_answer => words.push(format!("--{name}")),
        Value::Boolean(false) if !is_answer => {}
        Value::String(text) => option(words, &name, text),
        Value::Boolean(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Datetime(_)
        | Value::Array(_)
        | Value::Table(_) => option(words, &name, &value.to_string()),
    }
}

fn option(words: &mut Vec<String>, name: &str, value: &str) {
    // What begins with a hyphen would be an option of its own.
    if value.starts_with('-') {
        words.push(format!("--{name}={}", quoted(value)));
    } else {
        words.extend([format!("--{name}"), quoted(value)]);
    }
}

/// All that was said, but for what is left out, and with variables for what may be secret.
fn without_secrets(said: &VerifySettings) -> Result<Table, VerifyError> {
    let mut said = said.clone();
    let lists = [
        ("", true, &mut said.credential),
        ("OTHER_", true, &mut said.other_credential),
        ("REVOKED_", true, &mut said.revoked_credential),
        ("", false, &mut said.header),
    ];
    for (whose, is_secret, list) in lists {
        for header in list {
            if !names_no_secret(header) && (is_secret || has_secret_name(header)) {
                let name = header.split(':').next().unwrap_or_default().trim();
                let upper =
                    |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
                let variable: String = name.chars().map(upper).collect();
                *header = format!("{name}: env:{whose}{variable}");
            }
        }
    }
    let has_password =
        |store: &&mut String| !store.starts_with("sqlite:") && !names_no_secret(store);
    if let Some(store) = said.count_store.as_mut().filter(has_password) {
        "env:COUNT_STORE".clone_into(store);
    }
    let mut said = Table::try_from(&said).map_err(VerifyError::Settings)?;
    said.retain(|name, _| !LEFT_OUT.contains(&name));
    Ok(said)
}
