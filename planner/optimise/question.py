"""What a search is asked: a scenario, the space around it, what to make best, and what must hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import Field, ValidationError

from planner.errors import Fault
from planner.specs.checked import Checked
from planner.specs.fields import (
    CachePrecision,
    DraftTokens,
    Identifier,
    PrefillMode,
    TokensOrZero,
    WeightPrecision,
    shown,
)
from planner.specs.scenario import Scenario

Objective: TypeAlias = Literal["usd_per_m_goodput", "usd_per_hour", "gpus", "tpot_ms", "ttft_ms", "goodput_tok_s"]
"""The plan field that is made best: dollars a million good tokens, dollars an hour (for a request rate), GPUs, TPOT and
TTFT are made small; good tokens a second of all GPUs that there are is made large."""

OBJECTIVES: Final[tuple[str, ...]] = get_args(Objective)

LARGEST: Final = ("goodput_tok_s",)
"""Objectives that are made large; the others are made small."""

MOST_GPUS: Final = 4096
"""Largest budget of devices that a search takes."""

LIMITED: Final = (
    "tpot_ms", "ttft_ms", "batch", "gpus", "gpus_per_replica", "replicas", "output_tok_s", "goodput_tok_s",
    "goodput_tok_s_gpu", "usd_per_hour", "usd_per_m_output", "usd_per_m_goodput",
)  # fmt: skip
"""Plan fields that a limit may speak of."""


@dataclass(frozen=True)
class Limit:
    """One more thing that must hold: a plan field at most (or at least) a value, in the field's own unit."""

    field: str
    at_most: bool
    value: float

    def __str__(self) -> str:
        """As it is written: `tpot_ms<=30`."""
        return f"{self.field}{'<=' if self.at_most else '>='}{self.value:g}"


class Question(Checked):
    """A scenario and what may vary around it; frozen, validated, hashable.

    An empty list means the scenario's own value. Everything that no list names stays as the scenario has it: workload,
    SLA, engine, profile, techniques, prices. The scenario's own layout is not looked at; its own `at_batch`, where it has
    one, is the only batch that is tried.

    Raises:
        InputError: with one fault per refused field.
    """

    scenario: Scenario
    """Model, workload, SLA, engine, and the value of everything that does not vary."""
    accelerators: tuple[Identifier, ...] = ()
    """Accelerators of the replicas."""
    precisions: tuple[WeightPrecision, ...] = ()
    """Weight precisions."""
    caches: tuple[CachePrecision, ...] = ()
    """KV-cache precisions."""
    modes: tuple[PrefillMode, ...] = ()
    """Where prefill runs."""
    prefill_accelerators: tuple[Identifier, ...] = ()
    """Accelerators of prefill pools; empty = those of `accelerators`."""
    chunks: tuple[TokensOrZero, ...] = ()
    """Prefill tokens a step."""
    drafts: tuple[DraftTokens, ...] = ()
    """Draft tokens a step."""
    max_gpus: Annotated[int, Field(ge=1, le=MOST_GPUS)] = 16
    """Most GPUs of the whole deployment: all replicas, spares and prefill workers."""
    objective: Objective = "usd_per_m_goodput"
    """The plan field that is made best."""
    limits: tuple[Limit, ...] = ()
    """What must hold beside the SLA."""
    aim: Limit | None = None
    """A plan field that is made as small (or as large) as can be, in the place of the objective; its value says nothing. No
    link writes it: a search for the smallest relaxation sets it."""

    @classmethod
    def faults(cls, error: ValidationError) -> Iterator[Fault]:
        """One fault per refused field."""
        for item in {str(each["loc"][0]): each for each in error.errors()}.values():
            yield Fault(str(item["loc"][0]) if item["loc"] else "question", shown(item["input"]), item["msg"].lower())

    def contradictions(self) -> Iterator[Fault]:
        """What no search can answer."""
        return _contradictions(self)

    def shown(self, value: float) -> float:
        """A value of the search, which makes everything small and counts in seconds, in the objective's own unit."""
        if self.aim is not None:
            return value if self.aim.at_most else -value
        if self.objective in LARGEST:
            return -value
        return value * 1e3 if self.objective in ("tpot_ms", "ttft_ms") else value


def _contradictions(question: Question) -> Iterator[Fault]:
    """What no search can answer."""
    if question.objective == "usd_per_hour" and question.scenario.qps == 0:
        yield Fault("objective", "usd_per_hour", "needs a request rate: set qps above 0")
    if question.scenario.osl == 1 and question.objective == "tpot_ms":
        yield Fault("objective", "tpot_ms", "needs osl of 2 or more: requests of one output token have no TPOT")
    for limit in question.limits:
        if limit.field not in LIMITED:
            yield Fault("limits", shown(limit.field), f"must be one of {', '.join(LIMITED)}")
    for name in ("accelerators", "precisions", "caches", "modes", "prefill_accelerators", "chunks", "drafts"):
        values = getattr(question, name)
        if len(set(values)) < len(values):
            yield Fault(name, ", ".join(map(str, values)), "must name each value once")
