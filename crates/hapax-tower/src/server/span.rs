//! The span of an attempt, the same for whoever makes it.

use hapax_core::{Operation, RequestParts, TenantKey};
use tracing::{Span, field::Empty};

/// The span an attempt happens in: hashes, never the tenant or the key themselves.
///
/// All attempts of one operation share `operation`, the digest of tenant, scope and key. With the
/// tenant's key the two are also named apart.
pub(crate) fn span(operation: &Operation, tenant_key: Option<&TenantKey>) -> Span {
    let span = tracing::info_span!(
        "idempotency",
        operation = %operation.id(),
        scope = operation.scope().as_str(),
        tenant = Empty,
        key = Empty,
        fence = Empty,
        decision = Empty,
    );
    if let Some(tenant_key) = tenant_key.filter(|_| !span.is_disabled()) {
        let body = operation.key().as_str().as_bytes();
        let key = tenant_key.fingerprint(&RequestParts { body, ..Default::default() });
        span.record("tenant", tenant_key.pseudonym()).record("key", key.to_string());
    }
    span
}
