//! Convincing the server of who we are: as the usual client does, over an open connection.

use postgres_protocol::{
    authentication::{
        md5_hash,
        sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256},
    },
    message::{backend::Message, frontend},
};
use tokio_postgres::fallible_iterator::FallibleIterator;

use super::{socket::Socket, stream_end::StreamEnd};

/// Answers what the server asks until it is content.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever else a server may say is no way to let us in"
)]
pub(super) async fn convince(
    socket: &mut Socket,
    user: &str,
    password: Option<&[u8]>,
) -> Result<(), StreamEnd> {
    let mut scram = None;
    loop {
        let message = socket.message().await?;
        let password = || password.ok_or(StreamEnd::Authentication);
        match message {
            Message::AuthenticationOk => return Ok(()),
            Message::AuthenticationCleartextPassword => {
                frontend::password_message(password()?, socket.output())?;
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(user.as_bytes(), password()?, body.salt());
                frontend::password_message(hash.as_bytes(), socket.output())?;
            }
            Message::AuthenticationSasl(body) => {
                if !body.mechanisms().any(|mechanism| Ok(mechanism == SCRAM_SHA_256))? {
                    return Err(StreamEnd::Authentication);
                }
                let begun = ScramSha256::new(password()?, ChannelBinding::unsupported());
                let (output, first) = (socket.output(), begun.message());
                frontend::sasl_initial_response(SCRAM_SHA_256, first, output)?;
                scram = Some(begun);
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
