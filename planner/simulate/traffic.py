"""What a simulation is asked beside the scenario: how requests arrive, how they are spread, what goes wrong."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_type_hints

from pydantic import Field, ValidationError

from planner.errors import Fault
from planner.queue_answer import AVAILABILITY, FAILURE_HOURS, REPAIR_SECONDS
from planner.specs.checked import Checked
from planner.specs.fields import FieldText, field_text, near, shown

Arrival: TypeAlias = Literal["poisson", "gamma", "constant", "diurnal", "closed"]
"""How requests arrive: at random, in bursts, evenly, over a day, or each when another has ended (a load test)."""

Policy: TypeAlias = Literal["engine", "decode-first", "prefill-first", "static"]
"""What a step is filled with first; `engine` = as the scenario's engine does it; `static` = whole batches, the baseline."""

Preempt: TypeAlias = Literal["recompute", "swap"]
Router: TypeAlias = Literal["round-robin", "least-loaded", "two-choices", "affinity"]
Over: TypeAlias = Literal["queue", "reject"]

ARRIVALS: Final[tuple[str, ...]] = get_args(Arrival)
POLICIES: Final[tuple[str, ...]] = get_args(Policy)
PREEMPTS: Final[tuple[str, ...]] = get_args(Preempt)
ROUTERS: Final[tuple[str, ...]] = get_args(Router)
OVERS: Final[tuple[str, ...]] = get_args(Over)

MOST_REQUESTS: Final = 1_000_000
"""Most requests of one run."""


class Traffic(Checked):
    """Settings of a simulation; frozen, validated, hashable. Lengths, rate, SLA and replicas are the scenario's and its plan's.

    Raises:
        InputError: with one fault per refused field.
    """

    arrival: Arrival = "poisson"
    """How requests arrive."""
    rate: Annotated[float, Field(ge=0.001, le=1e6, allow_inf_nan=False)] | None = None
    """Requests a second for the whole deployment; empty = the scenario's `qps`, else `load` of what its plan carries."""
    cv: Annotated[float, Field(ge=0.01, le=20, allow_inf_nan=False)] = 2.0
    """Bursts: standard deviation over mean of the times between arrivals (`gamma`)."""
    swing: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    """How far the rate of a day swings around its mean (`diurnal`)."""
    period_s: Annotated[float, Field(gt=0, le=604_800, allow_inf_nan=False)] = 86_400.0
    """Length of that day."""
    clients: Annotated[int, Field(ge=1, le=100_000)] = 64
    """Requests in flight (`closed`)."""
    isl_cv: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.0
    """Spread of input lengths, lognormal; 0 = all have the mean."""
    osl_cv: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.0
    """Spread of output lengths, lognormal; 0 = all have the mean."""
    turns: Annotated[int, Field(ge=1, le=100)] = 1
    """Requests of a session; each turn's prompt holds all earlier ones. 1 = no sessions."""
    think_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 10.0
    """Mean time from a turn's arrival to the next turn's."""
    requests: Annotated[int, Field(ge=1, le=MOST_REQUESTS)] = 2000
    """Requests of a run."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 1
    """Seed of everything random."""
    policy: Policy = "engine"
    """What a step is filled with first."""
    preempt: Preempt = "recompute"
    """What becomes of a running request when the cache is full."""
    router: Router = "least-loaded"
    """How a gateway picks a replica."""
    in_flight: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Most requests that a replica is given at a time; empty = the plan's batch."""
    over: Over = "queue"
    """What becomes of a request above that: it waits in the gateway, or is turned away."""
    fail_at_s: Annotated[float, Field(ge=0, le=604_800, allow_inf_nan=False)] | None = None
    """When one replica fails; empty = none does."""
    repair_s: Annotated[float, Field(gt=0, le=604_800, allow_inf_nan=False)] = REPAIR_SECONDS
    """Time until it serves again."""
    failure_hours: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] = FAILURE_HOURS
    """Mean GPU-hours between two failures, for the spare replicas that an availability asks for."""
    availability: Annotated[float, Field(gt=0, le=0.999999, allow_inf_nan=False)] = AVAILABILITY
    """Share of time in which as many replicas as are needed must be up."""

    @classmethod
    def faults(cls, error: ValidationError) -> tuple[Fault, ...]:
        """One fault per field, in the order of the fields."""
        found = {str(item["loc"][0]) if item["loc"] else "traffic": item["input"] for item in error.errors()}
        return tuple(refusal(field, value) for field, value in found.items())


TRAFFIC_FIELDS: Final = tuple(Traffic.model_fields)
"""Names in the order in which links, options and files write them."""


@cache
def describe(field: str) -> FieldText:
    """Meaning, unit, default and allowed values of a setting of the traffic.

    Raises:
        KeyError: for a name that is none.
    """
    info = Traffic.model_fields[field]
    return field_text(field, hint_of(field), info.description or "", info.default)


def hint_of(field: str) -> Any:
    """The type of a setting, bounds included."""
    return _hints()[field]


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Traffic, include_extras=True)


def refusal(field: str, value: object) -> Fault:
    """The fault of a value that a setting does not allow, or of a setting that does not exist."""
    if field not in Traffic.model_fields:
        return Fault(shown(field), shown(value), f"not a setting of the traffic{near(field, TRAFFIC_FIELDS)}")
    text = describe(field)
    return Fault(field, shown(value), text.allowed + near(str(value), text.options))
