//! The provider: where its pages are, which keys it signs with, and what it gives for a code.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hapax_tower::BoxError;
use http::{
    HeaderValue, Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
    uri::PathAndQuery,
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};

use super::{id_token::SigningKeys, pending::PendingLogin, query};
use crate::{
    client::UpstreamClient,
    config::{AdminOidc, ClientSecret, Upstream, is_private},
};

/// How long an answer of the provider may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// How long it is taken to be there, and as it was, when somebody is about to be sent to it.
const SEEN_FOR: Duration = Duration::from_secs(2);
/// How long what it published is believed without asking again.
const KEPT_FOR: Duration = Duration::from_secs(10 * 60);
/// How long after it did not answer it is left alone.
const LEFT_ALONE_FOR: Duration = Duration::from_secs(1);
/// How often keys are asked for because a token names one that is not known.
const KEYS_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long people are told that it did not answer.
const TOLD_FOR: Duration = Duration::from_secs(60);

/// Why the provider was of no use.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProviderFault {
    /// It cannot be reached, or says what cannot be meant.
    #[error("the provider's {page} cannot be had")]
    Away {
        /// Which page of it.
        page: &'static str,
        #[source]
        cause: BoxError,
    },
    /// It was asked a moment ago and did not answer.
    #[error("the provider did not answer a moment ago")]
    LeftAlone,
    /// It gives nothing for this code.
    #[error("the provider did not take the code: {error}")]
    CodeRefused {
        /// In its words.
        error: String,
    },
}

/// A provider, asked when somebody signs in and never before.
#[derive(Debug)]
pub(super) struct OidcProvider {
    issuer: String,
    client_id: String,
    client_secret: Option<ClientSecret>,
    ca: Option<PathBuf>,
    /// Held while it is asked: once for all who wait.
    known: AsyncMutex<Known>,
    failed: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Known {
    pages: Option<(Instant, Arc<ProviderPages>)>,
    keys: Option<(Instant, Arc<SigningKeys>)>,
}

/// Where its pages are.
#[derive(Debug)]
pub(super) struct ProviderPages {
    pub(super) authorization: Uri,
    token: ProviderPage,
    keys: ProviderPage,
    /// Whether the secret is sent in the form instead of a header.
    secret_in_form: bool,
}

#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct TokenDocument {
    id_token: String,
}

#[derive(Deserialize)]
struct TokenRefusal {
    error: String,
}

impl OidcProvider {
    pub(super) fn new(settings: &AdminOidc) -> Self {
        Self {
            issuer: settings.issuer.clone(),
            client_id: settings.client_id.clone(),
            client_secret: settings.client_secret.clone(),
            ca: settings.ca.clone(),
            known: AsyncMutex::default(),
            failed: Mutex::default(),
        }
    }

    /// Whether it did not answer when it was last asked, not long ago.
    pub(super) fn is_away(&self) -> bool {
        self.failed_within(TOLD_FOR)
    }

    /// Where its pages are, for whoever is about to be sent to one: it is there.
    pub(super) async fn pages_now(&self) -> Result<Arc<ProviderPages>, ProviderFault> {
        self.pages_kept(SEEN_FOR).await
    }

    /// Where its pages are.
    pub(super) async fn pages(&self) -> Result<Arc<ProviderPages>, ProviderFault> {
        self.pages_kept(KEPT_FOR).await
    }

    async fn pages_kept(&self, kept_for: Duration) -> Result<Arc<ProviderPages>, ProviderFault> {
        let mut known = self.known.lock().await;
        if let Some((at, pages)) = &known.pages
            && at.elapsed() < kept_for
        {
            return Ok(Arc::clone(pages));
        }
        let pages = Arc::new(self.asked(self.discover()).await?);
        known.pages = Some((Instant::now(), Arc::clone(&pages)));
        Ok(pages)
    }

    /// The keys it signs with; asked for `anew` if the last ones were not enough, though not at once again.
    pub(super) async fn keys(
        &self,
        pages: &ProviderPages,
        anew: bool,
    ) -> Result<Arc<SigningKeys>, ProviderFault> {
        let mut known = self.known.lock().await;
        let kept_for = if anew { KEYS_AGAIN_AFTER } else { KEPT_FOR };
        if let Some((at, keys)) = &known.keys
            && at.elapsed() < kept_for
        {
            return Ok(Arc::clone(keys));
        }
        let keys = async {
            let document = pages.keys.get().await?;
            SigningKeys::parse(&document).map_err(|error| pages.keys.unfit(error))
        };
        let keys = Arc::new(self.asked(keys).await?);
        known.keys = Some((Instant::now(), Arc::clone(&keys)));
        Ok(keys)
    }

    /// The ID token it gives for a code.
    pub(super) async fn exchange(
        &self,
        pages: &ProviderPages,
        code: &str,
        login: &PendingLogin,
    ) -> Result<String, ProviderFault> {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", login.callback.as_str()),
            ("code_verifier", login.verifier.as_str()),
        ];
        let page = &pages.token;
        let request = Request::post(page.target.clone());
        let mut request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        match &self.client_secret {
            None => form.push(("client_id", &self.client_id)),
            Some(secret) if pages.secret_in_form => {
                form.extend([("client_id", &*self.client_id), ("client_secret", secret.expose())]);
            }
            Some(secret) => {
                let pair = [query::encoded(&self.client_id), query::encoded(secret.expose())];
                let value = format!("Basic {}", BASE64_STANDARD.encode(pair.join(":")));
                let value = HeaderValue::try_from(value).map(|mut value| {
                    value.set_sensitive(true);
                    value
                });
                request = request.header(AUTHORIZATION, value.map_err(|error| page.unfit(error))?);
            }
        }
        let request = request.header(ACCEPT, "application/json");
        let request = request.body(Bytes::from(query::form(&form)));
        let request = request.map_err(|error| page.unfit(error))?;
        let asked = self.asked(async {
            let (status, body) = page.ask(request).await?;
            match status {
                StatusCode::OK => page.read::<TokenDocument>(&body).map(Ok),
                StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => {
                    page.read::<TokenRefusal>(&body).map(Err)
                }
                status => Err(page.unfit(format!("it answered {status}"))),
            }
        });
        match asked.await? {
            Ok(TokenDocument { id_token }) => Ok(id_token),
            Err(TokenRefusal { error }) => Err(ProviderFault::CodeRefused { error }),
        }
    }

    /// Remembers whether it answered.
    async fn asked<T>(
        &self,
        asking: impl Future<Output = Result<T, ProviderFault>>,
    ) -> Result<T, ProviderFault> {
        if self.failed_within(LEFT_ALONE_FOR) {
            return Err(ProviderFault::LeftAlone);
        }
        let answered = asking.await;
        let failed = answered.is_err().then(Instant::now);
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
        answered
    }

    fn failed_within(&self, span: Duration) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|at| at.elapsed() < span)
    }

    async fn discover(&self) -> Result<ProviderPages, ProviderFault> {
        const WELL_KNOWN: &str = "/.well-known/openid-configuration";
        let url = format!("{}{WELL_KNOWN}", self.issuer.trim_end_matches('/'));
        let page = ProviderPage::at("configuration", &url, self.ca.as_ref())?;
        let document: DiscoveryDocument = page.read(&page.get().await?)?;
        if document.issuer != self.issuer {
            let what = format!("it calls itself {:?}, not {:?}", document.issuer, self.issuer);
            return Err(page.unfit(what));
        }
        let listed = document.token_endpoint_auth_methods_supported.unwrap_or_default();
        let takes = |method: &str| listed.iter().any(|listed| listed == method);
        let (token, keys) = (&document.token_endpoint, &document.jwks_uri);
        let pages = ProviderPages {
            authorization: public(&document.authorization_endpoint, &self.issuer)
                .map_err(|what| page.unfit(what))?,
            token: ProviderPage::at("token endpoint", token, self.ca.as_ref())?,
            keys: ProviderPage::at("keys", keys, self.ca.as_ref())?,
            secret_in_form: takes("client_secret_post") && !takes("client_secret_basic"),
        };
        for url in [token, keys] {
            public(url, &self.issuer).map_err(|what| page.unfit(what))?;
        }
        Ok(pages)
    }
}

/// An address that the provider names, as safe as its own.
fn public(url: &str, issuer: &str) -> Result<Uri, String> {
    let named: Uri = url.parse().map_err(|_| format!("{url:?} is no address"))?;
    let is_as_safe = named.scheme_str() == Some("https") || !issuer.starts_with("https:");
    if !is_private(&named) || !is_as_safe {
        return Err(format!("{url:?} is not encrypted"));
    }
    Ok(named)
}

/// One page of the provider.
#[derive(Debug)]
struct ProviderPage {
    name: &'static str,
    client: UpstreamClient,
    target: Uri,
}

impl ProviderPage {
    fn at(name: &'static str, url: &str, ca: Option<&PathBuf>) -> Result<Self, ProviderFault> {
        let away = |cause: BoxError| ProviderFault::Away { page: name, cause };
        let url: Uri = url.parse().map_err(|_| away(format!("{url:?} is no address").into()))?;
        let target = url.path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
        let mut origin = url.into_parts();
        origin.path_and_query = Some(PathAndQuery::from_static("/"));
        let origin = Uri::from_parts(origin).map_err(|error| away(error.into()))?;
        let upstream = Upstream { ca: ca.cloned(), ..Upstream::at(origin) };
        let client = UpstreamClient::new(&upstream).map_err(|error| away(error.into()))?;
        let target = Uri::try_from(target).map_err(|error| away(error.into()))?;
        Ok(Self { name, client, target })
    }

    /// What it says to whoever looks. It is not followed to elsewhere.
    async fn get(&self) -> Result<Bytes, ProviderFault> {
        let request = Request::get(self.target.clone()).header(ACCEPT, "application/json");
        let request = request.body(Bytes::new()).map_err(|error| self.unfit(error))?;
        match self.ask(request).await? {
            (StatusCode::OK, body) => Ok(body),
            (status, _) => Err(self.unfit(format!("it answered {status}"))),
        }
    }

    async fn ask(&self, request: Request<Bytes>) -> Result<(StatusCode, Bytes), ProviderFault> {
        let answer = self.client.fetch(request, ANSWER_BYTES_MAX, ANSWER_WITHIN).await;
        let (parts, body) = answer.map_err(|error| self.unfit(error))?.into_parts();
        Ok((parts.status, body))
    }

    fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, ProviderFault> {
        serde_json::from_slice(body).map_err(|error| self.unfit(error))
    }

    fn unfit(&self, cause: impl Into<BoxError>) -> ProviderFault {
        ProviderFault::Away { page: self.name, cause: cause.into() }
    }
}
