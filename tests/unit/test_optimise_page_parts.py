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
from planner.optimise.sensitivity import End, Swing, swings
from planner.optimise.shadow import ConstraintPrice, Relaxation
from planner.share import from_link
from planner.single import plan_of
from planner.specs.scenario import Scenario
from planner.ui import optimise_chart, optimise_data, optimise_share, optimise_tornado
from planner.ui import optimise_sentences as sentences
from planner.ui import optimise_worth as worth
from planner.ui.optimise_inputs import address
from planner.ui.optimise_tasks import Moved, Weighed
from planner.units import dollars, significant
from planner.variants import outcome

MINE = Scenario(weights="fp8", tp=4)
"""The plan of the sidebar."""

COST = plan_of(MINE).usd_per_m_goodput or 0.0
OWN_TOK_S = (plan_of(MINE).goodput_tok_s or 0.0) * (plan_of(MINE).replicas or 0)
BEST = MINE.with_(tp=2, at_batch=32)
NEXT = MINE.with_(tp=4, pp=2, at_batch=64)
TWIN = MINE.with_(tp=4, at_batch=64)
"""A larger one of the winner's kind."""


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


HOUR = plan_of(BEST).usd_per_hour or 0.0


def test_the_answer_is_first_and_every_difference_is_a_share_of_it() -> None:
    """0.8 / 0.5 = 60 % more for the next; 1 / 0.5 = 100 % more for the plan of the sidebar."""
    answer = made()
    assert sentences.headline(answer) == (
        f"Cheapest: 2 × H100 SXM 80 GB, FP8: ${COST / 2:.3f} per million good tokens, ${HOUR:.2f} an hour; "
        "the next kind costs 60 % more."
    )
    assert optimise_data.best_row(2, answer)[2] == "+60 %"
    assert sentences.own_plan(answer, MINE) == "Your plan costs 100 % more."


def test_the_next_best_of_the_same_kind_is_not_another_kind() -> None:
    answer = made(values=(COST / 2, COST * 0.5001, COST))
    twins = (answer.best[0], replace(answer.best[1], scenario=TWIN), answer.best[2])
    assert sentences.headline(replace(answer, best=twins)).endswith("; the next kind costs 100 % more.")
    assert sentences.headline(made(values=(COST,))).endswith(" an hour.")


def test_the_table_says_which_of_its_rows_is_the_next_kind() -> None:
    said = "The best of each kind, then further layouts."
    assert sentences.best(made()) == f"{said} The next kind: TP8 · FP8."
    assert sentences.best(made(values=(COST,))) == said


def test_what_costs_the_same_is_not_zero_percent_more() -> None:
    answer = made(values=(COST, COST * (1 + 1e-7)))
    assert sentences.headline(answer).endswith("; the next kind costs as much.")
    assert sentences.own_plan(answer, MINE) == "Your plan costs as much."


def test_a_plan_that_does_not_stand_is_no_yardstick() -> None:
    assert sentences.own_plan(made(), MINE.with_(tp=1, weights="bf16")).startswith("Your plan does not stand: ")


@pytest.mark.parametrize(
    ("objective", "values", "says", "own"),
    [
        ("gpus", (2.0, 4.0), "Fewest GPUs: 2 × H100 SXM 80 GB, FP8: {hour}; the next kind needs 100 % more.", "needs 100 % more"),
        (
            "tpot_ms", (10.0, 12.5),
            "Lowest TPOT: 2 × H100 SXM 80 GB, FP8: 10.0 ms per output token, {hour}; the next kind takes 25 % more.",
            "takes 400 % more",
        ),
        (
            "goodput_tok_s", (9087.0, 4543.5),
            "Most good tokens/s: 2 × H100 SXM 80 GB, FP8: 9,090 good tokens/s, {hour}; the next kind serves 50 % less.",
            f"serves {1 - OWN_TOK_S / 9087:.0%} less".replace("%", " %"),
        ),
    ],
)  # fmt: skip
def test_every_objective_has_its_own_verb(objective: Objective, values: tuple[float, ...], says: str, own: str) -> None:
    """The plan has 4 GPUs and is just within its promise of 50 ms."""
    answer = made(objective, values)
    assert sentences.headline(answer) == says.format(hour=f"${HOUR:.2f} an hour")
    assert sentences.own_plan(answer, MINE) == f"Your plan {own}."


def test_gpus_of_both_pools_are_told_apart() -> None:
    """Two replicas of TP4 decode, three workers of TP4 prefill: 8 + 12 GPUs."""
    both = MINE.with_(
        prefill="disaggregated", prefill_gpu="h200-sxm", prefill_tp=4, decode_workers=2, prefill_workers=3, at_batch=8
    )
    found = choice(both, "TP4", 1.0)
    assert sentences.machine(found) == "8 × H100 SXM 80 GB + 12 × H200 SXM 141 GB, FP8, prefill apart"
    assert sentences.layout(found) == "Decode: 2 × TP4 on 8 GPUs. Prefill: 12 GPUs."
    same = choice(both.with_(prefill_gpu=None), "TP4", 1.0)
    assert sentences.machine(same) == "20 × H100 SXM 80 GB, FP8, prefill apart"
    assert sentences.layout(choice(BEST, "TP2", 1.0)) == "Layout TP2, batch 32."
    assert sentences.layout(choice(BEST.with_(fix_replicas=3), "TP2", 1.0)) == (
        "3 replicas of TP2, 2 GPUs and batch 32 each."
    )


def test_nothing_feasible_names_what_felled_most() -> None:
    answer = made(best=(), front=())
    assert sentences.headline(answer) == "Nothing keeps the SLA on at most 16 GPUs."
    assert sentences.infeasible(answer) == (
        "Of 50 layouts, those that came nearest fell because: the weights do not fit (30); the domain is too small (12)."
    )
    near = replace(
        answer, refused=(*answer.refused, Refusals("promise", "TPOT is above the promise even at batch 1", 3))
    )
    assert sentences.infeasible(near) == (
        "Of 50 layouts, those that came nearest fell because: TPOT is above the SLA even at batch 1 (3)."
    )
    assert sentences.infeasible(replace(answer, refused=())) == "There is no layout to try at all."


def test_nothing_feasible_names_only_what_would_have_to_give() -> None:
    tpot = Relaxation("sla_tpot_ms", 1.0, 11.0, choice(BEST, "TP2 · FP8", 1.0))
    assert worth.infeasible([tpot]) == "Nothing keeps the TPOT SLA of 1 ms."
    assert worth.infeasible([tpot, Relaxation("max_gpus", 1, 2, tpot.choice)]) == (
        "Nothing keeps the TPOT SLA of 1 ms together with the GPU budget of 1 GPU."
    )


def test_counts_and_progress() -> None:
    assert sentences.counts(made()) == "4,096 plans evaluated of 50 layouts, in 250 ms."
    asked = made().question
    assert sentences.progress(Progress(0, 0, 0, None), asked) == "Searching."
    assert sentences.progress(Progress(3, 1000, 250_000, 0.5), asked) == (
        "3 of 1,000 parts · 250,000 plans evaluated · best so far $0.500"
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
    best = plan_of(BEST)
    at = f"At the SLA, TPOT 50 ms, the winner gives a user {significant(1e3 / best.tpot_ms)} tok/s at "
    assert sentences.front(made(), "gpu") == (
        f"{at}{significant(best.output_tok_s / 2)} tok/s per GPU. "
        "The front runs from 1,000 tok/s per GPU at 10.0 tok/s for a user to 400 tok/s at 40.0 tok/s."
    )
    assert sentences.front(made(), "usd") == (
        f"{at}{dollars(best.usd_per_m_output)} per million output tokens. "
        "The front runs from $1.00 per million output tokens at 10.0 tok/s for a user to $2.00 at 40.0 tok/s."
    )
    assert sentences.front(made(best=(), front=FRONT[:1]), "gpu").startswith("One plan is both fastest")
    assert sentences.front(made(front=()), "gpu") == "No plan has a speed, so there is no front."


def test_what_breaks_the_sla_is_hollow_and_the_sla_is_a_rule() -> None:
    data = optimise_data.front(made(), MINE, "gpu")
    looks = {row["x"]: row["look"] for row in data["points"].to_pylist()}
    assert looks == {10: 0.0, 15: 0.0, 20: 1.0, 30: 1.0, 40: 1.0}
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


@pytest.mark.parametrize("objective", ["usd_per_m_goodput", "goodput_tok_s"])
@pytest.mark.parametrize("shown", ["light", "dark"])
def test_the_tornado_compiles(shown: str, objective: Objective) -> None:
    data = rows(optimise_tornado.bars(made(objective), SWINGS))
    spec = optimise_tornado.tornado(shown, objective)
    assert optimise_tornado.tornado(shown, objective) is spec
    svg = vl_convert.vegalite_to_svg({**spec, "width": 480, "datasets": data})
    assert "NaN" not in svg
    assert "TTFT SLA" in svg
    assert "no answer" in svg


LOW, HIGH = optimise_tornado.LANES


def test_bars_go_from_what_is_now_to_what_would_be_and_what_does_nothing_has_none() -> None:
    data = rows(optimise_tornado.bars(made(), SWINGS))
    found = [(row["name"], row["lane"], row["base"], round(row["to"] / COST, 6)) for row in data["bars"]]
    assert found == [("Price", LOW, COST, 0.8), ("Price", HIGH, COST, 1.2), ("TTFT SLA", HIGH, COST, 0.9)]
    assert [row["label"] for row in data["names"]] == ["$1.60 – $2.40", "160 – 240 ms"]
    (lost,) = data["ends"]
    assert (lost["rank"], lost["lane"], lost["label"]) == (2, LOW, "no answer")
    assert lost["to"] == data["reach"][1]["x"] > COST * 1.2, "at the edge on which the answer is worse"
    assert [row["x"] for row in data["base"]] == [COST]
    table = optimise_tornado.table(made(), SWINGS).to_pylist()
    assert [row["Answer at low"] for row in table][1] == "too slow"


def test_one_long_bar_does_not_crush_the_others() -> None:
    """Of bars to 1.2, 1.25 and 20 times the middle one is 1.25: the axis ends at its third power, 1.953125."""
    far = Swing("phi", "phi", "", 1.0, COST, End(0.5, COST), End(2.0, COST * 20), "x", True)
    near = replace(far, key="near", high=End(2.0, COST * 1.25))
    data = rows(optimise_tornado.bars(made(), (far, near, SWINGS[0])))
    assert [row["x"] / COST for row in data["reach"]] == [pytest.approx(1 / 1.953125), pytest.approx(1.953125)]
    assert data["bars"][0]["to"] == data["reach"][1]["x"]
    (cut,) = data["ends"]
    assert (cut["shape"], cut["label"], cut["to"]) == ("triangle-right", dollars(COST * 20), data["reach"][1]["x"])


def test_what_comes_to_nothing_has_a_place_on_a_log_axis() -> None:
    free = replace(SWINGS[0], low=End(0.0, 0.0))
    data = rows(optimise_tornado.bars(made(), (free,)))
    assert data["bars"][0]["to"] == data["reach"][0]["x"] > 0
    (cut,) = data["ends"]
    assert (cut["shape"], cut["label"], cut["at"]) == ("triangle-left", "$0.00", COST)


def test_a_price_is_there_once() -> None:
    offers = replace(SWINGS[0], key="price_range")
    assert [optimise_tornado.name(each) for each in optimise_tornado.moving((offers, SWINGS[0]))] == [
        "Price, all offers"
    ]
    assert [optimise_tornado.name(each) for each in optimise_tornado.moving(SWINGS[:1])] == ["Price"]


@pytest.mark.parametrize("weights", ["bf16", "fp8"])
def test_every_name_fits_its_column(weights: str) -> None:
    """Bold text of 12 pixels takes some 6 pixels a letter."""
    found = swings(Scenario(model="llama-3.1-8b", weights=weights, at_batch=8))
    assert [name for name in map(optimise_tornado.name, found) if len(name) * 6 > optimise_tornado.NAME_PIXELS] == []


def test_what_moves_most_in_a_sentence() -> None:
    assert worth.moves(SWINGS[:1]) == "Price moves it most: −20 % at $1.60, +20 % at $2.40."
    assert worth.moves(SWINGS) == (
        "A TTFT SLA of 160 ms has no answer. Price moves it most: −20 % at $1.60, +20 % at $2.40."
    )
    assert worth.moves(SWINGS[1:]) == "A TTFT SLA of 160 ms has no answer."
    assert worth.moves(SWINGS[2:]) == "Nothing that was tried moves the answer."


# --- constraints ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("price", "says"),
    [
        (("sla_tpot_ms", 50.0, 100.0, 1.0, 0.85), "TPOT SLA at 100 ms instead of 50 ms: 15 % cheaper."),
        (("sla_tpot_ms", 50.0, 30.0, 1.0, 1.38), "TPOT SLA at 30 ms instead of 50 ms: 38 % dearer."),
        (("max_gpus", 16.0, 8.0, 1.0, None), "GPU budget at 8 GPUs instead of 16 GPUs: no answer."),
        (("sla_ttft_ms", 200.0, 300.0, 1.0, 1.0), "TTFT SLA at 300 ms instead of 200 ms: the same."),
    ],
)
def test_a_price_of_a_constraint_in_words(price: tuple, says: str) -> None:
    assert worth.price(made(), ConstraintPrice(*price, None)) == says


def test_another_winner_is_named_by_what_differs() -> None:
    found = ConstraintPrice("sla_tpot_ms", 50.0, 100.0, 1.0, 0.85, NEXT)
    said = "TPOT SLA at 100 ms instead of 50 ms: 15 % cheaper, with PP2×TP4"
    assert worth.price(made(), found) == f"{said} · FP8 · H100 SXM 80 GB."
    twin = made(best=(choice(BEST, "TP2 · FP8 · H100 SXM 80 GB", 1.0),))
    assert worth.price(twin, found) == f"{said}."


def test_tokens_are_served_and_not_paid() -> None:
    """1,250 instead of 1,000 good tokens are 25 % more."""
    said = worth.price(made("goodput_tok_s"), ConstraintPrice("sla_tpot_ms", 30.0, 50.0, 1000.0, 1250.0, None))
    assert said == "TPOT SLA at 50 ms instead of 30 ms: 25 % more."


def test_a_relaxation_is_a_question_of_its_own() -> None:
    asked = Question(scenario=MINE, limits=(Limit("usd_per_hour", True, 5.0), Limit("batch", False, 8.0)))
    found = choice(BEST, "TP2 · FP8", 1.0)
    assert worth.relaxed(asked, Relaxation("max_gpus", 1, 2, found)).max_gpus == 2
    assert worth.relaxed(asked, Relaxation("sla_tpot_ms", 50.0, 60.0, found)).scenario == MINE.with_(sla_tpot_ms=60.0)
    assert worth.relaxed(asked, Relaxation("usd_per_hour", 5.0, 8.0, found)).limits == (
        Limit("usd_per_hour", True, 8.0), Limit("batch", False, 8.0),
    )  # fmt: skip
    assert worth.relaxation(Relaxation("sla_tpot_ms", 5.0, 17.5, found)) == (
        "With a TPOT SLA of 17.5 ms instead of 5 ms there is an answer: TP2 · FP8."
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
    assert optimise_data.best_row(1, made())[2] == "–"
    assert optimise_data.best_row(2, made())[2] == "+60 %"


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


def test_the_document_holds_what_is_known_around_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = made()
    known: dict[object, object] = {}
    monkeypatch.setattr(optimise_share, "known", lambda desk, _: known.get(desk.name))
    assert optimise_share.around(answer) == {}
    known["priced"] = Weighed(prices=(ConstraintPrice("sla_tpot_ms", 50.0, 100.0, 2.0, 1.5, NEXT),))
    known["moved"] = Moved(SWINGS)
    found = json.loads(answer_json(answer, more=optimise_share.around(answer)))
    (price,) = found["prices"]
    assert (price["field"], price["then"], price["change"]) == ("sla_tpot_ms", 100.0, -0.25)
    assert from_link(price["link"]).with_(c=None, price=None) == NEXT
    assert [each["key"] for each in found["swings"]] == ["price", "sla_ttft_ms", "isl"]
    assert (found["swings"][1]["low_value"], found["swings"][1]["low_reason"]) == (None, "too slow")
