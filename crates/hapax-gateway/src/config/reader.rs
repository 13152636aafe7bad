//! A table of the file, read setting by setting. What is wrong is noted, and reading goes on, so
//! that a person hears of every fault at once.

use std::{env, ops::Range, path::Path, time::Duration};

use toml::{
    Spanned,
    de::{DeFloat, DeInteger, DeTable, DeValue},
};

pub use super::fault::FaultLocation;
use super::{fault::ConfigFaults, files, names::nearest, units};

/// A table, and the table its settings come from where it says nothing itself.
#[derive(Debug, Clone, Copy)]
pub struct TableReader<'t> {
    own: Option<&'t Spanned<DeValue<'t>>>,
    fallback: Option<&'t Spanned<DeValue<'t>>>,
    faults: &'t ConfigFaults,
}

/// A value, and where it was written.
pub type At<T> = Spanned<T>;

impl<'t> TableReader<'t> {
    /// Reads this table; what it holds beside the `known` settings is a fault.
    pub(crate) fn new(
        table: &'t Spanned<DeValue<'t>>,
        known: &[&'static str],
        faults: &'t ConfigFaults,
    ) -> Self {
        match table.get_ref().as_table() {
            Some(settings) => refuse_unknown(settings, known, faults),
            None => faults.add(table.span(), "this is not a table"),
        }
        Self { own: Some(table), fallback: None, faults }
    }

    /// The same table; what it does not say is looked for in `fallback`.
    pub(crate) fn or(self, fallback: Self) -> Self {
        Self { fallback: fallback.own, ..self }
    }

    /// Notes a fault at this place.
    pub fn fault(&self, place: impl Into<FaultLocation>, what: impl Into<String>) {
        self.faults.add(place, what);
    }

    /// Whether nothing is wrong so far.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// Where the table itself is.
    pub fn span(&self) -> Range<usize> {
        self.own.or(self.fallback).map_or(0..0, Spanned::span)
    }

    /// Where the setting is written.
    pub fn place(&self, name: &str) -> Range<usize> {
        let tables = [self.own, self.fallback].into_iter().flatten();
        let keys = tables.filter_map(|table| table.get_ref().as_table()?.get_key_value(name));
        keys.map(|(key, _)| key.span()).next().unwrap_or_else(|| self.span())
    }

    /// Whether the setting is written.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Whether `first` is written where it counts for more than `second`: in the table itself, and
    /// the other in the table it falls back to or nowhere.
    pub(crate) fn counts_beside(&self, first: &str, second: &str) -> bool {
        let level = |name| [self.own, self.fallback].iter().position(|table| holds(*table, name));
        level(first).is_some_and(|first| level(second).is_none_or(|second| first <= second))
    }

    /// A text in quotes.
    pub fn text(&self, name: &str) -> Option<At<&'t str>> {
        self.text_as(name, "text in quotes")
    }

    /// The text of the file that this setting names; a fault if it cannot be had.
    pub fn file(&self, name: &str, path: &At<&str>, dir: &Path) -> Option<String> {
        files::named(self, name, path, dir)
    }

    /// The value of the variable that this setting names; a fault if it cannot be had.
    pub(crate) fn variable(&self, name: &str, variable: &At<&str>) -> Option<String> {
        let value = env::var(variable.get_ref());
        if value.is_err() {
            let what =
                format!("`{name}` names {}, which is not set or is no text", variable.get_ref());
            let advice = "write the name of a variable of the environment instead";
            self.fault(variable.span(), format!("{what}; {advice}"));
        }
        value.ok()
    }

    /// A text; `instead` says what to write where there is something else.
    fn text_as(&self, name: &str, instead: &str) -> Option<At<&'t str>> {
        let value = self.value(name)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(name, value, instead);
        }
        text.map(|text| Spanned::new(value.span(), text))
    }

    /// A text that is understood by `parse`, whose refusal goes on after the name of the setting.
    pub fn parsed<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<At<T>> {
        self.understood(name, &self.text(name)?, parse)
    }

    fn understood<T>(
        &self,
        name: &str,
        text: &At<&str>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<At<T>> {
        match parse(text.get_ref()) {
            Ok(value) => Some(Spanned::new(text.span(), value)),
            Err(refusal) => {
                self.faults.add(text.span(), format!("`{name}` {refusal}"));
                None
            }
        }
    }

    /// One of a few words.
    pub fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Option<At<T>> {
        let all = || alternatives(words.iter().map(|(word, _)| format!("\"{word}\"")));
        self.understood(name, &self.text_as(name, &all())?, |text| {
            let found = words.iter().find(|(word, _)| *word == text);
            let refusal = || format!("cannot be {text:?}; write {} instead", all());
            found.map(|(_, meaning)| *meaning).ok_or_else(refusal)
        })
    }

    /// How long: "10s", "24h".
    pub fn duration(&self, name: &str) -> Option<At<Duration>> {
        self.understood(name, &self.text_as(name, DURATION)?, units::duration)
    }

    pub(crate) fn duration_or_zero(&self, name: &str) -> Option<At<Duration>> {
        self.understood(name, &self.text_as(name, DURATION)?, units::duration_or_zero)
    }

    /// A size within these bounds, in bytes.
    pub(crate) fn size(&self, name: &str, min: u64, max: u64) -> Option<At<usize>> {
        let text = self.text_as(name, "a size in quotes, such as \"64KiB\",")?;
        let size = self.understood(name, &text, units::size)?;
        let bytes = usize::try_from(*size.get_ref()).unwrap_or(usize::MAX);
        if !(min..=max).contains(size.get_ref()) {
            let spelled = |bytes| units::spelled_size(usize::try_from(bytes).unwrap_or(usize::MAX));
            let (size_was, min, max) = (spelled(*size.get_ref()), spelled(min), spelled(max));
            let what =
                format!("`{name}` cannot be {size_was}; write a size from {min} to {max} instead");
            self.faults.add(size.span(), what);
            return None;
        }
        Some(Spanned::new(size.span(), bytes))
    }

    /// A whole number from one to `max`.
    pub fn count(&self, name: &str, max: u32) -> Option<At<u32>> {
        self.count_from(name, 1, max)
    }

    /// A whole number from zero to `max`.
    pub(crate) fn count_or_zero(&self, name: &str, max: u32) -> Option<At<u32>> {
        self.count_from(name, 0, max)
    }

    fn count_from(&self, name: &str, min: u32, max: u32) -> Option<At<u32>> {
        let value = self.value(name)?;
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong_type(name, value, "a whole number");
            return None;
        };
        let digits = integer.as_str().replace('_', "");
        let digits = digits.strip_prefix('+').unwrap_or(&digits);
        let count = u32::from_str_radix(digits, integer.radix()).ok();
        let count = count.filter(|count| (min..=max).contains(count));
        if count.is_none() {
            let what =
                format!("`{name}` is out of range; write a number from {min} to {max} instead");
            self.faults.add(value.span(), what);
        }
        count.map(|count| Spanned::new(value.span(), count))
    }

    /// A number from 0 to 1.
    pub fn ratio(&self, name: &str) -> Option<At<f64>> {
        let value = self.value(name)?;
        let written = value.get_ref().as_float().map(DeFloat::as_str);
        let written = written.or_else(|| value.get_ref().as_integer().map(DeInteger::as_str));
        let Some(written) = written else {
            self.wrong_type(name, value, "a number from 0 to 1, such as 0.01,");
            return None;
        };
        let ratio = written.replace('_', "").parse::<f64>().ok();
        let ratio = ratio.filter(|ratio| (0.0..=1.0).contains(ratio));
        if ratio.is_none() {
            let what = format!("`{name}` is out of range; write a number from 0 to 1 instead");
            self.faults.add(value.span(), what);
        }
        ratio.map(|ratio| Spanned::new(value.span(), ratio))
    }

    /// A setting that is on or off.
    pub fn flag(&self, name: &str) -> Option<bool> {
        let value = self.value(name)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong_type(name, value, "true or false");
        }
        flag
    }

    /// A list of texts that are understood by `parse`; one text stands for a list of one.
    pub fn list<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<At<Vec<T>>> {
        let value = self.value(name)?;
        let items = match value.get_ref() {
            DeValue::String(_) => std::slice::from_ref(value),
            DeValue::Array(items) => items,
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Table(_) => {
                self.wrong_type(name, value, "a list of texts in quotes");
                return None;
            }
        };
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            let Some(text) = item.get_ref().as_str() else {
                self.wrong_type(name, item, "text in quotes");
                continue;
            };
            let read = self.understood(name, &Spanned::new(item.span(), text), &parse);
            list.extend(read.map(Spanned::into_inner));
        }
        Some(Spanned::new(value.span(), list))
    }

    /// The table of this name, falling back to the one of the same name in the fallback.
    pub fn table(&self, name: &str, known: &[&'static str]) -> Self {
        let named =
            |table: Option<&'t Spanned<DeValue<'t>>>| table?.get_ref().as_table()?.get(name);
        let read = |value: &'t Spanned<DeValue<'t>>| {
            if value.get_ref().is_table() {
                return Some(Self::new(value, known, self.faults));
            }
            self.wrong_type(name, value, &format!("a table, `[{name}]`,"));
            None
        };
        let own = named(self.own).and_then(read).and_then(|reader| reader.own);
        let fallback = named(self.fallback).and_then(read).and_then(|reader| reader.own);
        Self { own, fallback, faults: self.faults }
    }

    /// The table of this name as it is written where it counts: what it leaves out is not looked for
    /// in the fallback.
    pub(crate) fn table_alone(&self, name: &str, known: &[&'static str]) -> Option<Self> {
        let value = self.value(name).filter(|value| value.get_ref().is_table())?;
        Some(Self::new(value, known, self.faults))
    }

    /// The tables of this name, each begun with `[[name]]`.
    pub fn tables(&self, name: &str, known: &[&'static str]) -> Vec<Self> {
        let Some(value) = self.value(name) else { return Vec::new() };
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(name, value, &format!("tables, each begun with `[[{name}]]`,"));
            return Vec::new();
        };
        items.iter().map(|item| Self::new(item, known, self.faults)).collect()
    }

    /// The setting as it was written, wherever it counts.
    pub(crate) fn value(&self, name: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        let tables = [self.own, self.fallback].into_iter().flatten();
        tables.filter_map(|table| table.get_ref().as_table()?.get(name)).next()
    }

    pub(crate) fn wrong_type(&self, name: &str, value: &Spanned<DeValue<'_>>, instead: &str) {
        let kind = match value.get_ref() {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let what = format!("`{name}` cannot be {kind}; write {instead} instead");
        self.faults.add(value.span(), what);
    }
}

const DURATION: &str = "a duration in quotes, such as \"10s\" or \"24h\",";

fn holds(table: Option<&Spanned<DeValue<'_>>>, name: &str) -> bool {
    table.and_then(|table| table.get_ref().as_table()).is_some_and(|table| table.contains_key(name))
}

fn refuse_unknown(table: &DeTable<'_>, known: &[&'static str], faults: &ConfigFaults) {
    for key in table.keys().filter(|key| !known.contains(&&**key.get_ref())) {
        let written = key.get_ref();
        let homes = faults.homes_of(written);
        let advice = if let Some(name) = nearest(written, known) {
            format!("write `{name}` instead")
        } else if homes.is_empty() {
            let known = alternatives(known.iter().map(|name| format!("`{name}`")));
            format!("write {known} instead")
        } else {
            format!("write it {} instead", alternatives(homes.into_iter()))
        };
        faults.add(key.span(), format!("there is no setting {written:?} here; {advice}"));
    }
}

/// `a`, `b` or `c`.
pub(crate) fn alternatives(words: impl ExactSizeIterator<Item = String>) -> String {
    let count = words.len();
    let mut text = String::new();
    for (at, word) in words.enumerate() {
        let separator = match at {
            0 => "",
            _ if at + 1 == count => " or ",
            _ => ", ",
        };
        text.push_str(separator);
        text.push_str(&word);
    }
    text
}
