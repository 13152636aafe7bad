//! What is sent, as it was typed.

use std::{fs, path::Path};

use hapax_examine::BodyTemplate;
use serde::de::IgnoredAny;

use super::error::VerifyError;
use crate::args::VerifySettings;

pub(super) fn template(settings: &VerifySettings) -> Result<BodyTemplate, VerifyError> {
    let is_json = settings.body.is_none();
    let read =
        |given: &Option<String>| given.as_deref().map(|given| read(given, is_json)).transpose();
    let given = if is_json { read(&settings.json)? } else { read(&settings.body)? };
    let content_type = match (&settings.content_type, is_json) {
        (Some(content_type), _) => content_type.clone(),
        (None, true) => "application/json".to_owned(),
        (None, false) => return Err(VerifyError::NoContentType),
    };
    Ok(BodyTemplate {
        content_type,
        text: given.unwrap_or_default(),
        changed: read(&settings.changed_body)?,
        invalid: read(&settings.invalid_body)?,
    })
}

/// Text as it is, or what is in a file after `@`.
fn read(given: &str, is_json: bool) -> Result<String, VerifyError> {
    let text = match given.strip_prefix('@') {
        Some(path) => fs::read_to_string(path)
            .map_err(|source| VerifyError::Read { path: Path::new(path).to_owned(), source })?,
        None => given.to_owned(),
    };
    if is_json {
        serde_json::from_str::<IgnoredAny>(&text).map_err(VerifyError::NotJson)?;
    }
    Ok(text)
}
