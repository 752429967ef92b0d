"""Engines that leave new requests waiting, in cases small enough for a pencil: every step takes a second."""

from __future__ import annotations

import numpy as np
import pytest

from planner.simulate.gateway import Gateway
from planner.simulate.loop import Loop
from planner.simulate.patient import Patience, PatientEngine
from planner.simulate.requests import Requests
from planner.simulate.run import engine_of
from tests.simulating import asked, wide


def first_tokens(table: Requests, patience: Patience | None) -> list[float]:
    engine = engine_of(wide(), table, np.random.SeedSequence(1), patience)
    assert isinstance(engine, PatientEngine) == (patience is not None)
    loop = Loop(table, [engine], Gateway([engine], "least-loaded", 100, table, 1), None, "queue")
    loop.run(None, None)
    found = loop.outcome(0)
    assert found.served.all()
    return [float(each) for each in found.first]


TWO = asked([0.0, 2.5], 10, 30)
"""The first reads until 1 s and decodes; the second comes amid its second decode step."""


@pytest.mark.parametrize(
    ("patience", "second"),
    [
        (None, 4.0),  # let in at 3 s, read until 4 s
        (Patience(1), 4.0),
        (Patience(4), 6.0),  # looked at 1 s, after the prompt; again four steps later
        (Patience(2), 4.0),  # looked at 1 s and 3 s
        (Patience(4, 1000), 8.0),  # seen at 3 s, left for four steps
        (Patience(4, 11), 4.0),  # ten tokens and one running request are enough
        (Patience(20, 1000), 24.0),
    ],
)
def test_the_second_request_waits(patience: Patience | None, second: float) -> None:
    assert first_tokens(TWO, patience) == [1.0, second]


def test_company_ends_the_wait() -> None:
    table = asked([0.0, 2.5, 4.2], [10, 10, 90], 30)
    assert first_tokens(table, Patience(9, 100)) == [1.0, 6.0, 6.0]
    assert first_tokens(table, Patience(9, 200)) == [1.0, 13.0, 13.0]


def test_looks_keep_their_beat_while_nobody_waits() -> None:
    """Looked at 1 s, then every four steps: 21 s is a look, and the request of 18.5 s waits for it."""
    assert first_tokens(asked([0.0, 18.5], 10, 60), Patience(4)) == [1.0, 22.0]


def test_nobody_waits_for_an_engine_that_is_idle_or_becomes_so() -> None:
    """The first has its second and last token at 2 s; the next one, of 1.5 s, is read from then on."""
    assert first_tokens(asked([0.0, 1.5], 10, 2), Patience(50)) == [1.0, 3.0]
    assert first_tokens(asked([0.0, 7.0], 10, 2), Patience(50, 1000)) == [1.0, 8.0]
