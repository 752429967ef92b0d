"""The numbers of the two source articles, from the planner's own plans and formulas.

`source_cases.json` holds every case of the sections on latency, memory, paging, roofline, precision and the worked
example (1.1–1.3, 3.1–3.3, 6, 8.1–8.2, 9.1–9.5, 9.7) and of the GLM breakdown: inputs, the right value, and what the
article prints. `expected` is checked by hand in the audit of the articles, never taken from this code; where an article
is wrong (`article_wrong`) the right value stands. No expression of a case is evaluated here: inputs go into the planner.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.catalog.accelerators import accelerator
from planner.catalog.models import model
from planner.physics import ffn, intensity, kv, memory, roofline
from planner.plan import Plan
from planner.serving import goodput
from planner.setting import Setting
from planner.specs.layout import layout
from planner.specs.model import attention_params, ffn_params, linear_params
from planner.specs.precision import WEIGHTS
from planner.specs.profile import TEXTBOOK
from planner.specs.scenario import Scenario
from planner.work import Ledger
from tests import asking
from tests.asking import column, one, setting, total

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "source_cases.json").read_text(encoding="utf-8"))
BY_ID = {case["id"]: case for case in CASES}
ARTICLE = {"model": "llama-70b-nominal", "profile": "textbook", "prefill": "excluded", "isl": 1024, "osl": 256}
GLM_CONTEXT = 131_072


# --- the planner, asked as the articles ask it ---------------------------------------------------------------------


def at(**changes: Any) -> Setting:
    return setting(**{**ARTICLE, **changes})


def plan(**changes: Any) -> Plan:
    return asking.plan(**{**ARTICLE, **changes})


def step_ms(batch: float, context: float, tp: int = 1, **changes: Any) -> float:
    """A decode step of the textbook, whether or not the model fits."""
    return one(asking.step_seconds(at(tp=tp, **changes), batch, context, tp=tp)) * 1e3


def prompt_flops(tokens: int, *groups: str) -> float:
    found = [e for e in asking.prompt_ledger(at(), tokens) if not groups or e.group in groups]
    return sum(total(e, "flops") for e in found)


def prompt_ms(tokens: int, term: int) -> float:
    """Compute (term 0) or memory (term 1) time of a prompt on one H100."""
    timed = [e for e in asking.prompt_ledger(at(), tokens) if e.group != "host"]
    return (
        sum(one(roofline.over_kernels(roofline.terms(e.work, at().profile)[term] * e.work.launches)) for e in timed)
        * 1e3
    )


def ttft_ms(tokens: int, tp: int = 1) -> float:
    return one(asking.ttft_seconds(at(isl=tokens, tp=tp), layout(tp))) * 1e3


def memory_bound_up_to(context: float) -> float:
    """Largest batch whose step takes its memory time."""
    batch = np.arange(1.0, 2001.0)
    ledger = asking.decode_ledger(at(), batch, context)
    parts = [(roofline.terms(e.work, at().profile), e.work.launches) for e in ledger if e.group != "host"]
    compute, moved = (sum(np.ravel(part[0][term] * part[1]) for part in parts) for term in (0, 1))
    return float(np.count_nonzero(compute <= moved))


def end_to_end_ms(found: Plan, tokens: int) -> float:
    """TTFT and the TPOT of every further token, both from the plan."""
    assert found.ttft_ms is not None
    assert found.tpot_ms is not None
    return found.ttft_ms + found.tpot_ms * (tokens - 1)


def sequence_bytes(tokens: float, kv_precision: str = "bf16", name: str = "llama-70b-nominal") -> float:
    return one(asking.sequence_bytes(at(kv=kv_precision, model=name), tokens))


def blocks(tokens: float, block: int) -> float:
    return one(kv.kept_tokens(column(tokens), float("inf"), 0.0, block)) / block


def pools_gb(**changes: Any) -> float:
    found = plan(**changes)
    return found.kv_pool_bytes * found.gpus_per_replica / 1e9


def read_ms(gigabytes: float, gpu: str, efficiency: float = 1.0) -> float:
    return one(roofline.memory_seconds(column(gigabytes * 1e9), efficiency, accelerator(gpu).bandwidth)) * 1e3


def rate(batch: float, tpot_ms: float) -> float:
    return one(goodput.output_rate(column(batch), column(tpot_ms / 1e3)))


def ridge_of(gpu: str, math: str) -> float:
    return one(intensity.ridge(column(accelerator(gpu).peak[math]), accelerator(gpu).bandwidth))


def tile_fill(batch: float, share: float, tile: float) -> float:
    tiles = intensity.expected_tiles(column(batch), share, tile)
    return one(intensity.tile_fill(column(batch), share, tile, tiles))


# --- GLM 5.2 ------------------------------------------------------------------------------------------------------


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


Inputs = dict[str, Any]
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
    "G6-04": lambda _: ridge_of("h100-sxm", "fp8"),
    "G6-05": lambda i: glm_weights_gb(i["b2"]) / glm_weights_gb(i["b1"]),
    "G7-02": lambda i: one(intensity.tokens_per_expert(column(i["batch"]), i["topk"], i["experts"])),
    "G7-03": lambda i: i["tile_m"] / one(intensity.tokens_per_expert(column(1), i["topk"], i["experts"])),
    "G7-04": lambda i: tile_fill(i["batch"], i["p"], i["m"]),
    "G7-05": lambda i: one(intensity.tile_intensity(column(i["tile_m"]), 1.0)) / ridge_of("h100-sxm", "fp8"),
    "G7-06": lambda i: one(intensity.expert_ridge_batch(ridge_of("h100-sxm", "fp8"), 1.0, i["topk"], column(i["experts"]))),
    "G9-02": lambda i: sequence_bytes(i["ctx_tokens"], name="glm-5.2") / 1e9,
    # promise, end-to-end latency
    "S1.1-01": lambda _: Scenario().sla_ttft_ms,
    "S1.2-01": lambda i: end_to_end_ms(plan(tp=4, at_batch=1), i["n_out"]),
    "S1.2-02": lambda i: rate(1, i["tpot_ms"]),
    "S1.2-05": lambda _: Scenario().sla_ttft_ms,
    # paging
    "S3.1-01": lambda i: sequence_bytes(i["max_len"]) / 1e9,
    "S3.1-02": lambda i: 100 * sequence_bytes(i["used"]) / sequence_bytes(i["slots"]),
    "S3.2-01": lambda i: blocks(i["tokens"], i["block"]),
    "S3.2-02": lambda i: blocks(i["tokens"], i["block"]),
    "S3.2-03": lambda i: i["used"] / ((blocks(30, i["block"]) + blocks(8, i["block"])) * i["block"]),
    "S3.3-01": lambda _: 100 * TEXTBOOK.cache_utilisation,
    # prefill roofline, one H100
    "S6.1-02": lambda i: sequence_bytes(i["s_tokens"]) / 1e9,
    "S6.1-04": lambda i: prompt_flops(i["s_tokens"]),
    "S6.1-05": lambda i: prompt_ms(i["s_tokens"], 0),
    "S6.1-06": lambda _: prompt_ms(128, 1),
    "S6.1-08": lambda i: prompt_flops(i["s_tokens"], "weights"),
    "S6.1-09": lambda i: prompt_flops(i["s_tokens"], "prefill"),
    "S6.1-10": lambda i: prompt_flops(i["s_tokens"]),
    "S6.1-11": lambda i: prompt_ms(i["s_tokens"], 0),
    "S6.1-12": lambda _: prompt_ms(2048, 1),
    "S6.1-13": lambda _: ttft_ms(2048),
    "S6.1-14": lambda _: ridge_of("h100-sxm", "bf16"),
    "S6.1-15": lambda _: memory_bound_up_to(context=0),
    "S6.1-16": lambda i: prompt_flops(i["s_tokens"], "prefill") / prompt_flops(i["s_tokens"]),
    "S6.1-17": lambda _: next(s for s in range(53_390, 53_420) if prompt_flops(s, "prefill") >= prompt_flops(s, "weights")),
    # decode roofline
    "S6.2-01": lambda _: step_ms(1, 0),
    "S6.2-02": lambda _: 100 * accelerator("ascend-910c-package").bandwidth / accelerator("h100-sxm").bandwidth,
    "S6.2-04": lambda i: plan(tp=i["tp"]).weights_bytes / 1e9,
    "S6.2-05": lambda i: read_ms(i["w_GB"], "ascend-910c-package"),
    "S6.2-06": lambda _: step_ms(1, 0, 4, gpu="ascend-910c-package", engine="vllm-ascend"),
    "S6.2-07": lambda _: read_ms(35, "ascend-910c-package") / read_ms(35, "h100-sxm"),
    "S6.2-08": lambda _: step_ms(1, 0, 4, gpu="ascend-910c-die", engine="vllm-ascend"),
    "S6.3-00": lambda i: step_ms(i["batch"], i["ctx_tokens"]),
    "S6.3-T1": lambda i: step_ms(i["batch"], 0), "S6.3-T4": lambda i: step_ms(i["batch"], 0),
    "S6.3-T16": lambda i: step_ms(i["batch"], 0), "S6.3-T64": lambda i: step_ms(i["batch"], 0),
    "S6.3-K1": lambda i: step_ms(i["batch"], i["ctx_tokens"]), "S6.3-K64": lambda i: step_ms(i["batch"], i["ctx_tokens"]),
    "S6.3-X4": lambda i: rate(i["batch"], i["tpot_ms"]), "S6.3-X16": lambda i: rate(i["batch"], i["tpot_ms"]),
    "S6.3-X64": lambda i: rate(i["batch"], i["tpot_ms"]),
    "S6.3-01": lambda _: memory_bound_up_to(context=0),
    "S6.3-02": lambda _: memory_bound_up_to(context=1152),
    # precisions
    "S8.2-01": lambda _: step_ms(1, 0),
    "S8.2-02": lambda _: step_ms(1, 0, weights="fp8"),
    "S8.2-03": lambda _: step_ms(1, 0) / step_ms(1, 0, weights="fp8"),
    "S8.2-04": lambda _: 100 * (1 - plan(weights="fp8").weights_bytes / plan(weights="bf16").weights_bytes),
    "S8.2-06": lambda _: step_ms(1, 0) / step_ms(1, 0, weights="int4"),
    "S8.2-07": lambda _: 100 * (1 - WEIGHTS["int4"].nominal_bytes / WEIGHTS["bf16"].nominal_bytes),
    # the worked example: 4 × H100
    "S9.2-01": lambda i: ttft_ms(i["s_tokens"], i["tp"]),
    "S9.2-02": lambda _: step_ms(1, 0, 4),
    "S9.2-05": lambda _: end_to_end_ms(plan(tp=4, at_batch=1), 256) / 1e3,
    "S9.2-06": lambda i: i["n_out"] / end_to_end_ms(plan(tp=4, at_batch=1), i["n_out"]) * 1e3,
    "S9.3-00": lambda i: plan(tp=4).weights_bytes * i["n"] / 1e9,
    "S9.3-01": lambda i: plan(tp=4).physical_bytes * i["n"] / 1e9,
    "S9.3-02": lambda _: pools_gb(tp=4),
    "S9.3-03": lambda i: sequence_bytes(i["tokens"]) / 1e6,
    "S9.3-04": lambda _: sequence_bytes(1280) / TEXTBOOK.cache_utilisation / 1e6,
    "S9.3-05": lambda _: plan(tp=4).b_max_kv,
    "S9.3-06": lambda _: plan(tp=4, at_batch=412).tpot_ms or 0.0,
    "S9.3-07": lambda i: one(memory.sequences_held(
        column(pools_gb(tp=4, util=i["util"]) * 1e9), column(sequence_bytes(1280)), 1.0, column(1))),
    "S9.4-T1": lambda i: plan(tp=i["tp"], at_batch=i["batch"]).tpot_ms or 0.0,
    "S9.4-T4": lambda i: plan(tp=i["tp"], at_batch=i["batch"]).tpot_ms or 0.0,
    "S9.4-T16": lambda i: plan(tp=i["tp"], at_batch=i["batch"]).tpot_ms or 0.0,
    "S9.4-T64": lambda i: plan(tp=i["tp"], at_batch=i["batch"]).tpot_ms or 0.0,
    "S9.4-T128": lambda i: plan(tp=i["tp"], at_batch=i["batch"]).tpot_ms or 0.0,
    "S9.4-01": lambda _: plan(tp=4, at_batch=1).ttft_ms or 0.0,
    "S9.4-03": lambda i: rate(i["batch"], i["tpot_ms"]),
    # the variants in FP8
    "S9.5-A1": lambda _: step_ms(1, 0, weights="fp8"),
    "S9.5-A2": lambda _: step_ms(1, 0, weights="fp8") / step_ms(1, 0, 4),
    "S9.5-A3": lambda _: pools_gb(weights="fp8"),
    "S9.5-A4": lambda _: plan(weights="fp8").b_max_kv,
    "S9.5-B2": lambda _: pools_gb(weights="fp8", tp=2),
    "S9.5-B3": lambda _: plan(weights="fp8", tp=2).b_max_kv,
    "S9.5-C2": lambda _: step_ms(1, 0, 4, weights="fp8"),
    "S9.5-C3": lambda _: pools_gb(weights="fp8", tp=4),
    "S9.5-C4": lambda _: plan(weights="fp8", tp=4).b_max_kv,
    "S9.5-C5": lambda _: sequence_bytes(1280, "fp8") / 1e6,
    "S9.5-C6": lambda _: plan(weights="fp8", kv="fp8", tp=4).b_max_kv,
    "S9.5-C7": lambda i: plan(weights="fp8", tp=i["tp"], at_batch=i["batch"]).tpot_ms or 0.0,
    # Ascend 910C
    "S9.7-01": lambda _: pools_gb(tp=4, gpu="ascend-910c-die", engine="vllm-ascend"),
    "S9.7-02": lambda _: pools_gb(tp=4, gpu="ascend-910c-die", engine="vllm-ascend") / pools_gb(tp=4),
    "S9.7-04": lambda _: plan(tp=4, gpu="ascend-910c-die", engine="vllm-ascend").b_max_kv / plan(tp=4).b_max_kv,
    "S9.7-09": lambda _: step_ms(1, 0, 4, gpu="ascend-910c-die", engine="vllm-ascend"),
}  # fmt: skip

TESTED = [case for case in CASES if "not_tested" not in case]
PRINTED = [case for case in TESTED if "article" in case]


@pytest.mark.parametrize("case", TESTED, ids=lambda case: case["id"])
def test_the_right_value(case: dict[str, Any]) -> None:
    value = MEASURES[case["id"]](case["inputs"])
    assert value == pytest.approx(case["expected"], **case["tolerance"]), f"{case['quantity']} [{case['unit']}]"


@pytest.mark.parametrize("case", PRINTED, ids=lambda case: case["id"])
def test_what_the_article_prints(case: dict[str, Any]) -> None:
    value = MEASURES[case["id"]](case["inputs"])
    assert value == pytest.approx(case["article"], abs=case["article_abs"]), f"{case['quantity']} [{case['unit']}]"


def test_every_case_is_measured_or_says_why_not() -> None:
    assert set(MEASURES) == {case["id"] for case in TESTED}
    assert all(case["not_tested"] for case in CASES if "not_tested" in case)


def test_every_case_in_scope_is_listed_once() -> None:
    assert len(BY_ID) == len(CASES) == 152


def test_what_reproduces_is_compared_with_the_print_and_what_is_wrong_is_not() -> None:
    assert all("article_wrong" in case for case in TESTED if case["verdict"] == "seed_error")
    assert not any("article" in case for case in CASES if case["verdict"] == "seed_error")


# --- what the cases say in more than one number ---------------------------------------------------------------------


def test_glm_constants() -> None:
    """G1-03: hidden 6144, first 3 of 78 layers dense, 256 experts of which 8, top-2048, 21 index layers."""
    dense, sharing, own = glm_groups()
    assert (glm().hidden, glm().vocab) == (6144, 154_880)
    assert (dense.count, sharing.count, own.count) == (3, 57, 18)
    assert (own.ffn.count, own.ffn.top_k) == (256, 8)
    assert {g.attention.index.top_k for g in glm_groups()} == {2048}
    assert attention_params(sharing.attention) < attention_params(own.attention)


def test_tpot_at_batch_one_is_42_and_10_4_ms() -> None:
    assert round(step_ms(1, 0)) == 42
    assert step_ms(1, 0, 4) == pytest.approx(10.4, abs=0.05)


def test_largest_batches_by_kv() -> None:
    """The article's 413, 23, 206, 573, and 1,144 where it prints 2,352."""
    assert 411 <= plan(tp=4).b_max_kv <= 413
    assert 22 <= plan(weights="fp8").b_max_kv <= 23
    assert 205 <= plan(weights="fp8", tp=2).b_max_kv <= 206
    assert 572 <= plan(weights="fp8", tp=4).b_max_kv <= 573
    assert plan(weights="fp8", tp=4, kv="fp8").b_max_kv == 1144


def test_cache_binds_before_latency_without_prefill() -> None:
    """S9.3-06: the article says latency binds first; its own roofline says memory does."""
    found = plan(tp=4)
    assert found.binds == "kv"
    assert found.b_max == found.b_max_kv
    assert found.b_max_sla > 2 * found.b_max_kv


def test_a_token_costs_327_680_bytes() -> None:
    assert plan(tp=4).kv_bytes_per_token * 4 == 327_680


def test_prefill_on_the_same_gpus_lowers_the_batch_that_latency_allows() -> None:
    """The audit: 1,060 sequences by the bare roofline (1,037 with attention's own operations), 179 with prefill at 75 %."""
    alone, together = plan(tp=4).b_max_sla, plan(tp=4, prefill="colocated").b_max_sla
    assert alone == pytest.approx(1037, abs=1)
    assert together == pytest.approx(179, rel=0.25)
