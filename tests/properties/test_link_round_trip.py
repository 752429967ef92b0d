"""Whatever scenario there is, its link and its row mean it again; whatever a link says, it is read or refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from planner.catalog.accelerators import accelerator_ids
from planner.catalog.calibration import correction_in, encode_calibration
from planner.catalog.models import model_ids
from planner.catalog.prices import providers
from planner.catalog.scenarios import preset_ids
from planner.errors import InputError, LinkError
from planner.export import from_csv, from_json, to_csv, to_json
from planner.share import from_link, from_pairs, to_link
from planner.specs.contradictions import POOL_FIELDS
from planner.specs.correction import Correction, Subject, Traffic
from planner.specs.scenario import SCENARIO_FIELDS, Scenario, describe
from planner.specs.spelling import read, spell
from tests.samples import plan

IDS = {
    "model": st.sampled_from(model_ids()),
    "gpu": st.sampled_from(accelerator_ids()),
    "prefill_gpu": st.sampled_from(accelerator_ids()),
    "provider": st.sampled_from(providers()),
    "c": st.from_regex(r"[a-z0-9]([a-z0-9.\-]{0,30}[a-z0-9])?", fullmatch=True),
}


def values(field: str) -> st.SearchStrategy[Any]:
    """Values that a field allows."""
    text = describe(field)
    match text.kind:
        case "whole":
            found: st.SearchStrategy[Any] = st.integers(int(text.low or 0), int(text.high or 0))
        case "number":
            found = st.floats(text.low, text.high)
        case "menu":
            found = st.just(1) if field == "v" else st.sampled_from([o for o in text.options if o != "custom"])
        case "switch":
            found = st.booleans()
        case _:
            found = IDS[field]
    return st.none() | found if text.optional else found


def shares(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers as a token spells them: five digits."""
    return st.floats(low, high).map(lambda value: float(f"{value:.5g}")).filter(lambda value: low <= value <= high)


@st.composite
def calibrations(draw: st.DrawFn) -> Correction:
    """Random corrections within their bounds."""
    subject = Subject(
        *(draw(values(field)) for field in ("model", "gpu", "engine", "weights", "kv", "tp", "pp", "dp", "ep")),
        spec=draw(st.booleans()),
    )
    times = [draw(shares(0.2, 5.0)), draw(shares(0.0, 10.0)), draw(shares(0.1, 10.0)), draw(shares(0.2, 5.0))]
    errors = [draw(shares(0.0, 10.0)), draw(shares(0.0, 10.0))]
    band = draw(shares(0.01, 0.9)), draw(shares(1.2, 100.0))
    sent = [
        draw(st.integers(1, 10_000_000)),
        draw(st.integers(1, 10_000_000)),
        draw(st.sampled_from(["colocated", "excluded"])),
    ]
    traffic = draw(st.none() | st.just(Traffic(*sent, draw(st.floats(0.0, 1.0)))))
    return Correction(subject, *times, draw(st.integers(1, 1_000)), *errors, band, traffic=traffic)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Random valid scenarios."""
    fields = draw(st.sets(st.sampled_from([field for field in SCENARIO_FIELDS if field != "x"])))
    chosen = {field: draw(values(field)) for field in sorted(fields)}
    if chosen.get("prefill") != "disaggregated":
        chosen = {field: value for field, value in chosen.items() if field not in POOL_FIELDS}
    if not chosen.get("spec"):
        chosen = {field: value for field, value in chosen.items() if field not in ("accept", "draft")}
    try:
        return Scenario.model_validate(chosen)
    except InputError:
        assume(False)
        raise


@given(scenarios(), st.sampled_from(["", "https://host:8501/plan"]))
@settings(max_examples=300, deadline=None)
def test_link_round_trip(scenario: Scenario, base: str) -> None:
    link = to_link(scenario, base)
    assert from_link(link) == scenario
    assert to_link(from_link(link), base) == link
    assert from_link("?" + "&".join(reversed(link.partition("?")[2].split("&")))) == scenario


@given(st.lists(scenarios(), max_size=4))
@settings(max_examples=60, deadline=None)
def test_csv_round_trip(chosen: list[Scenario]) -> None:
    assert from_csv(to_csv([plan(scenario=scenario) for scenario in chosen])) == tuple(chosen)


@given(scenarios(), calibrations())
@settings(max_examples=100, deadline=None)
def test_a_calibration_travels_with_any_scenario(scenario: Scenario, made: Correction) -> None:
    own = scenario.with_(profile="custom", x=encode_calibration(made))
    for found in (
        from_link(to_link(own)),
        *from_csv(to_csv([plan(scenario=own)])),
        from_json(to_json(plan(scenario=own))),
    ):
        assert found == own
        read_back = correction_in(str(found.x))
        assert replace(read_back, host_step=made.host_step) == made
        assert abs(read_back.host_step - made.host_step) <= 1e-4 * made.host_step


@given(scenarios())
@settings(max_examples=60, deadline=None)
def test_json_round_trip(scenario: Scenario) -> None:
    assert from_json(to_json(plan(scenario=scenario))) == scenario


@given(st.data(), st.sampled_from([field for field in SCENARIO_FIELDS if field != "x"]))
@settings(max_examples=200, deadline=None)
def test_every_allowed_value_has_a_spelling_that_reads_back(data: st.DataObject, field: str) -> None:
    value = data.draw(values(field))
    assume(value is not None)
    assert read(field, spell(value)) == value


NAMES = st.sampled_from([*SCENARIO_FIELDS, "preset", "embed", "tpp", "", "TP", "__class__"]) | st.text(max_size=8)
PIECES = (
    st.sampled_from(["", "1", "4", "-1", "1e9", "nan", "inf", "0.5", "1_000", " 4", "+4", "0x1", "on", "true", "fp8"])
    | st.sampled_from(["custom", "None", "null", "٤", "４", "<script>", "%", "%ff", "1AAAA", "9" * 400, *preset_ids()])
    | st.text(max_size=30)
    | st.integers().map(str)
    | st.floats().map(str)
)


@st.composite
def tampered(draw: st.DrawFn) -> str:
    """A sound link with pairs added, and pieces cut out or pasted in."""
    link = to_link(draw(scenarios()))
    extra = draw(st.lists(st.tuples(NAMES, PIECES), max_size=3))
    link = "&".join([link, *(f"{name}={value}" for name, value in extra)])
    at = draw(st.integers(0, len(link)))
    return link[:at] + draw(st.text(max_size=4)) + link[at + draw(st.integers(0, 4)) :]


def check_refusal(error: LinkError) -> None:
    """Every fault is one printable sentence with field, value and what is allowed."""
    assert error.faults
    for fault in error.faults:
        assert fault.field
        assert fault.value
        assert len(fault.value) <= 80
        assert len(fault.allowed) >= len("must be 1")
        assert str(fault).isprintable()
        assert fault.value in str(fault)


@given(tampered())
@example("?tp=4&tp=4")
@example("?%")
@example("?\ud800=\udfff")
@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_tampered_link_is_read_or_refused_and_nothing_else(link: str) -> None:
    try:
        scenario = from_link(link)
    except LinkError as error:
        check_refusal(error)
    else:
        assert from_link(to_link(scenario)) == scenario


@given(st.dictionaries(NAMES, st.lists(PIECES, max_size=2), max_size=4))
@settings(max_examples=300, deadline=None)
def test_raw_pairs_are_read_or_refused_and_nothing_else(pairs: dict[str, list[str]]) -> None:
    try:
        assert isinstance(from_pairs(pairs), Scenario)
    except LinkError as error:
        check_refusal(error)
