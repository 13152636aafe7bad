//! Knows whose a token was, and asks whether it still is only before it runs something.

use crate::{
    Conduct, Enclosure, KeyFound, KnownKey, PlainResponse, Species, Submission, submission,
};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::broken(
    "revoked-token-replays",
    "knows whose a token was, and asks whether it still is only before it runs something",
    &["V10"],
    || Arc::new(RevokedTokenReplays),
);

#[derive(Debug)]
struct RevokedTokenReplays;

impl Conduct for RevokedTokenReplays {
    fn principal(&self, submission: &Submission) -> Result<String, PlainResponse> {
        let refusal = match submission::principal(&submission.headers) {
            Ok(name) => return Ok(name),
            Err(refusal) => refusal,
        };
        let is_revoked = submission::token(&submission.headers) == Some("revoked");
        if is_revoked { Ok("alice".to_owned()) } else { Err(refusal) }
    }

    fn claim(&self, enclosure: &Enclosure, submission: &Submission) -> KeyFound {
        let (name, text) = (submission.name(), submission.text());
        let refused = submission::principal(&submission.headers).err();
        match (enclosure.keys.look(&name, &text), refused) {
            (found @ (KeyFound::Finished(_) | KeyFound::Reused), _) => found,
            (_, Some(refusal)) => KeyFound::Finished(refusal),
            (_, None) => {
                enclosure.keys.claim(&name, KnownKey::claimed(text, submission.connection))
            }
        }
    }
}
