"""Rules on mixtures of experts and latent attention: how experts and cache are spread, and what a batch touches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.advise.advice import CEILING, Advice, Numbers, up_to
from planner.advise.caches import latent
from planner.advise.degrees import by_degree
from planner.catalog.accelerators import accelerator
from planner.physics.ffn import distinct_experts
from planner.physics.tiles import expected_tiles, tile_fill, tokens_per_expert
from planner.plan import Plan
from planner.serving import decode
from planner.setting import resolve
from planner.specs.model import ExpertFFN
from planner.specs.scenario import Scenario
from planner.units import gigabytes, show, whole
from planner.variants import Outcome, applicable, changed, outcome, refused, tpots, untimed

TILE = 64
"""Rows of one matrix instruction on tensor cores (m64n8k32): tokens of an expert where tokens are the rows."""


def _experts(s: Scenario) -> ExpertFFN | None:
    """The routed experts of the model's layers; None for a dense model."""
    found = (group.ffn for group in resolve(s).model.groups)
    return next((ffn for ffn in found if isinstance(ffn, ExpertFFN)), None)


def _alone(s: Scenario) -> Outcome:
    """The plan on one device."""
    return by_degree(s)[1]


def experts_on_one(s: Scenario, _plan: Plan) -> Advice | None:
    """Article 10.6, first branch: a mixture that fits one device needs no expert parallelism. Checked with its real size."""
    if _experts(s) is None or not (alone := _alone(s)).fits:
        return None
    numbers: Numbers = (
        ("weights", alone.weights_bytes, "bytes"),
        ("usable", alone.usable_bytes, "bytes"),
        ("held", alone.b_max_kv, "sequences"),
    )
    text = (
        f"All experts fit one GPU ({gigabytes(alone.weights_bytes)} of {gigabytes(alone.usable_bytes)}, cache for "
        f"{show(alone.b_max_kv, 'requests')}): expert parallelism is not needed, TP shortens TPOT."
    )
    return Advice("experts_on_one", "advice", text, numbers, "10.6")


def experts_in_one_domain(s: Scenario, _plan: Plan) -> Advice | None:
    """Article 10.6 has no branch between one device and many. Says which TP alone carries the model inside one domain."""
    if _experts(s) is None or _alone(s).fits:
        return None
    fitting = [tp for tp, each in by_degree(s).items() if each.fits and each.engine_ok]
    if not fitting:
        return None
    first = by_degree(s)[fitting[0]]
    alone, domain = _alone(s), accelerator(s.gpu).scale_up_domain
    numbers: Numbers = (
        ("weights", alone.weights_bytes, "bytes"),
        ("tp", float(fitting[0]), ""),
        ("weights_per_gpu", first.weights_bytes, "bytes"),
        ("held", first.b_max_kv, "sequences"),
    )
    inside = f", inside one domain of {domain}" if domain is not None and fitting[0] <= domain else ""
    text = (
        f"{gigabytes(alone.weights_bytes)} of weights exceed one GPU, yet tp={fitting[0]} alone holds them"
        f"{inside}: {gigabytes(first.weights_bytes)} per GPU, cache for {show(first.b_max_kv, 'requests')}. "
        f"Expert parallelism is a matter of speed here, not of fitting."
    )
    return Advice("experts_in_one_domain", "advice", text, numbers, "10.6, 10.7")


@dataclass(frozen=True)
class Spread:
    """One replica's devices used as TP+EP (tp = ep = n) and as DP+EP (dp = ep = n)."""

    tensor: Scenario
    data: Scenario
    devices: int


@lru_cache(maxsize=256)
def spread(s: Scenario) -> Spread | None:
    """Both spreads of a replica; None for dense models, lone devices and layouts that mix more."""
    devices = s.tp * s.dp
    if _experts(s) is None or devices == 1 or s.pp > 1 or s.cp > 1:
        return None
    plain = {"dcp": 1, "ep": devices}
    tensor, data = (changed(s, {**plain, "tp": tp, "dp": dp}) for tp, dp in ((devices, 1), (1, devices)))
    return None if tensor is None or data is None else Spread(tensor, data, devices)


@lru_cache(maxsize=256)
def data_parallel_from(s: Scenario) -> float | None:
    """Largest batch at which TP+EP has the shorter TPOT; None where either has no speed."""
    both = spread(s)
    if both is None or outcome(both.tensor).tpot_ms is None or outcome(both.data).tpot_ms is None:
        return None
    return _data_parallel_from(Spread(untimed(both.tensor), untimed(both.data), both.devices))


@lru_cache(maxsize=256)
def _data_parallel_from(both: Spread) -> float:
    """The same, remembered under what the clock looks at."""

    def keeps(batch: np.ndarray) -> np.ndarray:
        return np.asarray(tpots(both.tensor, batch) < tpots(both.data, batch))

    return float(decode.largest_batch(keeps, (1, 1), CEILING)[0, 0])


def _held(both: Spread) -> str:
    """What both spreads hold, as a sentence."""
    tensor, data = outcome(both.tensor).b_max_kv, outcome(both.data).b_max_kv
    return f"The cache holds {show(tensor, 'requests')} with tp={both.devices} and {whole(data)} with dp={both.devices}"


def tp_ep_at_low_batch(s: Scenario, plan: Plan) -> Advice | None:
    """Article 10.6: few requests want TP+EP. Fires while the batch that runs is below the batch where DP+EP overtakes."""
    both, limit = spread(s), data_parallel_from(s)
    if both is None or limit is None or plan.batch > limit or plan.tpot_ms is None or plan.batch < 1:
        return None
    if refused(outcome(both.tensor)) or refused(outcome(both.data)):
        return None
    at = np.full((1, 1), float(plan.batch))
    tensor, data = float(tpots(both.tensor, at)[0, 0]), float(tpots(both.data, at)[0, 0])
    numbers: Numbers = (("tpot_tp", tensor, "ms"), ("tpot_dp", data, "ms"), ("crossover", limit, "sequences"))
    text = (
        f"At {show(plan.batch, 'requests')} TP+EP is faster on {both.devices} GPUs: TPOT {show(tensor, 'ms')} against "
        f"{show(data, 'ms')} with DP+EP; it stays so {up_to(limit, plan)}."
    )
    change = {"tp": both.devices, "dp": 1, "ep": both.devices}
    return Advice("tp_ep_at_low_batch", "advice", text, numbers, "10.6", applicable(s, change))


def dp_ep_at_high_batch(s: Scenario, _plan: Plan) -> Advice | None:
    """Article 10.6: many requests want DP+EP. Says what it holds and yields; the cache argument is void for grouped heads."""
    both = spread(s)
    if both is None or s.tp == 1:
        return None
    tensor, data = outcome(both.tensor), outcome(both.data)
    if not tensor.b_max_kv or not data.b_max_kv or not data.engine_ok or not data.fits or _late(data):
        return None
    if data.tpot_ms is not None and (data.goodput_tok_s_gpu or 0.0) <= (tensor.goodput_tok_s_gpu or 0.0):
        return None
    numbers: Numbers = (("held_tp", tensor.b_max_kv, "sequences"), ("held_dp", data.b_max_kv, "sequences"))
    if data.tpot_ms is None:
        yields = f" What DP+EP yields is not known here ({data.reason})." if data.reason else ""
    else:
        numbers = (
            *numbers,
            ("good_tp", tensor.goodput_tok_s_gpu or 0.0, "tok/s per GPU"),
            ("good_dp", data.goodput_tok_s_gpu or 0.0, "tok/s per GPU"),
        )
        good, less = show(data.goodput_tok_s_gpu, "tok/s"), show(tensor.goodput_tok_s_gpu, "tok/s")
        than = f", TP+EP {less}" if tensor.goodput_tok_s_gpu else ""
        yields = f" DP+EP yields {good} of good tokens per GPU{than}."
    void = (
        ""
        if latent(s) or both.devices > _kv_shards(s)
        else "; grouped heads divide under TP too, so the cache is no reason"
    )
    change = {"tp": 1, "dp": both.devices, "ep": both.devices}
    return Advice(
        "dp_ep_at_high_batch", "advice", f"{_held(both)}{void}.{yields}", numbers, "10.6", applicable(s, change)
    )


def _late(found: Outcome) -> bool:
    """Whether the speed of a plan is known and breaks the SLA: then it yields nothing to be compared."""
    return found.ttft_ms is not None and not found.stands


def _kv_shards(s: Scenario) -> int:
    """Ways in which heads divide the cache."""
    return min((part.shards for part in resolve(s).cache if part.token_bytes), default=1)


def experts_beyond_domain(s: Scenario, _plan: Plan) -> Advice | None:
    """Article 10.6: beyond 384 cards a special fabric. What decides is whether the expert group leaves its scale-up domain."""
    gpu = accelerator(s.gpu)
    if _experts(s) is None or s.ep == 1 or gpu.scale_up_domain is None or s.ep <= gpu.scale_up_domain:
        return None
    nic, inside = gpu.scale_out_bandwidth, gpu.scale_up_bandwidth
    slower = f", {show(inside / nic)} times slower" if nic and inside else ""
    numbers: Numbers = (
        ("ep", float(s.ep), ""),
        ("domain", float(gpu.scale_up_domain), ""),
        ("slower", inside / nic if nic and inside else 0.0, ""),
    )
    text = (
        f"ep={s.ep} leaves the scale-up domain of {gpu.scale_up_domain} × {gpu.name}: tokens travel to experts over the NIC"
        f"{slower}. A larger domain or a smaller group keeps them inside."
    )
    return Advice("experts_beyond_domain", "warning", text, numbers, "10.6")


def expert_tiles(s: Scenario, plan: Plan) -> Advice | None:
    """On batch intensity: 2,048 tokens fill m64 for every expert. Says how many tokens an expert gets here, and what is read."""
    ffn = _experts(s)
    if ffn is None or plan.tpot_ms is None:
        return None
    mean = mean_tokens(plan.batch, ffn.top_k, ffn.count)
    hit = float(distinct_experts(ffn.count, ffn.top_k, np.asarray(float(plan.batch))))
    fill = fill_of(plan.batch, ffn.top_k, ffn.count)
    wanted = TILE * ffn.count / ffn.top_k
    bound = next((each.bound_by for each in plan.ledger if each.operator == "experts"), "memory")
    numbers: Numbers = (
        ("tokens", mean, "tokens"),
        ("fill", fill, ""),
        ("distinct", hit, "experts"),
        ("fills_tile", wanted, "tokens"),
    )
    costs = (
        "padding costs no time while experts are bound by memory" if bound != "compute" else "padding costs time here"
    )
    text = (
        f"{show(plan.batch, 'requests')} of the whole replica give an expert {show(mean)} tokens on average and touch "
        f"{show(hit)} of {ffn.count} experts a layer; tiles of {TILE} rows are {show(fill, '%')} full ({whole(wanted)} tokens "
        f"would fill them on average), {costs}."
    )
    return Advice("expert_tiles", "advice", text, numbers, "batch intensity")


def fill_of(tokens: int, top_k: int, count: int) -> float:
    """Share of tile rows that hold a token when experts are drawn evenly and independently."""
    tiles = expected_tiles(np.asarray(float(tokens)), np.asarray(top_k / count), np.asarray(float(TILE)))
    return float(tile_fill(np.asarray(mean_tokens(tokens, top_k, count)), np.asarray(float(TILE)), tiles))


def mean_tokens(tokens: int, top_k: int, count: int) -> float:
    """Mean tokens that one routed expert of a layer gets in a step."""
    return float(tokens_per_expert(np.asarray(float(tokens)), np.asarray(float(top_k)), np.asarray(float(count))))
