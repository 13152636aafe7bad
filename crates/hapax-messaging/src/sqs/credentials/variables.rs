//! The environment that says where credentials are.

use std::{collections::HashMap, env, ffi::OsString, fmt, path::PathBuf};

use reqsign_core::Env;

/// Variables that are set, and not to nothing.
#[derive(Clone)]
pub(in crate::sqs) struct Variables(HashMap<String, String>);

impl Variables {
    pub(super) fn new<Name: Into<String>, Value: Into<String>>(
        variables: impl IntoIterator<Item = (Name, Value)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(variables.filter(|(_, value)| !value.is_empty()).collect())
    }

    /// Those of this process, as far as they are text.
    pub(in crate::sqs) fn of_process() -> Self {
        let text = |text: OsString| text.into_string().ok();
        let variables =
            env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        Self::new(variables)
    }

    pub(in crate::sqs) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl Env for Variables {
    fn var(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    fn vars(&self) -> HashMap<String, String> {
        self.0.clone()
    }

    fn home_dir(&self) -> Option<PathBuf> {
        self.get("HOME").or_else(|| self.get("USERPROFILE")).map(PathBuf::from)
    }
}

impl fmt::Debug for Variables {
    /// Their values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables").finish_non_exhaustive()
    }
}
