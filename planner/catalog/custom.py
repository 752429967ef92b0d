"""A model of one's own inside a link: `x` holds the text of its config.json, alone or beside a calibration."""

from __future__ import annotations

import json
from functools import lru_cache

from planner.catalog.calibration import correction_in, model_text_in
from planner.catalog.hf_config import model_from_json
from planner.catalog.packed import DECODE_LIMIT, TOKEN_VERSION, packed, refused
from planner.errors import Fault, InputError, ModelConfigError
from planner.specs.correction import CALIBRATED
from planner.specs.fields import shown
from planner.specs.model import ModelSpec
from planner.specs.scenario import Scenario

__all__ = ["DECODE_LIMIT", "TOKEN_VERSION", "custom_fault", "custom_model", "decode_custom", "encode_custom"]


def encode_custom(config_text: str) -> str:
    """The token of a config.json, its white space removed.

    Raises:
        ModelConfigError: when the configuration cannot be sized truthfully.
        InputError: when it is longer than the decode limit.
    """
    model_from_json(config_text)
    text = json.dumps(json.loads(config_text), separators=(",", ":"))
    if len(text.encode()) > DECODE_LIMIT:
        raise refused(config_text, "x", f"the configuration must be at most {DECODE_LIMIT:,} bytes")
    return packed(text)


def decode_custom(x: str) -> str:
    """The text of the config.json that a token holds.

    Raises:
        InputError: when the token is of another version, damaged, holds too much or no model.
    """
    return model_text_in(x)


@lru_cache(maxsize=32)
def custom_model(x: str) -> ModelSpec:
    """The model that a token describes.

    Raises:
        InputError: when the token is damaged or holds no model.
        ModelConfigError: when the configuration cannot be sized truthfully.
    """
    return model_from_json(decode_custom(x), source="configuration in the link")


def custom_fault(scenario: Scenario) -> Fault | None:
    """Why a scenario's custom model or calibration cannot be used; None when they can, or when there is none."""
    if scenario.x is None:
        return None
    try:
        if scenario.model == "custom":
            custom_model(scenario.x)
        if scenario.profile == CALIBRATED:
            correction_in(scenario.x)
    except InputError as error:
        return error.faults[0]
    except ModelConfigError as error:
        return Fault("x", shown(scenario.x), f"the configuration in it cannot be sized: {shown(error, 300)}")
    return None
