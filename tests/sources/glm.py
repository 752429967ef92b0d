"""The numbers of the GLM article: parameters, distinct experts, cache, index, operations, intensity, tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from planner.catalog.accelerators import accelerator
from planner.catalog.models import model
from planner.physics import ffn, roofline, tiles
from planner.specs.model import ffn_params, linear_params
from planner.work import Ledger
from tests import asking
from tests.asking import column, one, total
from tests.sources.asked import Inputs, at, sequence_bytes

GLM_CONTEXT = 131_072


def glm() -> Any:
    return model("glm-5.2")


def glm_groups() -> Any:
    """Layers: dense with an index, expert layers that share one, expert layers with their own."""
    return glm().groups


def glm_ledger(batch: float, context: float = GLM_CONTEXT) -> Ledger:
    """A decode step of FP8 weights and a BF16 cache on one imaginary device."""
    return asking.decode_ledger(at(model="glm-5.2", weights="fp8"), batch, context)


def glm_sum(field: str, batch: float, *names: str, context: float = GLM_CONTEXT) -> float:
    """GFLOP or GB of a step: of the named operators, or of everything."""
    return sum(total(e, field) for e in glm_ledger(batch, context) if not names or e.name in names) / 1e9


def glm_weights_gb(batch: float) -> float:
    return sum(total(e, "hbm_bytes") for e in glm_ledger(batch) if e.group in ("weights", "experts")) / 1e9


def glm_linear_gflop() -> float:
    return sum(total(e, "flops") for e in glm_ledger(1) if e.group in ("weights", "experts")) / 1e9


def distinct(case: dict[str, Any]) -> float:
    return one(ffn.distinct_experts(case["experts"], case["topk"], column(case["batch"])))


def glm_attention_b() -> float:
    """Projections of all layers, index matrices left out."""
    kept = [[x for x in g.attention.linears if not x.name.startswith("indexer")] for g in glm_groups()]
    return sum(g.count * linear_params(tuple(part)) for g, part in zip(glm_groups(), kept, strict=True)) / 1e9


def glm_index_b() -> float:
    kept = [[x for x in g.attention.linears if x.name.startswith("indexer")] for g in glm_groups()]
    return sum(g.count * linear_params(tuple(part)) for g, part in zip(glm_groups(), kept, strict=True)) / 1e9


def glm_expert_layers() -> Any:
    return [g for g in glm_groups() if hasattr(g.ffn, "expert")]


def glm_active_expert_b() -> float:
    """Chosen and shared experts and routers of all expert layers."""
    idle = [g.count * (g.ffn.count - g.ffn.top_k) * linear_params(g.ffn.expert) for g in glm_expert_layers()]
    return (sum(g.count * ffn_params(g.ffn) for g in glm_expert_layers()) - sum(idle)) / 1e9


def expert_times(tokens: object, case: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Compute and read time of one FP8 expert's weights at the peaks, when `tokens` tokens reach it."""
    h100, weights = accelerator("h100-sxm"), linear_params(glm_expert_layers()[0].ffn.expert)
    flops = ffn.expert_flops(np.asarray(tokens, dtype=float), 1, weights, 1.0, 1.0)
    read = roofline.memory_seconds(column(weights), 1.0, h100.bandwidth)
    return roofline.compute_seconds(flops, 1.0, h100.peak["fp8"]), read


def tokens_at_the_ridge(case: Inputs) -> float:
    """Batch whose experts compute as long as their weights are read."""
    batch = np.arange(1.0, 20_001.0)
    compute, read = expert_times(batch * case["topk"] / case["experts"], case)
    return float(batch[np.argmax(compute >= read)])


def tile_share(case: Inputs) -> float:
    taken = tiles.expected_tiles(case["batch"], case["p"], case["m"])
    return one(tiles.tile_fill(column(case["batch"] * case["p"]), case["m"], taken))


MEASURES: dict[str, Callable[[Inputs], float]] = {
    # parameters of GLM 5.2
    "G1-01": lambda _: (glm().total_params + glm().mtp_params) / 1e9,
    "G1-02": lambda _: (glm().active_params - glm().embed_params) / 1e9,
    "G1-03": lambda _: glm().layers,
    "G2-02": lambda _: glm_attention_b(),
    "G2-03": lambda _: sum(g.count for g in glm_groups() if g.attention.index.heads),
    "G2-04": lambda _: glm_index_b(),
    "G2-06": lambda _: linear_params(glm_expert_layers()[0].ffn.expert) / 1e6,
    "G2-08": lambda _: glm_active_expert_b(),
    "G2-09": lambda _: glm().head_params / 1e9,
    "G2-10": lambda _: (glm().active_params - glm().embed_params) / 1e9,
    # GLM 5.2, distinct experts and weights read a step
    "G3-01": distinct, "G3-E2": distinct, "G3-E4": distinct, "G3-E16": distinct, "G3-E32": distinct, "G3-E256": distinct,
    "G3-02": lambda _: glm_weights_gb(1) - glm_sum("hbm_bytes", 1, "experts"),
    "G3-05": lambda i: glm_weights_gb(i["batch"]), "G3-A8": lambda i: glm_weights_gb(i["batch"]),
    "G3-A64": lambda i: glm_weights_gb(i["batch"]), "G3-A256": lambda i: glm_weights_gb(i["batch"]),
    "G3-A2048": lambda i: glm_weights_gb(i["batch"]),
    # GLM 5.2, cache, index, operations, intensity
    "G4-01": lambda _: glm_sum("hbm_bytes", 1, "attention"),
    "G4-02": lambda _: glm_sum("hbm_bytes", 1, "attention") / glm_weights_gb(1),
    "G4-03": lambda i: glm_sum("hbm_bytes", i["batch"], "index scan", context=i["ctx_tokens"]),
    "G4-04": lambda i: glm_sum("hbm_bytes", i["batch"], "index scan", context=i["ctx_tokens"]),
    "G4-05": lambda i: glm_sum("hbm_bytes", i["batch"], "index scan") / glm_weights_gb(i["batch"]),
    "G5-01": lambda _: glm_linear_gflop(),
    "G5-02": lambda i: glm_sum("flops", 1, "index scan", context=i["ctx_tokens"]),
    "G5-03": lambda _: glm_sum("flops", 1, "attention"),
    "G5-04": lambda _: glm_sum("flops", 1),
    "G6-01": lambda _: glm_sum("flops", 1) / glm_weights_gb(1),
    "G6-02": lambda i: glm_sum("flops", i["batch"]) / glm_weights_gb(i["batch"]),
    "G6-03": lambda i: glm_sum("flops", i["batch"]) / glm_sum("hbm_bytes", i["batch"]),
    "G6-04": lambda _: accelerator("h100-sxm").peak["fp8"] / accelerator("h100-sxm").bandwidth,
    "G6-05": lambda i: glm_weights_gb(i["b2"]) / glm_weights_gb(i["b1"]),
    "G7-02": lambda i: one(ffn.expert_flops(column(i["batch"]), i["topk"], 1, column(i["experts"]), column(1))) / 2,
    "G7-03": lambda i: i["tile_m"] / (one(ffn.expert_flops(column(1), i["topk"], 1, column(i["experts"]), column(1))) / 2),
    "G9-02": lambda i: sequence_bytes(i["ctx_tokens"], name="glm-5.2") / 1e9,
    "G7-04": tile_share,
    "G7-05": lambda i: one(expert_times(i["tile_m"], i)[0] / expert_times(i["tile_m"], i)[1]),
    "G7-06": tokens_at_the_ridge,
    "S10.7-01": lambda i: glm_weights_gb(i["batch"]),
}  # fmt: skip
