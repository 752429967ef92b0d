"""A calibration inside a link: `x` holds `{"calibration": {…}}`, beside it `"model": {…}` for a model of one's own.

A token without a calibration holds the text of a config.json, as such tokens always did.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from planner.catalog.calibrated import band_after, sure_after
from planner.catalog.packed import DECODE_LIMIT, packed, refused, unpacked
from planner.errors import InputError
from planner.specs.correction import Correction, Subject, Traffic, wider
from planner.specs.fields import (
    CachePrecision,
    Degree,
    EngineId,
    Identifier,
    PrefillMode,
    Share,
    Tokens,
    WeightPrecision,
    shown,
)

KEY: Final = "calibration"
"""What makes a token's text more than a config.json."""

Factor = Annotated[float, Field(ge=0.2, le=5)]
"""How far a correction may move a time."""

Error = Annotated[float, Field(ge=0, le=10)]
"""A median error: points further than a factor of 5 from the plan are not fitted."""

DAMAGED: Final = "the calibration in it is damaged"


class CalibrationRecord(BaseModel):
    """A correction as it travels; numbers are bounded and finite, nothing unknown is read."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        hide_input_in_errors=True,
    )

    model: Identifier
    gpu: Identifier
    engine: EngineId
    weights: WeightPrecision
    kv: CachePrecision
    tp: Degree
    pp: Degree
    dp: Degree
    ep: Degree
    spec: bool = False
    scale: Factor
    host_step_ms: Annotated[float, Field(ge=0, le=10_000)]
    interference: Annotated[float, Field(ge=0.1, le=10)]
    ttft: Factor
    points: Annotated[int, Field(ge=1, le=1_000)]
    before: Error
    after: Error
    band_low: Annotated[float, Field(ge=0.01, le=1)] = 1.0
    band_high: Annotated[float, Field(ge=1, le=100)] = 1.0
    sure: Annotated[float, Field(ge=1, le=100)] | None = None
    isl: Tokens | None = None
    osl: Tokens | None = None
    prefill: PrefillMode | None = None
    prefix: Share = 0.0

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        """What four cases in five stay below lies inside of the band."""
        if self.sure is not None and self.sure > self.band_high:
            raise ValueError("sure must be at most band_high")
        return self

    def as_correction(self) -> Correction:
        """The same in SI, with a band no narrower than public curves allow with so many points."""
        return Correction(
            subject=Subject(
                self.model, self.gpu, self.engine, self.weights, self.kv, self.tp, self.pp, self.dp, self.ep, self.spec
            ),
            scale=self.scale,
            host_step=self.host_step_ms * 1e-3,
            interference=self.interference,
            ttft=self.ttft,
            points=self.points,
            before=self.before,
            after=self.after,
            band=wider((self.band_low, self.band_high), band_after(self.points)),
            sure=None if self.sure is None else max(self.sure, sure_after(self.points)),
            traffic=self.traffic,
        )

    @property
    def traffic(self) -> Traffic | None:
        """What was sent; None where a calibration of before does not state it."""
        if self.isl is None or self.osl is None or self.prefill is None:
            return None
        return Traffic(self.isl, self.osl, self.prefill, self.prefix)


@dataclass(frozen=True)
class Contents:
    """What a token holds: a correction, the text of a config.json, or both; None = not in it."""

    correction: Correction | None
    model: str | None


def encode_calibration(correction: Correction, config_text: str | None = None) -> str:
    """The token of a correction, and of the config.json of the model that it was made for.

    Raises:
        InputError: when a number is out of its bounds, or both are longer than the decode limit.
    """
    held: dict[str, Any] = {KEY: _spelled(correction)}
    _record(held[KEY], "the calibration")
    if config_text is not None:
        held["model"] = json.loads(config_text)
    text = json.dumps(held, separators=(",", ":"))
    if len(text.encode()) > DECODE_LIMIT:
        raise refused(text, "x", f"the calibration and the configuration must be at most {DECODE_LIMIT:,} bytes")
    return packed(text)


def _spelled(correction: Correction) -> dict[str, Any]:
    """A correction under the record's names; five digits say more than any benchmark does."""
    numbers = {
        "scale": correction.scale, "host_step_ms": correction.host_step * 1e3, "interference": correction.interference,
        "ttft": correction.ttft, "before": correction.before, "after": correction.after,
        "band_low": correction.band[0], "band_high": correction.band[1],
    }  # fmt: skip
    if correction.sure is not None:
        numbers["sure"] = correction.sure
    subject = {**vars(correction.subject), **(vars(correction.traffic) if correction.traffic else {})}
    if not subject["spec"]:  # without drafts, as every token was before
        del subject["spec"]
    return {**subject, **{name: float(f"{value:.5g}") for name, value in numbers.items()}, "points": correction.points}


@lru_cache(maxsize=64)
def contents(x: str) -> Contents:
    """What a token holds; the configuration of a model is not judged here.

    Raises:
        InputError: when the token is of another version, damaged, holds too much, or a calibration that is refused.
    """
    text = unpacked(x, "x", "configuration")
    found = _object(text, x)
    if found is None:
        return Contents(None, text)
    if unknown := sorted(set(found) - {KEY, "model"}):
        raise refused(x, "x", f"{DAMAGED}: {shown(unknown[0])} does not belong beside it")
    model = found.get("model")
    if model is not None and not isinstance(model, dict):
        raise refused(x, "x", f"{DAMAGED}: model must be the configuration of a model")
    return Contents(_record(found[KEY], x).as_correction(), None if model is None else json.dumps(model))


def correction_in(x: str) -> Correction:
    """The correction that a token holds.

    Raises:
        InputError: as `contents`, and when the token holds none.
    """
    found = contents(x).correction
    if found is None:
        raise refused(x, "x", "must hold a calibration when profile = custom")
    return found


def model_text_in(x: str) -> str:
    """The text of the config.json that a token holds.

    Raises:
        InputError: as `contents`, and when the token holds none.
    """
    found = contents(x).model
    if found is None:
        raise refused(x, "x", "must hold a model's configuration when model = custom")
    return found


def _object(text: str, x: str) -> dict[str, Any] | None:
    """The object that a calibration stands in; None for any other text, which is a model's or nothing."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or KEY not in found:
        return None
    try:
        json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise refused(x, "x", f"{DAMAGED}: {error}") from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are each stated once."""
    repeated = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
    if repeated:
        raise ValueError(f"{shown(repeated[0])} is stated twice")
    return dict(pairs)


def _record(found: object, x: str) -> CalibrationRecord:
    """A calibration that was read.

    Raises:
        InputError: naming the first number that is missing, unknown or out of its bounds.
    """
    try:
        return CalibrationRecord.model_validate(found)
    except ValidationError as error:
        raise _refused_record(error, x) from None


def _refused_record(error: ValidationError, x: str) -> InputError:
    """The refusal of a calibration by its first fault."""
    first = error.errors()[0]
    where = shown(first["loc"][0]) if first["loc"] else "calibration"
    return refused(x, "x", f"{DAMAGED}: {where}: {shown(first['msg'].lower().removeprefix('value error, '), 200)}")
