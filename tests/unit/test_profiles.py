"""Speed profiles: constants, what stands in for what is not timed, and kernels as timed."""

from __future__ import annotations

import csv
import math
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.catalog.fitted_constants import serving
from planner.catalog.kernel_laws import ASSUMED_KINDS, PRECISIONS, TIMED_KINDS
from planner.catalog.profile_records import FOLDER, Serving, kernels, read
from planner.catalog.profiles import measured, profile, profile_laws_as_fitted
from planner.errors import CatalogueError
from planner.specs.accelerator import Accelerator
from planner.specs.profile import Law

GOLDEN = Path(__file__).parents[1] / "golden" / "kernels.csv"
TIMED = tuple(sorted(path.stem.removeprefix("kernels-") for path in FOLDER.glob("kernels-*.toml")))
ENGINES = ("vllm", "sglang", "trtllm", "vllm-ascend")


def accelerator(**changed: object) -> Accelerator:
    """An H100 SXM, with changes."""
    h100 = Accelerator(
        id="h100-sxm",
        name="H100 SXM",
        vendor="NVIDIA",
        memory=80e9,
        visible_memory=None,
        bandwidth=3.35e12,
        peak={"bf16": 989.4e12, "fp8": 1978.9e12, "int8": 1978.9e12},
        scale_up_name="NVLink 4",
        scale_up_bandwidth=450e9,
        scale_up_domain=8,
        scale_out_bandwidth=50e9,
        tdp=700.0,
        unit="GPU",
        release_year=2022,
        sources={},
    )
    return replace(h100, **changed)  # type: ignore[arg-type]


H100 = accelerator()
MI300X = accelerator(
    id="mi300x",
    name="MI300X",
    vendor="AMD",
    bandwidth=5.3e12,
    peak={"bf16": 1307.4e12, "fp8": 2614.9e12, "int8": 2614.9e12},
    scale_up_bandwidth=448e9,
    borrows="h100-sxm",
)


def seconds(law: Law, flops: float, hbm_bytes: float, length: float) -> float:
    """The law, written out by hand."""
    compute = flops / (law.eff_flops * law.peak)
    memory = hbm_bytes / (law.eff_bw * law.bandwidth)
    if law.half_length:
        compute *= 1 + law.half_length / length
    larger, smaller = max(compute, memory), min(compute, memory)
    rise = law.rise * (1 - math.exp(-memory / law.rise_scale))
    return float(law.floor + larger * (1 + (smaller / larger) ** law.p) ** (1 / law.p) + rise)


def timed_cases() -> list[dict[str, str]]:
    """Measured kernels."""
    with GOLDEN.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ratio(case: dict[str, str]) -> float:
    """Predicted over measured time of one kernel."""
    law = profile_laws_as_fitted(case["accelerator"])[case["engine"], case["kind"], case["precision"]]
    predicted = seconds(law, float(case["flops"]), float(case["hbm_bytes"]), float(case["length_tokens"]))
    return predicted / (float(case["measured_us"]) * 1e-6)


EACH = {
    "gemm": 0.25,
    "experts": 0.40,
    "attn_decode": 0.40,
    "mla_decode": 0.50,
    "attn_prefill": 0.25,
    "mla_prefill": 0.25,
}
MEDIAN = {
    "gemm": 0.06,
    "experts": 0.10,
    "attn_decode": 0.08,
    "mla_decode": 0.13,
    "attn_prefill": 0.08,
    "mla_prefill": 0.08,
}


@pytest.mark.parametrize("case", timed_cases(), ids=lambda case: case["case"])
def test_law_predicts_the_timed_kernel(case: dict[str, str]) -> None:
    assert ratio(case) == pytest.approx(1.0, abs=EACH[case["kind"]])


@pytest.mark.parametrize("kind", TIMED_KINDS)
def test_half_of_the_timed_kernels_are_predicted_closely(kind: str) -> None:
    errors = [abs(ratio(case) - 1.0) for case in timed_cases() if case["kind"] == kind]
    assert len(errors) >= 8
    assert statistics.median(errors) <= MEDIAN[kind]


@pytest.mark.parametrize("accelerator_id", TIMED)
def test_records_say_where_they_come_from(accelerator_id: str) -> None:
    table = kernels(accelerator_id)
    assert table.accelerator == accelerator_id
    assert len(table.by_key) == len(table.law)
    assert all(law.source and law.rows and law.tag in ("fitted", "borrowed") for law in table.law)
    assert {law.kind for law in table.law} == set(TIMED_KINDS)
    assert all(len(c.devices) == len(c.alpha_us) == len(c.bus_gb_per_s) for c in table.collective)
    assert all(list(c.devices) == sorted(c.devices) for c in table.collective)
    assert all(law.peak_tflops * 1e12 == table.peaks[law.math] for law in table.law)
    assert len({law.bandwidth_tb_per_s for law in table.law}) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("device", [H100, MI300X], ids=lambda device: device.id)
def test_every_kind_and_precision_is_resolved(device: Accelerator, engine: str) -> None:
    found = profile("measured", device, engine)
    assert set(found.laws) == {(kind, precision) for kind in (*TIMED_KINDS, *ASSUMED_KINDS) for precision in PRECISIONS}
    for law in found.laws.values():
        assert 0 < law.eff_bw <= 1
        assert 0 < law.eff_flops <= 1
        assert law.p >= 1
        assert 0 < law.floor < 300e-6
        assert law.peak > 1e12
        assert law.source


def constant(name: str, engine: str = "vllm") -> float:
    """A serving constant as its file writes it: a value and the factor of an engine, both from the fit."""
    known = serving().constant[name]
    return known.value * known.engine_factor.get(engine, 1.0)


def own_factor(engine: str, kind: str, precision: str, device: str = "h100-sxm") -> float:
    """The factor on one kernel's time; 1 where the fit gave it none."""
    return serving().factors.get((device, engine, kind, precision), 1.0)


def test_serving_constants_replace_and_scale_the_kernel_tables() -> None:
    table = profile_laws_as_fitted("h100-sxm")
    served = profile("measured", H100, "vllm")
    gemm, timed, slow = served.law("gemm", "bf16"), table["vllm", "gemm", "bf16"], own_factor("vllm", "gemm", "bf16")
    assert gemm.floor == pytest.approx(constant("gemm_floor") * 1e-6 * slow)
    assert gemm.eff_bw == pytest.approx(min(1.0, timed.eff_bw * constant("gemm_eff_bw_factor") / slow))
    assert gemm.eff_flops == pytest.approx(min(1.0, timed.eff_flops * constant("gemm_eff_flops_factor") / slow))
    assert (gemm.p, gemm.peak, gemm.bandwidth) == (timed.p, timed.peak, timed.bandwidth)
    experts, timed = served.law("experts", "fp8-block"), table["vllm", "experts", "fp8-block"]
    slow = own_factor("vllm", "experts", "fp8-block")
    assert experts.floor == pytest.approx(timed.floor * constant("experts_floor_factor") * slow)
    attention, timed = served.law("attn_decode", "bf16"), table["vllm", "attn_decode", "bf16"]
    assert attention.floor == pytest.approx(timed.floor * constant("decode_attention_floor_factor"))
    assert attention.eff_bw == pytest.approx(timed.eff_bw * constant("attention_eff_bw_factor"))
    assert served.law("elementwise", "bf16").floor == pytest.approx(constant("elementwise_floor") * 1e-6)
    assert served.law("state", "bf16").floor == pytest.approx(constant("state_floor") * 1e-6)


@pytest.mark.parametrize("engine", ["trtllm", "vllm", "sglang"])
def test_engines_differ(engine: str) -> None:
    found = profile("measured", H100, engine)
    floors = [constant("gemm_floor", engine) * 1e-6 * own_factor(engine, "gemm", p) for p in ("bf16", "fp8-block")]
    assert [found.law("gemm", p).floor for p in ("bf16", "fp8-block")] == pytest.approx(floors)
    assert found.phi == pytest.approx(constant("phi", engine))
    assert found.host_step == pytest.approx(constant("host_step", engine) * 1e-3)
    assert found.host_sequence == pytest.approx(constant("host_sequence", engine) * 1e-6)


def test_what_was_fitted_is_plausible() -> None:
    """Floors of a launch in microseconds, a scheduler's share, host time: what a wrong unit or a lost factor breaks."""
    assert 3.0 < constant("gemm_floor") < 12.0
    assert 0.8 < constant("phi") < 1.2
    assert 0.3 < constant("phi", "sglang") < 0.8
    assert 0.1 < constant("host_step") < 0.6
    assert 5.0 < constant("host_sequence") < 20.0
    assert 30.0 < serving().era[0].host_sequence_us < 90.0
    assert 0.4 < next(each for each in serving().borrower if "mi300x" in each.accelerators).eff_bw_factor < 0.8
    assert all(0.6 < each.factor < 1.7 for each in serving().law_factor)
    assert len(serving().law_factor) > 20


def test_a_kernels_own_factor_stretches_its_whole_time() -> None:
    slower = next(each for each in serving().law_factor if each.factor > 1.02 and each.accelerator == "h100-sxm")
    plain = serving().model_copy(update={"law_factor": ()})
    with_it, without = (measured(H100, slower.engine, None, each) for each in (serving(), plain))
    one, other = (each.law(slower.kind, slower.precision) for each in (with_it, without))
    assert one.floor == pytest.approx(slower.factor * other.floor)
    assert one.eff_bw == pytest.approx(other.eff_bw / slower.factor)
    assert one.eff_flops == pytest.approx(other.eff_flops / slower.factor)


def test_a_profile_is_made_once() -> None:
    assert profile("measured", H100, "vllm") is profile("measured", H100, "vllm")


@pytest.mark.parametrize(
    ("version", "old"),
    [(None, False), ("0.10.2", False), ("0.11.0", True), ("v0.12.0", True), ("0.13.0", False), ("nightly", False)],
)
def test_two_vllm_versions_cost_more(version: str | None, *, old: bool) -> None:
    found, era = profile("measured", H100, "vllm", engine_version=version), serving().era[0]
    assert found.host_sequence == pytest.approx((era.host_sequence_us if old else constant("host_sequence")) * 1e-6)
    assert found.expert_layer_extra == pytest.approx(era.expert_layer_extra[0].value_us * 1e-6 if old else 0.0)


def test_the_version_of_another_engine_costs_nothing() -> None:
    assert profile("measured", H100, "sglang", engine_version="0.11").expert_layer_extra == 0


def test_an_untimed_precision_takes_the_nearest_and_says_so() -> None:
    found = profile("measured", H100, "vllm")
    int8, fp8 = found.law("gemm", "int8"), found.law("gemm", "fp8")
    assert (int8.eff_bw, int8.eff_flops) == (fp8.eff_bw, fp8.eff_flops)
    assert int8.tag == "borrowed"
    assert "no int8 kernel timed" in int8.note


def test_weights_without_matrix_units_compute_at_the_bf16_peak() -> None:
    found = profile("measured", H100, "vllm")
    assert found.law("gemm", "nvfp4").peak == pytest.approx(989e12, rel=1e-3)
    a100 = accelerator(id="a100-80g-sxm", bandwidth=2.039e12, peak={"bf16": 312e12, "int8": 624e12})
    assert {profile("measured", a100, "vllm").law("gemm", p).peak for p in ("fp8", "fp8-block", "nvfp4")} == {312e12}
    b300 = accelerator(id="b300-sxm", bandwidth=7.75e12, peak={"bf16": 2250e12, "fp8": 4500e12, "int8": 153.5e12})
    assert profile("measured", b300, "vllm").law("gemm", "int8").peak == pytest.approx(153.5e12)


def test_a_kernel_of_another_engine_is_named() -> None:
    assert "kernel of trtllm" in profile("measured", H100, "vllm").law("mla_decode", "bf16").note


def test_borrowed_fractions_meet_the_borrowers_own_peaks() -> None:
    own, lent = profile("measured", H100, "vllm"), profile("measured", MI300X, "vllm")
    mine, theirs = own.law("gemm", "fp8"), lent.law("gemm", "fp8")
    assert lent.borrowed_from == "h100-sxm"
    assert theirs.tag == "borrowed"
    assert theirs.peak == MI300X.peak["fp8"]
    assert theirs.bandwidth == MI300X.bandwidth
    assert theirs.eff_flops == mine.eff_flops
    slow = next(each for each in serving().borrower if "mi300x" in each.accelerators).eff_bw_factor
    assert theirs.eff_bw == pytest.approx(slow * mine.eff_bw)
    assert lent.notes
    assert own.borrowed_from is None


def test_borrowed_all_reduce_follows_the_link() -> None:
    own, lent = profile("measured", H100, "vllm").links.all_reduce, profile("measured", MI300X, "vllm").links.all_reduce
    assert lent.tag == "borrowed"
    assert lent.alpha == own.alpha
    assert lent.bus_bandwidth == pytest.approx([0.6 * 448 / 450 * bus for bus in own.bus_bandwidth])


def test_a_pcie_card_does_not_borrow_nvlink() -> None:
    pcie = accelerator(id="h100-pcie", bandwidth=2.0e12, scale_up_bandwidth=63e9, borrows="h100-sxm")
    found = profile("measured", pcie, "vllm").links.all_reduce
    assert max(found.bus_bandwidth) < 63e9
    assert "rtx-pro-6000-server" in found.source


def test_an_unknown_link_is_said_and_widens_the_band() -> None:
    unknown = accelerator(id="new", borrows="h100-sxm", scale_up_bandwidth=None)
    found = profile("measured", unknown, "vllm")
    assert found.band[0] <= 0.4
    assert found.band[1] >= 2.5
    assert any("unknown" in note for note in found.notes)


def test_an_unmeasured_vendor_has_the_widest_band() -> None:
    tpu = accelerator(id="tpu-v5p", vendor="Google", borrows="h100-sxm")
    assert profile("measured", tpu, "vllm").band == (0.4, 4.0)


def test_own_bands() -> None:
    """An engine's band on this accelerator, else its band on any, else that of all; borrowed kernels have wider ones."""
    bands = serving().band
    own = {(each.engine, each.accelerator): (each.low, each.high) for each in bands.own}
    assert profile("measured", H100, "vllm").band == own["vllm", "h100-sxm"]
    l40s = accelerator(id="l40s", bandwidth=0.864e12, peak={"bf16": 362.05e12, "fp8": 733e12}, scale_up_bandwidth=32e9)
    assert profile("measured", l40s, "vllm").band == own["vllm", "any"]
    assert profile("measured", MI300X, "vllm").band == (bands.borrowed_low, bands.borrowed_high)
    mi325x = accelerator(id="mi325x", vendor="AMD", borrows="h100-sxm", scale_up_bandwidth=448e9)
    assert profile("measured", mi325x, "vllm").band == (bands.unseen_low, bands.unseen_high)
    assert bands.unseen_low <= bands.borrowed_low
    assert bands.unseen_high > bands.borrowed_high


def test_graph_mode_all_reduce() -> None:
    timed = next(record for record in kernels("h100-sxm").collective if record.source.endswith("vLLM_custom_graph"))
    (two, _, eight), (slow, _, fast) = timed.alpha_us, timed.bus_gb_per_s
    alpha, bus = profile("measured", H100, "vllm").links.all_reduce.constants(np.array([2.0, 8.0, 64.0]))
    assert alpha == pytest.approx([us * 1e-6 * constant("all_reduce_floor_factor") for us in (two, eight, eight)])
    assert bus == pytest.approx([slow * 1e9, fast * 1e9, fast * 1e9])
    # 256 B over 8 H100 took 4.713 us, 512 B 4.677 and 1 KiB 4.608: no bytes to speak of, so this is alpha alone
    assert eight == pytest.approx(4.7, rel=0.15)


def test_ascend_engine_takes_vllm_constants_and_says_so() -> None:
    found, like = profile("measured", H100, "vllm-ascend"), profile("measured", H100, "vllm")
    assert found.laws == like.laws
    assert any("vllm-ascend" in note for note in found.notes)


def test_textbook_is_the_articles_roofline() -> None:
    found = profile("textbook", H100, "vllm")
    law = found.law("gemm", "fp8")
    assert not found.per_operator
    assert (law.floor, law.eff_bw, law.p) == (0.0, 1.0, math.inf)
    assert law.eff_flops * law.peak == pytest.approx(742e12, rel=2e-4)
    assert (found.host_step, found.host_sequence, found.band) == (0.0, 0.0, (1.0, 1.0))
    alpha, bus = found.links.all_reduce.constants(np.array([1.0, 2.0, 8.0]))
    assert list(alpha) == [0.0, 0.0, 0.0]
    assert list(16384.0 / bus) == [0.0, 0.0, 0.0]


def test_textbook_derates_the_910c() -> None:
    die = accelerator(id="ascend-910c-die", bandwidth=1.6e12, peak={"bf16": 376e12}, borrows="a100-80g-sxm")
    assert profile("textbook", die, "vllm-ascend").law("gemm", "bf16").eff_bw == 0.8


@pytest.mark.parametrize(
    ("profile_id", "device", "engine"),
    [
        ("calibrated", H100, "vllm"),
        ("measured", H100, "triton-server"),
        ("measured", accelerator(id="abacus"), "vllm"),
        ("measured", accelerator(id="abacus", borrows="sliderule"), "vllm"),
        ("textbook", accelerator(id="abacus", peak={}), "vllm"),
    ],
)
def test_what_cannot_be_resolved_is_refused(profile_id: str, device: Accelerator, engine: str) -> None:
    with pytest.raises(CatalogueError):
        profile(profile_id, device, engine)


@pytest.mark.parametrize("text", ["id = ", "id = 'measured'\ndate = '2026-11-30'\n"])
def test_a_faulty_file_is_named(tmp_path: Path, text: str) -> None:
    faulty = tmp_path / "measured.toml"
    faulty.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"measured\.toml"):
        read(faulty, Serving)
    with pytest.raises(CatalogueError, match=r"gone\.toml"):
        read(tmp_path / "gone.toml", Serving)


def test_serving_constants_lie_in_their_ranges() -> None:
    for name, known in serving().constant.items():
        low, high = known.range or (known.value, known.value)
        assert low <= known.value * 1.001, name
        assert known.value <= high * 1.001, name
        assert known.source
