"""The scenario: everything a person chose. Frozen, validated, hashable; a link, a preset and a form spell it alike.

Field names are the contract's. The defaults below are those of link version 1 and are frozen: a link written today
must mean the same next year, so a changed default needs a new `v`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, get_type_hints

from pydantic import ValidationError

from planner.errors import Fault
from planner.specs.checked import Checked
from planner.specs.contradictions import contradictions
from planner.specs.fields import (
    CachePrecision,
    Count,
    Degree,
    Dollars,
    DraftTokens,
    EngineId,
    Experts,
    FieldText,
    Identifier,
    Language,
    Length,
    LinkVersion,
    Milliseconds,
    Name,
    Percentile,
    PositiveShare,
    PrefillMode,
    PriceKind,
    ProfileId,
    Rate,
    Share,
    Skew,
    Spare,
    Switch,
    Token,
    Tokens,
    TokensOrZero,
    WeightPrecision,
    field_text,
    near,
    shown,
)

LINK_VERSION: Final = 1


class Scenario(Checked):
    """What is asked. `None` = left to the planner or to the engine's own default.

    Raises:
        InputError: with one fault per refused field, or per contradiction between fields.
    """

    v: LinkVersion = 1
    """Link version."""
    c: Identifier | None = None
    """Catalogue version that the link was made with."""
    model: Identifier = "llama-3.1-70b"
    """Model id from the catalogue, or `custom` with `x`."""
    gpu: Identifier = "h100-sxm"
    """Accelerator id from the catalogue."""
    engine: EngineId = "vllm"
    """Serving engine."""
    profile: ProfileId = "measured"
    """Speed law: fitted to measured kernels, as the source articles state it, or calibrated by a benchmark (`custom`)."""
    weights: WeightPrecision = "bf16"
    """Precision of the linear layers' weights."""
    kv: CachePrecision = "bf16"
    """Precision of the KV cache."""
    tp: Degree = 1
    """Tensor-parallel degree of one replica."""
    pp: Degree = 1
    """Pipeline stages of one replica."""
    dp: Degree = 1
    """Attention data-parallel degree of one replica."""
    ep: Degree = 1
    """Expert-parallel degree of one replica."""
    cp: Degree = 1
    """Context-parallel degree in prefill."""
    dcp: Degree = 1
    """Context-parallel degree of the decode cache."""
    redundant: Experts = 0
    """Extra expert copies."""
    imbalance: Skew | None = None
    """Slowest expert rank's load over the mean; empty = expected from routing."""
    overlap: Switch = False
    """Two-micro-batch overlap of communication and compute."""
    isl: Tokens = 1024
    """Mean input tokens of a request."""
    osl: Tokens = 256
    """Mean output tokens of a request."""
    prefix: Share = 0.0
    """Share of input tokens that the prefix cache serves."""
    qps: Rate = 0.0
    """Requests a second for the whole deployment; 0 = size one replica."""
    load: PositiveShare = 0.8
    """Share of the mean throughput that sizing may use."""
    sla_ttft_ms: Milliseconds = 200.0
    """Promised time to first token."""
    sla_tpot_ms: Milliseconds = 50.0
    """Promised time per output token."""
    sla_pct: Percentile = 50.0
    """Percentile at which the promise holds."""
    at_batch: Count | None = None
    """Operating point, sequences per replica; empty = the largest batch that keeps the promise."""
    util: PositiveShare | None = None
    """Share of device memory that the engine may use; empty = the engine's own."""
    max_len: Length | None = None
    """Longest sequence the engine admits; empty = the engine's own."""
    max_seqs: Count | None = None
    """Most sequences of one engine (one data-parallel rank) at a time; empty = the engine's own."""
    token_budget: Tokens | None = None
    """Most tokens in one engine step; empty = the engine's own."""
    chunk: TokensOrZero = 0
    """Prefill tokens a step; 0 = the whole prompt."""
    prefill: PrefillMode = "colocated"
    """Where prefill runs: with decode, not counted, or in a pool of its own."""
    prefill_gpu: Identifier | None = None
    """Accelerator id of the prefill pool."""
    prefill_tp: Degree | None = None
    """Tensor-parallel degree of a prefill worker."""
    prefill_workers: Count | None = None
    """Workers of the prefill pool."""
    decode_workers: Count | None = None
    """Workers (replicas) of the decode pool."""
    kv_link_eff: PositiveShare | None = None
    """Efficiency of the KV transfer between the pools."""
    spec: DraftTokens = 0
    """Draft tokens per step of speculative decoding; 0 = none."""
    accept: Share = 0.8
    """Acceptance of each draft token."""
    draft: Share = 0.1
    """Cost of one draft step as a share of a target step."""
    fix_replicas: Count | None = None
    """Fixed replica count; empty = sized from `qps`."""
    spare: Spare = 0
    """Spare replicas (N+1)."""
    price: Dollars | None = None
    """Price; empty = median on-demand price of the form factor in the last 12 months."""
    price_kind: PriceKind = "on-demand"
    """Kind of price."""
    provider: Name | None = None
    """Provider whose prices are taken; empty = all."""
    lang: Language | None = None
    """Language of the page; empty = the browser's."""
    x: Token | None = None
    """Custom model, calibration or both: one versioned token, made by `encode_custom` or `encode_calibration`."""

    @classmethod
    def faults(cls, error: ValidationError) -> tuple[Fault, ...]:
        """One fault per field, in the order of the fields."""
        found = {str(item["loc"][0]) if item["loc"] else "scenario": item["input"] for item in error.errors()}
        return tuple(refusal(field, value) for field, value in found.items())

    def contradictions(self) -> tuple[Fault, ...]:
        """Values that are each allowed but cannot be meant together."""
        return contradictions(self)

    def with_(self, **changes: str | int | float | bool | None) -> Scenario:
        """The same scenario with some fields changed, validated again.

        Raises:
            InputError: for a refused value, an unknown field or a contradiction.
        """
        return Scenario.model_validate({**self.__dict__, **changes})


SCENARIO_FIELDS: Final = tuple(Scenario.model_fields)
"""Field names in the order in which links, CSV and JSON write them."""


@cache
def describe(field: str) -> FieldText:
    """Meaning, unit, default and allowed values of a scenario field.

    Raises:
        KeyError: for a name that is not a scenario field.
    """
    info = Scenario.model_fields[field]
    return field_text(field, _hints()[field], info.description or "", info.default)


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Scenario, include_extras=True)


def refusal(field: str, value: object) -> Fault:
    """The fault of a value that a field does not allow, or of a field that does not exist."""
    if field not in Scenario.model_fields:
        return Fault(shown(field), shown(value), f"not a scenario field{near(field, SCENARIO_FIELDS)}")
    text = describe(field)
    return Fault(field, shown(value), text.allowed + near(str(value), text.options))
