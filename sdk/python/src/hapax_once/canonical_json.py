"""JSON in one spelling, so that equal values are equal bytes.

Numbers are exact decimals: two amounts of money that a double cannot tell apart are two amounts.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NoReturn

DEPTH_MAX = 64
EXPONENT_MAX = 307
EXPONENT_READ_MAX = 2**31 - 1


class NotCanonical(ValueError):
    """The text has no one spelling: it is not JSON, or readers would disagree about it."""


class Number(str):
    """A number in its one spelling."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """The members of an object, in the order they came."""


def canonical_json(text: bytes, ignored: Collection[str] = ()) -> bytes:
    """The one spelling of a JSON text, without what is at these JSON pointers."""
    try:
        value = json.loads(
            text.decode(),
            parse_int=number,
            parse_float=number,
            parse_constant=refuse,
            object_pairs_hook=Members,
        )
        return spelled(value, "", 0, ignored).encode()
    except NotCanonical:
        raise
    except (ValueError, RecursionError) as error:
        # Not UTF-8, not JSON, half a surrogate, or nested beyond all reason.
        raise NotCanonical(str(error)) from error


def spelled(value: Any, pointer: str, depth: int, ignored: Collection[str]) -> str:
    match value:
        case Number():
            return value
        case str():
            return json.dumps(value, ensure_ascii=False)
        case Members() | list() if depth == DEPTH_MAX:
            raise NotCanonical(f"it is nested more than {DEPTH_MAX} deep")
        case Members():
            if len({name for name, _ in value}) < len(value):
                raise NotCanonical("an object names a member twice")
            members = []
            for name, member in sorted(value, key=order):
                at = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
                spelling = spelled(member, at, depth + 1, ignored)
                if at not in ignored:
                    members.append(f"{json.dumps(name, ensure_ascii=False)}:{spelling}")
            return "{" + ",".join(members) + "}"
        case list():
            places = [(f"{pointer}/{index}", element) for index, element in enumerate(value)]
            elements = [(at, spelled(element, at, depth + 1, ignored)) for at, element in places]
            return "[" + ",".join(spelling for at, spelling in elements if at not in ignored) + "]"
        case _:
            return json.dumps(value)


def order(member: tuple[str, Any]) -> bytes:
    """Members are in the order of their names in UTF-16."""
    return member[0].encode("utf-16-be")


def number(literal: str) -> Number:
    sign = "-" if literal.startswith("-") else ""
    mantissa, _, exponent = literal.lower().lstrip("-").partition("e")
    if len(exponent) > 11 or abs(int(exponent or "0")) > EXPONENT_READ_MAX:
        raise NotCanonical(f"the exponent of {literal[:20]}… is out of range")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return Number("0")
    significant = digits.rstrip("0")
    power = int(exponent or "0") - len(fraction) + len(digits) - len(significant)
    if abs(power + len(significant) - 1) > EXPONENT_MAX:
        raise NotCanonical(f"the number {literal[:20]}… is out of range")
    return Number(f"{sign}{significant}e{power}" if power else f"{sign}{significant}")


def refuse(word: str) -> NoReturn:
    raise NotCanonical(f"{word} is not JSON")
