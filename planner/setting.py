"""A scenario with everything looked up: the objects that evaluation works with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from planner.catalog.accelerators import accelerator
from planner.catalog.calibration import correction_in
from planner.catalog.custom import custom_model
from planner.catalog.engines import engine
from planner.catalog.models import model
from planner.catalog.prices import default_price, prices
from planner.catalog.profiles import profile
from planner.physics.ffn import Routing
from planner.physics.forward import Machine
from planner.physics.kv import Allocation, CacheComponent, cache_components
from planner.physics.memory import allocation_rules
from planner.physics.weights import formats
from planner.pools import Pool, prefill_pool
from planner.serving.decode import Decoding
from planner.serving.prefill import Prompt, prompt
from planner.serving.speculative import Draft
from planner.specs.accelerator import Accelerator, DefaultPrice, Price
from planner.specs.correction import CALIBRATED, Correction, Subject, Traffic, corrected
from planner.specs.engine import Engine
from planner.specs.model import ModelSpec
from planner.specs.precision import CACHE
from planner.specs.profile import Conventions, Profile, conventions
from planner.specs.scenario import Scenario


@dataclass(frozen=True)
class Cost:
    """What a device-hour costs in this scenario.

    Attributes:
        price: $ per device-hour; None = not known, the user is asked.
        instance: devices per rented instance (1 = single devices).
        default: the range that a default price was taken from; None when the scenario names its price.
        quoted: the provider's price when the scenario names a provider.
    """

    price: float | None
    instance: int
    default: DefaultPrice | None
    quoted: Price | None


@dataclass(frozen=True)
class DraftMemory:
    """What drafting keeps in memory beside the model.

    Attributes:
        own: whether the model's own multi-token-prediction layers draft (their weights and cache are loaded).
        share: a separate draft model's weights and cache over the model's; 0 with own layers or without a draft.
        slots: cache slots that a sequence needs for tokens not yet verified [tokens].
    """

    own: bool = False
    share: float = 0.0
    slots: float = 0.0


@dataclass(frozen=True)
class Setting:
    """All categories of one scenario, resolved, and the numbers that engines default to."""

    scenario: Scenario
    model: ModelSpec
    gpu: Accelerator
    engine: Engine
    profile: Profile
    convention: Conventions
    machine: Machine
    cache: tuple[CacheComponent, ...]
    allocation: Allocation
    prompt: Prompt
    decoding: Decoding
    draft: DraftMemory
    utilisation: float
    max_seqs: int
    token_budget: int
    max_len: int | None
    cost: Cost
    pool: Pool | None = None
    """Workers that read prompts elsewhere; None unless prefill is disaggregated."""
    engine_version: str | None = None
    """Version whose costs the profile includes; None = current."""


@functools.lru_cache(maxsize=512)
def resolve(scenario: Scenario) -> Setting:
    """Look up everything that a scenario names.

    Raises:
        CatalogueError: for an id that the catalogue does not hold.
        ModelConfigError: for a custom model that cannot be sized.
        InputError: for a custom model or a calibration that its token does not hold.
    """
    spec = custom_model(scenario.x) if scenario.model == "custom" and scenario.x else model(scenario.model)
    gpu = accelerator(scenario.gpu)
    return assemble(scenario, spec, gpu, engine(scenario.engine, None, gpu))


def assemble(
    scenario: Scenario, spec: ModelSpec, gpu: Accelerator, rules: Engine, engine_version: str | None = None
) -> Setting:
    """A setting from resolved objects (measurement tables name versions and shapes that no scenario field holds)."""
    clock = clock_of(scenario, gpu, engine_version)
    convention = conventions(scenario.profile)
    cache = CACHE[scenario.kv]
    routing = Routing(scenario.imbalance, clock.expert_popularity, float(scenario.redundant))
    machine = Machine(
        spec,
        formats(spec, scenario.weights, convention),
        cache,
        routing,
        convention,
        clock.links.domain,
        wire_of(scenario, clock),
    )
    budget = scenario.token_budget or rules.token_budget
    work = prompt(scenario.isl, scenario.prefix, scenario.chunk, budget if convention.overheads else float("inf"))
    context = scenario.isl + scenario.osl / 2.0
    here = work if scenario.prefill == "colocated" else None
    memory = draft_memory(scenario, spec)
    setting = Setting(
        scenario=scenario,
        model=spec,
        gpu=gpu,
        engine=rules,
        profile=clock,
        convention=convention,
        machine=machine,
        cache=cache_components(spec, cache, convention.index_key_bytes, mtp=memory.own),
        allocation=allocation_rules(rules, budget, convention),
        prompt=work,
        decoding=Decoding(machine, clock, context, float(scenario.osl), here, draft_of(scenario), scenario.overlap),
        draft=memory,
        utilisation=_utilisation(scenario, rules, convention),
        max_seqs=scenario.max_seqs or rules.max_num_seqs,
        token_budget=budget,
        max_len=scenario.max_len or spec.max_len,
        cost=cost_of(scenario),
        engine_version=engine_version,
    )
    return replace(setting, pool=prefill_pool(setting))


def clock_of(scenario: Scenario, gpu: Accelerator, engine_version: str | None = None) -> Profile:
    """The law constants of a scenario on an accelerator, corrected where its calibration was made for this.

    Raises:
        CatalogueError: as `planner.catalog.profiles.profile`.
        InputError: when profile = custom and the scenario's token holds no calibration.
    """
    plain = profile(scenario.profile, gpu, scenario.engine, engine_version=engine_version)
    if scenario.profile != CALIBRATED or scenario.x is None:
        return plain
    return corrected(plain, correction_in(scenario.x), subject_of(scenario), traffic_of(scenario))


def subject_of(scenario: Scenario) -> Subject:
    """What a benchmark of this scenario measures."""
    s = scenario
    return Subject(s.model, s.gpu, s.engine, s.weights, s.kv, s.tp, s.pp, s.dp, s.ep, s.spec > 0)


def correction_of(scenario: Scenario, subject: Subject | None = None) -> Correction | None:
    """The correction that a scenario carries, where it is used; None where it has none, or one for another subject.

    Args:
        scenario: what carries it.
        subject: what it would be used on; None = what the scenario itself plans.

    Raises:
        InputError: when profile = custom and the scenario's token holds no calibration.
    """
    if scenario.profile != CALIBRATED or scenario.x is None:
        return None
    made = correction_in(scenario.x)
    return made if made.subject.meets(subject or subject_of(scenario)) else None


def traffic_of(scenario: Scenario) -> Traffic:
    """What a benchmark of this scenario sends."""
    return Traffic(scenario.isl, scenario.osl, scenario.prefill, scenario.prefix)


def reclocked(setting: Setting, change: Callable[[Profile], Profile]) -> Setting:
    """The same setting under other law constants, put in every place that holds them.

    Args:
        setting: resolved.
        change: what becomes of the constants of the replicas' accelerator, and of the prefill pool's where it has one.
            A prefill worker that the scenario does not name is chosen again.
    """
    clock, pool = change(setting.profile), setting.pool
    routing = replace(setting.machine.routing, spread=clock.expert_popularity)
    machine = replace(setting.machine, routing=routing)
    decoding = replace(setting.decoding, machine=machine, profile=clock)
    changed = replace(setting, profile=clock, machine=machine, decoding=decoding)
    return changed if pool is None else replace(changed, pool=prefill_pool(changed, clock=change(pool.profile)))


HALVED: Final = ("fp8", "fp8-block", "int8", "nvfp4")
"""Weight precisions whose activations travel to experts in 8 bits; beside the others they travel as they are."""


def wire_of(scenario: Scenario, clock: Profile) -> tuple[float, float]:
    """Bytes an element of expert dispatch and combine [B]."""
    sent, returned = clock.links.wire
    return (sent if scenario.weights in HALVED else 2.0), returned


def draft_of(scenario: Scenario) -> Draft | None:
    """How tokens are drafted; None without speculative decoding."""
    return Draft(float(scenario.spec), scenario.accept, scenario.draft) if scenario.spec else None


def draft_memory(scenario: Scenario, spec: ModelSpec) -> DraftMemory:
    """What drafting keeps in memory: the model's own prediction layers, else a draft model of its share of the cost.

    A decode step at small batches is bound by reading weights, so a draft that costs a share of a step is taken to hold
    that share of the model's weights and cache.
    """
    if scenario.spec == 0:
        return DraftMemory()
    own = bool(spec.mtp)
    return DraftMemory(own, 0.0 if own else scenario.draft, float(scenario.spec))


def _utilisation(scenario: Scenario, rules: Engine, convention: Conventions) -> float:
    """Share of memory that the engine may use: asked, else the convention's, else the engine's own."""
    if scenario.util is not None:
        return scenario.util
    return rules.memory_utilisation if convention.utilisation is None else convention.utilisation


def cost_of(scenario: Scenario) -> Cost:
    """Price of a device-hour by the catalogue's rule; never invented. A named provider's instances come whole."""
    quoted = _quoted(scenario)
    instance = (quoted.per_instance_gpus or 1) if quoted else 1
    if scenario.price is not None:
        return Cost(scenario.price, instance, None, quoted)
    found = default_price(scenario.gpu, kind=scenario.price_kind, provider=scenario.provider)
    return Cost(None if found is None else found.usd_per_hour, instance, found, quoted)


def _quoted(scenario: Scenario) -> Price | None:
    """The newest USD price of the named provider and kind; None when no provider is named or it has none."""
    if scenario.provider is None:
        return None
    named = [
        price
        for price in prices(scenario.gpu)
        if price.provider.casefold() == scenario.provider.casefold()
        and price.kind == scenario.price_kind
        and price.currency == "USD"
    ]
    return max(named, key=lambda price: price.date, default=None)
