//! A master key that never leaves Amazon's KMS, or a server that speaks like it.

use std::{env, error::Error, fmt, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::{Bytes, BytesMut};
use hapax_core::store::DataKeyId;
use http::{
    HeaderMap, Request, Response,
    header::{CONTENT_TYPE, HOST},
};
use reqsign_aws_v4::{
    Credential, DefaultCredentialProvider, RequestSigner, StaticCredentialProvider,
    constants::X_AMZ_CONTENT_SHA_256,
};
use reqsign_core::{Context, HttpSend, OsEnv, Signer, hash::hex_sha256};
use reqsign_file_read_tokio::TokioFileRead;
use reqwest::{StatusCode, Url};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::{DataKeyBytes, MasterKey, MasterKeyError, Wrapping};

const AWS_JSON: &str = "application/x-amz-json-1.1";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an answer may take, credentials included: requests wait for it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A key of Amazon's KMS, or of a server that speaks like it. Wrapped data keys are bound to their tenant and
/// version by the encryption context, which KMS logs.
///
/// Credentials are looked for where Amazon's own tools look: variables, profiles, a web identity, the container's
/// and the machine's role. The key needs `kms:Encrypt` and `kms:Decrypt`.
///
/// ```no_run
/// use hapax_encryption::{Encryption, KmsMasterKey, KmsOptions};
///
/// let arn = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab";
/// let encryption = Encryption::new(KmsMasterKey::new(arn, KmsOptions::default())?);
/// # drop(encryption);
/// # Ok::<(), hapax_encryption::InvalidKmsKey>(())
/// ```
pub struct KmsMasterKey {
    name: String,
    key: String,
    endpoint: Url,
    http: reqwest::Client,
    signer: Signer<Credential>,
}

/// What the name of a key does not say.
#[derive(Debug, Clone, Default)]
pub struct KmsOptions {
    /// Where requests are sent; otherwise `AWS_ENDPOINT_URL_KMS`, `AWS_ENDPOINT_URL`, or Amazon's own of the region.
    pub endpoint: Option<String>,
    /// The region; otherwise that of the ARN, `AWS_REGION` or `AWS_DEFAULT_REGION`.
    pub region: Option<String>,
    /// Who asks; otherwise looked for where Amazon's own tools look.
    pub credentials: Option<KmsCredentials>,
}

/// An access key, and its secret.
#[derive(Clone)]
pub struct KmsCredentials {
    /// The id of the access key.
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: String,
}

impl fmt::Debug for KmsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KmsCredentials").field(&self.access_key_id).finish()
    }
}

impl KmsMasterKey {
    /// The key with this ARN, id or alias. Nobody is asked yet.
    pub fn new(key: &str, options: KmsOptions) -> Result<Self, InvalidKmsKey> {
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidKmsKey::Name);
        }
        let variable = |name| env::var(name).ok().filter(|value: &String| !value.is_empty());
        let region = options
            .region
            .or_else(|| region_of(key))
            .or_else(|| variable("AWS_REGION"))
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .ok_or(InvalidKmsKey::NoRegion)?;
        let endpoint = options
            .endpoint
            .or_else(|| variable("AWS_ENDPOINT_URL_KMS"))
            .or_else(|| variable("AWS_ENDPOINT_URL"))
            .unwrap_or_else(|| format!("https://kms.{region}.amazonaws.com/"));
        let endpoint = Url::parse(&endpoint).map_err(|_| InvalidKmsKey::Endpoint)?;
        let http = client().map_err(InvalidKmsKey::Https)?;
        let context = Context::new()
            .with_http_send(CredentialRequests(http.clone()))
            .with_file_read(TokioFileRead)
            .with_env(OsEnv);
        let requests = RequestSigner::new("kms", &region);
        let signer = match options.credentials {
            Some(KmsCredentials { access_key_id, secret_access_key }) => {
                let given = StaticCredentialProvider::new(&access_key_id, &secret_access_key);
                Signer::new(context, given, requests)
            }
            None => Signer::new(context, DefaultCredentialProvider::new(), requests),
        };
        Ok(Self { name: format!("kms:{key}"), key: key.to_owned(), endpoint, http, signer })
    }

    /// Asks for something; the member of the answer that is wanted, which is base64.
    async fn call(
        &self,
        action: &str,
        ask: Value,
        member: &str,
    ) -> Result<Vec<u8>, MasterKeyError> {
        let answer = timeout(ANSWER_TIMEOUT, self.exchange(action, &ask)).await;
        let (status, body) = match answer {
            Ok(answer) => answer.map_err(|cause| self.unavailable(cause))?,
            Err(late) => return Err(self.unavailable(late.into())),
        };
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if !status.is_success() {
            return Err(self.refusal(status, &answer));
        }
        let told = answer[member].as_str().map(|text| BASE64_STANDARD.decode(text));
        match told {
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(cause)) => Err(self.unavailable(cause.into())),
            None => Err(self.unavailable(format!("the answer has no {member}").into())),
        }
    }

    async fn exchange(
        &self,
        action: &str,
        ask: &Value,
    ) -> Result<(StatusCode, Zeroizing<Vec<u8>>), BoxError> {
        let body = Zeroizing::new(serde_json::to_vec(ask)?);
        let headers = self.headers(action, &body).await?;
        let request = self.http.post(self.endpoint.clone()).headers(headers);
        let answer = request.body(body.to_vec()).send().await?;
        let status = answer.status();
        Ok((status, Zeroizing::new(read(answer).await?.to_vec())))
    }

    /// The headers of a request with this body, signed.
    async fn headers(&self, action: &str, body: &[u8]) -> Result<HeaderMap, BoxError> {
        let request = Request::post(self.endpoint.as_str())
            .header(CONTENT_TYPE, AWS_JSON)
            .header("x-amz-target", format!("TrentService.{action}"))
            // Without it a signature would not cover the body.
            .header(X_AMZ_CONTENT_SHA_256, hex_sha256(body))
            .body(())?;
        let (mut head, ()) = request.into_parts();
        self.signer.sign(&mut head, None).await?;
        // The client writes the same.
        head.headers.remove(HOST);
        Ok(head.headers)
    }

    /// What a refusal means: only what says that this key did not wrap these bytes is for good.
    fn refusal(&self, status: StatusCode, answer: &Value) -> MasterKeyError {
        let code = answer["__type"].as_str().unwrap_or_default();
        let code = code.rsplit('#').next().unwrap_or_default();
        let said = answer["message"].as_str().or_else(|| answer["Message"].as_str());
        let cause = format!("{} {code}: {}", status.as_u16(), said.unwrap_or_default());
        match code {
            "InvalidCiphertextException" | "IncorrectKeyException" => {
                MasterKeyError::Refused { name: self.name.clone(), cause: cause.into() }
            }
            _ => self.unavailable(cause.into()),
        }
    }

    fn unavailable(&self, cause: BoxError) -> MasterKeyError {
        MasterKeyError::Unavailable { name: self.name.clone(), cause }
    }
}

type BoxError = Box<dyn Error + Send + Sync>;

impl MasterKey for KmsMasterKey {
    fn name(&self) -> &str {
        &self.name
    }

    fn wrap<'a>(&'a self, id: &'a DataKeyId, key: &'a DataKeyBytes) -> Wrapping<'a, Bytes> {
        Box::pin(async move {
            let ask = json!({
                "KeyId": self.key,
                "Plaintext": BASE64_STANDARD.encode(key.as_slice()),
                "EncryptionContext": context_of(id),
            });
            self.call("Encrypt", ask, "CiphertextBlob").await.map(Bytes::from)
        })
    }

    fn unwrap<'a>(&'a self, id: &'a DataKeyId, wrapped: &'a [u8]) -> Wrapping<'a, DataKeyBytes> {
        Box::pin(async move {
            let ask = json!({
                "KeyId": self.key,
                "CiphertextBlob": BASE64_STANDARD.encode(wrapped),
                "EncryptionContext": context_of(id),
            });
            let bytes = Zeroizing::new(self.call("Decrypt", ask, "Plaintext").await?);
            let key = bytes.as_slice().try_into();
            let key = key.map_err(|cause| MasterKeyError::Refused {
                name: self.name.clone(),
                cause: Box::<dyn Error + Send + Sync>::from(cause),
            });
            Ok(Zeroizing::new(key?))
        })
    }
}

fn context_of(id: &DataKeyId) -> Value {
    json!({ "hapax-tenant": id.tenant.as_str(), "hapax-version": id.version.to_string() })
}

/// `eu-central-1` of `arn:aws:kms:eu-central-1:…`.
fn region_of(key: &str) -> Option<String> {
    let mut parts = key.split(':');
    match (parts.next()?, parts.next()?, parts.next()?, parts.next()?) {
        ("arn", _, "kms", region) if !region.is_empty() => Some(region.to_owned()),
        _ => None,
    }
}

fn client() -> Result<reqwest::Client, BoxError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(ANSWER_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(config);
    Ok(builder.build()?)
}

/// The body of an answer, if it is not too long to be one.
async fn read(mut answer: reqwest::Response) -> Result<Bytes, BoxError> {
    let mut body = BytesMut::new();
    while let Some(piece) = answer.chunk().await? {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err("the answer is too long".into());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

/// How the services that give credentials are asked.
#[derive(Debug)]
struct CredentialRequests(reqwest::Client);

impl HttpSend for CredentialRequests {
    async fn http_send(
        &self,
        mut request: Request<Bytes>,
    ) -> reqsign_core::Result<Response<Bytes>> {
        let failed = |cause: BoxError| {
            reqsign_core::Error::unexpected(cause.to_string()).set_retryable(true)
        };
        // The client writes it again.
        request.headers_mut().remove(HOST);
        let request = reqwest::Request::try_from(request).map_err(|cause| failed(cause.into()))?;
        let answer = self.0.execute(request).await.map_err(|cause| failed(cause.into()))?;
        let status = answer.status();
        let mut read = Response::new(read(answer).await.map_err(failed)?);
        *read.status_mut() = status;
        Ok(read)
    }
}

impl fmt::Debug for KmsMasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KmsMasterKey").field(&self.name).finish()
    }
}

/// Why a key of KMS cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKmsKey {
    /// It is empty, or not visible ASCII.
    #[error("it is no name of a key; write an ARN, an id, or `alias/NAME`")]
    Name,
    /// Nobody says where it is.
    #[error("its region is unknown; write its ARN, a region, or set AWS_REGION")]
    NoRegion,
    /// Where requests would be sent is no address.
    #[error("the endpoint is no address; write http://host:port or https://host")]
    Endpoint,
    /// HTTPS cannot be spoken here.
    #[error("HTTPS cannot be spoken here")]
    Https(#[source] Box<dyn Error + Send + Sync>),
}
