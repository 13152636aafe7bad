//! Headers as they are typed, with secrets from the environment.

use std::env;

use super::error::VerifyError;

/// A word that begins so is the name of a variable.
const FROM_ENVIRONMENT: &str = "env:";

/// `Name: value`, each, with what the environment holds in place of `env:NAME`.
pub(super) fn read(given: &[String]) -> Result<Vec<(String, String)>, VerifyError> {
    given.iter().map(|given| header(given)).collect()
}

fn header(given: &str) -> Result<(String, String), VerifyError> {
    let wrong = || VerifyError::Header;
    let (name, value) = given.split_once(':').ok_or_else(wrong)?;
    let name = http::HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
    let value = from_environment(value.trim(), &format!("the header {name}"))?;
    http::HeaderValue::try_from(&value).map_err(|_| wrong())?;
    let written = given.split(':').next().unwrap_or_default().trim();
    Ok((written.to_owned(), value))
}

/// The same text with the values of the variables that it names.
pub(super) fn from_environment(text: &str, place: &str) -> Result<String, VerifyError> {
    let words = text.split(' ').map(|word| match word.strip_prefix(FROM_ENVIRONMENT) {
        Some(name) => {
            let missing =
                |_| VerifyError::Variable { place: place.to_owned(), name: name.to_owned() };
            env::var(name).map_err(missing)
        }
        None => Ok(word.to_owned()),
    });
    Ok(words.collect::<Result<Vec<_>, _>>()?.join(" "))
}

/// Whether all that may be secret in this header stands in the environment.
pub(super) fn names_no_secret(given: &str) -> bool {
    given.contains(FROM_ENVIRONMENT)
}

/// Whether the name of a header says that its value is a secret.
pub(super) fn has_secret_name(header: &str) -> bool {
    let name = header.split(':').next().unwrap_or_default().to_ascii_lowercase();
    ["auth", "cookie", "key", "token", "secret", "password"].iter().any(|part| name.contains(part))
}
