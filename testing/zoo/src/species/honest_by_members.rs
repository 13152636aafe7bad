//! Takes JSON for the same whatever the order of its members.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{Conduct, Species, Submission};

pub(super) const SPECIES: Species =
    Species::correct("honest-by-members", || Arc::new(HonestByMembers));

#[derive(Debug)]
struct HonestByMembers;

impl Conduct for HonestByMembers {
    fn fingerprint(&self, submission: &Submission) -> String {
        let members: BTreeMap<String, Value> =
            serde_json::from_slice(&submission.body).unwrap_or_default();
        format!("{members:?}")
    }
}
