"""Requests made by chance: how they arrive, how long they are, and what they share, all from one seed.

Every kind of chance has a stream of its own, so that another rate moves arrivals and leaves lengths alone, and another
spread of outputs leaves inputs alone. Arrivals are drawn at one request a second and then brought to the rate (all but
`diurnal`, whose day keeps its length): two rates see the same bursts.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from planner.errors import Fault, InputError
from planner.simulate.requests import NONE, Requests, Seconds, Whole, requests
from planner.simulate.traffic import MOST_REQUESTS, Traffic
from planner.specs.fields import shown
from planner.specs.scenario import Scenario

PIECES: Final = 1 << 16
"""Pieces of a day in which its rate counts as constant."""

_ARRIVALS, _INPUTS, _OUTPUTS, _THINKING, _DRAWN = range(5)
"""Streams of chance."""


def made(scenario: Scenario, traffic: Traffic, rate: float, longest: int | None = None) -> Requests:
    """`traffic.requests` requests of a scenario, in the order in which they arrive.

    With `closed` every request arrives at 0: the loop that sends one when another has ended sets the times.

    Without sessions the mean lengths are the scenario's, and with a prefix all requests form group 0: each shares the
    floor of `prefix` times its input tokens with the others, at least one token less than it has.

    Sessions start as the arrival process says, at `rate / turns`; each turn arrives an exponential time of mean `think_s`
    after the one before it, counted from arrival to arrival. The prompt of turn k holds the system prompt of
    s = floor(prefix · isl) tokens, which all sessions share, the new input of k turns and the outputs of the k − 1 before:
    isl_k = s + k·u + (k − 1)·osl. The new input u makes the mean over the turns the scenario's isl; spreads are those of
    u and of outputs. When the turns do not divide the requests, the session that starts last is cut short.

    Args:
        rate: requests a second, all turns counted [1/s]; `closed` does not look at it.
        longest: longest sequence that is served, input and output together [tokens]. Longer inputs are cut to one token
            less than it, outputs to what is left: so cut, the mean is below the scenario's. None = nothing is cut.

    Raises:
        InputError: for a rate that is not above zero, or turns that the mean input has no room for.
    """
    if traffic.arrival != "closed":
        _checked(rate)
    found = (_apart if traffic.turns == 1 else _sessions)(scenario, traffic, rate)
    return found if longest is None else _cut(found, longest)


def resampled(source: Requests, count: int, rate: float, seed: int) -> Requests:
    """Requests with the lengths of a trace and Poisson arrivals: pairs of input and output drawn with replacement.

    Nothing is shared: what one request had in common with another has no meaning in another order.

    Args:
        rate: requests a second [1/s].

    Raises:
        InputError: for a rate or a count that is not above zero.
    """
    _checked(rate)
    if not 1 <= count <= MOST_REQUESTS:
        raise InputError((Fault("requests", shown(count), f"must be a whole number from 1 to {MOST_REQUESTS:,}"),))
    drawn = _stream(seed, _DRAWN).integers(0, len(source), count)
    arrival = np.cumsum(_stream(seed, _ARRIVALS).exponential(1.0, count)) / rate
    return requests(arrival, source.isl[drawn], source.osl[drawn])


def arrivals(traffic: Traffic, rate: float, count: int) -> Seconds:
    """When so many requests (or sessions) arrive [s], not falling.

    `constant` begins at 0; the others begin after a first time between arrivals, as if the run began at any moment.

    Args:
        rate: mean arrivals a second [1/s]; of a day, its mean over the whole day.
    """
    chance = _stream(traffic.seed, _ARRIVALS)
    if traffic.arrival == "closed":
        return np.zeros(count)
    if traffic.arrival == "constant":
        return np.arange(count) / rate
    if traffic.arrival == "gamma":
        shape = traffic.cv**-2
        return np.cumsum(chance.gamma(shape, 1.0 / shape, count)) / rate
    poisson = np.cumsum(chance.exponential(1.0, count)) / rate
    return poisson if traffic.arrival == "poisson" else _of_a_day(poisson, traffic)


def lengths(mean: float, cv: float, count: int, chance: np.random.Generator) -> Whole:
    """Whole tokens, at least 1: one token and a lognormal rest, so that mean and standard deviation are those asked.

    The part of a token is rounded up with its own probability, which leaves the mean as it is however short lengths are.

    Args:
        mean: mean length, at least 1 [tokens].
        cv: standard deviation over mean; 0 = no spread, but for the whole token above or below a broken mean.
    """
    rest = np.full(count, mean - 1.0)
    if cv > 0.0 and mean > 1.0:
        variance = math.log1p((cv * mean / (mean - 1.0)) ** 2)
        rest *= chance.lognormal(-variance / 2.0, math.sqrt(variance), count)
    return 1 + np.floor(rest + chance.random(count)).astype(np.int64)


def new_input(scenario: Scenario, turns: int) -> float:
    """New input tokens of each turn of a session, so that the mean input over its turns is the scenario's.

    Raises:
        InputError: when less than one token is left for it.
    """
    system, outputs = _system(scenario), scenario.osl * (turns - 1) / 2.0
    new = (scenario.isl - system - outputs) / ((turns + 1) / 2.0)
    if new >= 1.0:
        return new
    needed = math.ceil((outputs + (turns + 1) / 2.0) / (1.0 - system / scenario.isl)) if system < scenario.isl else None
    most = int((scenario.isl - system - 0.5 + scenario.osl / 2.0) / (scenario.osl / 2.0 + 0.5))
    allowed = (
        f"earlier turns' outputs of {scenario.osl:,} tokens and the shared prefix leave a mean input of {scenario.isl:,} tokens "
        f"no room for new text; {_ways(needed, most)}"
    )
    raise InputError((Fault("turns", str(turns), allowed),))


def _ways(needed: int | None, most: int) -> str:
    """What would give a session's turns room."""
    fewer = f"at most {most} turns would do" if most > 1 else "1 turn would do"
    return fewer if needed is None else f"{fewer}, or an isl of about {needed:,}, or shorter outputs"


def _checked(rate: float) -> None:
    if not (math.isfinite(rate) and rate > 0.0):
        raise InputError((Fault("rate", shown(rate), "must be a number of requests a second above 0"),))


def _stream(seed: int, kind: int) -> np.random.Generator:
    """Chance of one kind, the same for the same seed whatever else is drawn."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(kind,)))


def _system(scenario: Scenario) -> int:
    """Tokens of the system prompt that all sessions share."""
    return int(_shared(scenario.prefix, scenario.isl))


def _shared(prefix: float, isl: Whole | int) -> Whole:
    """Whole tokens of a share; what binary fractions lack (0.29 · 100 = 28.999…) counts as whole."""
    return np.floor(prefix * np.asarray(isl) + 1e-6).astype(np.int64)


def _apart(scenario: Scenario, traffic: Traffic, rate: float) -> Requests:
    """Requests that are no turns of sessions."""
    count = traffic.requests
    isl = lengths(float(scenario.isl), traffic.isl_cv, count, _stream(traffic.seed, _INPUTS))
    osl = lengths(float(scenario.osl), traffic.osl_cv, count, _stream(traffic.seed, _OUTPUTS))
    alone = requests(arrivals(traffic, rate, count), isl, osl)
    if scenario.prefix == 0.0:
        return alone
    shared = np.minimum(_shared(scenario.prefix, isl), isl - 1)
    return Requests(alone.arrival, isl, osl, np.zeros(count, dtype=np.int64), shared, alone.session)


MOST_UNDER_WAY = 4_000_000
"""Requests of sessions under way that a run may begin among."""


def _sessions(scenario: Scenario, traffic: Traffic, rate: float) -> Requests:
    """Turns of sessions, sorted by arrival; turns that arrive together keep the order of sessions and of turns.

    Sessions are under way when the run begins, so that turns come at the rate from the first moment on; the first turns of
    those are over. A day begins with none under way, at its own first moment.
    """
    turns, count = traffic.turns, traffic.requests
    before = _under_way(traffic, rate)
    many, system = before + -(-count // turns), _system(scenario)
    arrival = _turn_arrivals(traffic, rate, many)
    begin = arrival[before, 0] if before else 0.0
    came = np.argsort(arrival.reshape(-1), kind="stable")
    came = came[arrival.reshape(-1)[came] >= begin][:count]
    new = _turns(new_input(scenario, turns), traffic.isl_cv, (many, turns), _stream(traffic.seed, _INPUTS))
    osl = lengths(float(scenario.osl), traffic.osl_cv, many * turns, _stream(traffic.seed, _OUTPUTS))
    osl = osl.reshape(many, turns)
    earlier = np.cumsum(osl, axis=1) - osl
    isl = system + np.cumsum(new, axis=1) + earlier
    group = np.full(len(came), NONE if system == 0 else 0, dtype=np.int64)
    at, session = arrival.reshape(-1)[came] - begin, came // turns
    shared = np.full(len(came), system, dtype=np.int64)
    return Requests(at, isl.reshape(-1)[came], osl.reshape(-1)[came], group, shared, session)


SPREADS = 4.0
"""Standard deviations of a session's length that are looked back from the first moment of a run."""


def _under_way(traffic: Traffic, rate: float) -> int:
    """Sessions that began before the run, far enough back that hardly any older one is still going.

    Raises:
        InputError: where more requests than can be held would be under way.
    """
    if traffic.arrival in ("closed", "diurnal"):
        return 0
    thoughts = traffic.turns - 1.0
    back = traffic.think_s * (thoughts + SPREADS * math.sqrt(thoughts))
    if rate * back > MOST_UNDER_WAY:
        allowed = (
            f"{traffic.turns} turns at {rate:g} requests/s have {rate * back:,.0f} requests of sessions under way, at most "
            f"{MOST_UNDER_WAY:,} can be: think less, or fewer turns, or a lower rate"
        )
        raise InputError((Fault("think_s", f"{traffic.think_s:g}", allowed),))
    return math.ceil(rate / traffic.turns * back)


def _turns(mean: float, cv: float, shape: tuple[int, int], chance: np.random.Generator) -> Whole:
    """New input of each turn [tokens]; without spread equal in all sessions, the broken part carried to the next turn."""
    if cv > 0.0:
        return lengths(mean, cv, shape[0] * shape[1], chance).reshape(shape)
    upto = np.floor(mean * np.arange(shape[1] + 1) + 0.5).astype(np.int64)
    return np.broadcast_to(np.diff(upto), shape)


def _turn_arrivals(traffic: Traffic, rate: float, many: int) -> Seconds:
    """When each turn of each session arrives, shape (sessions, turns) [s]."""
    turns = traffic.turns
    if traffic.arrival == "closed":
        return np.zeros((many, turns))
    thinking = _stream(traffic.seed, _THINKING).exponential(traffic.think_s, (many, turns - 1))
    after = np.concatenate((np.zeros((many, 1)), np.cumsum(thinking, axis=1)), axis=1)
    return arrivals(traffic, rate / turns, many)[:, None] + after


def _of_a_day(poisson: Seconds, traffic: Traffic) -> Seconds:
    """Arrivals of a rate that swings, from those of its mean: each is put where the integrated rate has come as far."""
    share = np.linspace(0.0, 1.0, PIECES + 1)
    come = share + traffic.swing / (2.0 * np.pi) * (1.0 - np.cos(2.0 * np.pi * share))
    come[-1] = 1.0
    days = poisson / traffic.period_s
    whole = np.floor(days)
    return traffic.period_s * (whole + np.interp(days - whole, come, share))


def _cut(found: Requests, longest: int) -> Requests:
    """Requests of at most so many tokens, input and output together; what is longer is kept at the limit."""
    if longest < 2:
        raise InputError(
            (Fault("longest", shown(longest), "must be at least 2 tokens, one of input and one of output"),)
        )
    isl = np.minimum(found.isl, longest - 1)
    osl = np.minimum(found.osl, longest - isl)
    shared = np.minimum(found.shared, isl - 1)
    return Requests(found.arrival, isl, osl, found.group, shared, found.session)
