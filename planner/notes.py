"""What a reader of a plan must be told: warnings, the assumptions made, and where the numbers come from."""

from __future__ import annotations

from planner.nearest import nearest_fit
from planner.plan import Note, Plans
from planner.setting import Setting
from planner.specs.model import ExpertFFN
from planner.specs.scenario import Scenario

GIB = 2.0**30


def notes(setting: Setting, row: Plans) -> tuple[Note, ...]:
    """Warnings and remarks on one plan, most important first."""
    found = (
        *_nearest(setting, row),
        *_price(setting),
        *_memory(setting, row),
        *_borrowed(setting),
        *_length(setting, row),
        *_scope(setting),
    )
    return found


def _nearest(setting: Setting, row: Plans) -> tuple[Note, ...]:
    """When the plan does not stand, the nearest one that fits."""
    asked = setting.scenario
    if row.fits[0] and row.engine_ok[0]:
        return ()
    if asked.at_batch is not None and row.b_max_kv[0] >= 1.0 and row.b_max[0] >= 1.0:
        text = f"The largest batch that this layout serves is {row.b_max[0]:,.0f}."
        return (Note("batch_too_large", text, "at_batch"),)
    found = nearest_fit(asked)
    if found is None:
        return (Note("nothing_fits", f"No layout of {setting.gpu.name} that was tried can serve this.", "tp"),)
    return (Note("nearest_fit", f"The nearest plan that fits: {changes(asked, found)} ({found.tp} × {found.gpu}).", "tp"),)


def changes(asked: Scenario, found: Scenario) -> str:
    """What differs between a scenario and the nearest one that fits, as link parameters."""
    fields = [name for name in ("gpu", "weights", "tp") if getattr(found, name) != getattr(asked, name)]
    return ", ".join(f"{name}={getattr(found, name)}" for name in fields or ["tp"])


def _price(setting: Setting) -> tuple[Note, ...]:
    """Where the price comes from, or that it is missing."""
    cost, gpu = setting.cost, setting.gpu
    if cost.price is None:
        return (Note("no_price", f"No price of {gpu.name} is known: enter one to see costs.", "price"),)
    if cost.default is None:
        return ()
    found = cost.default
    text = (
        f"${cost.price:.2f} per {gpu.unit}-hour is the median of {found.count} {found.kind} prices of the last 12 months "
        f"(${found.low:.2f}–${found.high:.2f})."
    )
    return (Note("default_price", text, "price"),)


def _memory(setting: Setting, row: Plans) -> tuple[Note, ...]:
    """Unknown driver-visible memory, and graphs that must fit in what the engine leaves."""
    found = []
    if setting.gpu.visible_memory is None and setting.convention.overheads:
        text = f"What the driver shows of {setting.gpu.name} is unknown; the marketing figure stands in."
        found.append(Note("marketing_memory", text, "gpu"))
    withheld, graphs = float(row.withheld_bytes[0]), float(row.graph_bytes[0])
    if setting.convention.overheads and not setting.engine.graphs_in_budget and graphs > withheld:
        text = f"CUDA graphs need {graphs / GIB:.2f} GiB but util leaves {withheld / GIB:.2f} GiB outside the budget."
        found.append(Note("graphs_do_not_fit", text, "util"))
    return tuple(found)


def _borrowed(setting: Setting) -> tuple[Note, ...]:
    """Speed constants that are not this accelerator's own."""
    if setting.profile.borrowed_from is None:
        return ()
    low, high = setting.profile.band
    text = (
        f"No measured kernels of {setting.gpu.name}: efficiencies are borrowed from {setting.profile.borrowed_from}; "
        f"the band is ×{low:.2f} to ×{high:.2f}."
    )
    return (Note("borrowed", text, "gpu"),)


def _length(setting: Setting, row: Plans) -> tuple[Note, ...]:
    """The engine's default longest sequence may not fit one of its own."""
    longest, asked = setting.max_len, setting.scenario
    if longest is None or asked.max_len is not None or not setting.convention.overheads:
        return ()
    tokens = float(row.kv_capacity_tokens_rank[0])
    if tokens >= longest or not row.fits[0]:
        return ()
    text = (
        f"The pool holds {tokens:,.0f} tokens, fewer than the model's longest sequence ({longest:,}): "
        f"start the engine with a longest sequence of at most that, at least {asked.isl + asked.osl:,}."
    )
    return (Note("set_max_len", text, "max_len"),)


def _scope(setting: Setting) -> tuple[Note, ...]:
    """What the chosen scenario leaves out."""
    found = []
    if setting.scenario.prefill == "excluded":
        text = "Prefill is excluded: TPOT is decode alone and no capacity is kept for reading prompts."
        found.append(Note("prefill_excluded", text, "prefill"))
    if setting.profile.id == "textbook":
        text = (
            "Textbook profile: ideal rooflines and marketing memory, to reproduce the source articles; not for budgets."
        )
        found.append(Note("textbook", text, "profile"))
    if setting.model.vision_params is None:
        text = "This model has a vision tower of unknown size: weights are a lower bound."
        found.append(Note("vision_unknown", text, "model"))
    for name in _untouched(setting):
        found.append(Note("not_modelled", f"{name} is not modelled yet and changes nothing.", name))
    return tuple(found)


def _untouched(setting: Setting) -> tuple[str, ...]:
    """Fields that are set but not used by this version."""
    asked = setting.scenario
    return tuple(name for name, used in (("spec", asked.spec > 0), ("overlap", asked.overlap)) if used)


def assumptions(setting: Setting) -> tuple[str, ...]:
    """What was taken for granted, each with its direction where it has one."""
    asked = setting.scenario
    found = [
        f"Mean context {setting.decoding.context:,.0f} tokens: input plus half of the output.",
        "b_max_kv reserves full length for every sequence (pessimistic); b_max_kv_mean reserves the mean.",
        f"Engine {setting.engine.name} {setting.engine.version}: memory share {setting.utilisation:g}, "
        f"{setting.max_seqs:,} sequences, {setting.token_budget:,} tokens a step.",
        "TTFT is that of an unloaded replica plus half a step; queues are not in it (optimistic under load).",
    ]
    if asked.prefill == "colocated":
        found.append(
            f"Each step carries B/osl new prompts; {setting.profile.phi:.0%} of their cost lands on running requests."
        )
    if any(isinstance(group.ffn, ExpertFFN) for group in setting.model.groups):
        found.append("Tokens choose experts uniformly and independently (pessimistic: real routing repeats itself).")
    return (*found, *setting.model.notes, *setting.profile.notes)


def sources(setting: Setting) -> tuple[str, ...]:
    """Where model, accelerator, engine, speed constants and price come from, with dates."""
    model, gpu, engine = setting.model, setting.gpu, setting.engine
    found = [
        f"Model {model.name}: {model.source} ({model.date})",
        *(f"{gpu.name}, {field}: {source}" for field, source in sorted(gpu.sources.items())),
        *(f"{engine.name} {engine.version}, {field}: {source}" for field, source in sorted(engine.sources.items())),
        *sorted({f"Speed constants: {law.source}" for law in setting.profile.laws.values() if law.source}),
    ]
    if setting.cost.quoted is not None:
        quoted = setting.cost.quoted
        found.append(f"Price: {quoted.provider} {quoted.sku}, {quoted.source} ({quoted.date})")
    elif setting.cost.default is not None:
        newest = setting.cost.default
        found.append(f"Price: median of {newest.count} prices, {newest.oldest} to {newest.newest}")
    return tuple(found)
