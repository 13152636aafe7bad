//! What is stored is encrypted with: `[encryption]`.

use std::{path::Path, sync::Arc, time::Duration};

use hapax_encryption::{
    Encryption, KmsMasterKey, KmsOptions, LocalMasterKey, MasterKey, ROTATE_AFTER,
};
use toml::Spanned;
use zeroize::Zeroizing;

use super::{
    names::ENCRYPTION,
    reader::{At, TableReader},
    units,
};

/// Shortest time for which a data key may be used: each one is a row that stays.
const ROTATE_AFTER_MIN: Duration = Duration::from_secs(60);

/// What `[encryption]` says; nothing without it. The files it names are read, nobody is contacted.
pub fn read(top: &TableReader<'_>, dir: &Path) -> Option<Encryption> {
    if !top.has("encryption") {
        return None;
    }
    let table = top.table("encryption", ENCRYPTION);
    let given: Vec<_> = MASTERS.iter().filter(|(name, _)| table.has(name)).collect();
    let master = match given.as_slice() {
        [(name, kind)] => master_key(&table, name, *kind, dir),
        [] => {
            let what = "nobody says which master key";
            let advice =
                "write `master_key_file = \"master.key\"`, made by `openssl rand -base64 32`";
            table.fault(table.span(), format!("{what}; {advice}"));
            None
        }
        [(first, _), (second, _), ..] => {
            let what = format!("`{first}` and `{second}` both name the master key");
            let advice = "leave one of them out; the one that is followed is a `previous_` one";
            table.fault(table.place(second), format!("{what}; {advice}"));
            None
        }
    };
    let previous = PREVIOUS.iter().filter(|(name, _)| table.has(name));
    let previous = previous.filter_map(|(name, kind)| master_key(&table, name, *kind, dir));
    let previous: Vec<_> = previous.collect();
    for name in ["kms_region", "kms_endpoint"] {
        if table.has(name) && !table.has("kms_key") && !table.has("previous_kms_key") {
            let what = format!("`{name}` means nothing here; write `kms_key` too, or leave it out");
            table.fault(table.place(name), what);
        }
    }
    let rotate_after = rotate_after(&table);
    let encryption = Encryption { master: master?, previous, rotate_after };
    let is_same = |key: &Arc<dyn MasterKey>| key.name() == encryption.master.name();
    if encryption.previous.iter().any(is_same) {
        let what = "the master key and the one it follows are the same; leave the previous one out";
        table.fault(table.span(), what);
    }
    Some(encryption)
}

/// Where a master key is.
#[derive(Debug, Clone, Copy)]
enum MasterKeySource {
    File,
    Variable,
    Kms,
}

const MASTERS: [(&str, MasterKeySource); 3] = [
    ("master_key_file", MasterKeySource::File),
    ("master_key_env", MasterKeySource::Variable),
    ("kms_key", MasterKeySource::Kms),
];
const PREVIOUS: [(&str, MasterKeySource); 3] = [
    ("previous_key_file", MasterKeySource::File),
    ("previous_key_env", MasterKeySource::Variable),
    ("previous_kms_key", MasterKeySource::Kms),
];

fn master_key(
    table: &TableReader<'_>,
    name: &str,
    source: MasterKeySource,
    dir: &Path,
) -> Option<Arc<dyn MasterKey>> {
    let written = table.text(name)?;
    let text = match source {
        MasterKeySource::File => table.file(name, &written, dir)?,
        MasterKeySource::Variable => table.variable(name, &written)?,
        MasterKeySource::Kms => return kms_key(table, name, &written),
    };
    let refused = |refusal| table.fault(written.span(), format!("`{name}`: {refusal}"));
    let key = LocalMasterKey::parse(&Zeroizing::new(text)).map_err(refused).ok()?;
    Some(Arc::new(key))
}

/// A key of Amazon's KMS; nobody is asked yet.
fn kms_key(table: &TableReader<'_>, name: &str, written: &At<&str>) -> Option<Arc<dyn MasterKey>> {
    let said = |name| table.text(name).map(|text| (*text.get_ref()).to_owned());
    let (endpoint, region) = (said("kms_endpoint"), said("kms_region"));
    let options = KmsOptions { endpoint, region, credentials: None };
    let refused = |refusal| table.fault(written.span(), format!("`{name}`: {refusal}"));
    let key = KmsMasterKey::new(written.get_ref(), options).map_err(refused).ok()?;
    Some(Arc::new(key))
}

/// How long a data key seals; `None` for ever.
fn rotate_after(table: &TableReader<'_>) -> Option<Duration> {
    let after = table.parsed("rotate_after", |text| match text {
        "never" => Ok(None),
        text => match units::duration(text)? {
            after if after < ROTATE_AFTER_MIN => {
                let min = units::spelled(ROTATE_AFTER_MIN);
                Err(format!(
                    "cannot be \"{text}\"; write at least \"{min}\", or \"never\", instead"
                ))
            }
            after => Ok(Some(after)),
        },
    });
    after.map_or(Some(ROTATE_AFTER), Spanned::into_inner)
}

/// What is encrypted with which keys, in one line.
pub(super) fn described(encryption: &Encryption) -> String {
    let master = encryption.master.name();
    let mut line = format!("encrypts what it keeps under the master key {master}");
    for previous in &encryption.previous {
        line.push_str(&format!(", which follows {}", previous.name()));
    }
    match encryption.rotate_after {
        Some(after) => line.push_str(&format!("; data keys seal for {}", units::spelled(after))),
        None => line.push_str("; data keys seal for ever"),
    }
    line
}
