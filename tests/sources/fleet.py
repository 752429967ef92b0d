"""The numbers of the serving article that take several accelerators: sections 4, 5, 7, 9.6 and 10."""

from __future__ import annotations

import math
from collections.abc import Callable

from planner.catalog.accelerators import accelerator
from planner.catalog.article import constant, quotes
from planner.catalog.models import model
from planner.physics import comms, roofline
from planner.serving import baselines, decode
from tests import asking
from tests.asking import column, one, setting, token_bytes, total
from tests.sources.asked import (
    Inputs,
    all_reduced_bytes,
    cached_share,
    fitted_tpot_ms,
    plan,
    read_gb,
    read_ms,
    sequence_bytes,
    step_ms,
    stored_gb,
    verified_up_to,
)  # fmt: skip

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


MEASURES: dict[str, Callable[[Inputs], float]] = {
    # disaggregation
    "S4.2-01": quoted("goodput_gain"), "S4.2-02": quoted("attainment"), "S4.2-03": quoted("transfer_share"),
    "S4.3-01": lambda _: token_bytes(LLAMA),
    "S4.3-02": lambda i: sequence_bytes(i["s_tokens"]) / 1e9,
    "S4.3-04": lambda _: (accelerator("h100-sxm").scale_out_bandwidth or 0) / 1e9,
    "S4.3-07": lambda i: 100 * one(baselines.time_saved(column(i["before_s"]), i["after_s"])),
    "S4.3-08": lambda i: sequence_bytes(i["tokens"], name="llama-3.1-8b") / i["t_s"] / 1e9,
    "S4.3-09": lambda _: (accelerator("h100-sxm").scale_out_bandwidth or 0) * constant("transfer_high") / 1e9,
    # speculation
    "S5.2-04": lambda _: stored_gb("llama-2-7b", "bf16") / stored_gb(LLAMA, "bf16"),
    "S5.4-02": lambda i: verified_up_to(i["gamma"] + 1),
    "S9.6-01": lambda _: fitted_tpot_ms(4, 4),
    "S9.6-02": lambda _: 3.6 / constant("speculation_overhead"),
    # tensor, pipeline and context parallel
    "S7.1-01": lambda i: plan(tp=i["n"]).weights_bytes / 1e9,
    "S7.1-02": lambda _: step_ms(1, 0, 4),
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
    "S10.1-06": lambda _: stored_gb(DEEPSEEK, "fp8", tp=4, dp=32, ep=128),
    "S10.1-07": lambda _: stored_gb(DEEPSEEK, "fp8", tp=1, dp=128, ep=128),
    "S10.1-09": quoted("decode_ranks"),
    "S10.2-02": quoted("all_to_all"),
    "S10.2-04": lambda _: cached_share(LLAMA, 8),
    "S10.2-05": lambda i: one(decode.rank_batch(column(10.0 * i["dp"]), i["dp"])) / (10.0 * i["dp"]),
    "S10.2-08": lambda i: ring_bytes(i["tokens"] * i["hidden"] * i["bytes_B"], i["n"]) / 1e6,
    "S10.3-01": lambda i: i["tp"] * cached_share(DEEPSEEK, i["tp"]),
    "S10.3-02": lambda _: token_bytes(DEEPSEEK) / 1e3,
    "S10.3-03": lambda _: cached_share(DEEPSEEK, 4, 4),
    "S10.4-01": quoted("micro_batches"), "S10.4-03": quoted("deepep_gb200"), "S10.4-04": quoted("all_to_all_910c"),
    "S10.5-01": lambda i: plan(tp=i["tp"]).weights_bytes / 1e9,
    "S10.5-02": lambda _: step_ms(1, 0, 2),
    "S10.5-03": lambda _: stored_gb(MIXTRAL, "bf16"),
    "S10.5-04": lambda i: read_gb(MIXTRAL, "bf16", 1, tp=i["tp"]),
    "S10.5-05": lambda i: step_ms(1, 0, i["tp"], model=MIXTRAL),
    "S10.5-09": lambda _: cached_share(MIXTRAL, 2),
    "S10.5-10": lambda _: math.ceil(stored_gb(DEEPSEEK, "fp8") * 1e9 / accelerator("h100-sxm").memory),
    "S10.6-01": lambda _: stored_gb(MIXTRAL, "bf16"),
    "S10.6-04": lambda _: accelerator("ascend-910c-package").scale_up_domain or 0,
    "S10.7-02": lambda i: plan(model=DEEPSEEK, gpu="h200-sxm", weights="fp8", tp=i["n"]).weights_bytes / 1e9,
}  # fmt: skip
