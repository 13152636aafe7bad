"""Signatures of webhooks, by the rules of Standard Webhooks."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"
PREFIX = "whsec_"

TOLERANCE_SECONDS = 300
SIGNATURES_MAX = 16


class Unverified(Exception):
    """The webhook is not to be acted on: answer 401."""


class Unsigned(Unverified):
    """A header is missing, or not what it should be."""


class Forged(Unverified):
    """No signature was made with one of the secrets, for this id, time and body."""


class Untimely(Unverified):
    """It was signed too long ago, or too far ahead: perhaps somebody repeats it."""


@dataclass(frozen=True)
class Verified:
    """A webhook that is genuine."""

    id: str
    """The same in every attempt: what to act on once by."""
    at: datetime
    """When this attempt was made, by the sender's clock."""


def verify(
    secrets: Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float | None = None,
    tolerance_seconds: float = TOLERANCE_SECONDS,
) -> Verified:
    """Whether a webhook was signed with one of the secrets, of late."""
    values = {name.lower(): value for name, value in headers.items()}
    message_id, digits = single(values, ID), single(values, TIMESTAMP)
    if not re.fullmatch(r"[0-9]{1,11}", digits):
        raise Unsigned(f"the header {TIMESTAMP} is not a number of seconds")
    signed = f"{message_id}.{digits}.".encode() + body
    expected = [hmac.digest(key_of(secret), signed, "sha256") for secret in secrets]
    genuine = False
    for signature in single(values, SIGNATURE).split()[:SIGNATURES_MAX]:
        version, _, encoded = signature.partition(",")
        if version == "v1" and (given := decoded(encoded)) is not None:
            genuine |= any([hmac.compare_digest(given, digest) for digest in expected])
    if not genuine:
        raise Forged("no signature fits: somebody else sent it, or it was changed on its way")
    apart = abs((time.time() if now is None else now) - int(digits))
    if apart > tolerance_seconds:
        raise Untimely(f"it was signed {apart:.0f} s from now")
    return Verified(message_id, datetime.fromtimestamp(int(digits), timezone.utc))


def single(values: Mapping[str, str], header: str) -> str:
    if header not in values:
        raise Unsigned(f"the header {header} is missing")
    return values[header]


def key_of(secret: str) -> bytes:
    """The key in a secret, which is written `whsec_` and base64."""
    key = decoded(secret.removeprefix(PREFIX))
    if not key:
        raise ValueError("a secret of a webhook is whsec_ and base64")
    return key


def decoded(encoded: str) -> bytes | None:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
