"""Serving engines: limits, memory rules and scheduling constants of one version, each with its source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

Budget = Literal["total", "static", "free"]
"""What an engine's memory share is a share of; `KV` below is what is left for the cache on one device.

- `total` (vLLM): KV = share · total − weights − activation − runtime (− graphs when they are in the budget).
- `static` (SGLang): KV = share · (total − runtime) − weights; activations and graphs live in the rest.
- `free` (TensorRT-LLM): KV = share · (total − weights − activation − runtime − graphs).

`total` is what the framework reports: `Accelerator.engine_memory`.
"""


LayoutLaw = Literal["ep-stage", "dcp-tp", "dcp-tp-or-pcp", "dcp-kv-heads", "dcp-kv-copies", "redundant-even"]
"""What an engine demands of degrees by their numbers; worked out in `planner.support`.

- `ep-stage`: EP is 1 or every device of the stage (tp·dp·cp). An engine without this law takes any divisor.
- `dcp-tp`: DCP divides TP.
- `dcp-tp-or-pcp`: the same without prefill context parallelism; with it DCP is 1, CP, or TP·CP.
- `dcp-kv-heads`: grouped attention: TP exceeds the KV heads, DCP is at most TP / KV heads and divides the query heads
  of one KV head.
- `dcp-kv-copies`: grouped attention: DCP divides the whole copies of a KV head, TP // KV heads.
- `redundant-even`: experts and their extra copies divide evenly over the EP ranks.
"""

TECHNIQUES: Final = (
    "pp", "dp", "ep", "cp", "dcp", "redundant", "overlap", "prefix", "chunk", "prefill=disaggregated", "spec",
)  # fmt: skip
"""What an engine states to offer, as conditions spell it; the rest of a record's conditions qualify these."""


@dataclass(frozen=True)
class Refusal:
    """Techniques that an engine does not run together; one alone = it is not offered.

    Attributes:
        when: conditions that must all hold: a switch of the scenario (`spec`, `overlap`, `prefix`, `chunk`,
            `redundant`), a degree above 1 (`tp` `pp` `dp` `ep` `cp` `dcp`), either with a floor of its own (`spec>15`),
            a menu's value (`prefill=disaggregated`, `weights=int8`), or a trait of the model (`latent`, `grouped`,
            `linear`, `sparse`, `shared-index`, `mtp`).
        unless: conditions of which one spares it.
        reason: what is not offered, as the page says it.
        source, date: where the engine says so, and when that was published or read.
    """

    when: tuple[str, ...]
    reason: str
    source: str
    date: str
    unless: tuple[str, ...] = ()


@dataclass(frozen=True)
class Demand:
    """A law that an engine's degrees must keep."""

    law: LayoutLaw
    reason: str
    source: str
    date: str


@dataclass(frozen=True)
class Engine:
    """An engine version as it behaves out of the box on one accelerator.

    Attributes:
        id: `vllm`, `sglang`, `trtllm`, `vllm-ascend`.
        version: the version that the defaults below were read from.
        memory_utilisation: default share of device memory the engine may use; of what, see `budget`.
        block_size: cache tokens per block.
        max_num_seqs, token_budget: default most sequences and most tokens in one step.
        sampler_bytes_per_logit: sampler's peak = this · max_num_seqs · vocab [B]; 0 = activations are not in the budget.
        activation_floor: smallest activation peak [B].
        keeps_expert_buffers: whether work buffers of routed experts stay beside the sampler's peak.
        index_buffer_per_token: work buffer of sparse attention per token of the longest sequence [B].
        image_bytes: activation peak that images of any size add [B].
        whole_prompt_tokens: longest sequence up to which prompts are profiled whole; 0 = they are read in chunks.
        state_ratio: recurrent states' part of the pool over the growing cache's; 0 = both come from the same blocks.
        start_bytes: memory that is not free when the engine starts [B]; a share that needs it is refused.
        runtime_bytes: NCCL, CUDA context and other non-framework memory by TP degree [B], ascending pairs (tp, bytes);
            the nearest tabulated degree at or below holds.
        graph_base, graph_per_weight_byte: CUDA-graph memory = graph_base [B] + graph_per_weight_byte · weights of one
            device [B]; in budgets that include graphs this is the engine's estimate, which is what it subtracts.
        graphs_in_budget: whether graph memory is taken out of the utilisation budget.
        supports_kv, supports_weights: precisions that the engine can serve, as the scenario names them.
        sources: field -> where its number comes from.
        budget: how the memory share is applied.
        vendors: makers of the accelerators that the engine runs on.
        since: first version of the era whose rules these are; empty = the oldest known.
        offers: technique -> where the engine says that it has it; read of the newest version, whatever the era.
        refuses: combinations that it does not run, in the order in which they are reported.
        demands: laws that its degrees must keep.
        unverified: what was looked for and not found either way: treated as offered, and said.
    """

    id: str
    name: str
    version: str
    date: str
    memory_utilisation: float
    block_size: int
    max_num_seqs: int
    token_budget: int
    sampler_bytes_per_logit: float
    activation_floor: float
    runtime_bytes: tuple[tuple[int, float], ...]
    graphs_in_budget: bool
    graph_base: float
    graph_per_weight_byte: float
    supports_kv: tuple[str, ...]
    supports_weights: tuple[str, ...]
    sources: dict[str, str] = field(hash=False)
    notes: tuple[str, ...] = ()
    keeps_expert_buffers: bool = False
    index_buffer_per_token: float = 0.0
    image_bytes: float = 0.0
    whole_prompt_tokens: int = 0
    start_bytes: float = 0.0
    state_ratio: float = 0.0
    budget: Budget = "total"
    since: str = ""
    vendors: tuple[str, ...] = ()
    offers: dict[str, str] = field(default_factory=dict, hash=False)
    refuses: tuple[Refusal, ...] = ()
    demands: tuple[Demand, ...] = ()
    unverified: tuple[str, ...] = ()

    def __hash__(self) -> int:
        """Identity: one engine, one era, one set of device defaults."""
        return hash((self.id, self.version, self.since, self.max_num_seqs, self.token_budget, self.memory_utilisation))
