"""A benchmark of one's own moves the plan: how far, for what, and what is refused instead."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner import calibrate, from_link, to_link
from planner.arithmetic import arithmetic
from planner.calibrate.benchmarked import benchmarked, same_model
from planner.calibrate.constants import Constants, Parts, constants_of, loads_among, parts_of, retimed_setting, tpot_of
from planner.calibrate.correction import correction
from planner.calibrate.report import fit_text, understood_text
from planner.catalog.calibrated import band_after, calibrated
from planner.catalog.calibration import correction_in, encode_calibration
from planner.errors import InputError
from planner.export import from_csv, from_json, to_csv, to_json
from planner.logs.readings import Benchmark, Point, Understood
from planner.optimise.question import Question
from planner.optimise.search import optimise
from planner.optimise.sensitivity import swings
from planner.setting import reclocked, resolve
from planner.single import plan_of, plan_setting
from planner.specs.profile import Profile
from planner.specs.scenario import Scenario
from planner.variants import outcome

BASE = Scenario(model="llama-3.1-70b", gpu="h100-sxm", weights="fp8", tp=4, isl=2048, osl=256, sla_ttft_ms=2000.0)
LOADS = (2, 16, 64)


def predicted(scenario: Scenario, batch: int, **lengths: int) -> float:
    """TPOT of the plan at a batch [ms]."""
    found = outcome(scenario.with_(at_batch=batch, **lengths)).tpot_ms
    assert found is not None
    return found


def under(batch: int, change: Any, scenario: Scenario = BASE) -> float:
    """TPOT at a batch under law constants that were changed by hand [ms]."""
    found = plan_setting(reclocked(resolve(scenario.with_(at_batch=batch)), change)).tpot_ms
    assert found is not None
    return found


def points(factor: float = 1.0, extra_ms: float = 0.0, loads: tuple[int, ...] = LOADS) -> list[Point]:
    """Measured points that are the plan's own TPOT times a factor and some milliseconds more."""
    return [Point(concurrency=b, isl=2048, osl=256, tpot_ms=predicted(BASE, b) * factor + extra_ms) for b in loads]


def fault(scenario: Scenario, measured: list[Point]) -> str:
    with pytest.raises(InputError) as caught:
        correction(scenario, measured)
    return str(caught.value)


# --- what is fitted ----------------------------------------------------------------------------------


def test_one_point_gives_a_scale_and_nothing_else() -> None:
    fit = correction(BASE, points(1.3, loads=(16,)))
    made = fit.correction
    assert (made.scale, made.host_step, made.interference, made.ttft) == (pytest.approx(1.3, rel=1e-4), 0.0, 1.0, 1.0)
    assert (made.before, made.after) == (pytest.approx(0.3 / 1.3, rel=1e-3), pytest.approx(0.0, abs=1e-4))
    assert predicted(fit.scenario, 64) == pytest.approx(1.3 * predicted(BASE, 64), rel=1e-4)


def test_two_points_give_the_geometric_mean_of_their_ratios() -> None:
    measured = [*points(1.2, loads=(8,)), *points(1.5, loads=(32,))]
    assert correction(BASE, measured).correction.scale == pytest.approx((1.2 * 1.5) ** 0.5, rel=1e-4)


def test_a_load_measured_three_times_is_still_one_load() -> None:
    made = correction(BASE, points(1.3, loads=(16, 16, 16))).correction
    assert (made.host_step, made.interference, made.points) == (0.0, 1.0, 3)
    assert made.band == band_after(1)


def test_three_points_tell_scale_host_time_and_interference_apart() -> None:
    def machine(profile: Profile) -> Profile:
        """Every kernel 10 % slower, 2 ms more a step, half as much again of others' prefill."""
        more = profile.host_step + 2e-3 / 1.1
        return replace(
            profile, scale=1.1, host_step=more, phi=profile.phi * 1.5, host_sequence=profile.host_sequence * 1.5
        )

    measured = [Point(concurrency=b, tpot_ms=under(b, machine)) for b in (1, 8, 24, 48, 96)]
    fit = correction(BASE, measured)
    # A step of 11 ms hides half a millisecond of host time in its scale, so the two trade places a little.
    assert fit.correction.scale == pytest.approx(1.1, rel=0.05)
    assert fit.correction.host_step == pytest.approx(2e-3, rel=0.3)
    assert fit.correction.interference == pytest.approx(1.5, rel=0.06)
    for batch in (4, 32, 72):
        assert predicted(fit.scenario, batch) == pytest.approx(under(batch, machine), rel=0.005)


def test_a_plan_that_agrees_is_left_as_it_is() -> None:
    made = correction(BASE, points()).correction
    assert (made.scale, made.interference) == (pytest.approx(1.0, abs=0.01), pytest.approx(1.0, abs=0.02))
    assert made.host_step * 1e3 < 0.01 * predicted(BASE, 2)


def test_noise_does_not_blow_up() -> None:
    noise = (1.04, 0.96, 1.03, 0.97, 1.02)
    measured = [p for b, n in zip((2, 4, 8, 16, 32), noise, strict=True) for p in points(n, loads=(b,))]
    fit = correction(BASE, measured)
    for batch in (1, 8, 64, 128):
        assert predicted(fit.scenario, batch) == pytest.approx(predicted(BASE, batch), rel=0.12)


@pytest.mark.parametrize("ratios", [(0.7, 1.2, 0.8), (3.0, 2.4, 2.0), (0.3, 0.3, 0.5), (4.0, 3.0, 2.5)])
def test_tpot_never_falls_with_the_batch(ratios: tuple[float, ...]) -> None:
    measured = [p for b, r in zip(LOADS, ratios, strict=True) for p in points(r, loads=(b,))]
    fit = correction(BASE, measured)
    curve = [predicted(fit.scenario, b) for b in (1, 2, 4, 8, 16, 32, 64, 96)]
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(curve))
    assert 0.2 <= fit.correction.scale <= 5.0
    assert fit.correction.host_step >= 0.0


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ((0.5, 1.5, 0.6), "leaves a median error of"),
        ((0.3, 0.3, 3.0), "ends on the bounds of scale (0.2 to 5)"),
        ((4.0, 1.0, 0.3), "TPOT does not fall with load"),
        ((3.0, 0.4, 2.0), "TPOT does not fall with load"),
    ],
)
def test_points_that_no_correction_meets_are_refused_in_a_sentence(ratios: tuple[float, ...], said: str) -> None:
    found = fault(BASE, [p for b, r in zip(LOADS, ratios, strict=True) for p in points(r, loads=(b,))])
    assert said in found
    assert found.count(" = ") == 1


def test_a_single_load_on_the_bounds_is_refused() -> None:
    assert "ends on the bounds of scale (0.2 to 5)" in fault(BASE, points(4.98, loads=(16,)))
    assert correction(BASE, points(4.9, loads=(16,))).correction.scale == pytest.approx(4.9, rel=1e-3)


@pytest.mark.parametrize(("later", "kept"), [(0.81, True), (0.79, False)])
def test_tpot_may_lie_a_fifth_below_that_of_a_lower_load(later: float, kept: bool) -> None:
    measured = [Point(concurrency=1, tpot_ms=15.0), Point(concurrency=2, tpot_ms=15.0 * later)]
    if kept:
        assert correction(BASE, measured).correction.points == 2
    else:
        assert "at 2 requests: is 21% below point 1, 15.0 ms at 1 request: TPOT does not" in fault(BASE, measured)


def test_lower_tpot_at_more_load_and_shorter_prompts_is_no_fall() -> None:
    long = predicted(BASE, 8, isl=16_000)
    short = predicted(BASE, 12, isl=500)
    assert short < 0.8 * long
    measured = [Point(concurrency=8, isl=16_000, tpot_ms=long), Point(concurrency=12, isl=500, tpot_ms=short)]
    assert correction(BASE, measured).correction.scale == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("loads", "count"),
    [
        ((63, 64, 65), 1),
        ((1, 2, 3), 3),
        ((19, 20), 1),
        ((18, 20), 2),
        ((100, 104, 108, 112), 2),
        ((64, 64), 1),
        ((), 0),
    ],
)
def test_loads_within_a_twentieth_are_one(loads: tuple[float, ...], count: int) -> None:
    assert loads_among(loads) == count


def test_three_points_of_nearly_one_load_give_a_scale_alone() -> None:
    made = correction(
        BASE, [*points(1.2, loads=(63,)), *points(1.3, loads=(64,)), *points(1.25, loads=(65,))]
    ).correction
    assert (made.host_step, made.interference, made.band) == (0.0, 1.0, band_after(1))


def test_constants_by_hand() -> None:
    """TPOT of 10 + B ms, measured at 2 · (10 + 3 · B) + 4 ms: scale 2, interference 3, 4 ms more a step."""
    batches = (1.0, 10.0, 40.0, 100.0)
    parts = [Parts(10e-3 + 0.02e-3 * b * b, 1e-3 * b, 1.0) for b in batches]
    measured = [2.0 * (p.kernels + 3.0 * p.crowd) + 4e-3 for p in parts]
    found = constants_of(parts, measured, batches)
    assert found.scale == pytest.approx(2.0, rel=0.08)
    assert found.interference == pytest.approx(3.0, rel=0.08)
    again = [part.tpot(found) for part in parts]
    np.testing.assert_allclose(again, measured, rtol=0.01)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pp": 2},
        {"spec": 3},
        {"prefill": "excluded"},
        {"prefill": "disaggregated"},
        {"dp": 2, "tp": 2},
        {"isl": 9000},
    ],
)
def test_tpot_in_parts_is_what_the_plan_says(changes: dict[str, Any]) -> None:
    at = resolve(BASE.with_(**changes))
    by = Constants(1.3, 2e-3, 1.7)
    parts = parts_of(at, 24.0)
    assert parts.tpot(by) == pytest.approx(tpot_of(retimed_setting(at, by), 24.0), rel=1e-6)
    assert tpot_of(at, 24.0) * 1e3 == pytest.approx(predicted(BASE.with_(**changes), 24), rel=1e-9)


# --- TTFT --------------------------------------------------------------------------------------------


def with_ttft(batch: int, factor: float) -> Point:
    """A point whose TPOT is the plan's and whose TTFT is so many times the plan's."""
    found = outcome(BASE.with_(at_batch=batch))
    assert found.ttft_ms is not None
    return Point(concurrency=batch, tpot_ms=found.tpot_ms, ttft_ms=found.ttft_ms * factor)


def test_ttft_follows_an_unloaded_point() -> None:
    fit = correction(BASE, [with_ttft(2, 1.5)])
    assert fit.first_token is not None
    assert fit.first_token.after_ms == pytest.approx(fit.first_token.measured_ms, rel=1e-3)
    assert outcome(fit.scenario.with_(at_batch=2)).ttft_ms == pytest.approx(fit.first_token.measured_ms, rel=1e-3)


def test_ttft_of_a_loaded_point_is_not_fitted() -> None:
    fit = correction(BASE, [with_ttft(32, 3.0)])
    assert (fit.correction.ttft, fit.first_token) == (1.0, None)


@pytest.mark.parametrize("factor", [100.0, 2.1, 0.45, 1e-3])
def test_a_ttft_out_of_all_proportion_is_said_and_not_followed(factor: float) -> None:
    fit = correction(BASE, [with_ttft(1, factor)])
    plain = outcome(BASE.with_(at_batch=1)).ttft_ms
    assert fit.correction.ttft == 1.0
    assert outcome(fit.scenario.with_(at_batch=1)).ttft_ms == pytest.approx(plain, rel=1e-3)
    assert f"{factor:.3g} times the predicted" in fit_text(fit)
    assert "check its unit (ms or s) and whether requests queued" in fit_text(fit)


# --- what is read ------------------------------------------------------------------------------------


def test_concurrency_follows_from_littles_law() -> None:
    """16 requests of 256 tokens in flight for 4 s each: 4 requests/s, 1,024 tokens/s."""
    stated = Point(output_tok_s=1024.0, osl=256.0, e2e_ms=4000.0, tpot_ms=predicted(BASE, 16) * 1.1)
    assert [p.batch for p in correction(BASE, [stated]).points] == [16]


def test_tpot_follows_from_the_whole_request() -> None:
    """256 tokens, the first after 500 ms: 255 · 20 ms later the last."""
    stated = Point(concurrency=16, osl=256, e2e_ms=500.0 + 255 * 20.0, ttft_ms=500.0)
    assert correction(BASE, [stated]).points[0].measured_ms == pytest.approx(20.0)


def test_a_service_of_two_replicas_runs_half_on_each() -> None:
    fit = correction(BASE.with_(fix_replicas=2), points(loads=(32,)))
    assert fit.points[0].batch == 16


def test_lengths_are_the_points_own() -> None:
    long = Point(concurrency=8, isl=8000.4, osl=100.0, tpot_ms=1.2 * predicted(BASE, 8, isl=8000, osl=100))
    assert correction(BASE, [long]).correction.scale == pytest.approx(1.2, rel=1e-4)


@pytest.mark.parametrize(
    ("point", "said"),
    [
        (Point(concurrency=8), "no TPOT"),
        (Point(concurrency=8, tpot_ms=0.0), "no TPOT"),
        (Point(concurrency=8, tpot_ms=float("nan")), "no TPOT"),
        (Point(concurrency=8, tpot_ms=float("inf")), "no TPOT"),
        (Point(concurrency=-8, tpot_ms=20.0), "no concurrency"),
        (Point(tpot_ms=20.0), "no concurrency"),
        (Point(concurrency=100_000, tpot_ms=20.0), "cache pool"),
        (Point(concurrency=1e11, tpot_ms=20.0), "outside"),
        (Point(concurrency=8, osl=1, tpot_ms=20.0), "one output token have no time per output token"),
        (Point(concurrency=8, isl=1e11, tpot_ms=20.0), "outside"),
    ],
)
def test_points_that_say_nothing_are_left_out_with_a_reason(point: Point, said: str) -> None:
    assert said in fault(BASE, [point])
    fit = correction(BASE, [*points(1.1, loads=(16,)), point])
    assert [left.number for left in fit.left_out] == [2]
    assert said in fit.left_out[0].reason
    assert fit.correction.scale == pytest.approx(1.1, rel=1e-4)


def test_no_points_are_refused() -> None:
    assert "none can be compared" in fault(BASE, [])


def test_points_of_one_load_must_agree() -> None:
    said = fault(BASE, [*points(0.8, loads=(16,)), *points(2.0, loads=(16,))])
    assert "point 2" in said
    assert "contradicts point 1" in said
    assert "speculative" in said


def test_two_hundred_points_that_contradict_one_are_each_named_once() -> None:
    with pytest.raises(InputError) as caught:
        correction(BASE, [p for ratio in (0.8, 2.0) * 100 for p in points(ratio, loads=(16,))])
    assert [each.field for each in caught.value.faults] == [f"point {number}" for number in range(2, 201, 2)]
    assert "at most 200" in fault(BASE, points(loads=(16,)) * 201)


# --- what is assumed ---------------------------------------------------------------------------------


def test_replicas_of_a_sized_service_are_never_passed_over() -> None:
    measured = points(1.1, loads=(16,))
    assert correction(BASE, measured).assumed == ()
    sized = BASE.with_(qps=60.0)
    replicas = outcome(sized).replicas
    assert replicas is not None
    assert replicas > 1
    (said,) = correction(sized, measured).assumed
    assert f"The plan has {replicas:,.0f} replicas" in said
    assert "taken as one replica's" in said
    assert said in fit_text(correction(sized, measured))
    (said,) = correction(BASE.with_(fix_replicas=2), points(loads=(32,))).assumed
    assert "divided by fix_replicas = 2" in said


def test_lengths_that_are_not_stated_are_said_to_be_the_scenarios() -> None:
    known, unknown = points(1.1, loads=(16,))[0], Point(concurrency=16, tpot_ms=predicted(BASE, 16))
    assert correction(BASE, [unknown]).assumed == (
        "No point states input tokens a request: the scenario's 2,048 are assumed.",
        "No point states output tokens a request: the scenario's 256 are assumed.",
    )
    assert "1 of 2 points do not state input" in correction(BASE, [known, unknown]).assumed[0]


# --- drafts ------------------------------------------------------------------------------------------


def test_drafts_of_results_and_scenario_must_agree() -> None:
    plain = Benchmark("vllm bench serve", "", tuple(points(1.1, loads=(16,))))
    assert benchmarked(BASE, plain).correction.scale == pytest.approx(1.1, rel=1e-4)
    with pytest.raises(InputError, match="set spec and accept in the scenario"):
        benchmarked(BASE, replace(plain, drafted=True))
    drafting = BASE.with_(spec=3)
    with pytest.raises(InputError, match="set spec = 0, or measure with drafts"):
        benchmarked(drafting, plain)
    point = Point(concurrency=16, isl=2048, osl=256, tpot_ms=1.1 * predicted(drafting, 16))
    made = benchmarked(drafting, replace(plain, points=(point,), drafted=True)).correction
    assert made.subject.spec
    assert made.scale == pytest.approx(1.1, rel=1e-3)


def test_a_calibration_with_drafts_is_not_applied_without_and_the_reverse() -> None:
    drafting = BASE.with_(spec=3)
    point = Point(concurrency=16, isl=2048, osl=256, tpot_ms=1.3 * predicted(drafting, 16))
    with_drafts = calibrate(drafting, [point])
    without = calibrate(BASE, points(1.3, loads=(16,)))
    for made, spec in ((with_drafts, 0), (without, 3)):
        here = made.with_(spec=spec, at_batch=16)
        assert predicted(here, 16) == predicted(BASE.with_(spec=spec), 16)
        assert "calibration_elsewhere" in codes(here)
        (note,) = [each.text for each in plan_of(here).notes if each.code == "calibration_elsewhere"]
        assert "without drafted tokens" in note
        assert "and drafted tokens" in note
    assert predicted(with_drafts, 16) == pytest.approx(1.3 * predicted(drafting, 16), rel=1e-3)
    assert predicted(with_drafts.with_(spec=2), 16) > 1.2 * predicted(BASE.with_(spec=2), 16)


def test_another_model_is_refused_and_a_name_of_ones_own_is_not() -> None:
    with pytest.raises(
        InputError, match=r"model = llama-3.1-70b: the results are of qwen3-32b: name the model in SCENARIO"
    ):
        same_model(BASE, Benchmark("AIPerf", "Qwen/Qwen3-32B", ()))
    with pytest.raises(InputError, match="qwen3-32b"):
        same_model(BASE, Benchmark("Headroom CSV", "", (), (("model", "qwen3-32b"),)))
    same_model(BASE, Benchmark("AIPerf", "acme/finetune-9b", ()))
    same_model(BASE, Benchmark("AIPerf", "meta-llama/Llama-3.1-70B-Instruct", ()))
    same_model(BASE, Benchmark("AIPerf", "", ()))


@pytest.mark.parametrize(("factor", "side"), [(1e-3, "below"), (1000.0, "above"), (0.19, "below"), (5.2, "above")])
def test_a_point_far_from_the_plan_is_refused(factor: float, side: str) -> None:
    said = fault(BASE, [*points(loads=(8,)), *points(factor, loads=(16,))])
    assert "point 2" in said
    assert side in said
    assert "ms or s" in said


# --- where it is applied -----------------------------------------------------------------------------


CALIBRATED = calibrate(BASE, points(1.1, 3.0))


def codes(scenario: Scenario) -> set[str]:
    return {note.code for note in plan_of(scenario).notes}


def test_a_calibrated_plan_says_so_and_has_its_own_band() -> None:
    plan = plan_of(CALIBRATED)
    made = correction_in(str(CALIBRATED.x))
    assert CALIBRATED.profile == "custom"
    assert "calibrated" in codes(CALIBRATED)
    assert made.note in plan.assumptions
    assert plan.tpot_ms is not None
    assert plan.tpot_low_ms == pytest.approx(plan.tpot_ms * made.band[0])
    assert plan.tpot_high_ms == pytest.approx(plan.tpot_ms * made.band[1])
    assert made.band == band_after(3) == (calibrated().after_three.low, calibrated().after_three.high)


def test_a_calibrated_plan_is_no_wider_in_throughput_than_in_tpot() -> None:
    plan, made = plan_of(CALIBRATED), correction_in(str(CALIBRATED.x))
    low, high = made.band
    assert plan.output_low_tok_s == pytest.approx(plan.output_tok_s / high)
    assert plan.output_high_tok_s == pytest.approx(plan.output_tok_s / low)
    stated = calibrated().after_three
    assert made.sure == stated.sure
    assert resolve(CALIBRATED).profile.band_sure == stated.sure
    assert stated.sure > 1.0
    assert stated.sure < stated.high


def test_a_calibration_of_before_is_as_sure_as_its_band() -> None:
    made = replace(correction_in(str(CALIBRATED.x)), sure=None)
    token = encode_calibration(made)
    assert correction_in(token) == made
    assert made.traffic is not None
    assert resolve(CALIBRATED.with_(x=token)).profile.band_sure == made.band[1]


@pytest.mark.parametrize(
    "changes", [{"gpu": "h200-sxm"}, {"model": "qwen3-32b"}, {"engine": "sglang"}, {"weights": "bf16"}]
)
def test_a_calibration_of_something_else_is_not_applied(changes: dict[str, Any]) -> None:
    other = CALIBRATED.with_(**changes, at_batch=16)
    plain, found = plan_of(BASE.with_(**changes, at_batch=16)), plan_of(other)
    assert (found.tpot_ms, found.tpot_low_ms, found.tpot_high_ms) == (
        plain.tpot_ms,
        plain.tpot_low_ms,
        plain.tpot_high_ms,
    )
    assert "calibration_elsewhere" in codes(other)
    assert any("is not applied" in each for each in found.assumptions)


@pytest.mark.parametrize("changes", [{"tp": 8}, {"kv": "fp8"}, {"pp": 2}])
def test_another_layout_or_cache_takes_it_over_and_says_so(changes: dict[str, Any]) -> None:
    found = CALIBRATED.with_(**changes, at_batch=16)
    assert predicted(found, 16) > 1.1 * predicted(BASE.with_(**changes), 16)
    assert any("was not measured with" in note.text for note in plan_of(found).notes)


PLAIN_BAND = resolve(BASE).profile.band

ELSEWHERE: list[tuple[dict[str, Any], str]] = [
    ({"tp": 8}, "TP 8 (measured: TP 4)"),
    ({"tp": 2, "dp": 2}, "TP 2 (measured: TP 4), DP 2 (measured: DP 1)"),
    ({"pp": 2}, "PP 2 (measured: PP 1)"),
    ({"kv": "fp8"}, "fp8 cache (measured: bf16 cache)"),
    ({"isl": 32_768}, "32,768 input tokens (measured: 2,048)"),
    ({"isl": 1_600}, "1,600 input tokens (measured: 2,048)"),
    ({"osl": 321}, "321 output tokens (measured: 256)"),
    ({"prefix": 0.5}, "50% of input from the prefix cache (measured: 0%)"),
    ({"prefill": "excluded"}, "prefill excluded (measured: colocated)"),
    ({"prefill": "disaggregated"}, "prefill disaggregated (measured: colocated)"),
]


@pytest.mark.parametrize(("changes", "said"), ELSEWHERE)
def test_where_nothing_was_measured_the_band_is_the_uncalibrated_one(changes: dict[str, Any], said: str) -> None:
    found, plain = resolve(CALIBRATED.with_(**changes)).profile, resolve(BASE.with_(**changes)).profile
    assert found.band[0] == plain.band[0] < band_after(3)[0]
    assert found.band[1] >= plain.band[1]
    assert found.band_sure >= plain.band_sure
    assert found.band_rate[0] <= plain.band_rate[0]
    assert found.band_rate[1] >= plain.band_rate[1]
    assert predicted(CALIBRATED.with_(**changes), 4) > predicted(BASE.with_(**changes), 4)
    assert any(said in note.text for note in plan_of(CALIBRATED.with_(**changes)).notes)


@pytest.mark.parametrize("changes", [{"isl": 2_560}, {"isl": 1_639}, {"osl": 320}, {"qps": 5.0}, {"at_batch": 4}])
def test_what_is_like_the_measurement_keeps_its_band(changes: dict[str, Any]) -> None:
    """2,048 · 1.25 = 2,560 and 2,048 / 1.25 = 1,638.4; 256 · 1.25 = 320."""
    assert resolve(CALIBRATED.with_(**changes)).profile.band == band_after(3)
    assert "calibration_taken_over" not in codes(CALIBRATED.with_(**changes))


def test_a_calibration_that_does_not_say_what_was_sent_has_the_uncalibrated_band() -> None:
    old = replace(correction_in(str(CALIBRATED.x)), traffic=None)
    found = CALIBRATED.with_(x=encode_calibration(old))
    assert resolve(found).profile.band == (min(PLAIN_BAND[0], 0.961), max(PLAIN_BAND[1], 1.051))
    assert any("does not state the lengths" in note.text for note in plan_of(found).notes)


def test_points_of_other_lengths_than_the_plans_do_not_narrow_its_band() -> None:
    long = [Point(concurrency=b, isl=8000, tpot_ms=1.2 * predicted(BASE, b, isl=8000)) for b in (1, 4, 16)]
    fit = correction(BASE, long)
    assert resolve(fit.scenario).profile.band[0] == PLAIN_BAND[0] < band_after(3)[0]
    assert resolve(fit.scenario.with_(isl=8000)).profile.band == band_after(3)
    low, high = fit.band
    assert f"measured TPOT is {low:.3g} to {high:.3g} times" in fit_text(fit)
    assert "2,048 input tokens (measured: 8,000)" in fit_text(fit)
    assert "was not measured with" not in fit_text(correction(BASE, points(1.1, 3.0)))


def test_the_textbook_is_not_touched() -> None:
    plain = BASE.with_(profile="textbook", at_batch=16)
    own = CALIBRATED.with_(profile="textbook", x=None, at_batch=16)
    assert plan_of(own).tpot_ms == plan_of(plain).tpot_ms
    assert calibrate(plain, points(1.1, 3.0)) == calibrate(BASE, points(1.1, 3.0)).with_(at_batch=16)


def test_a_calibrated_scenario_is_calibrated_afresh() -> None:
    """The second benchmark is compared with the measured constants, not with the first benchmark."""
    again = correction(CALIBRATED, points(1.4, loads=(16,)))
    assert again.correction.scale == pytest.approx(1.4, rel=1e-4)


def test_ledger_arithmetic_and_curve_agree_with_the_plan() -> None:
    own = CALIBRATED.with_(at_batch=16, prefill="excluded")
    plan = plan_of(own)
    assert plan.tpot_ms is not None
    assert sum(row.seconds for row in plan.ledger) * 1e3 == pytest.approx(plan.tpot_ms, rel=1e-9)
    assert next(p.tpot_ms for p in plan.curve if p.batch == 16) == pytest.approx(plan.tpot_ms)
    step = next(part for part in arithmetic(own) if part.title == "The decode step")
    total = next(each for each in step.worked if each.formula.name == "pass_seconds").lines
    assert {line.expression for line in total[:-1]} == {"launches * seconds * calibration"}
    assert float(total[-1].result) * 1e3 == pytest.approx(plan.tpot_ms, rel=1e-3)


def test_sensitivity_starts_from_the_calibrated_constants() -> None:
    own = CALIBRATED.with_(at_batch=16)
    assert "serving.host_step" in {swing.key for swing in swings(own, "tpot_ms")}


def test_a_prefill_pool_of_the_same_accelerator_is_calibrated_and_another_is_not() -> None:
    apart = {"prefill": "disaggregated", "at_batch": 16}
    here = resolve(CALIBRATED.with_(**apart))
    there = resolve(CALIBRATED.with_(**apart, prefill_gpu="h200-sxm"))
    assert here.pool is not None
    assert there.pool is not None
    assert here.pool.profile.scale == here.profile.scale > 1.0
    assert there.pool.profile.scale == 1.0


def test_a_search_over_two_accelerators_applies_it_to_one() -> None:
    asked = Question(scenario=CALIBRATED, accelerators=("h100-sxm", "h200-sxm"), max_gpus=8)
    plain = Question(scenario=BASE, accelerators=("h100-sxm", "h200-sxm"), max_gpus=8)
    own = {each.gpu: plan_of(each) for each in best_of(asked)}
    before = {each.gpu: plan_of(each) for each in best_of(plain)}
    assert own["h100-sxm"].usd_per_m_goodput > 1.05 * before["h100-sxm"].usd_per_m_goodput
    assert own["h200-sxm"].usd_per_m_goodput == before["h200-sxm"].usd_per_m_goodput


def best_of(question: Question) -> list[Scenario]:
    """The best plan of each accelerator."""
    found = {}
    for accelerator in question.accelerators:
        best = optimise(question.model_copy(update={"accelerators": (accelerator,)})).best[0]
        assert best.value == pytest.approx(plan_of(best.scenario).usd_per_m_goodput)
        found[accelerator] = best.scenario
    assert optimise(question).best[0].scenario in found.values()
    return list(found.values())


# --- how it travels and reads ------------------------------------------------------------------------


def test_link_csv_and_json_mean_the_calibrated_scenario_again() -> None:
    assert from_link(to_link(CALIBRATED)) == CALIBRATED
    assert from_csv(to_csv([plan_of(CALIBRATED)])) == (CALIBRATED,)
    assert from_json(to_json(plan_of(CALIBRATED))) == CALIBRATED


def test_the_report_shows_before_after_and_the_link() -> None:
    fit = correction(BASE, [*points(1.3, loads=(16,)), Point(concurrency=4)])
    text = fit_text(fit)
    assert to_link(fit.scenario) in text
    assert "-23.1%" in text
    assert "Point 2 is left out" in text
    assert "1 load measured" in text
    assert "three loads" in text
    assert "-0.0%" not in text
    assert "+0.0%" not in text


def test_what_was_understood_is_listed_with_its_line() -> None:
    read = Benchmark("vllm bench serve", "", (), understood=(Understood("TPOT", "20 ms", 7),), ignored=("P99 ITL.",))
    assert understood_text(read).splitlines() == [
        "understood: vllm bench serve", "  TPOT: 20 ms (line 7)", "  not used: P99 ITL.",
    ]  # fmt: skip


def test_a_point_that_confirms_the_prediction_makes_no_plan_less_sure() -> None:
    """Measured as planned: the band is no wider than it was; 30 % apart, it is that of one given point."""
    base = Scenario(weights="fp8", tp=4)
    planned = outcome(base.with_(at_batch=32)).tpot_ms
    point = Point(concurrency=32.0, isl=1024.0, osl=256.0, tpot_ms=planned)
    plain, confirmed = resolve(base).profile, resolve(calibrate(base, (point,))).profile
    assert plain.band[0] <= confirmed.band[0] <= 1.0 <= confirmed.band[1] <= plain.band[1]
    assert confirmed.band_sure <= plain.band_sure
    apart = resolve(calibrate(base, (replace(point, tpot_ms=1.3 * planned),))).profile
    assert apart.band == band_after(1)


def test_only_what_came_in_a_link_is_called_its_claim() -> None:
    fit = correction(BASE, points(1.1, 3.0))
    assert "as the link states" not in fit_text(fit)
    assert fit.correction.note == fit.correction.finding.replace(": every", ", as the link states: every", 1)
