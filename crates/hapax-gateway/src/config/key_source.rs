//! Where keys come from: `key = "required"`, or `key = { from = "body", pointer = "/order_id" }`.

use std::time::Duration;

use hapax_tower::{DerivedKey, InvalidDerivedKey, KeyForm, KeyPart, KeyRule, Protection};
use toml::Spanned;

use super::{names::KEY, reader::TableReader, tenants::header_name, units};

/// What `key` of a route says.
pub(super) struct KeySetting {
    pub(super) rule: KeyRule,
    pub(super) form: KeyForm,
    pub(super) derived: Option<DerivedKey>,
}

/// Whether keys have to be sent, or what they are made of. Sent ones are needed as `unsaid` says where
/// a route does not say so.
pub(super) fn read(route: &TableReader<'_>, unsaid: KeyRule) -> KeySetting {
    let of = |rule, form, derived| KeySetting { rule, form, derived };
    let usual = of(unsaid, KeyForm::QuotedOrBare, None);
    let Some(value) = route.value("key") else { return usual };
    if !value.get_ref().is_table() {
        let words = [
            ("required", (KeyRule::Required, KeyForm::QuotedOrBare)),
            ("optional", (KeyRule::Optional, KeyForm::QuotedOrBare)),
            ("strict", (KeyRule::Required, KeyForm::Quoted)),
        ];
        let said = route.word("key", &words).map(Spanned::into_inner);
        return said.map_or(usual, |(rule, form)| of(rule, form, None));
    }
    let Some(table) = route.table_alone("key", KEY) else { return usual };
    let words = [("refuse", KeyRule::Required), ("pass", KeyRule::Optional)];
    let rule = table.word("if_missing", &words).map(Spanned::into_inner);
    let derived = source(&table);
    if matches!(derived, Some(DerivedKey::Fingerprint { .. })) && table.has("if_missing") {
        let what = "`if_missing` means nothing here: every request has a fingerprint";
        table.fault(table.place("if_missing"), format!("{what}; leave it out"));
    }
    of(rule.unwrap_or(KeyRule::Required), KeyForm::QuotedOrBare, derived)
}

/// Refuses what contradicts the rest of the route.
pub(super) fn check(route: &TableReader<'_>, protection: &Protection) {
    let Some(derived) = &protection.derived_key else { return };
    let Err(error) = derived.check(protection) else { return };
    let (place, advice) = match &error {
        InvalidDerivedKey::Window { .. } => {
            let retention = units::spelled(protection.policy.retention().window);
            ("within", format!("write `within` from \"1s\" to \"{retention}\" instead"))
        }
        InvalidDerivedKey::Secret { .. } => {
            ("from", "write another value; the caller is told apart by its tenant".to_owned())
        }
        InvalidDerivedKey::KeyHeader { .. } => {
            ("from", "write `key = \"required\"`, or name another value".to_owned())
        }
        InvalidDerivedKey::Dialect => {
            ("from", "write `key = \"required\"`, or leave `dialect` out".to_owned())
        }
        InvalidDerivedKey::Count | InvalidDerivedKey::Twice { .. } => {
            ("from", "write from one to eight different values instead".to_owned())
        }
    };
    let table = route.table_alone("key", KEY);
    let place = table.map_or_else(|| route.place("key"), |table| table.place(place));
    route.fault(place, format!("{error}; {advice}"));
}

/// What keys are made of.
fn source(table: &TableReader<'_>) -> Option<DerivedKey> {
    if !table.has("from") {
        let what = "`key` does not say what keys are made of";
        let advice = "write `from = \"body\"`, \"header\", \"fingerprint\", or a list of values";
        table.fault(table.span(), format!("{what}; {advice}"));
        return None;
    }
    let word = table.value("from").and_then(|value| value.get_ref().as_str());
    let word = word.filter(|text| SOURCES.iter().any(|(source, _)| source == text));
    refuse_other_settings(table, word);
    match word {
        Some("body") => {
            let pointer = required(table, "pointer", "/order_id", |text| {
                part(&format!("body {text}"), "a JSON pointer, such as \"/order_id\",")
            })?;
            Some(DerivedKey::Parts(vec![pointer]))
        }
        Some("header") => {
            let name = required(table, "name", "X-Request-Id", header_name)?;
            Some(DerivedKey::Parts(vec![KeyPart::Header(name)]))
        }
        Some(_) => {
            let within = table.duration("within").map(Spanned::into_inner);
            missing(table, "within", "30s");
            Some(DerivedKey::Fingerprint { within: within? })
        }
        None => {
            let instead = "\"header X-Shop\" or \"body /order_id\"";
            let parts = table.list("from", |text| part(text, instead))?;
            Some(DerivedKey::Parts(parts.into_inner()))
        }
    }
}

/// The words for what keys are made of, and the setting each of them needs.
const SOURCES: [(&str, &str); 3] =
    [("body", "pointer"), ("header", "name"), ("fingerprint", "within")];

fn refuse_other_settings(table: &TableReader<'_>, word: Option<&str>) {
    for (source, setting) in SOURCES {
        if word != Some(source) && table.has(setting) {
            let what = format!("`{setting}` means nothing here");
            let advice = format!("leave it out, or write `from = \"{source}\"`");
            table.fault(table.place(setting), format!("{what}; {advice}"));
        }
    }
}

fn required<T>(
    table: &TableReader<'_>,
    name: &str,
    example: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<T> {
    missing(table, name, example);
    table.parsed(name, parse).map(Spanned::into_inner)
}

fn missing(table: &TableReader<'_>, name: &str, example: &str) {
    if !table.has(name) {
        let what = format!("`{name}` is missing; write `{name} = \"{example}\"` too");
        table.fault(table.place("from"), what);
    }
}

fn part(text: &str, instead: &str) -> Result<KeyPart, String> {
    let shown = text.strip_prefix("body ").filter(|_| instead.starts_with("a ")).unwrap_or(text);
    text.parse().map_err(|_| format!("cannot be {shown:?}; write {instead} instead"))
}

/// Where keys come from, in words.
pub(super) fn described(derived: &DerivedKey, rule: KeyRule, header: &str) -> String {
    let otherwise = match rule {
        KeyRule::Required => "refused",
        KeyRule::Optional => "passed",
    };
    match derived {
        DerivedKey::Parts(parts) => {
            let parts: Vec<_> = parts.iter().map(ToString::to_string).collect();
            let parts = parts.join(" and ");
            format!("key in {header}, or made of {parts}, {otherwise} without")
        }
        DerivedKey::Fingerprint { within } => {
            let within = units::spelled(*within);
            format!("key in {header}, or equal within {within} (best effort)")
        }
    }
}

/// What somebody who makes keys so should know.
pub(super) fn note(derived: &DerivedKey, rule: KeyRule) -> Option<String> {
    let within = |within: Duration| units::spelled(within);
    match (derived, rule) {
        (DerivedKey::Fingerprint { within: time }, _) => {
            let time = within(*time);
            Some(format!(
                "equal requests without a key are one within {time} of the first, best effort: two \
                 that were meant are done once, and a retry that comes later is done again"
            ))
        }
        (DerivedKey::Parts(_), KeyRule::Optional) => Some(
            "requests that no key can be made of pass WITHOUT PROTECTION; metrics count them as \
             `passed_keyless`"
                .to_owned(),
        ),
        (DerivedKey::Parts(_), KeyRule::Required) => None,
    }
}
