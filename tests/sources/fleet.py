"""The numbers of the serving article that take several accelerators: sections 4, 5, 7, 9.6 and 10."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from planner.catalog.accelerators import accelerator
from planner.catalog.article import constant, quotes
from planner.catalog.models import model
from planner.physics import comms, passes, roofline
from planner.physics.forward import forward
from planner.physics.weights import experts_per_rank
from planner.serving import baselines, decode, disagg, speculative
from tests import asking
from tests.asking import column, one, setting, token_bytes, total
from tests.sources.asked import (
    Inputs,
    all_reduced_bytes,
    at,
    cached_share,
    fitted_tpot_ms,
    plan,
    read_gb,
    read_ms,
    sequence_bytes,
    step_ms,
    stored_gb,
    ttft_ms,
    verified_up_to,
)  # fmt: skip

ANY = {"topk": 8, "hidden": 7168}
DECODING = {"tp": 4, "dp": 32, "ep": 128}
LLAMA, DEEPSEEK, MIXTRAL = "llama-70b-nominal", "deepseek-v3", "mixtral-8x7b"


def quoted(name: str) -> Callable[[Inputs], float]:
    return lambda _: quotes()[name].value


def all_reduce_seconds(traffic: float, ranks: float, alpha: float, bandwidth: float) -> float:
    return one(roofline.collective_seconds(column(traffic), column(ranks), column(alpha), column(bandwidth)))


def ring_bytes(size: float, ranks: float) -> float:
    return one(comms.all_reduce_traffic(column(size), column(ranks)))


def long_prompt_share(case: Inputs) -> float:
    """Causal operations of a prompt of a million tokens, over what the GPUs can do in the time that is quoted."""
    ledger = asking.prompt_ledger(setting(model="llama-3.1-405b"), case["s_tokens"])
    peak = case["gpus"] * case["peak_TFLOPS"] * 1e12 * case["t_s"]
    return sum(total(e, "flops") for e in ledger) / peak


def expected(accept: float, drafted: float) -> float:
    return one(speculative.expected_tokens(column(accept), column(drafted)))


def speedup(accept: float, drafted: float, cost: float) -> float:
    """At small batches, where a verification costs what a step costs."""
    return one(speculative.small_batch_speedup(column(accept), column(drafted), column(cost)))


def sped_up(step: float, tokens: float, drafted: float = 0.0, cost: float = 0.0) -> float:
    """Time a token where one verification as long as a step yields so many tokens."""
    return one(speculative.verified_seconds(column(step), column(step), drafted, cost, column(tokens)))


def with_speedup(case: Inputs) -> float:
    return sped_up(case["tpot_ms"], case["speedup"])


def roofline_speedup(case: Inputs, tp: int) -> float:
    """Speed-up with the verification priced as a pass of its own, at 1,152 tokens of context."""
    at_tp = at(tp=tp)
    verify = passes.decode_pass(column(case["batch"]), column(1152.0), column(case["gamma"] + 1.0))
    step = asking.step_seconds(at_tp, case["batch"], 1152, tp=tp)
    verification = roofline.pass_seconds(forward(asking.placed(at_tp, tp=tp), verify), at_tp.profile)
    draft = speculative.Draft(case["gamma"], case["alpha"], case["c"])
    return one(step / speculative.speculative_seconds(step, np.ravel(verification), draft))


def transfer_seconds(tokens: float) -> float:
    """A prompt's cache over one network card at its peak."""
    link = accelerator("h100-sxm").scale_out_bandwidth or 0.0
    return one(disagg.kv_transfer_seconds(column(sequence_bytes(tokens)), column(1.0), link, 1.0, 0.0))


def exchanged(tokens: float, case: Inputs, element_bytes: float) -> float:
    return one(comms.exchange_bytes(column(tokens), case["topk"], case["hidden"], element_bytes))


def reduced_over_exchanged(case: Inputs) -> float:
    """All-reduce bytes of a group over dispatch and combine bytes that leave a rank."""
    own = case["tokens"] / case["n"]
    moved = exchanged(own, case, case["disp_bytes"]) + exchanged(own, case, case["comb_bytes"])
    leaving = one(comms.gather_traffic(column(moved), column(case["n"])))
    return ring_bytes(case["tokens"] * case["hidden"] * case["ar_bytes"], case["n"]) / leaving


def lone_token_ms(case: Inputs) -> float:
    """DeepSeek-V3 on 128 ranks: the slowest rank's read, two exchanges an expert layer, two all-reduces a layer."""
    read = read_gb(DEEPSEEK, "fp8", 1 / 32, **DECODING) / (accelerator("h100-sxm").bandwidth / 1e9)
    exchanges = 2 * case["moe_layers"] * one(roofline.exchange_seconds(column(0.0), column(case["a2a_us"] * 1e-6), 1.0))
    reductions = 2 * case["layers"] * all_reduce_seconds(0.0, 4, case["ar_us"] * 1e-6, math.inf)
    return 1e3 * (read + exchanges + reductions)


MEASURES: dict[str, Callable[[Inputs], float]] = {
    # disaggregation
    "S4.2-01": quoted("goodput_gain"), "S4.2-02": quoted("attainment"), "S4.2-03": quoted("transfer_share"),
    "S4.3-01": lambda _: token_bytes(LLAMA),
    "S4.3-02": lambda i: sequence_bytes(i["s_tokens"]) / 1e9,
    "S4.3-04": lambda _: (accelerator("h100-sxm").scale_out_bandwidth or 0) / 1e9,
    "S4.3-06": lambda i: transfer_seconds(i["s_tokens"]) / (ttft_ms(i["s_tokens"], i["tp"]) / 1e3),
    "S4.3-07": lambda i: 100 * one(baselines.time_saved(column(i["before_s"]), i["after_s"])),
    "S4.3-08": lambda i: sequence_bytes(i["tokens"], name="llama-3.1-8b") / i["t_s"] / 1e9,
    "S4.3-09": lambda _: (accelerator("h100-sxm").scale_out_bandwidth or 0) * constant("transfer_high") / 1e9,
    # speculation
    "S5.1-01": lambda i: expected(1.0, i["accepted"]),
    "S5.2-01": lambda i: expected(i["alpha"], i["gamma"]) * (1 - i["alpha"]),
    "S5.2-02": lambda i: expected(i["alpha"], i["gamma"]) * (1 - i["alpha"]) / speedup(i["alpha"], i["gamma"], i["c"]),
    "S5.2-03": lambda i: speedup(i["alpha"], i["gamma"], i["c"]),
    "S5.2-04": lambda _: stored_gb("llama-2-7b", "bf16") / stored_gb(LLAMA, "bf16"),
    "S5.3-01": lambda i: 1 / sped_up(1.0, i["accept_len"], i["gamma"], i["c"]),
    "S5.3-02": lambda i: expected(i["alpha"], i["gamma"]),
    "S5.3-03": lambda i: 1 / sped_up(i["overhead"], i["accept_len"]),
    "S5.3-04": lambda i: speedup(1.0, i["gamma"], i["c"]),
    "S5.4-02": lambda i: verified_up_to(i["gamma"] + 1),
    "S5.4-03": lambda i: roofline_speedup(i, 1), "S5.4-04": lambda i: roofline_speedup(i, 1),
    "S9.6-S4": lambda i: roofline_speedup(i, 4), "S9.6-S16": lambda i: roofline_speedup(i, 4),
    "S9.6-S64": lambda i: roofline_speedup(i, 4), "S9.6-S128": lambda i: roofline_speedup(i, 4),
    "S9.6-E1": with_speedup, "S9.6-E4": with_speedup, "S9.6-E16": with_speedup, "S9.6-E64": with_speedup,
    "S9.6-E128": with_speedup,
    "S9.6-01": lambda _: fitted_tpot_ms(4, 4),
    "S9.6-02": lambda _: 3.6 / constant("speculation_overhead"),
    # tensor, pipeline and context parallel
    "S7.1-01": lambda i: plan(tp=i["n"]).weights_bytes / 1e9,
    "S7.1-02": lambda _: step_ms(1, 0, 4),
    "S7.1-03": lambda i: step_ms(1, 0, pp=i["stages"]),
    "S7.1-04": lambda _: (accelerator("h100-sxm").scale_up_bandwidth or 0) * constant("link_efficiency") / 1e9
    / quotes()["all_reduce_910c"].value,
    "S7.1-05": lambda i: all_reduced_bytes(i["batch"], 2)[0] / 1024,
    "S7.1-06": lambda i: all_reduced_bytes(i["tokens"], i["tp"], prompt=True)[1] / 80 / 1e6,
    "S7.1-07": lambda i: all_reduce_seconds(i["vol_MB"] * 1e6, 4, 0.0, i["bw_GBps"] * 1e9) * 1e3,
    "S7.1-08": lambda i: model(LLAMA).layers * all_reduce_seconds(0.0, 4, i["per_layer_ms"], math.inf) / i["tpot_ms"],
    "S7.1-09": lambda i: plan(tp=i["tp"]).weights_bytes / 1e9,
    "S7.1-10": lambda i: read_ms(i["w_GB"], "ascend-910c-package"),
    "S7.1-11": lambda i: ring_bytes(1.0, i["n2"]) / ring_bytes(1.0, i["n1"]),
    "S7.2-01": lambda _: stored_gb("llama-2-7b", "bf16"),
    "S7.2-02": lambda _: stored_gb(LLAMA, "bf16"),
    "S7.2-03": lambda _: stored_gb(LLAMA, "fp8"),
    "S7.2-04": lambda _: stored_gb("llama-3.1-405b", "fp8"),
    "S7.2-05": lambda _: stored_gb(MIXTRAL, "bf16"),
    "S7.2-06": lambda i: stored_gb("llama-3.1-405b", "fp8", tp=i["tp"]),
    "S7.3-01": lambda _: cached_share(DEEPSEEK, 8, 8),
    "S7.3-03": quoted("context_parallel"),
    "S7.3-04": long_prompt_share,
    # experts
    "S10-02": lambda _: (model(DEEPSEEK).active_params - model(DEEPSEEK).embed_params) / 1e9,
    "S10.1-02": lambda i: stored_gb(DEEPSEEK, "bf16", tp=i["tp"]),
    "S10.1-03": lambda i: stored_gb(DEEPSEEK, "bf16", tp=i["tp"]),
    "S10.1-04": lambda i: one(experts_per_rank(i["experts"], 0, column(i["ep"]))),
    "S10.1-06": lambda _: stored_gb(DEEPSEEK, "fp8", **DECODING),
    "S10.1-07": lambda _: stored_gb(DEEPSEEK, "fp8", tp=1, dp=128, ep=128),
    "S10.1-09": quoted("decode_ranks"),
    "S10.2-02": quoted("all_to_all"),
    "S10.2-03": reduced_over_exchanged,
    "S10.2-04": lambda _: cached_share(LLAMA, 8),
    "S10.2-05": lambda i: one(decode.rank_batch(column(10.0 * i["dp"]), i["dp"])) / (10.0 * i["dp"]),
    "S10.2-08": lambda i: ring_bytes(i["tokens"] * i["hidden"] * i["bytes_B"], i["n"]) / 1e6,
    "S10.3-01": lambda i: i["tp"] * cached_share(DEEPSEEK, i["tp"]),
    "S10.3-02": lambda _: token_bytes(DEEPSEEK) / 1e3,
    "S10.3-03": lambda _: cached_share(DEEPSEEK, 4, 4),
    "S10.4-01": quoted("micro_batches"), "S10.4-03": quoted("deepep_gb200"), "S10.4-04": quoted("all_to_all_910c"),
    "S10.4-05": lambda i: one(roofline.exchange_seconds(
        column(exchanged(i["batch_local"], i, i["bytes_B"])), column(0.0), i["bw_GBps"] * 1e9)) * 1e6,
    "S10.4-06": lambda i: exchanged(1 / i["b"], ANY, 1.0) / exchanged(1 / i["a"], ANY, 1.0),
    "S10.5-01": lambda i: plan(tp=i["tp"]).weights_bytes / 1e9,
    "S10.5-02": lambda _: step_ms(1, 0, 2),
    "S10.5-03": lambda _: stored_gb(MIXTRAL, "bf16"),
    "S10.5-04": lambda i: read_gb(MIXTRAL, "bf16", 1, tp=i["tp"]),
    "S10.5-05": lambda i: step_ms(1, 0, i["tp"], model=MIXTRAL),
    "S10.5-06": lambda _: read_gb(DEEPSEEK, "fp8", 1024, **DECODING),
    "S10.5-07": lone_token_ms,
    "S10.5-09": lambda _: cached_share(MIXTRAL, 2),
    "S10.5-10": lambda _: math.ceil(stored_gb(DEEPSEEK, "fp8") * 1e9 / accelerator("h100-sxm").memory),
    "S10.6-01": lambda _: stored_gb(MIXTRAL, "bf16"),
    "S10.6-04": lambda _: accelerator("ascend-910c-package").scale_up_domain or 0,
    "S10.7-02": lambda i: plan(model=DEEPSEEK, gpu="h200-sxm", weights="fp8", tp=i["n"]).weights_bytes / 1e9,
}  # fmt: skip
