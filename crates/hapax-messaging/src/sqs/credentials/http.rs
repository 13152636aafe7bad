//! How the services that give credentials are asked.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{
    Request, Response,
    header::HOST,
    uri::{PathAndQuery, Uri},
};
use reqsign_core::{Error, HttpSend, Result};

use super::Variables;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Over the client that queues are asked with, too.
#[derive(Debug)]
pub(super) struct CredentialHttp {
    client: reqwest::Client,
    /// Where STS is, if not at Amazon's.
    sts: Option<String>,
}

impl CredentialHttp {
    pub(super) fn new(client: reqwest::Client, variables: &Variables) -> Self {
        let sts =
            variables.get("AWS_ENDPOINT_URL_STS").or_else(|| variables.get("AWS_ENDPOINT_URL"));
        Self { client, sts: sts.map(|url| url.trim_end_matches('/').to_owned()) }
    }

    /// Where a request is sent. Its `Host` stays the one that was signed.
    fn place_of(&self, asked: &Uri) -> Result<Uri> {
        let is_sts = asked.host().is_some_and(|host| host.starts_with("sts."));
        match &self.sts {
            Some(endpoint) if is_sts => {
                let path = asked.path_and_query().map_or("/", PathAndQuery::as_str);
                Ok(format!("{endpoint}{path}").parse()?)
            }
            Some(_) | None => Ok(asked.clone()),
        }
    }
}

impl HttpSend for CredentialHttp {
    async fn http_send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>> {
        let place = self.place_of(request.uri())?;
        if place == *request.uri() {
            // The client writes it again.
            request.headers_mut().remove(HOST);
        }
        *request.uri_mut() = place;
        let mut request = reqwest::Request::try_from(request).map_err(failed)?;
        *request.timeout_mut() = Some(ANSWER_TIMEOUT);
        let mut answer = self.client.execute(request).await.map_err(failed)?;
        let mut body = BytesMut::new();
        while let Some(piece) = answer.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                return Err(Error::unexpected("the answer is too long to be credentials"));
            }
            body.extend_from_slice(&piece);
        }
        let mut read = Response::new(body.freeze());
        *read.status_mut() = answer.status();
        Ok(read)
    }
}

fn failed(cause: reqwest::Error) -> Error {
    Error::unexpected("there is no answer").with_source(cause).set_retryable(true)
}
