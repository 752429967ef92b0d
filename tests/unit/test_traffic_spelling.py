"""Traffic as text: every text is read as strictly as a link, every fault is named, and what is written is read back."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.scenarios import load_preset
from planner.errors import InputError
from planner.share import PAGE_PARAMETERS
from planner.simulate.spelling import asked_of, traffic_from_texts, traffic_link, traffic_texts
from planner.simulate.traffic import ARRIVALS, OVERS, POLICIES, PREEMPTS, ROUTERS, TRAFFIC_FIELDS, Traffic, describe
from planner.specs.scenario import SCENARIO_FIELDS, Scenario


def refused(**texts: str) -> dict[str, str]:
    """What is said of each refused setting; a setting that is refused twice fails."""
    with pytest.raises(InputError) as caught:
        traffic_from_texts(texts)
    said = {fault.field: f"{fault.value}: {fault.allowed}" for fault in caught.value.faults}
    assert len(said) == len(caught.value.faults)
    return said


def test_nothing_written_is_the_default() -> None:
    assert traffic_from_texts({}) == Traffic()
    assert traffic_texts(Traffic()) == {}


def test_every_setting_as_it_is_written() -> None:
    texts = {
        "arrival": "gamma", "rate": "12.5", "cv": "3", "swing": "1", "period_s": "3600", "clients": "8", "isl_cv": "0.7",
        "osl_cv": "1.25", "turns": "4", "think_s": "0", "requests": "500", "seed": "4294967295", "policy": "static",
        "preempt": "swap", "router": "affinity", "in_flight": "32", "over": "reject", "fail_at_s": "60", "repair_s": "0.5",
        "failure_hours": "40000", "availability": "0.9999",
    }  # fmt: skip
    traffic = traffic_from_texts(texts)
    assert traffic == Traffic(
        arrival="gamma", rate=12.5, cv=3.0, swing=1.0, period_s=3600.0, clients=8, isl_cv=0.7, osl_cv=1.25, turns=4,
        think_s=0.0, requests=500, seed=4294967295, policy="static", preempt="swap", router="affinity", in_flight=32,
        over="reject", fail_at_s=60.0, repair_s=0.5, failure_hours=40000.0, availability=0.9999,
    )  # fmt: skip
    assert traffic_texts(traffic) == texts
    assert tuple(traffic_texts(traffic)) == TRAFFIC_FIELDS


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "arrival",
            "poison",
            "poison: must be one of poisson, gamma, constant, diurnal, closed (did you mean poisson?)",
        ),
        ("arrival", "Poisson", "must be one of"),
        ("arrival", "", "empty: must be one of"),
        ("rate", "0", "0: must be a number from 0.001 to 1,000,000 (requests/s), or left out"),
        ("rate", "", "empty: must be a number from 0.001"),
        ("rate", "nan", "nan: must be a number from 0.001"),
        ("rate", "inf", "inf: must be a number from 0.001"),
        ("rate", "1e3", "1e3: must be a number from 0.001"),
        ("rate", "-4", "-4: must be a number from 0.001"),
        ("rate", "4,5", "4,5: must be a number from 0.001"),
        ("rate", "1000001", "must be a number from 0.001 to 1,000,000"),
        ("cv", "0", "0: must be a number from 0.01 to 20"),
        ("cv", "20.5", "20.5: must be a number from 0.01 to 20"),
        ("swing", "1.01", "must be a number from 0 to 1"),
        ("period_s", "604801", "must be a number above 0 and at most 604,800 (s)"),
        ("clients", "0", "must be a whole number from 1 to 100,000 (requests)"),
        ("clients", "8.0", "must be a whole number"),
        ("isl_cv", "11", "must be a number from 0 to 10"),
        ("turns", "101", "must be a whole number from 1 to 100"),
        ("requests", "1000001", "must be a whole number from 1 to 1,000,000 (requests)"),
        ("seed", "4294967296", "must be a whole number from 0 to 4,294,967,295"),
        ("seed", "01", "must be a whole number"),
        ("seed", " 1", "must be a whole number"),
        ("policy", "engines", "did you mean engine?"),
        ("in_flight", "0", "must be a whole number from 1 to 1,000,000 (requests), or left out"),
        ("over", "drop", "must be one of queue, reject"),
        ("fail_at_s", "-1", "must be a number from 0 to 604,800 (s), or left out"),
        ("repair_s", "0", "must be a number above 0 and at most 604,800 (s)"),
        ("arival", "gamma", "not a setting of the traffic (did you mean arrival?)"),
        ("<b>x</b>", "8", "not a setting of the traffic"),
    ],
)
def test_refused_with_what_is_allowed(name: str, text: str, says: str) -> None:
    said = refused(**{name: text})
    assert set(said) == {name}
    assert says in said[name]


def test_every_fault_is_told_not_only_the_first() -> None:
    assert set(refused(arrival="x", cv="0", seed="y", nothing="1")) == {"arrival", "cv", "seed", "nothing"}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"cv": 0.0}, "cv = 0.0: must be a number from 0.01 to 20"),
        ({"cv": math.nan}, "cv = nan: must be a number from 0.01 to 20"),
        ({"rate": math.inf}, "rate = inf: must be a number from 0.001 to 1,000,000 (requests/s), or left out"),
        ({"seed": True}, "seed = True: must be a whole number from 0 to 4,294,967,295"),
        ({"turns": 2.0}, "turns = 2.0: must be a whole number from 1 to 100"),
        ({"over": "drop"}, "over = drop: must be one of queue, reject"),
        ({"requsts": 5}, "requsts = 5: not a setting of the traffic (did you mean requests?)"),
    ],
)
def test_values_are_refused_in_the_same_words(values: dict[str, object], says: str) -> None:
    with pytest.raises(InputError) as caught:
        Traffic(**values)
    assert str(caught.value) == says


def test_every_setting_is_explained() -> None:
    for name in TRAFFIC_FIELDS:
        text = describe(name)
        assert text.meaning.endswith(".")
        assert text.allowed.startswith("must be ")
        assert text.optional == (text.default is None)
        assert text.unit == ("s" if name.endswith("_s") else text.unit)


# --- links ----------------------------------------------------------------------------------------------------------


def test_its_names_are_the_pages_parameters_and_no_other_pages() -> None:
    assert PAGE_PARAMETERS["traffic"] == TRAFFIC_FIELDS
    others = {name for page, names in PAGE_PARAMETERS.items() if page != "traffic" for name in names}
    assert not set(TRAFFIC_FIELDS) & {*SCENARIO_FIELDS, *others, "preset", "embed", "embed_options"}


def test_an_argument_is_a_preset_a_link_or_a_query_string() -> None:
    assert asked_of("llama70b-fp8-c") == (load_preset("llama70b-fp8-c"), {})
    assert asked_of("tp=4") == (Scenario(tp=4), {})
    assert asked_of("https://host/traffic?tp=4&cv=3&arrival=gamma#top") == (
        Scenario(tp=4), {"cv": "3", "arrival": "gamma"},
    )  # fmt: skip
    assert asked_of("preset=llama70b-fp8-c&seed=7&embed=true") == (load_preset("llama70b-fp8-c"), {"seed": "7"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nothing", "must be a preset's id, a link or its query string"),
        ("tp=4&cv=2&cv=3", "cv = 2, 3: given 2 times"),
        ("tp=4&arival=gamma", "not a scenario field or a setting of the traffic (did you mean arrival?)"),
        ("tp=4&plans=tp%3D2", "plans = tp=2: belongs to another page"),
        ("tp=0&cv=3", "tp = 0: must be a whole number"),
    ],
)
def test_refused_links(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        asked_of(text)
    assert len(caught.value.faults) == 1
    assert says in str(caught.value)


def test_a_link_holds_what_differs() -> None:
    bursts = Traffic(arrival="gamma", cv=3.0)
    link = traffic_link(Scenario(tp=4), bursts, "https://host/traffic")
    assert link == "https://host/traffic?tp=4&arrival=gamma&cv=3"
    scenario, texts = asked_of(link)
    assert (scenario, traffic_from_texts(texts)) == (Scenario(tp=4), bursts)
    assert traffic_link(Scenario(), bursts) == "?arrival=gamma&cv=3"
    assert traffic_link(Scenario(tp=4), Traffic()) == "?tp=4"
    assert traffic_link(Scenario(), Traffic()) == "?"


def reals(low: float, high: float, *, above: bool = False) -> st.SearchStrategy[float]:
    return st.floats(low, high, exclude_min=above)


@given(
    arrival=st.sampled_from(ARRIVALS), rate=st.none() | reals(0.001, 1e6), cv=reals(0.01, 20),
    swing=reals(0, 1), period_s=reals(0, 604_800, above=True), clients=st.integers(1, 100_000), isl_cv=reals(0, 10),
    osl_cv=reals(0, 10), turns=st.integers(1, 100), think_s=reals(0, 86_400), requests=st.integers(1, 1_000_000),
    seed=st.integers(0, 2**32 - 1), policy=st.sampled_from(POLICIES), preempt=st.sampled_from(PREEMPTS),
    router=st.sampled_from(ROUTERS), in_flight=st.none() | st.integers(1, 1_000_000), over=st.sampled_from(OVERS),
    fail_at_s=st.none() | reals(0, 604_800), repair_s=reals(0, 604_800, above=True),
)  # fmt: skip
def test_what_is_written_is_read_back(**values: object) -> None:
    traffic = Traffic(**values)
    assert traffic_from_texts(traffic_texts(traffic)) == traffic
    scenario, texts = asked_of(traffic_link(Scenario(tp=2), traffic))
    assert traffic_from_texts(texts) == traffic
    assert scenario.tp == 2


def test_zero_has_no_sign() -> None:
    assert traffic_texts(Traffic(swing=-0.0)) == {"swing": "0"}
