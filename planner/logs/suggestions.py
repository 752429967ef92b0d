"""What a difference suggests where no field of the plan explains it: each sentence only when its arithmetic holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from planner.catalog.engines import numbers_of
from planner.logs import explained_words as words
from planner.logs.compared import Case, Printed
from planner.logs.supposed import Held, Term, setting_of
from planner.physics.kv import CacheComponent
from planner.setting import Setting
from planner.specs.model import GroupedAttention, LatentAttention, attention_params
from planner.specs.precision import WEIGHTS
from planner.specs.scenario import Scenario
from planner.units import GIB

NEAR: Final = 0.15
"""Share within which a surplus is said to be as much as some part of the model or of the workspace."""

OTHER_DEVICE: Final = 0.03
"""Share by which the memory that a driver shows may differ and be the same device's."""

NOTABLE: Final = 1.0 * GIB
"""Workspace beyond the plan's that is worth a cause [B]."""


@dataclass(frozen=True)
class Puzzle:
    """A term of a log that the plan, as far as it is explained, does not have."""

    case: Case
    told: Printed
    setting: Setting
    now: Held

    @property
    def surplus(self) -> float:
        """What the log has more than the plan, in the term's unit."""
        return self.told.value - (self.now.of(self.told.term) or 0.0)


def cause(case: Case, told: Printed, scenario: Scenario, version: str) -> str:
    """A known cause whose arithmetic gives the difference; empty when there is none.

    Args:
        case: the log and the plan.
        told: the term.
        scenario: the plan's, with what was accepted so far.
        version: engine version whose rules hold; empty = the newest.
    """
    at = _puzzle(case, told, scenario, version)
    look = BY_TERM.get(told.term)
    text = next(look(at), "") if at is not None and look is not None else ""
    return words.under(at.setting.engine.name, version, text) if at is not None and text and version else text


def rest(case: Case, told: Printed, scenario: Scenario, version: str) -> str:
    """What remains to be said where nothing explains a term: for a pool, what the other terms must have been."""
    at = _puzzle(case, told, scenario, version)
    text = next(_remainder(at), "") if at is not None and told.term == "kv_pool_bytes" else ""
    return text or words.UNEXPLAINED.get(told.term, words.NOTHING)


def _puzzle(case: Case, told: Printed, scenario: Scenario, version: str) -> Puzzle | None:
    now = case.held(scenario, version)
    return None if now is None else Puzzle(case, told, setting_of(scenario, version), now)


def _weights(at: Puzzle) -> Iterator[str]:
    """A surplus as large as a part of the model."""
    surplus, spec, tp = at.surplus, at.setting.model, at.setting.scenario.tp
    if spec.vision_params and _near(abs(surplus), 2.0 * spec.vision_params):
        yield words.tower(surplus)
    if spec.tied and _near(surplus, 2.0 * spec.embed_params / tp):
        yield words.embedding(surplus)
    attention = sum(group.count * attention_params(group.attention) for group in spec.groups)
    saved = 2.0 - WEIGHTS[at.setting.scenario.weights].bytes
    if saved > 0.0 and _near(surplus, saved * attention / (tp * at.setting.scenario.pp)):
        yield words.unquantised(surplus)


def _rate(at: Puzzle) -> Iterator[str]:
    """Ratios of bytes per token that have a known cause."""
    ratio, tp, layers = at.told.value / at.now.kv_bytes_per_token, at.setting.scenario.tp, at.setting.model.layers
    version = numbers_of(at.case.start.version)
    latent = any(isinstance(group.attention, LatentAttention) for group in at.setting.model.groups)
    if (
        tp > 1
        and _near(ratio, tp, 0.02)
        and any(isinstance(group.attention, GroupedAttention) for group in at.setting.model.groups)
    ):
        yield words.replicated(tp)
    if latent and at.case.start.engine == "vllm" and version[:2] in ((), (0, 7)) and _near(ratio, 640.0 / 576.0, 0.01):
        yield words.padded()
    if _near(ratio - 1.0, 1.0 / layers, 0.2):
        yield words.drafted(layers)
    whole = round(ratio)
    if mixed(at.setting.cache) and version < (0, 20) and 2 <= whole <= 8 and _near(ratio, whole, 0.03):
        yield words.grouped(whole)


def mixed(parts: tuple[CacheComponent, ...]) -> bool:
    """Whether some layers keep every token and others a window or a state."""
    bounded = [math.isfinite(part.window) or part.fixed_bytes > 0.0 for part in parts]
    return any(bounded) and not all(bounded)


def _activation(at: Puzzle) -> Iterator[str]:
    surplus = at.surplus
    if surplus > NOTABLE and at.setting.model.vision_params != 0:
        yield words.profiled(surplus)


def _runtime(at: Puzzle) -> Iterator[str]:
    surplus = at.surplus
    if surplus > NOTABLE:
        yield words.outside(surplus)


def _pool(at: Puzzle) -> Iterator[str]:
    """Another device, memory that was taken before, graphs, or the one term that most of the difference comes from."""
    delta, total, free = -at.surplus, at.case.fact("total_bytes"), at.case.fact("free_before_bytes")
    own = at.setting.gpu.engine_memory
    if total is not None and abs(total / own - 1.0) > OTHER_DEVICE:
        yield words.other_device(total, own)
    if total is not None and free is not None and total - free > NOTABLE and _near(delta, total - free, 0.3):
        yield words.pool_taken(total - free)
    yield from _pool_terms(at, delta)
    if at.setting.engine.budget == "static" and free is not None:
        gained = at.setting.utilisation * (free - own + at.now.runtime_bytes) - _more(at, "weights_bytes")
        if _near(-delta, gained, 0.3):
            yield words.pool_free(delta, free, own - at.now.runtime_bytes)


def _pool_terms(at: Puzzle, delta: float) -> Iterator[str]:
    """Terms inside the share, then graphs on the wrong side of it."""
    for term in _in_pool(at.setting):
        printed, planned = at.case.told(term), at.now.of(term)
        if printed is not None and planned is not None and _near(printed.value - planned, delta, 0.4):
            yield words.pool_term(term, delta, planned, printed.value)
    graphs = at.case.told("graph_bytes")
    size = graphs.value if graphs is not None else at.now.graph_bytes
    if at.setting.engine.budget == "total" and _near(delta, -size if at.setting.engine.graphs_in_budget else size):
        yield words.pool_graphs(delta)


def _more(at: Puzzle, term: Term) -> float:
    """What the log has more of a term than the plan; 0 where it does not print it."""
    printed, planned = at.case.told(term), at.now.of(term)
    return 0.0 if printed is None or planned is None else printed.value - planned


def _remainder(at: Puzzle) -> Iterator[str]:
    """At a stated share, what weights and pool leave to the workspace; else the share at which the plan's terms fit."""
    known = dict(at.case.start.stated).get("util")
    weights, engine = at.case.told("weights_bytes"), at.setting.engine
    if isinstance(known, float) and weights is not None and engine.budget == "total":
        whole = at.case.fact("total_bytes") or at.setting.gpu.engine_memory
        left = known * whole - weights.value - at.told.value
        planned = at.now.activation_bytes + at.now.runtime_bytes + engine.graphs_in_budget * at.now.graph_bytes
        yield words.workspace(known, left, planned)
    share = _share(at.told.value, at.setting, at.now)
    if not isinstance(known, float) and 0.01 <= share <= 1.0:
        yield words.pool_share(share)


def _in_pool(setting: Setting) -> tuple[Term, ...]:
    """Terms that are taken from the share before the cache."""
    if setting.engine.budget == "static":
        return ("weights_bytes",)
    graphs: tuple[Term, ...] = ("graph_bytes",) if setting.engine.graphs_in_budget else ()
    return ("weights_bytes", "activation_bytes", "runtime_bytes", *graphs)


def _share(pool: float, setting: Setting, now: Held) -> float:
    """The memory share at which the plan's other terms leave a pool: the planned one, moved by what the pool differs."""
    whole = setting.gpu.engine_memory
    spare = {
        "total": whole,
        "static": whole - now.runtime_bytes,
        "free": whole - now.weights_bytes - now.activation_bytes - now.runtime_bytes - now.graph_bytes,
    }[setting.engine.budget]
    return setting.utilisation + (pool - now.kv_pool_bytes) / spare if spare > 0.0 and now.kv_pool_bytes > 0.0 else 0.0


def _tokens(at: Puzzle) -> Iterator[str]:
    """Tokens are the pool over bytes per token."""
    yield from _quotient(at, ("kv_pool_bytes", "kv_bytes_per_token"))


def _concurrency(at: Puzzle) -> Iterator[str]:
    """Concurrency is tokens over the longest sequence."""
    own = at.setting.max_len
    if own is not None and at.case.length is not None and own != at.case.length:
        yield words.other_length(at.case.length, own)
    yield from _quotient(at, ("kv_capacity_tokens",))
    yield from _quotient(at, ("kv_pool_bytes", "kv_bytes_per_token"))


def _quotient(at: Puzzle, terms: tuple[Term, ...]) -> Iterator[str]:
    """That a term follows from earlier ones, those of them that differ from the plan as it was asked."""
    base = at.case.held(at.case.scenario)
    known = [told for term in terms if (told := at.case.told(term)) is not None]
    apart = [told.term for told in known if base is not None and not told.agrees(base.of(told.term))]
    if len(known) == len(terms):
        yield words.follows_from_terms(tuple(apart or terms))


def _near(value: float, target: float, share: float = NEAR) -> bool:
    """Whether a value is within a share of a target that is not zero."""
    return target != 0.0 and abs(value / target - 1.0) <= share


BY_TERM: Final[dict[Term, Callable[[Puzzle], Iterator[str]]]] = {
    "weights_bytes": _weights,
    "activation_bytes": _activation,
    "runtime_bytes": _runtime,
    "kv_bytes_per_token": _rate,
    "kv_pool_bytes": _pool,
    "kv_capacity_tokens": _tokens,
    "max_concurrency": _concurrency,
}
"""Where a term's causes are looked for; graphs have none that could be told apart."""
