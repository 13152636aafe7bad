//! Convincing the server of who we are: as the usual client does, over an open connection.

use postgres_protocol::{
    authentication::{
        md5_hash,
        sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256},
    },
    message::{backend::Message, frontend},
};
use tokio_postgres::{config, fallible_iterator::FallibleIterator};

use super::{socket::Socket, stream_end::StreamEnd};

/// Who we say we are, and how we prove it.
pub(super) struct StreamCredentials<'a> {
    pub(super) user: &'a str,
    pub(super) password: Option<&'a [u8]>,
    /// Whether a proof must be, or may be, tied to the connection.
    pub(super) binding: config::ChannelBinding,
    /// What it would be tied to.
    pub(super) end_point: Option<&'a [u8]>,
}

impl StreamCredentials<'_> {
    /// How a proof is tied to the connection, and what that is called; `None` where it must be and cannot.
    fn scram(&self, offers_binding: bool) -> Option<(ChannelBinding, &'static str)> {
        let end_point = self.end_point.filter(|_| self.binding != config::ChannelBinding::Disable);
        match end_point {
            Some(end_point) if offers_binding => {
                let binding = ChannelBinding::tls_server_end_point(end_point.to_vec());
                Some((binding, SCRAM_SHA_256_PLUS))
            }
            _ if self.needs_binding() => None,
            // The server could have, and did not offer it: it is told, lest somebody in between took it away.
            Some(_) => Some((ChannelBinding::unrequested(), SCRAM_SHA_256)),
            None => Some((ChannelBinding::unsupported(), SCRAM_SHA_256)),
        }
    }

    fn needs_binding(&self) -> bool {
        self.binding == config::ChannelBinding::Require
    }
}

/// Answers what the server asks until it is content.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever else a server may say is no way to let us in"
)]
pub(super) async fn convince(
    socket: &mut Socket,
    credentials: &StreamCredentials<'_>,
) -> Result<(), StreamEnd> {
    let mut scram = None;
    let mut is_bound = false;
    loop {
        let message = socket.message().await?;
        let password = || credentials.password.ok_or(StreamEnd::Authentication);
        match message {
            Message::AuthenticationOk if is_bound || !credentials.needs_binding() => return Ok(()),
            // Whoever does not prove that it is the server is not told a password.
            Message::AuthenticationCleartextPassword | Message::AuthenticationMd5Password(_)
                if credentials.needs_binding() =>
            {
                return Err(StreamEnd::Authentication);
            }
            Message::AuthenticationCleartextPassword => {
                frontend::password_message(password()?, socket.output())?;
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(credentials.user.as_bytes(), password()?, body.salt());
                frontend::password_message(hash.as_bytes(), socket.output())?;
            }
            Message::AuthenticationSasl(body) => {
                let offers = |name| body.mechanisms().any(|mechanism| Ok(mechanism == name));
                if !offers(SCRAM_SHA_256)? {
                    return Err(StreamEnd::Authentication);
                }
                let offered = credentials.scram(offers(SCRAM_SHA_256_PLUS)?);
                let (binding, mechanism) = offered.ok_or(StreamEnd::Authentication)?;
                let begun = ScramSha256::new(password()?, binding);
                let (output, first) = (socket.output(), begun.message());
                frontend::sasl_initial_response(mechanism, first, output)?;
                (scram, is_bound) = (Some(begun), mechanism == SCRAM_SHA_256_PLUS);
            }
            Message::AuthenticationSaslContinue(body) => {
                let scram = scram.as_mut().ok_or(StreamEnd::Authentication)?;
                scram.update(body.data())?;
                frontend::sasl_response(scram.message(), socket.output())?;
            }
            Message::AuthenticationSaslFinal(body) => {
                scram.as_mut().ok_or(StreamEnd::Authentication)?.finish(body.data())?;
            }
            _ => return Err(StreamEnd::Authentication),
        }
    }
}
