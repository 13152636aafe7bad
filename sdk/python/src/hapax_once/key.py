"""The header `Idempotency-Key`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .operation import KEY_BYTES_MAX
from .problem import Problem

HEADER = "Idempotency-Key"
WHITESPACE = " \t\n\r\f"
QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
BARE = re.compile(r'(?![:?@(])[^",;\\]*')


def read_key(lines: Sequence[str]) -> str:
    """The one key in the lines of the header. Quoted or bare, it is the same key."""
    if not lines:
        raise Problem("key-missing", f"Send {HEADER} with one key per operation.")
    if len(lines) > 1:
        raise Problem("key-repeated", "Send the header with one key, once.")
    raw = lines[0].strip(WHITESPACE)
    if quoted := QUOTED.fullmatch(raw):
        key = re.sub(r"\\(.)", r"\1", quoted[1])
    elif BARE.fullmatch(raw):
        key = raw
    else:
        raise Problem("key-malformed", "It is neither one quoted string nor one plain key.")
    if not key.strip(" "):
        raise Problem("key-empty", "A key has one visible character at least.")
    if len(key.encode()) > KEY_BYTES_MAX:
        raise Problem("key-too-long", f"A key has {KEY_BYTES_MAX} characters at most.")
    if not (key.isascii() and key.isprintable()):
        raise Problem("key-malformed", "A key is made of visible ASCII characters and spaces.")
    return key


def quoted_key(key: str) -> str:
    """The value of the header that a key is sent in."""
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
