"""The fit of serving constants: one path with every plan, constants that come back, weights, folds, and its file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.calibrate import serving as whole
from planner.calibrate import serving_fit
from planner.calibrate.cases import Case, case, cases, eligible, odd
from planner.calibrate.clocked import clock, stack
from planner.calibrate.parameters import parameters, served_with
from planner.calibrate.served_file import as_toml, write
from planner.calibrate.serving_fit import Fit, Problem, fit, problem
from planner.case_words import Row
from planner.catalog.fitted_constants import FittedValue, Served, laid_over, served, serving
from planner.catalog.profile_records import FOLDER, LawFactor, read, starting
from planner.errors import CatalogueError
from planner.measured import TABLE
from planner.predict import read_table
from planner.predict_serving import planned

GROUPS = (
    ("Qwen3-32B", "H100-SXM", "TensorRT-LLM", "1.0.0rc3", 14),
    ("Llama-3.x-8B", "H100-SXM", "TensorRT-LLM", "1.0.0rc3", 12),
    ("Llama-3.x-70B", "B200", "TensorRT-LLM", "unstated", 12),
    ("Qwen3-32B", "H100-SXM", "SGLang", "0.5.1.post1", 10),
    ("gpt-oss-120b", "H200", "vLLM", "0.18.0", 12),
)
"""Model family, accelerator, engine, version and how many of its points the small problem takes: few profiles, so that
clocking them is quick, and dense and sparse models, whose launches and experts tell the constants apart."""
MOVED = {"gemm_floor": 1.5, "phi": 0.8}


@pytest.fixture(scope="module")
def table() -> tuple[Row, ...]:
    return tuple(read_table(TABLE)[1])


def spread(found: list[int], count: int) -> list[int]:
    """So many of these, evenly from the first to the last."""
    return [found[int(at)] for at in np.linspace(0, len(found) - 1, count)]


@pytest.fixture(scope="module")
def few(table: tuple[Row, ...]) -> tuple[Case, ...]:
    """Sixty points of five series."""
    columns = ("model_family", "gpu", "engine", "engine_version")
    series = [
        spread([at for at, row in enumerate(table) if tuple(row[name] for name in columns) == tuple(group)], count)
        for *group, count in GROUPS
    ]
    return tuple(found for picked in series for at in picked if (found := case(at, table[at])) is not None)


@pytest.fixture(scope="module")
def posed(few: tuple[Case, ...]) -> Problem:
    return problem(few, starting(), np.zeros(len(few), dtype=np.bool_))


@pytest.fixture(scope="module")
def found(posed: Problem) -> Fit:
    """The fit to what was measured."""
    return fit(posed)


def test_sixty_points_make_the_small_problem(few: tuple[Case, ...], posed: Problem) -> None:
    assert len(few) == 60
    assert {each.clockwork.engine for each in few} == {"trtllm", "vllm", "sglang"}
    assert len(set(posed.pairs.tolist())) == 4
    assert len(posed.stack.clockworks) == 4


# --- one path ---------------------------------------------------------------------------------------


def test_a_case_is_clocked_as_its_plan(table: tuple[Row, ...]) -> None:
    """Forty rows over all engines, and the serving constants of every plan."""
    rows = sorted((at for at, row in enumerate(table) if eligible(row)), key=lambda at: table[at]["engine"].lower())
    both = [(table[at], case(at, table[at])) for at in spread(rows, 42)]
    made = [(row, each) for row, each in both if each is not None][:40]
    assert len(made) == 40
    assert {row["engine"] for row, _ in made} >= {"TensorRT-LLM", "vLLM", "SGLang"}
    assert len({row["gpu"] for row, _ in made}) >= 5
    clocked = clock(stack([each for _, each in made]), serving()).tpot * 1e3
    plans = [planned(row)[0].tpot_ms[0] for row, _ in made]
    np.testing.assert_allclose(clocked, plans, rtol=1e-9)


def test_no_move_is_the_start(posed: Problem) -> None:
    start = clock(posed.stack, starting()).tpot
    np.testing.assert_allclose(posed.tpot(np.zeros(len(posed.parameters))), start, rtol=1e-12)


# --- constants that are known come back -------------------------------------------------------------


def moved(posed: Problem) -> np.ndarray:
    """A point of the fit where a few constants are not where they start."""
    return np.array([np.log(MOVED.get(each.name, 1.0)) for each in posed.parameters])


def test_constants_that_made_the_measurements_are_found_again(posed: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """The floor of GEMMs is shared and has a factor by engine: what is found again is their product, as kernels see it."""
    monkeypatch.setattr(serving_fit, "BELIEF", 1e-4)
    truth = posed.tpot(moved(posed))
    assert np.max(np.abs(truth / posed.tpot(np.zeros(len(posed.parameters))) - 1.0)) > 0.1
    again = fit(replace(posed, measured=truth))
    np.testing.assert_allclose(again.within, truth, rtol=0.01)
    start = starting().constant
    fitted = served_with(starting(), posed.parameters, again.theta).constant
    for name, factor in MOVED.items():
        assert fitted[name].of("trtllm") / start[name].of("trtllm") == pytest.approx(factor, rel=0.1)


def test_a_strong_belief_holds_the_start(posed: Problem, found: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_fit, "BELIEF", 1e9)
    move = serving_fit._solved(posed, np.zeros(found.theta.size), found.within, found.slopes, posed.weights)
    assert np.max(np.abs(move)) < 1e-5


# --- weights ----------------------------------------------------------------------------------------


def test_a_configuration_counts_once_and_a_pair_by_its_root() -> None:
    """Pair p: a of two points, b of one, so 1/(2·√2), 1/(2·√2), 1/√2 and √2 in all; pair q: c of four, 1/4 each, 1 in all."""
    pairs = np.array(["p", "p", "p", "q", "q", "q", "q"])
    weights = serving_fit._weights(pairs, np.array(["a", "a", "b", "c", "c", "c", "c"]))
    assert weights.tolist() == pytest.approx([0.353553, 0.353553, 0.707107, 0.25, 0.25, 0.25, 0.25], rel=1e-5)
    assert weights[:3].sum() == pytest.approx(2**0.5)


def test_points_beyond_fifteen_percent_pull_no_harder() -> None:
    """One number, one belief of width 1 and weight 3, one point of weight 1 that is off by r: 3·x = w·(r - x)/scale² with
    w = 1/√(1 + ((r - x)/scale)²). Off by a factor of e⁹, the pull is 1/scale = 6.67, so x = 6.67/3 = 2.22."""
    known = parameters(starting(), ())[:1]
    lone = Problem(None, starting(), (replace(known[0], width=1.0),), np.array([np.exp(9.0)]), np.ones(1), None, None)  # type: ignore[arg-type]
    move = serving_fit._solved(lone, np.zeros(1), np.ones(1), np.ones((1, 1)), lone.weights)
    assert move[0] == pytest.approx(1.0 / 0.15 / 3.0, rel=0.001)


# --- what a fold knows ------------------------------------------------------------------------------


@pytest.mark.parametrize(("pair", "most"), [("Llama-3.x-8B on H100", 0.005), ("Qwen3-32B on H100", 0.03)])
def test_what_is_left_out_acts_in_second_order_only(posed: Problem, found: Fit, pair: str, most: float) -> None:
    """A fold starts from the slopes of the full fit. Measured twice as slow, a pair's predictions within the fit follow; its
    unseen ones move by less than half a per cent, or 3 % where the pair holds 24 of the 60 points."""
    out = posed.pairs == pair
    doubled = fit(replace(posed, measured=np.where(out, 2.0 * posed.measured, posed.measured)))
    assert np.median(doubled.within[out] / found.within[out]) > 1.5
    np.testing.assert_allclose(doubled.unseen[out], found.unseen[out], rtol=most)


def test_a_fold_predicts_as_a_fit_that_never_had_the_pair(posed: Problem, found: Fit) -> None:
    """The largest pair, as it was measured: the steps of a fit without it from the start, instead of one step from the
    full fit's end."""
    out = posed.pairs == "Qwen3-32B on H100"
    without = fit(replace(posed, weights=np.where(out, 0.0, posed.weights)))
    assert np.max(np.abs(found.within[out] / found.unseen[out] - 1.0)) > 0.02
    np.testing.assert_allclose(found.unseen[out], without.within[out], rtol=0.003)


def test_every_case_is_unseen_by_the_fold_of_its_pair(posed: Problem, found: Fit) -> None:
    assert set(found.folds) == set(posed.pairs.tolist())
    for pair, theta in found.folds.items():
        out = posed.pairs == pair
        np.testing.assert_allclose(found.unseen[out], posed.tpot(theta)[out], rtol=1e-12)


# --- what is fitted to ------------------------------------------------------------------------------


def test_only_measured_points_of_tier_one_and_of_our_engines_are_cases(table: tuple[Row, ...]) -> None:
    row = next(each for each in table if eligible(each))
    others = (
        {"tier": "T2"},
        {"engine": "llama.cpp"},
        {"engine": "vLLM-TPU"},
        {"tpot_best_ms": ""},
        {"config_id": ""},
        {"model": "no such model"},
    )
    rows = [row, *({**row, **each} for each in others)]
    assert [each.row for each in cases(rows)] == [0]


def small(table: tuple[Row, ...]) -> Iterator[Row]:
    """Twelve points of one series, two of them from a source that no steady service explains."""
    steady = [row for row in table if eligible(row) and row["gpu"] == "H200" and row["engine_version"] == "0.18.0"][:10]
    yield from steady
    yield from ({**row, "source_id": "S07_any", "config_id": "strange"} for row in steady[:2])


def test_odd_rows_are_predicted_and_never_fitted_to(table: tuple[Row, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they measured, the constants stay to the last bit."""
    monkeypatch.setattr(whole, "FEWEST_CASES", 1)
    monkeypatch.setattr(serving_fit, "ROUNDS", 1)
    rows = list(small(table))
    assert [odd(row) for row in rows] == [False] * 10 + [True] * 2
    wild = [{**row, "tpot_best_ms": "9999"} if odd(row) else row for row in rows]
    (known, as_it_was), (_, as_wild) = whole.fit_of(rows, "rows"), whole.fit_of(wild, "wild")
    assert known.odd.tolist() == [False] * 10 + [True] * 2
    assert as_it_was.problem.weights[10:].tolist() == [0.0, 0.0]
    assert np.all(as_it_was.problem.weights[:10] > 0.0)
    assert as_wild.problem.measured[10] == pytest.approx(9.999)
    np.testing.assert_array_equal(as_it_was.theta, as_wild.theta)
    np.testing.assert_array_equal(as_it_was.unseen, as_wild.unseen)


# --- the file ---------------------------------------------------------------------------------------


def named(**values: float) -> Served:
    """A fit that found these numbers; `__` stands for a point."""
    numbers = ((name.replace("__", "."), value) for name, value in values.items())
    fitted = tuple(FittedValue(name=name, unit="1", value=v, start=1.0, range=(v / 2, v * 2)) for name, v in numbers)
    law = LawFactor(
        accelerator="h100-sxm", engine="vllm", kind="gemm", precision="bf16", factor=1.25, configurations=9, pairs=2
    )
    return served().model_copy(update={"fitted": fitted, "law_factor": (law,)})


def test_what_a_fit_names_is_replaced_and_nothing_else() -> None:
    start = starting()
    new = laid_over(start, named(gemm_floor=7.0, host_step__sglang=3.0, borrower__mi300x=0.5))
    changed = {name for name, each in new.constant.items() if each != start.constant[name]}
    assert changed == {"gemm_floor", "host_step"}
    assert (new.constant["gemm_floor"].value, new.constant["gemm_floor"].range) == (7.0, (3.5, 14.0))
    assert new.constant["gemm_floor"].engine_factor == start.constant["gemm_floor"].engine_factor
    assert new.constant["host_step"].value == start.constant["host_step"].value
    assert new.constant["host_step"].engine_factor == {**start.constant["host_step"].engine_factor, "sglang": 3.0}
    assert new.factors == {("h100-sxm", "vllm", "gemm", "bf16"): 1.25}
    assert new.era == start.era
    lent = {each.accelerators[0]: each.eff_bw_factor for each in new.borrower}
    old = {each.accelerators[0]: each.eff_bw_factor for each in start.borrower}
    assert lent == {**old, "mi300x": 0.5, "mi325x": 0.5}
    untouched = set(type(start).model_fields) - {"constant", "era", "borrower", "band", "law_factor"}
    assert all(getattr(new, name) == getattr(start, name) for name in untouched)


def test_factors_of_kernels_are_those_of_the_fit_even_where_others_were_worked_out_before() -> None:
    """The start has none, and the second fit's are not the first's."""
    assert starting().factors == {}
    first = laid_over(starting(), named())
    assert set(first.factors.values()) == {1.25}
    assert laid_over(first, served()).factors == serving().factors


def test_costs_of_a_version_are_replaced_by_name() -> None:
    fitted = {"era.vllm.0.11.host_sequence": 44.0, "era.vllm.0.11.expert_layer.h100-sxm": 111.0}
    start = starting()
    era = next(each for each in laid_over(start, named(**fitted)).era if each.from_version == "0.11")
    old = next(each for each in start.era if each.from_version == "0.11")
    assert (era.host_sequence_us, era.host_sequence_range_us) == (44.0, (22.0, 88.0))
    extras = {each.accelerators[0]: each.value_us for each in old.expert_layer_extra}
    assert {each.accelerators[0]: each.value_us for each in era.expert_layer_extra} == {**extras, "h100-sxm": 111.0}


@pytest.mark.parametrize(
    "name",
    ["gem_floor", "gemm_floor.vlm", "era.vllm.0.9.host_sequence", "era.vllm.0.11.expert_layer.a10", "borrower.mi325x"],
)
def test_a_number_that_does_not_exist_is_refused(name: str) -> None:
    """A factor for an engine that there is not, or for an accelerator that shares another's, would be read by nobody."""
    with pytest.raises(CatalogueError, match=f"served.toml: {name} is not a number of measured.toml"):
        laid_over(starting(), named(**{name: 1.0}))


def test_every_number_of_the_fit_exists() -> None:
    """What the fit writes can be read, whichever numbers it moves."""
    fitted = {each.name: each.start for each in parameters(starting(), ())}
    assert laid_over(starting(), named(**fitted)).constant.keys() == starting().constant.keys()
    waits = {f"closed_loop_wait.{engine}" for engine in ("trtllm", "vllm", "sglang")}
    assert {each.name for each in served().fitted} == set(fitted) | waits


def test_the_shipped_file_is_what_would_be_written(tmp_path: Path) -> None:
    assert write(served(), tmp_path).read_bytes() == (FOLDER / "served.toml").read_bytes()


def test_a_record_reads_back_the_same(tmp_path: Path) -> None:
    """Quotes, backslashes and empty lists too."""
    record = served().model_copy(
        update={"source": 'a "quoted" \\ path', "band": served().band.model_copy(update={"own": ()})}
    )
    path = write(record, tmp_path)
    assert read(path, Served) == record
    assert as_toml(read(path, Served)) == as_toml(record)
