"""A model of one's own inside a link: `x` = version digit, then base64url of the deflated text of its config.json."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from functools import lru_cache
from typing import Final

from planner.catalog.hf_config import model_from_json
from planner.errors import Fault, InputError, ModelConfigError
from planner.specs.fields import shown
from planner.specs.model import ModelSpec
from planner.specs.scenario import Scenario

TOKEN_VERSION: Final = "1"

DECODE_LIMIT: Final = 65_536
"""Longest config.json that a token may hold [bytes]."""

_TOO_LONG: Final = f"the configuration must be at most {DECODE_LIMIT:,} bytes"


def encode_custom(config_text: str) -> str:
    """The token of a config.json, its white space removed.

    Raises:
        ModelConfigError: when the configuration cannot be sized truthfully.
        InputError: when it is longer than the decode limit.
    """
    model_from_json(config_text)
    packed = json.dumps(json.loads(config_text), separators=(",", ":")).encode()
    if len(packed) > DECODE_LIMIT:
        raise _refused(config_text, _TOO_LONG)
    return TOKEN_VERSION + base64.urlsafe_b64encode(zlib.compress(packed, 9)).rstrip(b"=").decode()


def decode_custom(x: str) -> str:
    """The text of the config.json that a token holds.

    Raises:
        InputError: when the token is of another version, damaged, or holds too much.
    """
    if not x.startswith(TOKEN_VERSION):
        raise _refused(x, f"must begin with version {TOKEN_VERSION}")
    return _inflated(x, _unpacked(x)).decode()


@lru_cache(maxsize=32)
def custom_model(x: str) -> ModelSpec:
    """The model that a token describes.

    Raises:
        InputError: when the token is damaged.
        ModelConfigError: when the configuration cannot be sized truthfully.
    """
    return model_from_json(decode_custom(x), source="configuration in the link")


def custom_fault(scenario: Scenario) -> Fault | None:
    """Why a scenario's custom model cannot be used; None when it can, or when there is none."""
    if scenario.x is None:
        return None
    try:
        custom_model(scenario.x)
    except InputError as error:
        return error.faults[0]
    except ModelConfigError as error:
        return Fault("x", shown(scenario.x), f"the configuration in it cannot be sized: {shown(error, 300)}")
    return None


def _unpacked(x: str) -> bytes:
    body = x[len(TOKEN_VERSION) :]
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _refused(x, "is damaged: must be base64url text") from None


def _inflated(x: str, packed: bytes) -> bytes:
    """Inflate no more than the limit, however much the token would yield."""
    inflater = zlib.decompressobj()
    try:
        out = inflater.decompress(packed, DECODE_LIMIT + 1)
    except zlib.error:
        raise _refused(x, "is damaged: must hold deflated text") from None
    if len(out) > DECODE_LIMIT:
        raise _refused(x, _TOO_LONG)
    if not inflater.eof or inflater.unused_data:
        raise _refused(x, "is damaged: must hold exactly one deflated text")
    if not _is_utf8(out):
        raise _refused(x, "is damaged: must hold UTF-8 text")
    return out


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refused(value: str, allowed: str) -> InputError:
    return InputError((Fault("x", shown(value), allowed),))
