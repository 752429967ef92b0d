"""Whatever plans there are, a comparison's link means them again; whatever its text says, it is read or refused."""

from __future__ import annotations

from urllib.parse import parse_qs

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from planner.compare import comparison_from, comparison_link
from planner.compare.link import LETTERS, pasted, spelled
from planner.errors import LinkError
from planner.share import pinned
from planner.specs.scenario import Scenario
from tests.properties.test_link_round_trip import PIECES, check_refusal, scenarios

PLANS = st.lists(scenarios(), min_size=2, max_size=4)


@given(PLANS, st.sampled_from(["", "https://host:8501/compare"]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_link_round_trip(chosen: list[Scenario], base: str) -> None:
    assert comparison_from(spelled(chosen)) == tuple(chosen)
    link = comparison_link(chosen, base, len(chosen) - 1)
    kept = tuple(pinned(scenario) for scenario in chosen)
    read = parse_qs(link.partition("?")[2], strict_parsing=True)
    assert comparison_from(read["plans"][0]) == kept
    assert read["against"] == [LETTERS[len(chosen) - 1]]
    assert pasted(link) == kept


@st.composite
def tampered(draw: st.DrawFn) -> str:
    """Sound plans with pieces cut out or pasted in."""
    text = spelled(draw(PLANS))
    at = draw(st.integers(0, len(text)))
    return (
        text[:at]
        + draw(PIECES | st.sampled_from([";", "&", "%3B", "?", "#", "://"]))
        + text[at + draw(st.integers(0, 5)) :]
    )


@given(tampered() | st.text(max_size=60) | st.lists(PIECES, max_size=6).map(";".join))
@example("\ud800;\udfff")
@example(";" * 5000)
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        found = comparison_from(text)
    except LinkError as error:
        check_refusal(error)
    else:
        assert comparison_from(spelled(found)) == found
