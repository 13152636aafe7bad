//! The pages that explain refusals, so that every `type` can be looked up where it came from.

use super::code::Code;

/// The page of a code, as Markdown.
pub(crate) fn page(code: Code) -> &'static str {
    match code {
        Code::KeyMissing => include_str!("../../errors/key-missing.md"),
        Code::KeyMalformed => include_str!("../../errors/key-malformed.md"),
        Code::KeyNotQuoted => include_str!("../../errors/key-not-quoted.md"),
        Code::KeyEmpty => include_str!("../../errors/key-empty.md"),
        Code::KeyTooLong => include_str!("../../errors/key-too-long.md"),
        Code::KeyRepeated => include_str!("../../errors/key-repeated.md"),
        Code::KeyReused => include_str!("../../errors/key-reused.md"),
        Code::KeyInFlight => include_str!("../../errors/key-in-flight.md"),
        Code::KeyGone => include_str!("../../errors/key-gone.md"),
        Code::FirstSentMalformed => include_str!("../../errors/first-sent-malformed.md"),
        Code::FirstSentTooOld => include_str!("../../errors/first-sent-too-old.md"),
        Code::CredentialMissing => include_str!("../../errors/credential-missing.md"),
        Code::CallerRefused => include_str!("../../errors/caller-refused.md"),
        Code::CallerUnverifiable => include_str!("../../errors/caller-unverifiable.md"),
        Code::ScopeUnusable => include_str!("../../errors/scope-unusable.md"),
        Code::UpgradeRefused => include_str!("../../errors/upgrade-refused.md"),
        Code::TunnelRefused => include_str!("../../errors/tunnel-refused.md"),
        Code::HostUnclear => include_str!("../../errors/host-unclear.md"),
        Code::HostUnknown => include_str!("../../errors/host-unknown.md"),
        Code::BodyTooLarge => include_str!("../../errors/body-too-large.md"),
        Code::BodyTooSlow => include_str!("../../errors/body-too-slow.md"),
        Code::BodyIncomplete => include_str!("../../errors/body-incomplete.md"),
        Code::BodyNotCanonical => include_str!("../../errors/body-not-canonical.md"),
        Code::BodyEncoded => include_str!("../../errors/body-encoded.md"),
        Code::OutcomeInDoubt => include_str!("../../errors/outcome-in-doubt.md"),
        Code::OutcomeNotRecorded => include_str!("../../errors/outcome-not-recorded.md"),
        Code::ResponseNotRetained => include_str!("../../errors/response-not-retained.md"),
        Code::StoredResponseCorrupt => include_str!("../../errors/stored-response-corrupt.md"),
        Code::StoredByNewerVersion => include_str!("../../errors/stored-by-newer-version.md"),
        Code::StoreUnavailable => include_str!("../../errors/store-unavailable.md"),
        Code::Overloaded => include_str!("../../errors/overloaded.md"),
        Code::ShuttingDown => include_str!("../../errors/shutting-down.md"),
        Code::RateLimited => include_str!("../../errors/rate-limited.md"),
        Code::ExecutionPanicked => include_str!("../../errors/execution-panicked.md"),
        Code::ExecutionTimedOut => include_str!("../../errors/execution-timed-out.md"),
        Code::ExecutionUnanswered => include_str!("../../errors/execution-unanswered.md"),
        Code::ExecutionNotStarted => include_str!("../../errors/execution-not-started.md"),
        Code::TransactionRolledBack => include_str!("../../errors/transaction-rolled-back.md"),
        Code::OperationUnknown => include_str!("../../errors/operation-unknown.md"),
    }
}
