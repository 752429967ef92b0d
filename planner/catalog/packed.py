"""Text inside one parameter of a link: a version digit, then base64url of the deflated text, with a limit on what comes out."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Final

from planner.errors import Fault, InputError
from planner.specs.fields import shown

TOKEN_VERSION: Final = "1"

DECODE_LIMIT: Final = 65_536
"""Longest text that a token may hold [bytes]."""


def packed(text: str) -> str:
    """The token of a text; whoever packs looks at the length first."""
    return TOKEN_VERSION + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).rstrip(b"=").decode()


def unpacked(token: str, field: str, noun: str) -> str:
    """The text that a token holds.

    Args:
        token: as `packed` made it.
        field: the parameter that a refusal names.
        noun: what the token holds, as a refusal calls it.

    Raises:
        InputError: when the token is of another version, damaged, or holds too much.
    """
    if not token.startswith(TOKEN_VERSION):
        raise refused(token, field, f"must begin with version {TOKEN_VERSION}")
    try:
        out = _inflated(_bytes(token), f"the {noun} must be at most {DECODE_LIMIT:,} bytes")
    except ValueError as error:
        raise refused(token, field, str(error)) from None
    return out


def _bytes(token: str) -> bytes:
    """What the base64url part holds."""
    body = token[len(TOKEN_VERSION) :]
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is damaged: must be base64url text") from None


def _inflated(deflated: bytes, too_long: str) -> str:
    """Inflate no more than the limit, however much the token would yield."""
    inflater = zlib.decompressobj()
    try:
        out = inflater.decompress(deflated, DECODE_LIMIT + 1)
    except zlib.error:
        raise ValueError("is damaged: must hold deflated text") from None
    if len(out) > DECODE_LIMIT:
        raise ValueError(too_long)
    if not inflater.eof or inflater.unused_data:
        raise ValueError("is damaged: must hold exactly one deflated text")
    try:
        return out.decode()
    except UnicodeDecodeError:
        raise ValueError("is damaged: must hold UTF-8 text") from None


def refused(value: str, field: str, allowed: str) -> InputError:
    """The refusal of a token, or of what would be one."""
    return InputError((Fault(field, shown(value), allowed),))
