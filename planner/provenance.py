"""What a plan takes for granted, and where each of its inputs comes from."""

from __future__ import annotations

import functools

from planner.catalog.prices import counted_prices
from planner.physics import forward, passes
from planner.physics.comms import LINK_KINDS
from planner.setting import Setting
from planner.specs.layout import layout
from planner.specs.model import ExpertFFN
from planner.work import ONE, ZERO


def assumptions(setting: Setting) -> tuple[str, ...]:
    """What was taken for granted, each with its direction where it has one."""
    asked = setting.scenario
    found = [
        f"Mean context {setting.decoding.context:,.0f} tokens: input plus half of the output.",
        "b_max_kv reserves full length for every sequence (pessimistic); b_max_kv_mean reserves the mean.",
        "TTFT is that of an unloaded replica plus half a step; queues are not in it (optimistic under load).",
        "The curve's cost is that of one replica at full use: no spare replica, no rounding to instances.",
        *_engine(setting),
    ]
    if asked.qps > 0:
        found.append("Replicas are sized for the operating batch; at the asked rate each runs below it, and faster.")
    if asked.prefill == "colocated":
        found.append(
            f"Each step carries B/osl new prompts; {setting.profile.phi:.2f} of their cost lands on running requests (fitted)."
        )
    if any(isinstance(group.ffn, ExpertFFN) for group in setting.model.groups):
        found.append(_routing(setting))
    return (*found, *setting.model.notes, *setting.profile.notes)


def _routing(setting: Setting) -> str:
    """How tokens are taken to choose experts."""
    routing = setting.machine.routing
    if routing.asked is not None:
        return f"The slowest expert rank has {routing.asked:g} times the mean load, as given."
    counts = [group.ffn.count for group in setting.model.groups if isinstance(group.ffn, ExpertFFN)]
    left = routing.popularity(min(counts))
    spread = f"popularity of experts varies by {left:.0%} of its mean" if left else "popularity is even"
    return f"Tokens choose experts independently; the slowest rank is the expected maximum over ranks ({spread})."


def _engine(setting: Setting) -> tuple[str, ...]:
    """The engine's limits, where they are counted."""
    if not setting.convention.overheads:
        return ()
    engine = setting.engine
    limits = f"{setting.max_seqs:,} sequences, {setting.token_budget:,} tokens a step"
    return (f"Engine {engine.name} {engine.version}: memory share {setting.utilisation:g}, {limits}.",)


SPEEDLESS = ("release_year", "tdp", "date")
"""Accelerator facts that no plan uses."""


def sources(setting: Setting) -> tuple[str, ...]:
    """Where model, accelerator, engine, speed constants and price of this plan come from, with dates."""
    model, gpu, engine = setting.model, setting.gpu, setting.engine
    return (
        f"Model {model.name}: {model.source} ({model.date})",
        *(f"{gpu.name}, {name}: {text}" for name, text in sorted(gpu.sources.items()) if name not in SPEEDLESS),
        *(f"{engine.name} {engine.version}, {name}: {text}" for name, text in sorted(engine.sources.items())),
        *_speeds(setting),
        *_prices(setting),
    )


def _speeds(setting: Setting) -> tuple[str, ...]:
    """The law of every operator kind and precision that this plan's passes use."""
    laws = ((kind, precision, setting.profile.law(kind, precision)) for kind, precision in used_laws(setting.machine))
    found = [
        f"Speed of {kind} in {precision} ({law.tag}): {law.source}{_remark(law.note)}" for kind, precision, law in laws
    ]
    return (*found, *_links(setting))


def _links(setting: Setting) -> tuple[str, ...]:
    """The laws of the links that this layout uses."""
    asked, links = setting.scenario, setting.profile.links
    found = [("all-reduce", links.all_reduce.tag, links.all_reduce.source)]
    if asked.dp * asked.cp * asked.dcp > 1:
        found.append(("all-gather and reduce-scatter", links.gather.tag, links.gather.source))
    if asked.dp * asked.cp > 1 and asked.ep > 1:
        for name, law in (("dispatch", links.small.dispatch), ("combine", links.small.combine)):
            found.append((f"expert {name}", law.tag, law.source))
    return tuple(f"Speed of {name} ({tag}): {source}" for name, tag, source in found)


@functools.lru_cache(maxsize=256)
def used_laws(machine: forward.Machine) -> tuple[tuple[str, str], ...]:
    """Operator kinds and precisions of a machine's passes."""
    placed = forward.place(machine, layout())
    step = passes.Pass(ONE, ONE, ONE, ONE, ZERO, ONE)
    works = [entry.work for entry in forward.forward(placed, step) if entry.work.kind not in (*LINK_KINDS, "host")]
    return tuple(dict.fromkeys((work.kind, work.precision) for work in works))


def _remark(note: str) -> str:
    return f"; {note}" if note else ""


def _prices(setting: Setting) -> tuple[str, ...]:
    """Every price that a default was taken from, or that the price is the scenario's own."""
    asked = setting.scenario
    if asked.price is not None:
        return ("Price: given in the scenario",)
    counted = counted_prices(asked.gpu, kind=asked.price_kind, provider=asked.provider)
    return tuple(
        f"Price: {p.provider}{f' {p.sku}' if p.sku else ''}, ${p.usd_per_hour:.2f} ({p.date}): {p.source}"
        for p in counted
    )
