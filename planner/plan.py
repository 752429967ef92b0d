"""Outcomes: `Plans`, a table of them as columns, and `Plan`, one of them with everything a reviewer asks for.

Field names are the contract's: a link, a CSV row, a JSON document and a page use these words and no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from planner.specs.scenario import Scenario

Column = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]

BINDS: Final = ("none", "weights", "kv", "tpot", "ttft", "layout", "engine")
"""What limits a plan, by code: index into this tuple."""


@dataclass(frozen=True)
class Plans:
    """A table of plans, one entry a row; every field is a column of the same length.

    Bytes, milliseconds, tokens, sequences and dollars as the field names say; NaN = not applicable.
    `binds` holds codes into `BINDS`, `reason` codes into `reasons`.
    """

    fits: Flags
    meets_sla: Flags
    engine_ok: Flags
    binds: Codes
    reason: Codes
    reasons: tuple[str, ...]
    tp: Column
    pp: Column
    dp: Column
    ep: Column
    cp: Column
    dcp: Column
    gpus_per_replica: Column
    replicas: Column
    gpus: Column
    physical_bytes: Column
    usable_bytes: Column
    withheld_bytes: Column
    weights_bytes: Column
    activation_bytes: Column
    graph_bytes: Column
    runtime_bytes: Column
    kv_pool_bytes: Column
    kv_bytes_per_token: Column
    kv_capacity_tokens_rank: Column
    kv_capacity_tokens: Column
    b_max_kv: Column
    b_max_kv_mean: Column
    b_max_sla: Column
    b_max: Column
    batch: Column
    tpot_ms: Column
    ttft_ms: Column
    ttft_unloaded_ms: Column
    output_tok_s: Column
    goodput_tok_s: Column
    goodput_tok_s_gpu: Column
    tpot_low_ms: Column
    tpot_high_ms: Column
    usd_per_hour: Column
    usd_per_m_output: Column
    usd_per_m_goodput: Column

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.batch)


@dataclass(frozen=True)
class Note:
    """A warning or remark on a plan: a stable code, a sentence, and the field it is about."""

    code: str
    text: str
    field: str


@dataclass(frozen=True)
class LedgerRow:
    """One operator of the decode step at the operating point, totals over its launches on the slowest device."""

    operator: str
    group: str
    seconds: float
    flops: float
    hbm_bytes: float
    link_bytes: float
    bound_by: str
    """`compute`, `memory`, `link`, `floor` or `host`."""


@dataclass(frozen=True)
class CurvePoint:
    """TPOT and cost at one batch."""

    batch: int
    tpot_ms: float
    tpot_low_ms: float
    tpot_high_ms: float
    output_tok_s: float
    usd_per_m_output: float | None
    fits: bool


@dataclass(frozen=True)
class Plan:
    """One plan. Fields up to `usd_high_per_m_goodput` are the contract's plan fields; None = not applicable or unknown."""

    fits: bool
    """Verdict on memory alone: one sequence of full length, or the batch asked for, has room."""
    meets_sla: bool
    """Verdict on speed: mean TPOT and mean TTFT keep the promise at `batch`."""
    engine_ok: bool
    """Verdict on support: the engine serves these precisions, this length, layout and batch."""
    binds: str
    """What limits the batch first: weights, kv, tpot, ttft, layout, engine or none."""
    reason: str
    """Why the plan does not stand; empty when it does."""
    gpus_per_replica: int
    """Devices of one replica: tp · dp · cp · pp."""
    replicas: int | None
    """Replicas, spares included."""
    gpus: int | None
    """Devices of the whole deployment."""
    physical_bytes: float
    """Memory of one device as the driver shows it; the vendor's figure where that is unknown."""
    usable_bytes: float
    """What the engine may use of it: physical · util."""
    withheld_bytes: float
    """What it may not use: physical − usable."""
    weights_bytes: float
    """Weights on the fullest device."""
    activation_bytes: float
    """Activation peak on one device."""
    graph_bytes: float
    """CUDA graphs on one device; inside or outside the usable share by the engine's rule."""
    runtime_bytes: float
    """Driver, communication and framework on one device."""
    kv_pool_bytes: float
    """What is left for the cache on one device; 0 when nothing is."""
    kv_bytes_per_token: float
    """Cache of one token on one device, averaged over a sequence of full length isl + osl."""
    kv_capacity_tokens_rank: int
    """Tokens that the pool of one attention rank holds, whole blocks."""
    kv_capacity_tokens: int
    """Tokens that the pools of a replica hold."""
    b_max_kv: int
    """Largest batch of a replica by cache, every sequence at full length isl + osl."""
    b_max_kv_mean: int
    """Largest batch of a replica by cache, sequences at their mean length isl + osl/2."""
    b_max_sla: int
    """Largest batch of a replica that keeps the promise; 0 when batch 1 breaks it."""
    b_max: int
    """The smallest of the limits by cache, promise and engine."""
    batch: int
    """Operating point: sequences of a replica over all its attention ranks."""
    tpot_ms: float | None
    """Time per output token at `batch`; empty for requests of one output token."""
    ttft_ms: float | None
    """Time to first token before queues: unloaded plus half a step."""
    ttft_unloaded_ms: float | None
    """Time to first token of a lone request on an idle replica."""
    output_tok_s: float | None
    """Output tokens a second of one replica at `batch`."""
    goodput_tok_s: float | None
    """Output tokens a second of one replica that keep the promise."""
    goodput_tok_s_gpu: float | None
    """The same for one device."""
    tpot_low_ms: float | None
    """Lower end of the 80 % band of TPOT."""
    tpot_high_ms: float | None
    """Upper end of the 80 % band of TPOT."""
    usd_per_hour: float | None
    """Bill of the deployment; whole instances where a price is per instance."""
    usd_per_m_output: float | None
    """Cost of a million output tokens that are served."""
    usd_per_m_goodput: float | None
    """Cost of a million output tokens that keep the promise."""
    b_max_sure: int
    """The largest batch with 80 % confidence: as `b_max`, where measured TPOT stayed below in four cases of five."""
    ttft_low_ms: float | None
    """Lower end of the 80 % band of TTFT before queues."""
    ttft_high_ms: float | None
    """Upper end of the 80 % band of TTFT before queues."""
    output_low_tok_s: float | None
    """Lower end of the 80 % band of output tokens a second of one replica."""
    output_high_tok_s: float | None
    """Upper end of the 80 % band of output tokens a second of one replica."""
    usd_low_per_m_goodput: float | None
    """Lower end of the 80 % band of the cost of a million good tokens."""
    usd_high_per_m_goodput: float | None
    """Upper end of the 80 % band of the cost of a million good tokens."""
    notes: tuple[Note, ...]
    scenario: Scenario
    curve: tuple[CurvePoint, ...]
    ledger: tuple[LedgerRow, ...]
    assumptions: tuple[str, ...]
    sources: tuple[str, ...]


PLAN_FIELDS: Final = tuple(
    "fits meets_sla engine_ok binds reason gpus_per_replica replicas gpus physical_bytes usable_bytes withheld_bytes "
    "weights_bytes activation_bytes graph_bytes runtime_bytes kv_pool_bytes kv_bytes_per_token kv_capacity_tokens_rank "
    "kv_capacity_tokens b_max_kv b_max_kv_mean b_max_sla b_max batch tpot_ms ttft_ms ttft_unloaded_ms output_tok_s "
    "goodput_tok_s goodput_tok_s_gpu tpot_low_ms tpot_high_ms usd_per_hour usd_per_m_output usd_per_m_goodput "
    "b_max_sure ttft_low_ms ttft_high_ms output_low_tok_s output_high_tok_s usd_low_per_m_goodput "
    "usd_high_per_m_goodput".split()
)
"""Scalar plan fields in the order in which they stand in CSV and JSON."""
