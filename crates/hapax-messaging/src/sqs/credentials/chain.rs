//! The places where credentials are looked for, in the order of Amazon's own tools.

use std::fmt::Display;

use reqsign_aws_v4::{
    AssumeRoleWithWebIdentityCredentialProvider, Credential, ECSCredentialProvider,
    EnvCredentialProvider, IMDSv2CredentialProvider,
};
use reqsign_core::{Context, Error, ProvideCredential, Result};

use super::{Variables, profile::Profiles, role::RoleTaker};

/// What we are called in the log of an account whose role we take, unless we are told otherwise.
const SESSION_NAME: &str = "hapax";

/// The first place that is set up decides, also if it fails: nobody acts under another identity
/// than the one they wrote down. reqsign's own chain would go on to the next.
#[derive(Debug)]
pub(super) struct CredentialChain {
    pub(super) container: ECSCredentialProvider,
    pub(super) machine: IMDSv2CredentialProvider,
    /// Where roles are taken.
    pub(super) sts_region: String,
    pub(super) session_name: String,
}

impl CredentialChain {
    /// Roles are taken in the region of this process, or else in that of the queue.
    pub(super) fn new(variables: &Variables, region_of_queue: &str) -> Self {
        let region = variables.get("AWS_REGION").or_else(|| variables.get("AWS_DEFAULT_REGION"));
        let session_name = variables.get("AWS_ROLE_SESSION_NAME").unwrap_or(SESSION_NAME);
        Self {
            container: ECSCredentialProvider::new(),
            machine: IMDSv2CredentialProvider::new(),
            sts_region: region.unwrap_or(region_of_queue).to_owned(),
            session_name: session_name.to_owned(),
        }
    }

    pub(super) fn web_identity(&self) -> AssumeRoleWithWebIdentityCredentialProvider {
        AssumeRoleWithWebIdentityCredentialProvider::new()
            .with_role_session_name(self.session_name.clone())
            .with_region(self.sts_region.clone())
            .with_regional_sts_endpoint()
    }
}

impl ProvideCredential for CredentialChain {
    type Credential = Credential;

    async fn provide_credential(&self, context: &Context) -> Result<Option<Credential>> {
        if let Some(found) = EnvCredentialProvider::new().provide_credential(context).await? {
            return Ok(Some(found));
        }
        let profiles = Profiles::read(context).await?;
        let roles = RoleTaker { profiles: &profiles, chain: self, context };
        if let Some(found) = roles.take().await? {
            return Ok(Some(found));
        }
        let found = self.web_identity().provide_credential(context).await;
        if let Some(found) = found.map_err(refused_by("the role of AWS_WEB_IDENTITY_TOKEN_FILE"))? {
            return Ok(Some(found));
        }
        let found = self.container.provide_credential(context).await;
        if let Some(found) = found.map_err(refused_by("the role of this container"))? {
            return Ok(Some(found));
        }
        let looked_for = format!(
            "looked for AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, {profiles}, \
             AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN, \
             AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, AWS_CONTAINER_CREDENTIALS_FULL_URI \
             and the role of this machine"
        );
        match self.machine.provide_credential(context).await {
            Ok(None) => Err(Error::config_invalid(looked_for)),
            found => found.map_err(refused_by(looked_for)),
        }
    }
}

/// This place is set up, and does not say who we are.
pub(super) fn refused_by(place: impl Display) -> impl FnOnce(Error) -> Error {
    move |cause| {
        let refused = Error::new(cause.kind(), place.to_string());
        refused.set_retryable(cause.is_retryable()).with_source(cause)
    }
}
