//! Roles that profiles ask for, one taken by means of the other.

use reqsign_aws_v4::{
    AssumeRoleCredentialProvider, Credential, EnvCredentialProvider, RequestSigner,
    StaticCredentialProvider,
};
use reqsign_core::{Context, Error, ProvideCredential, Result, Signer};

use super::{
    chain::{CredentialChain, refused_by},
    profile::{ProfileIdentity, Profiles, RoleSource},
};

/// How many profiles may lead to the one that counts, itself included.
const PROFILES_MAX: usize = 5;

/// Takes the roles of profiles.
pub(super) struct RoleTaker<'a> {
    pub(super) profiles: &'a Profiles,
    pub(super) chain: &'a CredentialChain,
    pub(super) context: &'a Context,
}

impl RoleTaker<'_> {
    /// The credentials of the profile that counts, if it says anything about them.
    pub(super) async fn take(&self) -> Result<Option<Credential>> {
        let profile = self.profiles.chosen()?;
        let found = self.credential_of(profile, PROFILES_MAX).await;
        found.map_err(refused_by(self.profiles))
    }

    async fn credential_of(
        &self,
        profile: &str,
        profiles_left: usize,
    ) -> Result<Option<Credential>> {
        let Some(profiles_left) = profiles_left.checked_sub(1) else {
            return Err(Error::config_invalid("its source_profile leads on and on"));
        };
        let (arn, source) = match self.profiles.identity(profile)? {
            ProfileIdentity::Unknown => return Ok(None),
            ProfileIdentity::Keys(credential) => return Ok(Some(credential)),
            ProfileIdentity::Role { arn, source } => (arn, source),
        };
        let taker = match source {
            RoleSource::WebIdentity { token_file } => {
                let identity = self.chain.web_identity().with_role_arn(arn);
                let identity = identity.with_web_identity_token_file(token_file);
                return identity.provide_credential(self.context).await;
            }
            // A profile that names itself takes its role with its own keys.
            RoleSource::Profile(source) if source == profile => self.profiles.keys(source),
            RoleSource::Profile(source) => {
                Box::pin(self.credential_of(source, profiles_left)).await?
            }
            RoleSource::Environment => {
                EnvCredentialProvider::new().provide_credential(self.context).await?
            }
            RoleSource::Container => self.chain.container.provide_credential(self.context).await?,
            RoleSource::Machine => self.chain.machine.provide_credential(self.context).await?,
        };
        let nobody =
            || Error::config_invalid(format!("there are no credentials to take {arn} with"));
        self.assume(profile, arn, taker.ok_or_else(nobody)?).await
    }

    async fn assume(
        &self,
        profile: &str,
        arn: &str,
        taker: Credential,
    ) -> Result<Option<Credential>> {
        let mut keys =
            StaticCredentialProvider::new(&taker.access_key_id, &taker.secret_access_key);
        if let Some(token) = &taker.session_token {
            keys = keys.with_session_token(token);
        }
        let region = &self.chain.sts_region;
        let requests = RequestSigner::new("sts", region);
        let signer = Signer::new(self.context.clone(), keys, requests);
        let setting = |name| self.profiles.setting(profile, name).map(str::to_owned);
        let name = setting("role_session_name");
        let mut role = AssumeRoleCredentialProvider::new(arn.to_owned(), signer)
            .with_role_session_name(name.unwrap_or_else(|| self.chain.session_name.clone()))
            .with_region(region.clone())
            .with_regional_sts_endpoint();
        if let Some(id) = setting("external_id") {
            role = role.with_external_id(id);
        }
        if let Some(seconds) = setting("duration_seconds") {
            let fault = |_| Error::config_invalid("its duration_seconds is not a number");
            role = role.with_duration_seconds(seconds.parse().map_err(fault)?);
        }
        role.provide_credential(self.context).await
    }
}
