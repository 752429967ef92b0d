"""Comparisons: ratio sentences by hand from the article's numbers, links that hold all plans, documents."""

from __future__ import annotations

import csv
import io
import json
from urllib.parse import parse_qsl

import pytest

from planner.answer import answer
from planner.calibrate.correction import calibrate
from planner.catalog.custom import encode_custom
from planner.catalog.scenarios import load_preset
from planner.compare import Comparison, comparison, comparison_csv, comparison_from, comparison_json, comparison_link
from planner.compare.link import LETTERS, MAX_TEXT, pasted, reference_from, spelled
from planner.compare.quantities import DOLLARS, PLAIN, QUANTITIES, REQUESTS, Words, ranked, ratio, requests, stands
from planner.errors import InputError, LinkError
from planner.export import BOM, from_csv
from planner.logs.readings import Point
from planner.share import from_link, pinned
from planner.single import plan_of
from planner.specs.scenario import SCENARIO_FIELDS, Scenario
from planner.variants import outcome
from tests.samples import plan
from tests.unit.test_share import CONFIG

ARTICLE = tuple(load_preset(f"llama70b-{name}") for name in ("fp8-a", "fp8-b", "fp8-c", "bf16-tp4"))

# The article's numbers: 70e9 parameters, 80 GB, 3.35 TB/s and 742 TFLOPS a GPU, 96 % of the pool, 1,024 tokens in, 256 out.
TOKEN_BYTES = 2 * 80 * 8 * 128 * 2
CONTEXT = 1024 + 256 / 2
TOKEN_FLOPS = 2 * 70e9 + 80 * 4 * 64 * 128 * CONTEXT
PRICE = 5.0725


def by_hand(gpus: int, weights: float) -> tuple[int, int, float]:
    """Tokens of the cache, batch and TPOT [s]: weights and cache are read once a step, unless arithmetic takes longer."""
    tokens = int((gpus * 80e9 - weights) * 0.96 / TOKEN_BYTES)
    batch = tokens // (1024 + 256)
    reading = (weights + batch * CONTEXT * TOKEN_BYTES) / (gpus * 3.35e12)
    return tokens, batch, max(reading, batch * TOKEN_FLOPS / (gpus * 742e12))


HAND = {"A": by_hand(1, 70e9), "B": by_hand(2, 70e9), "C": by_hand(4, 70e9), "D": by_hand(4, 140e9)}
NUMBER_OF_GPUS = {"A": 1, "B": 2, "C": 4, "D": 4}


def read(text: str) -> str:
    return text.replace("\u00a0", " ")


def found(against: int | None = None) -> Comparison:
    return comparison(ARTICLE, against)


# --- figures by hand --------------------------------------------------------------------------------


def test_the_articles_plans_are_those_of_the_hand() -> None:
    """A is served 22 requests: the article counts 23 by rounding up what it calls about 30,000 tokens."""
    assert [HAND[name][:2] for name in LETTERS] == [(29296, 22), (263671, 205), (732421, 572), (527343, 411)]
    for name, made in zip(LETTERS, found().plans, strict=True):
        tokens, batch, tpot = HAND[name]
        assert (made.kv_capacity_tokens, made.batch) == (tokens, batch)
        assert made.tpot_ms == pytest.approx(tpot * 1e3, rel=1e-3)


@pytest.mark.parametrize("name", LETTERS)
def test_requests_are_tokens_of_the_serving_replicas_at_the_usable_share(name: str) -> None:
    _, batch, tpot = HAND[name]
    assert requests(found().plans[LETTERS.index(name)]) == pytest.approx(batch / tpot / 256 * 0.8, rel=1e-3)
    assert requests(plan(scenario=Scenario(osl=100, load=0.5, spare=2, tp=4), goodput_tok_s=1000.0, replicas=6)) == 20.0


@pytest.mark.parametrize("name", "BCD")
def test_ratios_against_a(name: str) -> None:
    at, one, other = LETTERS.index(name), HAND[name], HAND["A"]
    rate = (one[1] / one[2]) / (other[1] / other[2])
    expected = {
        "requests_s": rate,
        "usd_per_m_goodput": NUMBER_OF_GPUS[name] / rate,
        "gpus": float(NUMBER_OF_GPUS[name]),
        "tpot_ms": one[2] / other[2],
        "kv_capacity_tokens": one[0] / other[0],
    }
    assert {q.name: found().ratio(at, q) for q in QUANTITIES} == pytest.approx(expected, rel=1e-3)


def test_sentences_against_a() -> None:
    """22.05 = (572 ÷ 27.56) ÷ (22 ÷ 23.37); 4 ÷ 22.05 = 0.181, hence 82 % less; 732,421 ÷ 29,296 = 25.0."""
    b, c, d = (read(each) for each in found().sentences)
    assert c == (
        "C serves 22.1× the requests of A for 82 % less a good token. "
        "GPUs 4× (4 against 1), TPOT 1.2× (27.6 ms against 23.4 ms), KV tokens 25.0× (732,000 against 29,300)."
    )
    assert b.startswith(
        "B serves 9.9× the requests of A for 80 % less a good token. GPUs 2× (2 against 1), TPOT 5.9 % less"
    )
    assert d.startswith("D serves 19.8× the requests of A for 80 % less a good token.")
    assert "KV tokens 18.0× (527,000 against 29,300)" in d


def test_sentences_against_the_baseline() -> None:
    """20,754 ÷ 18,660 = 1.11 requests on the same GPUs, hence 10 % less; A: 1 ÷ 19.8 of the requests, 4.96 × the dollars."""
    a, b, c = (read(each) for each in found(3).sentences)
    assert a.startswith("A serves 1/19.8 of the requests of D for 5.0× the dollars a good token.")
    assert b.startswith("B serves 50 % fewer requests than D for about the same dollars a good token.")
    assert "TPOT about the same (22.0 ms)" in b
    assert c == (
        "C serves 1.1× the requests of D for 10 % less a good token. "
        "GPUs the same (4), TPOT 1.3× (27.6 ms against 22.0 ms), KV tokens 1.4× (732,000 against 527,000)."
    )


def test_the_headline_names_the_cheapest_and_its_lead() -> None:
    assert read(found().headline) == "C is cheapest: $0.272 per million good tokens, 10 % less than B and D."


def test_the_headline_names_every_plan_that_reads_as_the_next_best() -> None:
    """$2.001 and $2.004 both read $2.00; $1.80 is 10 % less than either, and $3.00 is named nowhere."""
    plans = tuple(plan(usd_per_m_goodput=value) for value in (2.004, 1.8, 3.0, 2.001))
    assert read(Comparison(plans).headline) == "B is cheapest: $1.80 per million good tokens, 10 % less than A and D."
    assert ranked(plans, DOLLARS) == [1, 0, 3, 2]


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1.0, "same"), (1.004, "about"), (0.996, "about"), (1.04, "4.0 % more"), (0.96, "4.0 % less"), (1.0051, "0.51 % more"),
        (1.0999, "10 % more"), (1.1, "1.1×"), (1.44, "1.4×"), (2.0, "2×"), (2.96, "3.0×"), (9.949, "9.9×"), (9.96, "9.96×"),
        (22.05, "22.1×"), (1234.5, "1,230×"), (0.9, "10 % less"), (0.101, "90 % less"), (0.05, "1/20"), (0.001234, "1/810"),
    ],
)  # fmt: skip
def test_how_a_ratio_is_said(factor: float, words: str) -> None:
    assert read(Words("", "more", "less", "same", "about").say(factor)) == words


@pytest.mark.parametrize("percent", [*range(-99, 0), *range(1, 100)])
def test_a_difference_is_never_said_to_be_none(percent: int) -> None:
    said = PLAIN.say(1 + percent / 100)
    assert "1.0×" not in said
    assert "same" not in said
    assert "100 %" not in read(said)


# --- plans that do not stand ------------------------------------------------------------------------


def test_a_plan_that_does_not_stand_has_no_ratio_and_a_reason() -> None:
    real = comparison([load_preset(f"llama70b-{name}-real") for name in ("fp8-a", "fp8-b", "fp8-c", "bf16-tp4")])
    assert not real.stands(0)
    assert real.against == 1
    assert [real.ratio(0, q) for q in QUANTITIES] == [None] * len(QUANTITIES)
    *held, fallen = real.sentences
    assert fallen.startswith("A does not stand, so no ratio is taken of it. Fits in memory, but breaks the SLA.")
    assert [each[0] for each in held] == ["C", "D"]
    assert not any("A" in each.split(".")[0].replace("GPUs", "") for each in held)


def test_nothing_is_held_against_a_plan_that_does_not_stand() -> None:
    pair = comparison([Scenario(), Scenario(tp=4)], against=0)
    assert pair.sentences == (f"A does not stand, so no ratio is taken of it. {answer(plan_of(Scenario()))}",)
    assert pair.headline.startswith("Only B stands: $")
    none = comparison([Scenario(), Scenario(sla_ttft_ms=1.0)])
    assert none.headline == "None of these plans stands."
    assert len(none.sentences) == 2


def test_more_requests_than_admitted_do_not_stand() -> None:
    assert not stands(plan(batch=93, b_max=92))
    assert stands(plan())
    assert ratio(plan(batch=93), plan(), REQUESTS) is None


def test_without_a_price_nothing_is_called_cheap() -> None:
    bare = Comparison((plan(usd_per_m_goodput=None), plan(usd_per_m_goodput=None, goodput_tok_s=3717.17)))
    assert bare.headline.startswith("No price is known, so none is cheapest. B takes most requests:")
    assert read(bare.sentences[0]).startswith(
        "B can serve 2.0× the requests of A. What a good token costs is not known for B and A."
    )
    half = Comparison((plan(), plan(), plan(usd_per_m_goodput=None)))
    assert half.headline.endswith("as much as B. No price is known for C.")


def test_a_sized_deployment_can_serve_and_one_replica_serves() -> None:
    sized = Comparison((plan(), plan(goodput_tok_s=1900.0)))
    assert sized.sentences[0].startswith("B can serve 2.2")


# --- differences ------------------------------------------------------------------------------------


def test_differences_are_the_fields_that_differ() -> None:
    rows = {row.field: row for row in found().rows}
    assert tuple(rows)[: len(SCENARIO_FIELDS)] == SCENARIO_FIELDS
    assert rows["weights"].values == ("fp8", "fp8", "fp8", "bf16")
    assert rows["tp"].values == ("1", "2", "4", "4")
    assert [row.field for row in found().differences if row.asked] == ["weights", "tp"]
    assert rows["gpus"].values == (1, 2, 4, 4)
    assert rows["requests_s"].differs
    assert not rows["physical_bytes"].differs


def test_different_questions_are_named() -> None:
    assert found().asked_differently == ()
    pair = comparison([Scenario(tp=4), Scenario(tp=4, isl=2048, sla_tpot_ms=30.0, profile="textbook")])
    assert pair.asked_differently == ("profile", "isl", "sla_tpot_ms")


@pytest.mark.parametrize("count", [0, 1, 5])
def test_two_to_four_plans(count: int) -> None:
    with pytest.raises(InputError) as caught:
        comparison([Scenario(tp=4)] * count)
    assert str(caught.value) == f"plans = {count}: must be 2 to 4 plans"
    with pytest.raises(InputError):
        comparison([Scenario(), Scenario()], against=2)


# --- links ------------------------------------------------------------------------------------------


def test_the_link_holds_all_plans_with_their_prices() -> None:
    link = comparison_link(ARTICLE, "https://host/compare", 3)
    (plans, against) = parse_qsl(link.partition("?")[2], strict_parsing=True)
    assert link.startswith("https://host/compare?plans=")
    assert against == ("against", "D")
    assert comparison_from(plans[1]) == tuple(pinned(scenario) for scenario in ARTICLE)
    assert all(scenario.price == PRICE for scenario in comparison_from(plans[1]))
    assert len(link) < 600
    assert "against" not in comparison_link(ARTICLE)


def test_the_spelling_can_be_read() -> None:
    pair = (Scenario(tp=4, weights="fp8"), Scenario())
    assert spelled(pair) == "weights=fp8&tp=4;v=1"
    assert comparison_from(spelled(pair)) == pair
    assert comparison_from("preset=llama70b-fp8-a;preset=llama70b-fp8-b") == ARTICLE[:2]


def test_a_model_of_ones_own_travels_with_its_plan() -> None:
    own = Scenario(model="custom", x=encode_custom(CONFIG), tp=2)
    link = comparison_link((own, ARTICLE[0]), "https://host/compare")
    assert pasted(link) == (pinned(own), pinned(ARTICLE[0]))
    assert comparison(pasted(link)).plans[0].fits


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "plans"), ("tp=4", "plans"), ("tp=4;tp=2;tp=1;tp=1;tp=1", "plans"), (";" * 100_000, "plans"),
        ("v=1;" + "x" * MAX_TEXT, "plans"), ("tp=4;", "plan B: query"), (" ;tp=4", "plan A: query"),
        ("tp=4;https://host/?tp=2", "plan B: query"), ("tp=4;a#tp=2", "plan B: query"), ("tp=4;http://tp=2", "plan B: query"),
        ("tp=3x;tp=4", "plan A: tp"), ("tp=4;tp=4&tp=2", "plan B: tp"), ("tp=4;colour=red", "plan B: colour"),
        ("tp=4;plans=tp%3D2", "plan B: plans"), ("tp=4;v=2", "plan B: v"), ("tp=4;provider=%ff", "plan B: link"),
        ("tp=4;model=<script>", "plan B: model"), ("tp=4;model=custom&x=1AAAA", "plan B: x"), ("tp=4;tp=", "plan B: tp"),
        ("tp=4;preset=nothing", "plan B: preset"), ("tp=4;prefill_tp=4", "plan B: prefill_tp"),
    ],
)  # fmt: skip
def test_a_refused_plan_is_named_by_its_letter_and_field(text: str, field: str) -> None:
    with pytest.raises(LinkError) as caught:
        comparison_from(text)
    assert caught.value.faults[0].field == field
    assert all(len(fault.value) <= 80 and str(fault).isprintable() for fault in caught.value.faults)


def test_every_plans_faults_are_told_at_once() -> None:
    with pytest.raises(LinkError) as caught:
        comparison_from("tp=0&isl=x;tp=4;weights=fp9")
    assert [fault.field for fault in caught.value.faults] == ["plan A: tp", "plan A: isl", "plan C: weights"]


@pytest.mark.parametrize("text", ["", "E", "a", "AB", "D", "1", "A "])
def test_the_reference_is_a_plan_of_the_comparison(text: str) -> None:
    assert [reference_from(letter, 3) for letter in "ABC"] == [0, 1, 2]
    with pytest.raises(LinkError) as caught:
        reference_from(text, 3)
    assert caught.value.faults[0].field == "against"


def test_what_somebody_pastes() -> None:
    assert pasted(" llama70b-fp8-a\n") == ARTICLE[:1]
    assert pasted("https://host/?tp=4&weights=fp8") == (Scenario(tp=4, weights="fp8"),)
    assert pasted(comparison_link(ARTICLE, "https://host/compare")) == tuple(pinned(each) for each in ARTICLE)
    for text in ("", "nothing", "https://host/compare?plans=tp%3D4", "plans=a&plans=b", "tp=4&tp=2"):
        with pytest.raises(InputError):
            pasted(text)


# --- documents --------------------------------------------------------------------------------------


def test_csv_has_a_row_a_plan_and_reads_back() -> None:
    text = comparison_csv(found(), "https://host/")
    assert from_csv(text) == ARTICLE
    rows = list(csv.DictReader(io.StringIO(text.removeprefix(BOM), newline="")))
    assert [row["gpus"] for row in rows] == ["1", "2", "4", "4"]
    assert [from_link(row["link"]) for row in rows] == [pinned(each) for each in ARTICLE]


def test_json_holds_plans_differences_sentences_and_link() -> None:
    made = json.loads(comparison_json(found(3), "https://host/", "https://host/compare"))
    assert list(made["plans"]) == list(LETTERS)
    assert made["against"] == "D"
    assert made["plans"]["C"]["batch"] == 572
    assert made["plans"]["C"]["link"].startswith("https://host/?")
    assert made["differences"]["weights"] == {"A": "fp8", "B": "fp8", "C": "fp8", "D": "bf16"}
    assert made["sentences"] == list(found(3).sentences)
    assert set(made["ratios"]) == set("ABC")
    assert made["ratios"]["C"]["gpus"] == 1
    assert made["link"] == comparison_link(ARTICLE, "https://host/compare", 3)


def test_json_of_plans_that_do_not_stand_has_no_ratio() -> None:
    made = json.loads(comparison_json(comparison([Scenario(), Scenario(tp=3)])))
    assert set(made["ratios"]["B"].values()) == {None}


# --- calibrated beside uncalibrated -------------------------------------------------------------------


HERE = Scenario(weights="fp8", tp=4)


def calibrated(*loads: int) -> Scenario:
    """The same scenario, calibrated by points 20 % above the plan."""
    tpot = [outcome(HERE.with_(at_batch=load)).tpot_ms or 0.0 for load in loads]
    points = [Point(concurrency=load, tpot_ms=1.2 * ms) for load, ms in zip(loads, tpot, strict=True)]
    return calibrate(HERE, points).with_(at_batch=None)


@pytest.mark.parametrize(
    ("others", "begins"),
    [
        (("h200",), "A is calibrated by 3 measured points, B is not: "),
        (("plain",), "A is calibrated by 3 measured points, B is not: "),
        (
            ("one", "h200", "plain"),
            "A is calibrated by 3 measured points and B is calibrated by 1 measured point, C and D are not: ",
        ),
        (("h200", "one"), "A is calibrated by 3 measured points and C is calibrated by 1 measured point, B is not: "),
    ],
)
def test_a_calibrated_plan_beside_one_that_is_not_is_said(others: tuple[str, ...], begins: str) -> None:
    own = calibrated(2, 16, 64)
    known = {"h200": own.with_(gpu="h200-sxm"), "plain": HERE, "one": calibrated(16)}
    made = comparison([own, *(known[name] for name in others)])
    assert made.sentences[0].startswith(begins)
    assert "a measurement is held against a prediction" in made.sentences[0]
    assert json.loads(comparison_json(made))["sentences"][0] == made.sentences[0]


def test_plans_that_are_alike_in_it_are_compared_without_a_word() -> None:
    own = calibrated(16)
    for pair in ([own, own.with_(tp=8)], [HERE, HERE.with_(gpu="h200-sxm")], [own.with_(gpu="h200-sxm"), HERE]):
        assert not any("calibrated" in each for each in comparison(pair).sentences)
