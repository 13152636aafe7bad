//! Signing in by an OpenID provider: the authorization code flow, with PKCE (S256).
//!
//! - `routes`: the two addresses a browser comes by, and what it is told;
//! - `pending`: sign-ins that were begun and have not come back;
//! - `provider`: where the provider's pages are, its keys, what it gives for a code;
//! - `id_token`: what it says of somebody, believed only if everything about it is right;
//! - `query`: names and values in an address.
//!
//! What comes out of it is a session as a token opens one, held by a [`Person`].

mod id_token;
mod pending;
mod provider;
mod query;
mod routes;

use std::time::SystemTime;

use hapax_core::Reason;
use hapax_engine::wall_clock;
use serde_json::Value;

pub(super) use self::routes::{finish_routes, start_routes};
use self::{
    id_token::{Claims, Expected, TokenFault, verified},
    pending::{LoginRegistry, PendingLogin},
    provider::{OidcProvider, ProviderFault},
};
use super::AdminRole;
use crate::config::AdminOidc;

/// What a provider said somebody is called. Whoever has a session under this name is this person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::admin) struct Person(String);

impl Person {
    /// The name, as it is kept with what they change.
    pub(in crate::admin) fn name(&self) -> &str {
        &self.0
    }
}

/// Signs people in by one provider.
#[derive(Debug)]
pub(in crate::admin) struct OidcSignIn {
    settings: AdminOidc,
    provider: OidcProvider,
    logins: LoginRegistry,
}

/// What a browser brings back from the provider.
#[derive(Debug, Clone, Copy)]
struct Returned<'a> {
    code: &'a str,
    login: &'a PendingLogin,
}

/// Why somebody is not signed in.
#[derive(Debug, thiserror::Error)]
enum LoginRefusal {
    #[error("the provider is of no use")]
    Provider(#[from] ProviderFault),
    #[error("what the provider said of somebody is not believed")]
    Token(#[from] TokenFault),
    #[error("the provider said {error}")]
    Denied { error: String },
    #[error("this browser began no sign-in that this could be the end of")]
    NotBegun,
    #[error("the token does not say who it is about in its claim {claim}")]
    Nameless { claim: String },
    #[error("{} is in no group that may do anything", person.name())]
    NoRole { person: Person },
    #[error("the operating system gave no random bytes")]
    NoRandomness,
}

impl OidcSignIn {
    pub(in crate::admin) fn new(settings: AdminOidc) -> Self {
        let provider = OidcProvider::new(&settings);
        Self { settings, provider, logins: LoginRegistry::default() }
    }

    /// What people know the provider as.
    pub(super) fn called(&self) -> &str {
        &self.settings.called
    }

    /// Whether it did not answer when it was last asked, not long ago.
    pub(super) fn is_away(&self) -> bool {
        self.provider.is_away()
    }

    /// Begins a sign-in that ends at `callback`: what the browser keeps, and where it goes.
    async fn begin(&self, callback: String) -> Result<(PendingLogin, String), LoginRefusal> {
        let pages = self.provider.pages_now().await?;
        let login = self.logins.begin(callback).map_err(|_| LoginRefusal::NoRandomness)?;
        let query = query::form(&[
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", &login.callback),
            ("scope", &self.settings.scopes.join(" ")),
            ("state", &login.state),
            ("nonce", &login.nonce),
            ("code_challenge", &login.challenge()),
            ("code_challenge_method", "S256"),
        ]);
        let page = &pages.authorization;
        let separator = if page.query().is_some() { '&' } else { '?' };
        Ok((login, format!("{page}{separator}{query}")))
    }

    /// Who it is, and what they may do.
    async fn finish(&self, returned: Returned<'_>) -> Result<(Person, AdminRole), LoginRefusal> {
        let pages = self.provider.pages().await?;
        let token = self.provider.exchange(&pages, returned.code, returned.login).await?;
        let now = wall_clock().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let expected = Expected {
            issuer: &self.settings.issuer,
            client_id: &self.settings.client_id,
            nonce: &returned.login.nonce,
            now,
        };
        let keys = self.provider.keys(&pages, false).await?;
        let claims = match verified(&token, &keys, &expected) {
            Err(TokenFault::UnknownKey) => {
                let keys = self.provider.keys(&pages, true).await?;
                verified(&token, &keys, &expected)?
            }
            claims => claims?,
        };
        let person = self.person(&claims)?;
        match self.role(&claims) {
            Some(role) => Ok((person, role)),
            None => Err(LoginRefusal::NoRole { person }),
        }
    }

    /// Who it is, in words that can be kept with what they change.
    fn person(&self, claims: &Claims) -> Result<Person, LoginRefusal> {
        let claim = &self.settings.person;
        let nameless = || LoginRefusal::Nameless { claim: claim.clone() };
        let name = claims.get(claim).and_then(Value::as_str).ok_or_else(nameless)?;
        // Who has not shown that an address is theirs may have written anybody's.
        let verified = claims.get("email_verified");
        let is_doubtful = verified.is_some_and(|is| *is != true && *is != "true");
        if claim == "email" && is_doubtful {
            return Err(nameless());
        }
        let is_kept = Reason::new(name, "signs in").is_ok() && !name.contains('\n');
        is_kept.then(|| Person(name.to_owned())).ok_or_else(nameless)
    }

    /// What the groups of somebody allow.
    fn role(&self, claims: &Claims) -> Option<AdminRole> {
        let claim = claims.get(&self.settings.claim)?;
        let groups = match claim {
            Value::String(_) => std::slice::from_ref(claim),
            Value::Array(groups) => groups,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
        };
        let is_in = |members: &[String]| {
            groups.iter().any(|group| members.iter().any(|member| *group == **member))
        };
        match (is_in(&self.settings.operate), is_in(&self.settings.read)) {
            (true, _) => Some(AdminRole::Operate),
            (false, true) => Some(AdminRole::Read),
            (false, false) => None,
        }
    }
}
