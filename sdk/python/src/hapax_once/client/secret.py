"""Which headers carry secrets, by what they are called."""

from __future__ import annotations

import re
from itertools import pairwise

WORD = (
    "apikey|assertion|auth|authorization|cookie|credential|credentials|dpop|jwt|passphrase|passwd"
    "|password|secret|session|sessionid|token"
)
# Whose key is a secret; other keys, such as those of caches and partitions, only name something.
OWNER = (
    "access|account|admin|api|app|client|customer|encryption|functions|private|service|subscription"
)


def is_secret_header(name: str) -> bool:
    """Whether a header carries a secret: `Authorization`, `Cookie`, `X-Api-Key` and their like."""
    words = re.split("[-_]", name.lower())
    if any(re.fullmatch(WORD, word) for word in words):
        return True
    return any(re.fullmatch(OWNER, owner) and key == "key" for owner, key in pairwise(words))
