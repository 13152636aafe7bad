//! The answer: lines for people, JSON for programs.

use std::io::{self, Write};

use hapax::{
    Tenant,
    encryption::Rewrapped,
    store::{DataKeyState, MasterKeyUse, StoredDataKey},
};
use serde_json::{Value, json};

use super::error::EncryptionTaskError;
use crate::table::{columns, harmless};

/// How the answer is given.
pub(super) struct KeyPrinter {
    json: bool,
}

impl KeyPrinter {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(super) fn shown(
        &self,
        masters: &[MasterKeyUse],
        keys: Option<&[StoredDataKey]>,
    ) -> Result<(), EncryptionTaskError> {
        let mut out = io::stdout().lock();
        if self.json {
            let masters: Vec<_> = masters
                .iter()
                .map(|used| json!({ "master_key": used.master, "data_keys": used.keys }))
                .collect();
            let keys = keys.map(|keys| keys.iter().map(document).collect::<Vec<_>>());
            writeln!(out, "{}", json!({ "master_keys": masters, "data_keys": keys }))?;
            return Ok(());
        }
        if masters.is_empty() {
            writeln!(out, "no data keys: nothing is encrypted here yet, or all of it was erased")?;
        }
        for used in masters {
            writeln!(out, "{} wraps {} data keys", harmless(&used.master), used.keys)?;
        }
        let Some(keys) = keys else { return Ok(()) };
        let head = ["VERSION", "MADE", "STATE"].map(str::to_owned);
        let rows = keys
            .iter()
            .map(|key| [key.id.version.to_string(), key.created_at.to_string(), state(&key.state)]);
        columns(&mut out, &std::iter::once(head).chain(rows).collect::<Vec<_>>())?;
        Ok(())
    }

    pub(super) fn rewrapped(
        &self,
        master: &str,
        done: Rewrapped,
    ) -> Result<(), EncryptionTaskError> {
        let Rewrapped { rewrapped, kept, erased } = done;
        let mut out = io::stdout().lock();
        if self.json {
            let document = json!({ "rewrapped": rewrapped, "kept": kept, "erased": erased });
            writeln!(out, "{document}")?;
        } else {
            writeln!(
                out,
                "{rewrapped} data keys are now under {master}, {kept} were before; no other master \
                 key is needed by this store any more"
            )?;
        }
        Ok(())
    }

    pub(super) fn erased(&self, tenant: &Tenant, keys: usize) -> Result<(), EncryptionTaskError> {
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", json!({ "tenant": tenant.as_str(), "erased": keys }))?;
        } else {
            writeln!(
                out,
                "{keys} data keys of {} were forgotten; running gateways follow within a minute",
                tenant.as_str()
            )?;
        }
        Ok(())
    }
}

fn state(state: &DataKeyState) -> String {
    match state {
        DataKeyState::Kept(wrapped) => format!("wrapped by {}", harmless(&wrapped.master)),
        DataKeyState::Erased { at, reason } => {
            let (who, why) = (harmless(reason.who()), harmless(reason.why()));
            format!("erased {at} by {who}: {why}")
        }
    }
}

fn document(key: &StoredDataKey) -> Value {
    let made = key.created_at.to_string();
    match &key.state {
        DataKeyState::Kept(wrapped) => {
            json!({ "version": key.id.version, "made": made, "master_key": wrapped.master })
        }
        DataKeyState::Erased { at, reason } => json!({
            "version": key.id.version,
            "made": made,
            "erased": { "at": at.to_string(), "who": reason.who(), "why": reason.why() },
        }),
    }
}
