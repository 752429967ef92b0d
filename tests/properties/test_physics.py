"""What must hold of work and seconds whatever the model, accelerator, format and layout."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog.accelerators import accelerator, accelerator_ids
from planner.catalog.engines import engine
from planner.catalog.models import model, model_ids
from planner.physics import attention, kv, roofline
from planner.physics.weights import formats, weight_bytes
from planner.setting import Setting, assemble
from planner.specs.layout import layout
from planner.specs.precision import CACHE, WEIGHTS
from planner.specs.profile import MEASURED, TEXTBOOK, Law, Profile
from planner.specs.scenario import Scenario
from tests.asking import ONE, column, decode_ledger, one, prompt_ledger, setting, step_seconds, total, ttft_seconds

QUICK = settings(max_examples=60, derandomize=True, deadline=None)
MODELS = st.sampled_from(model_ids())
GPUS = st.sampled_from(accelerator_ids())
FORMATS = st.sampled_from(tuple(WEIGHTS))
CACHES = st.sampled_from(tuple(CACHE))
PROFILES = st.sampled_from(("measured", "textbook"))
ENGINES = st.sampled_from(("vllm", "sglang", "trtllm"))
POWERS = st.sampled_from((1, 2, 4, 8, 16, 32))
BATCHES = st.integers(1, 2000)
CONTEXTS = st.integers(1, 200_000)


@cache
def at(
    name: str, gpu: str = "h100-sxm", kind: str = "measured", precision: str = "bf16", cached: str = "bf16"
) -> Setting:
    """A resolved scenario; engines that cannot serve it still have physics."""
    return setting(model=name, gpu=gpu, profile=kind, weights=precision, kv=cached)


def held(name: str, precision: str, tp: int, ep: int = 1, convention: object = MEASURED) -> float:
    spec = model(name)
    kinds = formats(spec, precision, convention)  # type: ignore[arg-type]
    return one(weight_bytes(spec, kinds, layout(tp=tp, ep=ep), 0.0, convention))  # type: ignore[arg-type]


def cached_bytes(name: str, precision: str, tokens: float, tp: int, allocation: kv.Allocation = kv.EXACT) -> float:
    parts = kv.cache_components(model(name), CACHE[precision], MEASURED.index_key_bytes)
    return one(kv.sequence_bytes(parts, column(tokens), column(tp), ONE, ONE, allocation))


# --- memory -----------------------------------------------------------------------------------------------------------


@QUICK
@given(MODELS, FORMATS, POWERS)
def test_shards_hold_at_least_the_whole(name: str, precision: str, tp: int) -> None:
    """Replicated tensors are stored on every rank, never lost."""
    assert held(name, precision, tp) * tp >= held(name, precision, 1) * (1 - 1e-12)


@QUICK
@given(FORMATS, POWERS)
def test_a_model_of_split_tensors_alone_divides_evenly(precision: str, tp: int) -> None:
    assert held("llama-70b-nominal", precision, tp) * tp == pytest.approx(
        held("llama-70b-nominal", precision, 1), rel=1e-12
    )


@QUICK
@given(MODELS, FORMATS, POWERS)
def test_more_ranks_never_hold_more_each(name: str, precision: str, tp: int) -> None:
    assert held(name, precision, 2 * tp) <= held(name, precision, tp)


@QUICK
@given(MODELS, POWERS)
def test_fewer_bits_never_weigh_more(name: str, tp: int) -> None:
    sizes = [held(name, precision, tp, convention=TEXTBOOK) for precision in ("bf16", "fp8", "int4", "nvfp4")]
    assert sizes == sorted(sizes, reverse=True)


@QUICK
@given(MODELS, CACHES, st.integers(1, 300_000), POWERS)
def test_cache_shards_hold_at_least_the_whole(name: str, precision: str, tokens: int, tp: int) -> None:
    assert cached_bytes(name, precision, tokens, tp) * tp >= cached_bytes(name, precision, tokens, 1) * (1 - 1e-12)


@QUICK
@given(MODELS, CACHES, st.integers(1, 300_000))
def test_the_cache_of_a_rank_is_flat_beyond_its_shards(name: str, precision: str, tokens: int) -> None:
    parts = kv.cache_components(model(name), CACHE[precision], MEASURED.index_key_bytes)
    shards = max(part.shards for part in parts)
    assert cached_bytes(name, precision, tokens, shards) == cached_bytes(name, precision, tokens, 4 * shards)


@QUICK
@given(MODELS, CACHES, st.integers(1, 300_000), POWERS)
def test_blocks_never_save_memory(name: str, precision: str, tokens: int, tp: int) -> None:
    blocks = kv.Allocation(16, 8191.0, padded=True)
    assert cached_bytes(name, precision, tokens, tp, blocks) >= cached_bytes(name, precision, tokens, tp)


@QUICK
@given(MODELS, CACHES, st.integers(1, 300_000), st.sampled_from((kv.EXACT, kv.Allocation(16, 8191.0, padded=True))))
def test_longer_sequences_never_take_less(name: str, precision: str, tokens: int, allocation: kv.Allocation) -> None:
    longer = cached_bytes(name, precision, tokens + 1, 1, allocation)
    assert longer >= cached_bytes(name, precision, tokens, 1, allocation)


@QUICK
@given(MODELS, st.integers(1, 300_000))
def test_an_eight_bit_cache_takes_half_of_what_is_not_a_state_or_an_index(name: str, tokens: int) -> None:
    """FP8 latents under a sparse index keep their rotary part in BF16: between half and all."""
    full, half = cached_bytes(name, "bf16", tokens, 1), cached_bytes(name, "fp8", tokens, 1)
    parts = {part.name for part in kv.cache_components(model(name), CACHE["bf16"], MEASURED.index_key_bytes)}
    if parts == {"keys and values"} or parts == {"latent"}:
        assert half == full / 2
    assert full / 2 <= half <= full


# --- work -------------------------------------------------------------------------------------------------------------


@QUICK
@given(MODELS, POWERS, BATCHES, CONTEXTS, PROFILES)
def test_no_work_is_lost_by_splitting_it(name: str, tp: int, batch: int, context: int, kind: str) -> None:
    """Operations and cache reads of all ranks add up to at least those of one."""
    whole, split = (decode_ledger(at(name, kind=kind), batch, context, tp=n) for n in (1, tp))
    for field in ("flops", "hbm_bytes"):
        assert tp * sum(total(e, field) for e in split) >= sum(total(e, field) for e in whole) * (1 - 1e-9)


@QUICK
@given(MODELS, BATCHES, CONTEXTS, PROFILES)
def test_work_is_never_negative_or_unknown(name: str, batch: int, context: int, kind: str) -> None:
    for entry in decode_ledger(at(name, kind=kind), batch, context, tp=4):
        work = entry.work
        for value in (work.flops, work.hbm_bytes, work.launches, work.link_bytes, work.messages, work.length):
            assert np.all(np.isfinite(value))
            assert np.all(value >= 0)


@QUICK
@given(st.integers(1, 100_000), st.integers(0, 100_000), st.sampled_from((float("inf"), 128.0, 2048.0)))
def test_pairs_split_into_chunks(tokens: int, behind: int, limit: float) -> None:
    first = tokens // 2

    def pairs(t: int, b: int) -> float:
        return one(attention.attended_pairs(column(t), column(b), limit, True))

    assert pairs(first, behind) + pairs(tokens - first, behind + first) == pytest.approx(
        pairs(tokens, behind), rel=1e-9
    )


# --- seconds ----------------------------------------------------------------------------------------------------------


@QUICK
@given(MODELS, FORMATS, PROFILES, BATCHES, CONTEXTS, POWERS)
def test_a_larger_batch_never_steps_faster(
    name: str, precision: str, kind: str, batch: int, context: int, tp: int
) -> None:
    at_ = at(name, kind=kind, precision=precision)
    times = step_seconds(at_, [batch, batch + 1, 2 * batch + 1], context, tp=tp)
    assert np.all(np.diff(times) >= -1e-12 * times[0])


@QUICK
@given(MODELS, CACHES, PROFILES, BATCHES, CONTEXTS, POWERS)
def test_a_longer_context_never_steps_faster(
    name: str, cached: str, kind: str, batch: int, context: int, tp: int
) -> None:
    at_ = at(name, kind=kind, cached=cached)
    short, long = (one(step_seconds(at_, batch, c, tp=tp)) for c in (context, 2 * context))
    assert long >= short * (1 - 1e-12)


def faster(found: Profile, memory: float, compute: float) -> Profile:
    """The same constants on a device with more bandwidth or a higher peak."""

    def law(old: Law) -> Law:
        return replace(old, bandwidth=old.bandwidth * memory, peak=old.peak * compute)

    return replace(found, laws={key: law(old) for key, old in found.laws.items()})


@QUICK
@given(MODELS, GPUS, PROFILES, BATCHES, CONTEXTS, st.sampled_from(((2.0, 1.0), (1.0, 2.0), (1.01, 1.01))))
def test_more_bandwidth_or_compute_is_never_slower(
    name: str, gpu: str, kind: str, batch: int, context: int, gain: tuple[float, float]
) -> None:
    at_ = at(name, gpu, kind)
    better = replace(at_, profile=faster(at_.profile, *gain))
    assert one(step_seconds(better, batch, context, tp=4)) <= one(step_seconds(at_, batch, context, tp=4)) * (1 + 1e-12)


@QUICK
@given(GPUS, PROFILES, st.floats(1.0, 4.0))
def test_an_accelerator_with_more_bandwidth_is_never_slower(gpu: str, kind: str, gain: float) -> None:
    """Through the catalogue's own profile, as an accelerator that borrows its constants."""
    device = accelerator(gpu)
    asked, spec = Scenario(model="llama-3.1-8b", gpu=gpu, profile=kind), model("llama-3.1-8b")
    times = []
    for bandwidth in (device.bandwidth, device.bandwidth * gain):
        other = replace(device, id=f"{gpu}-{bandwidth}", bandwidth=bandwidth, borrows=device.borrows or gpu)
        times.append(one(step_seconds(assemble(asked, spec, other, engine("vllm", None, device)), 16, 2000)))
    assert times[1] <= times[0] * (1 + 1e-12)


@QUICK
@given(MODELS, GPUS, PROFILES, st.integers(1, 60_000))
def test_longer_prompts_never_start_sooner(name: str, gpu: str, kind: str, isl: int) -> None:
    short, long = (setting(model=name, gpu=gpu, profile=kind, isl=n) for n in (isl, 2 * isl))
    assert one(ttft_seconds(long)) >= one(ttft_seconds(short)) * (1 - 1e-12)


@QUICK
@given(
    st.floats(0, 1e3),
    st.floats(0, 1e3),
    st.floats(0, 1.0),
    st.sampled_from((1.0, 1.4, 2.0, 4.0, float("inf"))),
    st.floats(0, 10),
)
def test_the_law_grows_with_both_terms_and_lies_between_max_and_sum(
    compute: float, memory: float, floor: float, p: float, more: float
) -> None:
    with np.errstate(all="raise", under="ignore"):
        time = one(roofline.law_seconds(column(compute), column(memory), floor, p))
        larger = one(roofline.law_seconds(column(compute + more), column(memory + more), floor, p))
    slack = 1e-12 * (1 + compute + memory)
    assert floor + max(compute, memory) - slack <= time <= floor + compute + memory + slack
    assert larger >= time - slack


@QUICK
@given(
    st.sampled_from(("llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3", "qwen3-next-80b-a3b")),
    GPUS,
    FORMATS,
    PROFILES,
    ENGINES,
)
def test_nothing_runs_faster_than_the_device(name: str, gpu: str, precision: str, kind: str, served_by: str) -> None:
    """A prompt stays under the dense peak of its format (BF16's where that is higher), a step under the bandwidth."""
    at_ = setting(model=name, gpu=gpu, profile=kind, weights=precision, engine=served_by, isl=8192)
    device = at_.gpu
    known = [device.peak.get(p, 0.0) for p in (WEIGHTS[precision].math, "bf16", "fp16")]
    prompt = prompt_ledger(at_, 8192)
    computed = sum(total(e, "flops") for e in prompt) / one(roofline.pass_seconds(prompt, at_.profile))
    assert computed <= max(*known, device.peak.get("fp8", 0.0) / 2) * (1 + 1e-9)
    step = decode_ledger(at_, 1, 4000)
    moved = sum(total(e, "hbm_bytes") for e in step) / one(roofline.pass_seconds(step, at_.profile))
    assert moved <= device.bandwidth * (1 + 1e-9)


@QUICK
@given(MODELS, PROFILES, CONTEXTS)
def test_a_table_of_steps_is_its_lone_steps(name: str, kind: str, context: int) -> None:
    batches = [1, 7, 64, 513]
    together = step_seconds(at(name, kind=kind), batches, context, tp=4)
    alone = [one(step_seconds(at(name, kind=kind), b, context, tp=4)) for b in batches]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
