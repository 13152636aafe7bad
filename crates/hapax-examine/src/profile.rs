//! What vendors say about their keys, so that it need not be typed.

use crate::{DeclaredConduct, KeyHeader, KeySyntax};

/// How the keys of a vendor, or of a standard, are sent, and what it says it does with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VendorProfile {
    /// `stripe`
    pub name: &'static str,
    /// The header that keys are sent in; empty where they stand in the body, as `{key}`.
    pub key_header: &'static str,
    /// How they are written there.
    pub syntax: KeySyntax,
    /// Whether they had better be UUIDs.
    pub uuids: bool,
    /// Whether a refused request (4xx) keeps its key, if that is said.
    pub refusals_kept: Option<bool>,
    /// Whether a 5xx is stored and replayed, if that is said.
    pub errors_kept: Option<bool>,
    /// Whether requests without a key are refused, if that is said.
    pub key_required: Option<bool>,
}

/// All of them.
pub const VENDOR_PROFILES: &[VendorProfile] = &[
    // draft-ietf-httpapi-idempotency-key-header-07: each resource says itself what it does with errors.
    VendorProfile {
        name: "draft-07",
        key_header: "Idempotency-Key",
        syntax: KeySyntax::Quoted,
        uuids: true,
        refusals_kept: None,
        errors_kept: None,
        key_required: None,
    },
    // Its first version: what began to run is stored, 500 included; what was refused before that is not.
    VendorProfile {
        name: "stripe",
        key_header: "Idempotency-Key",
        syntax: KeySyntax::Bare,
        uuids: true,
        refusals_kept: Some(false),
        errors_kept: Some(true),
        key_required: Some(false),
    },
    // A retry after a timeout or a 5xx is let through.
    VendorProfile {
        name: "paypal",
        key_header: "PayPal-Request-Id",
        syntax: KeySyntax::Bare,
        uuids: true,
        refusals_kept: None,
        errors_kept: Some(false),
        key_required: Some(false),
    },
    // At most 64 characters.
    VendorProfile {
        name: "adyen",
        key_header: "Idempotency-Key",
        syntax: KeySyntax::Bare,
        uuids: true,
        refusals_kept: None,
        errors_kept: None,
        key_required: Some(false),
    },
    // The member `idempotency_key` of the body.
    VendorProfile {
        name: "square",
        key_header: "",
        syntax: KeySyntax::Bare,
        uuids: true,
        refusals_kept: None,
        errors_kept: None,
        key_required: Some(true),
    },
];

impl VendorProfile {
    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        VENDOR_PROFILES.iter().find(|profile| profile.name == name)
    }

    /// How its keys are sent.
    pub fn key(&self) -> KeyHeader {
        KeyHeader {
            name: self.key_header.to_owned(),
            syntax: Some(self.syntax),
            uuids: self.uuids,
            first_sent: None,
        }
    }

    /// What it says it does. How long it keeps keys is not among it: nobody waits for days unasked.
    pub fn declared(&self) -> DeclaredConduct {
        let Self { refusals_kept, errors_kept, key_required, .. } = *self;
        DeclaredConduct { refusals_kept, errors_kept, key_required, retention: None }
    }
}
