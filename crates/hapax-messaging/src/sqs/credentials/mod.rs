//! Who signs, and where that is looked for.
//!
//! - [`Credentials`]: given, or looked for;
//! - `chain`: the places, in their order;
//! - `profile`: the files of the AWS command line; `role`: the roles they ask for;
//! - `variables`: the environment all of this goes by;
//! - `http`: how the services behind some of these places are asked.
//!
//! Signatures, the protocols of these services and the renewal of what expires are reqsign's.

mod chain;
mod http;
mod profile;
mod role;
mod variables;

use std::fmt;

use reqsign_aws_v4::{Credential, RequestSigner, StaticCredentialProvider};
use reqsign_core::{Context, Signer};
use reqsign_file_read_tokio::TokioFileRead;

pub(super) use self::variables::Variables;
use self::{chain::CredentialChain, http::CredentialHttp};

/// Whom Amazon takes us for.
///
/// ```
/// use hapax_messaging::sqs::{Credentials, QueueOptions};
///
/// // A server of one's own that checks nothing.
/// let credentials = Some(Credentials::new("local", "local", None));
/// let endpoint = Some("http://127.0.0.1:9324".to_owned());
/// let options = QueueOptions { credentials, endpoint, ..QueueOptions::default() };
/// # drop(options);
/// ```
#[derive(Clone)]
pub struct Credentials(CredentialsOrigin);

#[derive(Clone)]
enum CredentialsOrigin {
    Given { id: String, secret: String, token: Option<String> },
    LookedFor(Variables),
}

impl Credentials {
    /// An access key, its secret, and the token that belongs to them if they are temporary.
    pub fn new(
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
        session_token: Option<String>,
    ) -> Self {
        let (id, secret) = (access_key_id.into(), secret_access_key.into());
        Self(CredentialsOrigin::Given { id, secret, token: session_token })
    }

    /// Looked for where Amazon's own tools look, by the variables of this process: in them, in
    /// profiles, behind a web identity, with the container's and with the machine's role.
    ///
    /// They are looked for when the first request is signed, and again before they expire.
    pub fn from_environment() -> Self {
        Self(CredentialsOrigin::LookedFor(Variables::of_process()))
    }

    /// The same, by these variables instead of those of this process.
    pub fn from_variables<Name: Into<String>, Value: Into<String>>(
        variables: impl IntoIterator<Item = (Name, Value)>,
    ) -> Self {
        Self(CredentialsOrigin::LookedFor(Variables::new(variables)))
    }

    /// Signs requests to SQS in this region. `http` is for asking who we are.
    pub(super) fn signer(self, http: reqwest::Client, region: &str) -> Signer<Credential> {
        let requests = RequestSigner::new("sqs", region);
        match self.0 {
            CredentialsOrigin::Given { id, secret, token } => {
                let mut given = StaticCredentialProvider::new(&id, &secret);
                if let Some(token) = token {
                    given = given.with_session_token(&token);
                }
                Signer::new(Context::new(), given, requests)
            }
            CredentialsOrigin::LookedFor(variables) => {
                let chain = CredentialChain::new(&variables, region);
                let context = Context::new()
                    .with_http_send(CredentialHttp::new(http, &variables))
                    .with_file_read(TokioFileRead)
                    .with_env(variables);
                Signer::new(context, chain, requests)
            }
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            CredentialsOrigin::Given { id, .. } => {
                f.debug_struct("Credentials").field("id", id).finish_non_exhaustive()
            }
            CredentialsOrigin::LookedFor(variables) => {
                f.debug_tuple("Credentials").field(variables).finish()
            }
        }
    }
}
