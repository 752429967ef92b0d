"""The numbers of the serving article that one engine on one kind of accelerator has: sections 0 to 6, 8, 9 and 11."""

from __future__ import annotations

from collections.abc import Callable

from planner.catalog.accelerators import accelerator
from planner.catalog.article import constant, quotes
from planner.physics import memory, paging, roofline
from planner.serving import baselines
from planner.specs.precision import WEIGHTS
from planner.specs.profile import TEXTBOOK
from planner.specs.scenario import Scenario
from tests import asking
from tests.asking import column, one, token_bytes, total
from tests.sources.asked import (
    Inputs,
    at,
    blocks,
    end_to_end_ms,
    memory_bound_up_to,
    plan,
    pools_gb,
    prompt_flops,
    prompt_ms,
    rate,
    read_ms,
    sequence_bytes,
    step_ms,
    ttft_ms,
)  # fmt: skip

PACKAGE = {"gpu": "ascend-910c-package", "engine": "vllm-ascend"}


def half_a_block(case: Inputs) -> float:
    return one(paging.block_waste(column(case["block"])))


def prefix_gain(case: Inputs) -> float:
    """Throughput gained by prefix caching, with the fitted share of prefill [%]."""
    return 100 * (one(baselines.prefix_gain(constant("prefix_prefill_share"), column(case["hit"]))) - 1)


def implied_share(case: Inputs) -> float:
    return one(baselines.implied_prefill_share(column(1 + case["gain"]), case["hit"]))


def slower_910c() -> float:
    """TPOT of a 910C package over an H100's."""
    return step_ms(1, 0, 4, **PACKAGE) / step_ms(1, 0, 4)


MEASURES: dict[str, Callable[[Inputs], float]] = {
    # data sheets
    "S0-01": lambda _: step_ms(1, 0),
    "S0-02": lambda _: accelerator("h100-sxm").bandwidth / 1e12,
    "S0-03": lambda _: accelerator("h100-sxm").memory / 1e9,
    "S0-04": lambda _: accelerator("h100-sxm").peak["bf16"] / 1e12,
    "S0-05": lambda _: accelerator("h100-sxm").peak["fp8"] / 1e12,
    "S0-06": lambda _: accelerator("ascend-910c-die").bandwidth / 1e12,
    "S0-07": lambda _: accelerator("ascend-910c-die").memory / 1e9,
    "S0-08": lambda _: accelerator("ascend-910c-package").peak["bf16"] / 1e12,
    "S0-09": lambda _: (accelerator("h100-sxm").scale_up_bandwidth or 0) * constant("link_efficiency") / 1e9,
    "S0-10": lambda _: quotes()["all_reduce_910c"].value,
    "S0-11": lambda _: float("fp8" in accelerator("ascend-910c-die").peak),
    # accuracy and the 910C's quantised weights
    "S8.3-01": lambda _: quotes()["accuracy_loss_fp8"].value,
    "S8.3-02": lambda _: quotes()["accuracy_loss_int4"].value,
    "S8.3-03": lambda _: quotes()["accuracy_loss_int4"].value - quotes()["accuracy_loss_fp8"].value,
    "S8.3-04": lambda i: read_ms(i["w_GB"], "ascend-910c-package"),
    "S8.3-05": lambda i: read_ms(i["w_GB"], "ascend-910c-package"),
    "S8.3-06": lambda i: read_ms(i["w_GB"], "ascend-910c-package"),
    # the checklist
    "S11.1-01": lambda _: memory_bound_up_to(context=0),
    "S11.1-02": lambda _: min(quotes()["batch_by_latency"].value, plan(tp=4).b_max_kv),
    "S11.2-03": lambda _: quotes()["speculation_limit"].value,
    "S11.2-05": lambda i: plan(tp=i["tp"]).weights_bytes / 1e9,
    # promise, end-to-end latency
    "S1.1-01": lambda _: Scenario().sla_ttft_ms,
    "S1.2-01": lambda i: end_to_end_ms(plan(tp=4, at_batch=1), i["n_out"]),
    "S1.2-03": lambda i: one(baselines.request_seconds(column(i["ttft_ms"]), i["tpot_ms"], i["n_out"])) / 1e3,
    "S1.2-04": lambda i: one(baselines.tpot_within(column(i["total_ms"]), i["ttft_ms"], i["n_out"])),
    "S1.2-02": lambda i: rate(1, i["tpot_ms"]),
    "S1.2-05": lambda _: Scenario().sla_ttft_ms,
    # paging
    "S3.1-01": lambda i: one(paging.reserved_bytes(column(i["max_len"]), token_bytes("llama-70b-nominal"))) / 1e9,
    "S3.1-02": lambda i: 100 * one(paging.slots_used(column(i["used"]), column(i["slots"]))),
    "S3.2-01": lambda i: blocks(i["tokens"], i["block"]),
    "S3.2-02": lambda i: blocks(i["tokens"], i["block"]),
    "S3.2-03": lambda i: one(paging.slots_used(i["used"], (blocks(30, i["block"]) + blocks(8, i["block"])) * i["block"])),
    "S3.2-05": lambda i: one(paging.blocks_taken(column(i["batch"]), i["block"])),
    "S3.3-01": lambda i: 100 * one(paging.paged_use(column(i["mean_tokens"]), i["block"])),
    "S3.3-02": lambda i: one(paging.paging_gain(column(i["new"]), i["old_hi"])),
    "S3.4-01": half_a_block, "S3.4-02": half_a_block, "S3.4-04": half_a_block, "S11.2-04": half_a_block,
    "S3.4-03": lambda i: 100 * (1 - one(paging.paged_use(column(i["seq_tokens"]), i["block"]))),
    # batching, chunks, prefix caching
    "S2.1-01": lambda i: one(baselines.idle_share(column(i["short"]), i["long"])),
    "S2.3-01": lambda i: one(baselines.prompt_steps(column(i["prompt_tokens"]), i["chunk_tokens"])),
    "S3.5-01": prefix_gain, "S3.5-02": prefix_gain, "S3.5-03": prefix_gain, "S3.5-04": prefix_gain,
    "S3.5-01p": implied_share, "S3.5-02p": implied_share, "S3.5-03p": implied_share,
    "S3.5-05": lambda i: 100 * one(baselines.conversation_hit(column(i["turns_history"]))),
    "S4.1-02": lambda i: ttft_ms(32_768, i["tp"]),
    # prefill roofline, one H100
    "S6.1-02": lambda i: sequence_bytes(i["s_tokens"]) / 1e9,
    "S6.1-04": lambda i: prompt_flops(i["s_tokens"]),
    "S6.1-05": lambda i: prompt_ms(i["s_tokens"], 0),
    "S6.1-06": lambda _: prompt_ms(128, 1),
    "S6.1-07": lambda _: ttft_ms(128),
    "S6.1-08": lambda i: prompt_flops(i["s_tokens"], "weights"),
    "S6.1-09": lambda i: prompt_flops(i["s_tokens"], "prefill"),
    "S6.1-10": lambda i: prompt_flops(i["s_tokens"]),
    "S6.1-11": lambda i: prompt_ms(i["s_tokens"], 0),
    "S6.1-12": lambda _: prompt_ms(2048, 1),
    "S6.1-13": lambda _: ttft_ms(2048),
    "S6.1-14": lambda _: accelerator("h100-sxm").peak["bf16"] / accelerator("h100-sxm").bandwidth,
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
    "S8.2-08": lambda _: step_ms(64, 0) / step_ms(64, 0, weights="fp8"),
    "S8.2-07": lambda _: 100 * (1 - WEIGHTS["int4"].nominal_bytes / WEIGHTS["bf16"].nominal_bytes),
    # the worked example: 4 × H100
    "S9.2-01": lambda i: ttft_ms(i["s_tokens"], i["tp"]),
    "S9.2-02": lambda _: step_ms(1, 0, 4),
    "S9.2-04": lambda i: one(baselines.request_seconds(column(0.0), i["tpot_ms"], i["n_out"])),
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
        column(pools_gb(tp=4, util=i["util"]) * 1e9), column(sequence_bytes(1280)), column(0), 1.0, column(1))),
    "S9.4-T1": lambda i: plan(tp=i["tp"], at_batch=i["batch"]).tpot_ms or 0.0,
    "S9.4-T4": lambda i: plan(tp=i["tp"], at_batch=i["batch"]).tpot_ms or 0.0,
    "S9.4-T16": lambda i: plan(tp=i["tp"], at_batch=i["batch"]).tpot_ms or 0.0,
    "S9.4-T64": lambda i: plan(tp=i["tp"], at_batch=i["batch"]).tpot_ms or 0.0,
    "S9.4-T128": lambda i: plan(tp=i["tp"], at_batch=i["batch"]).tpot_ms or 0.0,
    "S9.4-01": lambda _: plan(tp=4, at_batch=1).ttft_ms or 0.0,
    "S9.4-05": lambda i: one(sum(total(e, "flops") for e in asking.decode_ledger(at(), i["d_b"], 0, tp=4)
                                 if e.group == "weights") / (i["d_ms"] * 1e-3)) / 1e12,
    "S9.4-06": lambda i: one(roofline.compute_seconds(
        column(prompt_flops(1024) / i["tp"]), constant("prefill_mfu"), accelerator("h100-sxm").peak["bf16"])) * 1e3 / i["n_out"],
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
    "S9.5-C8": lambda _: quotes()["batch_by_latency"].value / (plan(weights="fp8").weights_bytes / plan().weights_bytes),
    # Ascend 910C
    "S9.7-06": lambda _: quotes()["batch_by_latency"].value / slower_910c(),
    "S9.7-07": lambda _: 1 / slower_910c(),
    "S9.7-08": lambda _: 100 * (round(step_ms(1, 0, 4, **PACKAGE)) / round(step_ms(1, 0, 4), 1) - 1),
    "S9.7-01": lambda _: pools_gb(tp=4, gpu="ascend-910c-die", engine="vllm-ascend"),
    "S9.7-02": lambda _: pools_gb(tp=4, gpu="ascend-910c-die", engine="vllm-ascend") / pools_gb(tp=4),
    "S9.7-04": lambda _: plan(tp=4, gpu="ascend-910c-die", engine="vllm-ascend").b_max_kv / plan(tp=4).b_max_kv,
    "S9.7-09": lambda _: step_ms(1, 0, 4, gpu="ascend-910c-die", engine="vllm-ascend"),
}  # fmt: skip
