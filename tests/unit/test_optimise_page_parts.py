"""What the Optimise page says and draws, from answers made by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import vl_convert

from planner.optimise.answer import Answer, Choice, FrontPoint, Progress, Refusals
from planner.optimise.break_even import BreakEven, Turn
from planner.optimise.document import answer_csv, answer_json, question_link
from planner.optimise.question import Limit, Objective, Question
from planner.optimise.sensitivity import End, Swing
from planner.optimise.shadow import ConstraintPrice, Relaxation
from planner.share import from_link
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import optimise_chart, optimise_data, optimise_share, optimise_tornado
from planner.ui import optimise_sentences as sentences
from planner.ui import optimise_worth as worth
from planner.ui.optimise_inputs import address
from planner.variants import outcome

MINE = Scenario(weights="fp8", tp=4)
"""The plan of the sidebar."""

COST = plan_of(MINE).usd_per_m_goodput or 0.0
BEST = MINE.with_(tp=2, at_batch=32)
NEXT = MINE.with_(tp=8, at_batch=64)


def choice(scenario: Scenario, kind: str, value: float) -> Choice:
    return Choice(scenario, kind, value, outcome(scenario))


def point(speed: float, rate: float, cost: float | None, kind: str = "TP2", **more: bool) -> FrontPoint:
    marks = {"keeps": speed >= 20, "by_gpu": True, "by_cost": cost is not None, **more}
    return FrontPoint(BEST.with_(at_batch=int(speed)), kind, speed, rate, cost, int(speed), 2, **marks)


FRONT = (
    point(40, 400, 2.0), point(10, 1000, 1.0), point(20, 800, 1.25, "TP8"), point(15, 900, None),
    point(30, 100, 4.0, by_gpu=False, by_cost=False),
)  # fmt: skip


def made(
    objective: Objective = "usd_per_m_goodput", values: tuple[float, ...] = (COST / 2, COST * 0.8), **more: object
) -> Answer:
    """An answer whose winner has a given value."""
    best = [choice(BEST, "TP2 · FP8", values[0])]
    best += [choice(NEXT, "TP8 · FP8", value) for value in values[1:]]
    refused = (Refusals("memory", "the weights do not fit", 30), Refusals("domain", "the domain is too small", 12))
    answer = Answer(Question(scenario=MINE, objective=objective), tuple(best), FRONT, 50, 4096, refused, 0.25)
    return replace(answer, **more)


# --- the headline -----------------------------------------------------------------------------------


def test_half_the_cost_is_fifty_percent_less() -> None:
    """0.5 / 1 = 50 % less than the plan; 0.5 / 0.8 = 62.5 % of the next: 37.5 % less, 38 % to two digits."""
    said = sentences.headline(made(), MINE)
    assert said.endswith("50 % less than your plan and 38 % less than the next of another kind, TP8 · FP8.")
    assert said.startswith(f"TP2 · FP8 costs ${COST / 2:.3f} per million good tokens, ")


def test_the_next_best_of_the_same_kind_is_not_another_kind() -> None:
    answer = made(values=(COST / 2, COST * 0.5001, COST))
    twins = (answer.best[0], replace(answer.best[1], kind=answer.best[0].kind), answer.best[2])
    assert "50 % less than the next of another kind, TP8 · FP8" in sentences.headline(replace(answer, best=twins), MINE)


def test_what_costs_the_same_is_not_zero_percent_less() -> None:
    said = sentences.headline(made(values=(COST, COST * 1.004)), MINE)
    assert said.endswith(", about as much as your plan and about as much as the next of another kind, TP8 · FP8.")


def test_a_plan_that_does_not_stand_is_no_yardstick() -> None:
    said = sentences.headline(made(values=(COST,)), MINE.with_(tp=1, weights="bf16"))
    assert "than your plan" not in said
    assert "Your plan does not stand: " in said


@pytest.mark.parametrize(
    ("objective", "values", "says"),
    [
        ("gpus", (2.0, 4.0), "TP2 · FP8 needs 2 GPUs, 50 % fewer than your plan and 50 % fewer than the next"),
        ("tpot_ms", (10.0, 12.5), "TP2 · FP8 takes 10.0 ms per output token, 80 % less than your plan and 20 % less than"),
        ("goodput_tok_s", (9087.0, 4543.5), "TP2 · FP8 serves 9,090 good tok/s, 200 % more than your plan and 100 % more"),
    ],
)  # fmt: skip
def test_every_objective_has_its_own_verb(objective: Objective, values: tuple[float, ...], says: str) -> None:
    """The plan has 4 GPUs, 49.85 ms and 3,029 tok/s."""
    assert sentences.headline(made(objective, values), MINE).startswith(says)


def test_nothing_feasible_names_what_felled_most() -> None:
    answer = made(best=(), front=())
    assert sentences.headline(answer, MINE) == "Nothing keeps the promise on at most 16 GPUs."
    assert sentences.infeasible(answer) == (
        "Of 50 candidates, those that came nearest fell because: the weights do not fit (30); the domain is too small (12)."
    )
    near = replace(
        answer, refused=(*answer.refused, Refusals("promise", "TPOT is above the promise even at batch 1", 3))
    )
    assert sentences.infeasible(near) == (
        "Of 50 candidates, those that came nearest fell because: TPOT is above the promise even at batch 1 (3)."
    )
    assert sentences.infeasible(replace(answer, refused=())) == "The space holds no candidate at all."


def test_counts_and_progress() -> None:
    assert sentences.counts(made()) == "50 candidates, 4,096 rows of layout and batch with full laws, in 250 ms."
    asked = made().question
    assert sentences.progress(Progress(0, 0, 0, None), asked) == "Searching."
    assert sentences.progress(Progress(3, 1000, 250_000, 0.5), asked) == (
        "3 of 1,000 parts · 250,000 rows · best so far $0.500"
    )


# --- the front --------------------------------------------------------------------------------------


def test_the_line_joins_what_nothing_beats_slowest_first() -> None:
    data = optimise_data.front(made(), MINE, "gpu")
    assert data["line"].to_pylist() == [{"x": x, "y": y} for x, y in ((10, 1000), (15, 900), (20, 800), (40, 400))]
    data = optimise_data.front(made(), MINE, "usd")
    assert data["line"].to_pylist() == [{"x": x, "y": y} for x, y in ((10, 1.0), (20, 1.25), (40, 2.0))]


def test_a_point_without_a_price_is_on_the_first_view_only() -> None:
    assert len(optimise_data.drawn(FRONT, "gpu")) == 5
    assert len(optimise_data.drawn(FRONT, "usd")) == 4


def test_the_front_in_a_sentence() -> None:
    assert sentences.front(made(), "gpu") == (
        "A GPU gives 1,000 tok/s where a user gets 10.0 tok/s, and 400 tok/s where a user gets 40.0 tok/s."
    )
    assert sentences.front(made(), "usd") == (
        "A million output tokens costs $1.00 where a user gets 10.0 tok/s, and $2.00 where a user gets 40.0 tok/s."
    )
    assert sentences.front(made(front=FRONT[:1]), "gpu").startswith("One plan is both fastest")
    assert sentences.front(made(front=()), "gpu") == "No plan has a speed, so there is no front."


def test_what_breaks_the_promise_is_faint_and_the_promise_is_a_rule() -> None:
    data = optimise_data.front(made(), MINE, "gpu")
    looks = {row["x"]: row["look"] for row in data["points"].to_pylist()}
    assert looks[10] < looks[20] == looks[40] == 1.0
    (promise,) = data["promise"].to_pylist()
    assert (promise["x"], promise["label"]) == (20.0, "SLA: TPOT 50 ms")


def test_winner_and_own_plan_are_where_their_plans_are() -> None:
    marks = {row["label"]: row for row in optimise_data.front(made(), MINE, "gpu")["marks"].to_pylist()}
    own, best = plan_of(MINE), plan_of(BEST)
    assert marks["Your plan"]["x"] == pytest.approx(1e3 / own.tpot_ms)
    assert marks["Your plan"]["y"] == pytest.approx(own.output_tok_s / 4)
    assert marks["Winner"]["y"] == pytest.approx(best.output_tok_s / 2)
    assert marks["Winner"]["shape"] != marks["Your plan"]["shape"]


def test_a_plan_that_does_not_fit_is_not_on_the_chart() -> None:
    marks = optimise_data.front(made(), MINE.with_(tp=1, weights="bf16"), "gpu")["marks"].to_pylist()
    assert [mark["label"] for mark in marks] == ["Winner"]


def test_the_most_frequent_kinds_have_a_hue_and_the_rest_share_grey() -> None:
    often = [point(20 + n, 500 - n, 1.0, f"K{n % 7}") for n in range(27)] + [point(9, 900, 1.0, "rare")]
    rows = optimise_data.front(made(front=tuple(often)), MINE, "gpu")["points"].to_pylist()
    series = {row["kind"]: row["series"] for row in rows}
    assert series["rare"] == "other"
    assert len({series[f"K{n}"] for n in range(6)}) == 6
    assert set(series.values()) <= set(optimise_chart.SERIES)


def test_accelerators_and_precisions_are_told_apart_by_hue_and_layouts_where_there_is_one_of_them() -> None:
    names = ("TP2 · FP8 · H100", "TP4 · FP8 · H100", "TP2 · BF16 · H100", "TP8 · FP8 · H100")
    mixed = [point(20 + at, 500 - at, 1.0, name) for at, name in enumerate(names)]
    assert optimise_data.kinds(mixed) == ("FP8 · H100", "BF16 · H100")
    assert optimise_data.kinds([mixed[0], mixed[1], mixed[3]]) == (names[0], names[1], names[3])


def test_a_choice_of_another_answer_is_none() -> None:
    answer = made()
    rows = optimise_data.front(answer, MINE, "gpu")["points"].to_pylist()
    assert optimise_data.picked(answer, rows[0]["plan"]).tok_s_user == 10
    assert optimise_data.picked(replace(answer, front=FRONT[:1]), rows[0]["plan"]) is None
    assert optimise_data.picked(answer, None) is None


# --- specifications ---------------------------------------------------------------------------------


SWINGS = (
    Swing("price", "price", "$/GPU-hour", 2.0, COST, End(1.6, COST * 0.8), End(2.4, COST * 1.2), "assumed: ±20 %", True),
    Swing("sla_ttft_ms", "promised time", "ms", 200.0, COST, End(160.0, None, "too slow"), End(240.0, COST * 0.9), "x", True),
    Swing("isl", "mean input", "tokens", 1024, COST, End(819, COST), End(1229, COST), "assumed", True),
)  # fmt: skip


def rows(data: dict) -> dict:
    return {name: table.to_pylist() for name, table in data.items()}


@pytest.mark.parametrize("shown", ["light", "dark"])
@pytest.mark.parametrize("answer", [made(), made(best=(), front=FRONT[:1])], ids=["full", "bare"])
@pytest.mark.parametrize("view", ["gpu", "usd"])
def test_the_front_compiles_and_its_specification_stays(shown: str, answer: Answer, view: str) -> None:
    spec = optimise_chart.front(shown, view)
    before = json.dumps(spec)
    svg = vl_convert.vegalite_to_svg({**spec, "width": 480, "datasets": rows(optimise_data.front(answer, MINE, view))})
    assert "NaN" not in svg
    assert "undefined" not in svg
    assert optimise_chart.front(shown, view) is spec
    assert json.dumps(spec) == before


@pytest.mark.parametrize("shown", ["light", "dark"])
def test_the_tornado_compiles(shown: str) -> None:
    data = rows(optimise_tornado.bars(made(), SWINGS))
    svg = vl_convert.vegalite_to_svg({**optimise_tornado.tornado(shown), "width": 480, "datasets": data})
    assert "NaN" not in svg
    assert "Promised time" in svg


def test_bars_are_relative_changes_and_what_does_nothing_has_none() -> None:
    data = rows(optimise_tornado.bars(made(), SWINGS))
    found = [(row["name"], row["side"], round(row["change"], 6)) for row in data["bars"]]
    assert found == [
        ("Price", "Input lower", -20.0), ("Price", "Input higher", 20.0), ("Promised time", "Input higher", -10.0),
    ]  # fmt: skip
    assert [row["label"] for row in data["names"]] == ["$1.60 – $2.40", "160 ms – 240 ms; falls at 160 ms"]
    table = optimise_tornado.table(made(), SWINGS).to_pylist()
    assert [row["Answer at low"] for row in table][1] == "too slow"


def test_what_moves_most_in_a_sentence() -> None:
    assert worth.moves(SWINGS) == "Price moves it most: −20 % at $1.60, +20 % at $2.40."
    assert worth.moves(SWINGS[1:]) == "Promised time moves it most: falls at 160 ms, −10 % at 240 ms."
    assert worth.moves(SWINGS[2:]) == "Nothing that was tried moves the answer."


# --- constraints ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("price", "says"),
    [
        (("sla_tpot_ms", 30.0, 50.0, 1.38, 1.0), "TPOT SLA 30 ms instead of 50 ms costs 38 %."),
        (("sla_tpot_ms", 50.0, 30.0, 1.0, 1.38), "TPOT SLA 30 ms instead of 50 ms would cost 38 %."),
        (("max_gpus", 16.0, 8.0, 1.0, None), "A budget of 8 GPUs instead of 16 GPUs: nothing would stand."),
        (("sla_ttft_ms", 200.0, 300.0, 1.0, 1.0), "TTFT SLA 300 ms instead of 200 ms changes nothing."),
    ],
)
def test_a_price_of_a_constraint_in_words(price: tuple, says: str) -> None:
    assert worth.price(made(), ConstraintPrice(*price, None)) == says


def test_another_winner_is_named() -> None:
    said = worth.price(made(), ConstraintPrice("sla_tpot_ms", 30.0, 50.0, 1.38, 1.0, NEXT))
    assert said.startswith("TPOT SLA 30 ms instead of 50 ms costs 38 %; then TP8")
    assert said.endswith(" wins.")


def test_tokens_are_taken_and_not_paid() -> None:
    """1,000 instead of 1,250 good tokens are 20 % fewer."""
    said = worth.price(made("goodput_tok_s"), ConstraintPrice("sla_tpot_ms", 30.0, 50.0, 1000.0, 1250.0, None))
    assert said == "TPOT SLA 30 ms instead of 50 ms takes 20 % of the good tokens."


def test_a_relaxation_is_a_question_of_its_own() -> None:
    asked = Question(scenario=MINE, limits=(Limit("usd_per_hour", True, 5.0), Limit("batch", False, 8.0)))
    found = choice(BEST, "TP2 · FP8", 1.0)
    assert worth.relaxed(asked, Relaxation("max_gpus", 1, 2, found)).max_gpus == 2
    assert worth.relaxed(asked, Relaxation("sla_tpot_ms", 50.0, 60.0, found)).scenario == MINE.with_(sla_tpot_ms=60.0)
    assert worth.relaxed(asked, Relaxation("usd_per_hour", 5.0, 8.0, found)).limits == (
        Limit("usd_per_hour", True, 8.0), Limit("batch", False, 8.0),
    )  # fmt: skip
    assert (
        worth.relaxation(Relaxation("sla_tpot_ms", 5.0, 17.5, found)) == "TPOT SLA 17.5 ms instead of 5 ms: TP2 · FP8."
    )


def test_prices_that_turn_the_choice() -> None:
    both = BreakEven(1.0, 2.0, Turn("h100-sxm", 2.5, 5.0), Turn("h200-sxm", 4.0, 1.5))
    assert list(worth.turns(made(), both)) == [
        "TP8 · FP8 wins once H100 SXM 80 GB costs $5.00 an hour or more (now $2.50).",
        "It also wins once H200 SXM 141 GB costs $1.50 an hour or less (now $4.00).",
    ]
    never = BreakEven(1.0, 2.0, Turn("h100-sxm", 2.5, None, "why"), Turn("h100-sxm", 2.5, None, "why"))
    assert list(worth.turns(made(), never)) == ["No price of an accelerator lets TP8 · FP8 win: why."]
    assert list(worth.turns(made(), None)) == []


# --- tables, links, files ---------------------------------------------------------------------------


def test_every_row_of_the_table_has_a_cell_for_each_title() -> None:
    for objective in ("usd_per_m_goodput", "gpus", "tpot_ms", "goodput_tok_s"):
        header = optimise_data.best_header(objective)
        assert len(set(header)) == len(header)
        assert len(optimise_data.best_row(1, made(objective))) == len(header)
    assert optimise_data.best_row(1, made())[3] == "–"
    assert optimise_data.best_row(2, made())[3] == "+60 %"


def test_a_questions_link_and_command_ask_the_same() -> None:
    asked = Question(scenario=MINE, accelerators=("h100-sxm", "h200-sxm"), limits=(Limit("tpot_ms", True, 30.0),))
    assert address(asked) == "./optimise?weights=fp8&tp=4&accelerators=h100-sxm,h200-sxm&limits=tpot_ms%3C%3D30"
    link = question_link(asked, "https://planner.example/optimise")
    assert link.startswith("https://planner.example/optimise?c=")
    assert link.endswith("&weights=fp8&tp=4&accelerators=h100-sxm,h200-sxm&limits=tpot_ms%3C%3D30")
    assert "price=" not in link, "one accelerator's price would become that of all"
    assert optimise_share.command(asked) == (
        "python -m planner optimise 'weights=fp8&tp=4' --accelerators h100-sxm,h200-sxm --limits 'tpot_ms<=30'"
    )


def test_files_hold_the_plans_themselves() -> None:
    answer = made()
    lines = answer_csv(answer, "https://planner.example/").splitlines()
    assert len(lines) == 3
    found = json.loads(answer_json(answer, "https://planner.example/", "https://planner.example/optimise"))
    assert found["question"]["scenario"]["weights"] == "fp8"
    assert [each["kind"] for each in found["plans"]] == ["TP2 · FP8", "TP8 · FP8"]
    assert found["plans"][0]["tpot_ms"] == plan_of(BEST).tpot_ms
    assert from_link(found["plans"][0]["link"]).with_(c=None, price=None) == BEST
    assert len(found["front"]) == 5
    assert (found["candidates"], found["considered"], max(found["refused"].values())) == (50, 4096, 30)
    assert found["link"].startswith("https://planner.example/optimise?")
