//! Requests that come on one connection without waiting for answers.

use std::time::Duration;

use bytes::BytesMut;

use super::{
    Wire,
    answer::{AnswerEnd, read_next_answer},
    draft::{AddressedRequest, ExchangeDraft, ended},
    stream::ConnectOptions,
};
use crate::{Exchange, ProbeLog};

impl Wire {
    /// Sends all of these in one write on one connection, and reads their answers in order.
    pub(crate) async fn pipeline(
        &self,
        log: &ProbeLog,
        requests: &[AddressedRequest<'_>],
        patience: Duration,
    ) -> Vec<Exchange> {
        let mut drafts = Vec::new();
        let mut all = BytesMut::new();
        for (at, addressed) in requests.iter().enumerate() {
            let draft = ExchangeDraft::begin(log, &format!("pipelined {}", at + 1), *addressed);
            all.extend_from_slice(&draft.request);
            drafts.push(draft);
        }
        let fail = |drafts: Vec<ExchangeDraft>, reason: &str| {
            drafts.into_iter().map(|draft| draft.failed(log, reason.to_owned())).collect()
        };
        let Some(address) = requests.first().map(|addressed| addressed.address) else {
            return Vec::new();
        };
        let options = ConnectOptions { protocols: &[b"http/1.1"], receive_bytes: None };
        let mut stream = match self.connect(address, options).await {
            Ok(stream) => stream,
            Err(reason) => return fail(drafts, &reason),
        };
        if let Err(reason) = stream.write(&all).await {
            return fail(drafts, &reason);
        }
        let sent = log.elapsed();
        let mut bytes = BytesMut::new();
        let mut exchanges = Vec::new();
        for (mut draft, addressed) in drafts.into_iter().zip(requests) {
            draft.sent = Some(sent);
            let mut answered = None;
            let on_first_byte = || answered = Some(log.elapsed());
            let method = &addressed.request.method;
            let end =
                read_next_answer(&mut stream, &mut bytes, method, on_first_byte, patience).await;
            if !matches!(end, AnswerEnd::Whole(..)) {
                bytes.clear();
            }
            draft.answered = answered;
            exchanges.push(draft.end(log, ended(end).0));
        }
        exchanges
    }
}
