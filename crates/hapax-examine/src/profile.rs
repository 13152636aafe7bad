//! What vendors say about their keys, so that it need not be typed.

use crate::{
    DeclaredConduct, Defect, DefectClass, Exchange, JsonPath, KeyHeader, KeySyntax, RawAnswer,
};

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
    /// How it refuses what is about keys.
    pub refusals: VendorRefusals,
}

/// How a refusal of a vendor looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusalShape {
    /// Its status.
    pub status: u16,
    /// Where in its body something stands, as a JSON pointer; empty where the status says all.
    pub pointer: &'static str,
    /// What stands there.
    pub says: &'static str,
}

/// How a vendor refuses what is about keys. Where it says nothing, any 4xx will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VendorRefusals {
    /// Whose they are.
    pub vendor: &'static str,
    /// While the first request is at work.
    pub in_flight: &'static [RefusalShape],
    /// Another request under a used key.
    pub mismatch: &'static [RefusalShape],
    /// No key where there must be one.
    pub missing_key: &'static [RefusalShape],
    /// A key that is none.
    pub bad_key: &'static [RefusalShape],
    /// The header that says `true` where it is worth to come again, beside `Retry-After`; empty if there is none.
    pub retry_header: &'static str,
}

/// What one refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    InFlight,
    Mismatch,
    MissingKey,
    BadKey,
}

/// All of them.
pub const VENDOR_PROFILES: &[VendorProfile] = &[DRAFT_07, STRIPE, PAYPAL, ADYEN, SQUARE];

const fn status(status: u16) -> RefusalShape {
    RefusalShape { status, pointer: "", says: "" }
}

const fn says(status: u16, pointer: &'static str, says: &'static str) -> RefusalShape {
    RefusalShape { status, pointer, says }
}

// draft-ietf-httpapi-idempotency-key-header-07: each resource says itself what it does with errors.
const DRAFT_07: VendorProfile = VendorProfile {
    name: "draft-07",
    key_header: "Idempotency-Key",
    syntax: KeySyntax::Quoted,
    uuids: true,
    refusals_kept: None,
    errors_kept: None,
    key_required: None,
    refusals: VendorRefusals {
        vendor: "the draft of the IETF",
        in_flight: &[status(409)],
        mismatch: &[status(422)],
        missing_key: &[status(400)],
        bad_key: &[status(400)],
        retry_header: "",
    },
};

// Its first version: what began to run is stored, 500 included; what was refused before that is not.
const STRIPE: VendorProfile = VendorProfile {
    name: "stripe",
    key_header: "Idempotency-Key",
    syntax: KeySyntax::Bare,
    uuids: true,
    refusals_kept: Some(false),
    errors_kept: Some(true),
    key_required: Some(false),
    refusals: VendorRefusals {
        vendor: "Stripe",
        in_flight: &[
            says(409, "/error/code", "idempotency_key_in_use"),
            says(409, "/error/type", "idempotency_error"),
            says(429, "/error/code", "lock_timeout"),
        ],
        mismatch: &[says(400, "/error/type", "idempotency_error")],
        missing_key: &[],
        bad_key: &[says(400, "/error/type", "invalid_request_error")],
        retry_header: "stripe-should-retry",
    },
};

// A retry after a timeout or a 5xx is let through.
const PAYPAL: VendorProfile = VendorProfile {
    name: "paypal",
    key_header: "PayPal-Request-Id",
    syntax: KeySyntax::Bare,
    uuids: true,
    refusals_kept: None,
    errors_kept: Some(false),
    key_required: Some(false),
    refusals: VendorRefusals {
        vendor: "PayPal",
        in_flight: &[
            says(409, "/details/0/issue", "PREVIOUS_REQUEST_IN_PROGRESS"),
            says(422, "/details/0/issue", "PREVIOUS_REQUEST_IN_PROGRESS"),
        ],
        mismatch: &[],
        missing_key: &[says(400, "/details/0/issue", "PAYPAL_REQUEST_ID_REQUIRED")],
        bad_key: &[],
        retry_header: "",
    },
};

// At most 64 characters.
const ADYEN: VendorProfile = VendorProfile {
    name: "adyen",
    key_header: "Idempotency-Key",
    syntax: KeySyntax::Bare,
    uuids: true,
    refusals_kept: None,
    errors_kept: None,
    key_required: Some(false),
    refusals: VendorRefusals {
        vendor: "Adyen",
        in_flight: &[says(409, "/errorCode", "704"), says(422, "/errorCode", "704")],
        mismatch: &[],
        missing_key: &[],
        bad_key: &[],
        retry_header: "transient-error",
    },
};

// The member `idempotency_key` of the body.
const SQUARE: VendorProfile = VendorProfile {
    name: "square",
    key_header: "",
    syntax: KeySyntax::Bare,
    uuids: true,
    refusals_kept: None,
    errors_kept: None,
    key_required: Some(true),
    refusals: VendorRefusals {
        vendor: "Square",
        in_flight: &[],
        mismatch: &[says(400, "/errors/0/code", "IDEMPOTENCY_KEY_REUSED")],
        missing_key: &[
            says(400, "/errors/0/code", "MISSING_REQUIRED_PARAMETER"),
            says(400, "/errors/0/code", "VALUE_EMPTY"),
            says(400, "/errors/0/code", "VALUE_TOO_SHORT"),
        ],
        bad_key: &[],
        retry_header: "",
    },
};

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
        let Self { refusals_kept, errors_kept, key_required, refusals, .. } = *self;
        let refusals = Some(refusals);
        DeclaredConduct { refusals_kept, errors_kept, key_required, retention: None, refusals }
    }
}

impl RefusalShape {
    /// Whether this is one of that shape.
    pub(crate) fn is(&self, answer: &RawAnswer) -> bool {
        let said = || JsonPath::new(self.pointer).text(&answer.body);
        answer.status == self.status
            && (self.pointer.is_empty() || said().is_some_and(|said| said == self.says))
    }

    fn describe(&self) -> String {
        match self.pointer {
            "" => self.status.to_string(),
            pointer => format!("{} with `{}` at `{pointer}`", self.status, self.says),
        }
    }
}

impl VendorRefusals {
    fn shapes(&self, reason: RefusalReason) -> &'static [RefusalShape] {
        match reason {
            RefusalReason::InFlight => self.in_flight,
            RefusalReason::Mismatch => self.mismatch,
            RefusalReason::MissingKey => self.missing_key,
            RefusalReason::BadKey => self.bad_key,
        }
    }

    /// Whether this answer says that something is refused for this reason.
    pub(crate) fn says(&self, reason: RefusalReason, answer: &RawAnswer) -> bool {
        self.shapes(reason).iter().any(|shape| shape.is(answer))
    }

    /// What is wrong if this refusal is in other words than the vendor's: `a changed body under a used key`.
    pub(crate) fn judge(
        &self,
        reason: RefusalReason,
        exchange: &Exchange,
        asked: &str,
    ) -> Option<Defect> {
        let answer = exchange.answer().filter(|answer| answer.is_refusal())?;
        let shapes = self.shapes(reason);
        if shapes.is_empty() || shapes.iter().any(|shape| shape.is(answer)) {
            return None;
        }
        let shapes: Vec<_> = shapes.iter().map(RefusalShape::describe).collect();
        Some(Defect {
            class: DefectClass::Hygiene,
            sentence: format!(
                "{asked} was refused with {} in other words than those of {} ({}): clients that were made for it do \
                 not understand why",
                answer.status,
                self.vendor,
                shapes.join(", or ")
            ),
            advice: "refuse in the words of the API that clients take this for",
            shown_by: vec![exchange.number],
        })
    }
}
