//! What ciphertext is bound to, so that none opens in another place than the one it was made for.

use hapax_core::{
    Fence, Fingerprint, OperationId, Owner, StateTag, Step, Tenant, Timestamp, inbox::Digest,
    store::DataKeyId,
};

/// The place of something sealed: authenticated with it, and stored nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binding(Vec<u8>);

/// The end of an attempt, as far as it is known when its outcome is sealed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutcomePlace {
    pub(crate) id: OperationId,
    pub(crate) fence: Fence,
    pub(crate) owner: Owner,
    pub(crate) tag: StateTag,
    pub(crate) status: u16,
    pub(crate) len: u64,
}

/// A message in the inbox of a consumer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessagePlace<'a> {
    pub(crate) id: &'a str,
    pub(crate) source: &'a str,
    pub(crate) key: Option<&'a str>,
    pub(crate) kind: KeptAs<'a>,
}

/// What a message is kept as.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeptAs<'a> {
    Held { version: Option<i64> },
    Letter { content: &'a Digest },
}

impl Binding {
    /// An outcome belongs to its operation and to the attempt that ended with it; what is said of it in
    /// the clear is bound, too.
    pub(crate) fn outcome(place: &OutcomePlace) -> Self {
        let mut bound = Self::of(b'o', place.id);
        bound.add(&place.fence.get().to_be_bytes());
        bound.add(&place.owner.0.to_be_bytes());
        bound.add(&[place.tag as u8]);
        bound.add(&place.status.to_be_bytes());
        bound.add(&place.len.to_be_bytes());
        bound
    }

    /// A request belongs to its operation, and to lives that were begun with the same one: attempts of a
    /// life come and go, and hand it on.
    pub(crate) fn request(id: OperationId, fingerprint: &Fingerprint) -> Self {
        let mut bound = Self::of(b'r', id);
        bound.add(fingerprint.as_bytes());
        bound
    }

    /// A step belongs to its place in one life of its operation.
    pub(crate) fn step(id: OperationId, life: Timestamp, step: &Step) -> Self {
        let mut bound = Self::of(b's', id);
        bound.add(&life.as_micros().to_be_bytes());
        bound.add(&step.number().to_be_bytes());
        bound.add(&step.version().to_be_bytes());
        bound.add(step.name().as_str().as_bytes());
        bound
    }

    /// A data key belongs to its tenant.
    pub(crate) fn data_key(id: &DataKeyId) -> Self {
        let mut bound = Self(vec![b'k']);
        bound.add(&id.version.to_be_bytes());
        bound.add(id.tenant.as_str().as_bytes());
        bound
    }

    /// The key of a file belongs to no tenant.
    pub(crate) fn file_key() -> Self {
        Self(vec![b'f'])
    }

    /// Somewhere in a file that has a key of its own.
    pub(crate) fn place(parts: &[&[u8]]) -> Self {
        Self::of_parts(b'p', parts)
    }

    /// An event belongs to its tenant, its topic and its key.
    pub(crate) fn event(tenant: &Tenant, topic: &str, key: &str) -> Self {
        Self::of_parts(b'e', &[tenant.as_str(), topic, key].map(str::as_bytes))
    }

    /// A message belongs to its tenant, and to its place in the inbox of one consumer.
    pub(crate) fn message(tenant: &Tenant, consumer: i32, place: &MessagePlace<'_>) -> Self {
        let (tenant, consumer) = (tenant.as_str().as_bytes(), consumer.to_be_bytes());
        let MessagePlace { id, source, key, kind } = place;
        let key = key.map(|key| [b"k", key.as_bytes()].concat()).unwrap_or_default();
        let version;
        let (kind, detail): (u8, &[u8]) = match kind {
            KeptAs::Held { version: held } => {
                version = held.unwrap_or_default().to_be_bytes();
                (b'h', &version)
            }
            KeptAs::Letter { content } => (b'd', content.as_bytes()),
        };
        Self::of_parts(kind, &[tenant, &consumer, id.as_bytes(), source.as_bytes(), &key, detail])
    }

    /// None of the parts can pass for a piece of its neighbour.
    fn of_parts(kind: u8, parts: &[&[u8]]) -> Self {
        let mut bound = Self(vec![kind]);
        for part in parts {
            bound.add(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            bound.add(part);
        }
        bound
    }

    /// Together with what stands before the ciphertext.
    pub(crate) fn with_header(&self, header: &[u8]) -> Vec<u8> {
        let mut bound = Vec::with_capacity(self.0.len() + header.len());
        bound.extend_from_slice(header);
        bound.extend_from_slice(&self.0);
        bound
    }

    fn of(kind: u8, id: OperationId) -> Self {
        let mut bound = Self(Vec::with_capacity(80));
        bound.add(&[kind]);
        bound.add(id.as_bytes());
        bound
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}
