//! Profiles, as the AWS command line keeps them in two files.

use std::{error::Error as _, fmt, io, time::Duration};

use ini::Ini;
use reqsign_aws_v4::Credential;
use reqsign_core::{Context, Error, Result, time::Timestamp};

/// Keys that stand in a file are trusted for less time than a signer asks for before it reads them
/// again: replaced ones count from the next request on.
const KEYS_TRUSTED: Duration = Duration::from_secs(60);

/// What the two files say, and which profile of them counts.
pub(super) struct Profiles {
    credentials: ProfileFile,
    config: ProfileFile,
    /// What `AWS_PROFILE` says.
    chosen: Option<String>,
}

struct ProfileFile {
    path: String,
    content: Ini,
}

/// What a profile says about who we are.
pub(super) enum ProfileIdentity<'a> {
    /// It does not say anything.
    Unknown,
    Keys(Credential),
    /// A role, taken by whoever is behind the source.
    Role {
        arn: &'a str,
        source: RoleSource<'a>,
    },
}

pub(super) enum RoleSource<'a> {
    Profile(&'a str),
    /// Who the variables say we are.
    Environment,
    Container,
    Machine,
    /// Whoever the token in this file is for.
    WebIdentity {
        token_file: &'a str,
    },
}

impl Profiles {
    /// Reads both files; one that is not there is empty.
    pub(super) async fn read(context: &Context) -> Result<Self> {
        let credentials = ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials");
        let config = ("AWS_CONFIG_FILE", "~/.aws/config");
        Ok(Self {
            credentials: ProfileFile::read(context, credentials).await?,
            config: ProfileFile::read(context, config).await?,
            chosen: context.env_var("AWS_PROFILE"),
        })
    }

    /// The name of the profile that counts; an error if one was asked for that is not there.
    pub(super) fn chosen(&self) -> Result<&str> {
        let Some(name) = self.chosen.as_deref() else { return Ok(DEFAULT) };
        let found = self.credentials.content.section(Some(name)).is_some()
            || self.config.content.section(Some(section_in_config(name))).is_some();
        if found { Ok(name) } else { Err(Error::config_invalid(format!("there is no {self}"))) }
    }

    pub(super) fn identity(&self, profile: &str) -> Result<ProfileIdentity<'_>> {
        let Some(arn) = self.setting(profile, "role_arn") else {
            return Ok(self.keys(profile).map_or(ProfileIdentity::Unknown, ProfileIdentity::Keys));
        };
        let source = self.setting(profile, "credential_source");
        let source = match (self.setting(profile, "source_profile"), source) {
            (Some(source), _) => RoleSource::Profile(source),
            (None, Some("Environment")) => RoleSource::Environment,
            (None, Some("EcsContainer")) => RoleSource::Container,
            (None, Some("Ec2InstanceMetadata")) => RoleSource::Machine,
            (None, Some(unknown)) => {
                let fault = format!("profile `{profile}`: `{unknown}` is no credential_source");
                return Err(Error::config_invalid(fault));
            }
            (None, None) => match self.setting(profile, "web_identity_token_file") {
                Some(token_file) => RoleSource::WebIdentity { token_file },
                None => {
                    let fault = format!("profile `{profile}` does not say who takes its role");
                    return Err(Error::config_invalid(fault));
                }
            },
        };
        Ok(ProfileIdentity::Role { arn, source })
    }

    /// The keys that stand in the profile itself, whether it has a role or not.
    pub(super) fn keys(&self, profile: &str) -> Option<Credential> {
        let text = |name| self.setting(profile, name).map(str::to_owned);
        Some(Credential {
            access_key_id: text("aws_access_key_id")?,
            secret_access_key: text("aws_secret_access_key")?,
            session_token: text("aws_session_token"),
            expires_in: Some(Timestamp::now() + KEYS_TRUSTED),
        })
    }

    pub(super) fn setting(&self, profile: &str, name: &str) -> Option<&str> {
        let of_credentials = self.credentials.content.get_from(Some(profile), name);
        let of_config = || self.config.content.get_from(Some(section_in_config(profile)), name);
        of_credentials.or_else(of_config).filter(|value| !value.is_empty())
    }
}

const DEFAULT: &str = "default";

fn section_in_config(profile: &str) -> String {
    if profile == DEFAULT { DEFAULT.to_owned() } else { format!("profile {profile}") }
}

impl fmt::Display for Profiles {
    /// The profile that counts, and where it is looked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.chosen.as_deref().unwrap_or(DEFAULT);
        let (credentials, config) = (&self.credentials.path, &self.config.path);
        write!(f, "profile `{name}` in {credentials} or {config}")
    }
}

impl ProfileFile {
    async fn read(context: &Context, (variable, usual): (&str, &str)) -> Result<Self> {
        let path = context.env_var(variable).unwrap_or_else(|| usual.to_owned());
        let Some(full_path) = context.expand_home_dir(&path) else {
            return Ok(Self { path, content: Ini::new() });
        };
        let fault = |cause: Error| {
            Error::config_invalid(format!("{path} cannot be read")).with_source(cause)
        };
        let text = match context.file_read_as_string(&full_path).await {
            Ok(text) => text,
            Err(cause) if is_not_there(&cause) => String::new(),
            Err(cause) => return Err(fault(cause)),
        };
        let content = Ini::load_from_str_noescape(&text)
            .map_err(|cause| fault(Error::config_invalid(cause.to_string())))?;
        Ok(Self { path, content })
    }
}

fn is_not_there(cause: &Error) -> bool {
    let cause = cause.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
}
