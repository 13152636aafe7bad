//! An exchange that is not over.

use std::time::Duration;

use bytes::Bytes;

use super::{
    WireCut,
    answer::{AnswerEnd, read_answer},
    stream::WireStream,
};
use crate::{ExamRequest, Exchange, ExchangeEnd, HttpAddress, ProbeLog, WireProtocol};

/// A request, and to which of the API's addresses it goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressedRequest<'a> {
    /// Where that is.
    pub(crate) address: &'a HttpAddress,
    /// Which of them it is.
    pub(crate) index: usize,
    pub(crate) request: &'a ExamRequest,
}

/// An exchange that is not over.
#[derive(Debug, Clone)]
pub(super) struct ExchangeDraft {
    pub(super) request: Bytes,
    pub(super) cut: Option<WireCut>,
    pub(super) protocol: WireProtocol,
    pub(super) sent: Option<Duration>,
    pub(super) answered: Option<Duration>,
    number: u32,
    label: String,
    address: usize,
    began: Duration,
}

impl ExchangeDraft {
    pub(super) fn begin(log: &ProbeLog, label: &str, addressed: AddressedRequest<'_>) -> Self {
        let AddressedRequest { address, index, request } = addressed;
        Self {
            request: request.http1(&address.authority()).bytes,
            cut: None,
            protocol: WireProtocol::Http1,
            sent: None,
            answered: None,
            number: log.number(),
            label: label.to_owned(),
            address: index,
            began: log.elapsed(),
        }
    }

    /// Reads the answer to its end; also how many bytes it has, if it is whole.
    pub(super) async fn read(
        mut self,
        log: &ProbeLog,
        stream: &mut WireStream,
        method: &str,
        patience: Duration,
    ) -> (Exchange, usize) {
        let mut answered = None;
        let reading = read_answer(stream, method, || answered = Some(log.elapsed()), patience);
        let (end, bytes) = ended(reading.await);
        self.answered = answered;
        (self.end(log, end), bytes)
    }

    /// Which it is in its probe.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn failed(self, log: &ProbeLog, reason: String) -> Exchange {
        self.end(log, ExchangeEnd::Failed { reason })
    }

    pub(super) fn end(self, log: &ProbeLog, end: ExchangeEnd) -> Exchange {
        let Self { number, label, protocol, request, cut, began, sent, answered, address } = self;
        let ended = log.elapsed();
        let exchange = Exchange {
            number,
            label,
            address,
            protocol,
            request,
            cut,
            began,
            sent,
            answered,
            ended,
            end,
        };
        log.keep(&exchange);
        exchange
    }
}

/// How an exchange ended whose answer was read so far, and how many bytes that has, if it is whole.
pub(super) fn ended(end: AnswerEnd) -> (ExchangeEnd, usize) {
    match end {
        AnswerEnd::Whole(answer, bytes) => (ExchangeEnd::Answered(answer), bytes),
        AnswerEnd::Closed(received) => (ExchangeEnd::Closed { received }, 0),
        AnswerEnd::Silent(received) => (ExchangeEnd::Silent { received }, 0),
        AnswerEnd::Unreadable(reason) => (ExchangeEnd::Failed { reason }, 0),
    }
}
