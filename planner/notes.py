"""What a reader of a plan must be told: warnings and remarks, most important first."""

from __future__ import annotations

from planner.catalog.calibration import correction_in
from planner.catalog.prices import default_price
from planner.doubts import Curve, doubts
from planner.nearest import nearest_fit
from planner.plan import Note, Plans
from planner.rows import OVER_POOL, OVER_SEATS
from planner.setting import Setting, subject_of, traffic_of
from planner.specs.correction import CALIBRATED, TAKEN_OVER, not_applied, taken_over
from planner.specs.scenario import Scenario
from planner.technique_notes import technique_notes
from planner.units import GIB

UNSOURCED = "unsourced"

LAYOUT_FIELDS = ("gpu", "engine", "weights", "tp", "pp", "dp", "ep", "cp", "dcp", "prefill_tp")
"""Fields that the nearest fitting plan may change."""


def notes(setting: Setting, row: Plans, curve: Curve) -> tuple[Note, ...]:
    """Warnings and remarks on one plan, most important first."""
    return (
        *_nearest(setting, row),
        *doubts(setting, row, curve),
        *(Note(code, text, field) for code, text, field, applies in _unused(setting) if applies),
        *technique_notes(setting, row),
        *_memory(setting, row),
        *_borrowed(setting),
        *_length(setting, row),
        *_scope(setting),
        *_price(setting),
    )


def _nearest(setting: Setting, row: Plans) -> tuple[Note, ...]:
    """When the plan does not stand, the nearest one that fits."""
    asked = setting.scenario
    if row.fits[0] and row.engine_ok[0]:
        return ()
    if row.reason[0] in (OVER_POOL, OVER_SEATS):
        text = f"The cache pool holds {row.b_max_kv[0]:,.0f} sequences; at most {row.b_max[0]:,.0f} keep every limit."
        return (Note("batch_too_large", text, "at_batch"),)
    found = nearest_fit(asked)
    if found is None:
        return (
            Note(
                "nothing_fits",
                "None of what was tried serves it: other tensor-parallel degrees, the checkpoint's own weights, FP8 and INT4, "
                "larger accelerators of this maker, each with the other inputs as they are.",
                "tp",
            ),
        )
    text = f"The nearest plan that fits: {changes(asked, found)} ({found.tp} × {found.gpu})."
    return (Note("nearest_fit", text, "tp"),)


def changes(asked: Scenario, found: Scenario) -> str:
    """What differs between a scenario and the nearest one that fits, as link parameters."""
    fields = [name for name in LAYOUT_FIELDS if getattr(found, name) != getattr(asked, name)]
    values = {name: getattr(found, name) for name in fields or ["tp"]}
    return ", ".join(f"{name} left out" if value is None else f"{name}={value}" for name, value in values.items())


def _price(setting: Setting) -> tuple[Note, ...]:
    """Where the price comes from, or that it is missing; and when more devices are billed than used."""
    cost, gpu, asked = setting.cost, setting.gpu, setting.scenario
    if asked.price is not None:
        return _given_price(setting)
    seller = f" of {asked.provider}" if asked.provider else ""
    if cost.price is None:
        text = f"No {asked.price_kind} price{seller} for {gpu.name} in the last 12 months is known: enter one to see costs."
        return (Note("no_price", text, "price"),)
    rounding = f"{asked.provider} rents {cost.instance} devices at a time; whole instances are billed."
    found = [Note("instances", rounding, "provider")] if cost.instance > 1 else []
    if cost.default is not None:
        made = cost.default
        many = (
            f"the median of {made.count} {made.kind} prices{seller}"
            if made.count > 1
            else f"the one {made.kind} price{seller}"
        )
        text = (
            f"${cost.price:.2f} per {gpu.unit}-hour is {many} of the last 12 months (${made.low:.2f}–${made.high:.2f})."
        )
        found.insert(0, Note("default_price", text, "price"))
    return tuple(found)


def _given_price(setting: Setting) -> tuple[Note, ...]:
    """A price that the scenario names, beside what the catalogue would say today."""
    asked, gpu = setting.scenario, setting.gpu
    made = default_price(asked.gpu, kind=asked.price_kind, provider=asked.provider)
    beside = "the catalogue knows none to compare with"
    if made is not None:
        spread = f"{made.count} prices, ${made.low:.2f}–${made.high:.2f}"
        beside = f"the catalogue's {made.kind} median of the last 12 months is ${made.usd_per_hour:.2f} ({spread})"
    return (
        Note("given_price", f"${asked.price:.2f} per {gpu.unit}-hour is given in the scenario; {beside}.", "price"),
    )


def _memory(setting: Setting, row: Plans) -> tuple[Note, ...]:
    """Unknown driver-visible memory, and workspace that must fit in what the engine leaves."""
    found = []
    if not setting.convention.overheads:
        return ()
    if setting.gpu.visible_memory is None:
        text = f"What the driver shows of {setting.gpu.name} is unknown; the marketing figure stands in."
        found.append(Note("marketing_memory", text, "gpu"))
    withheld, graphs = float(row.withheld_bytes[0]), float(row.graph_bytes[0])
    if not setting.engine.graphs_in_budget and graphs > withheld:
        text = f"CUDA graphs need {graphs / GIB:.2f} GiB but util leaves {withheld / GIB:.2f} GiB outside the budget."
        found.append(Note("graphs_do_not_fit", text, "util"))
    if setting.engine.budget != "total":
        text = f"{setting.engine.name} applies its memory share otherwise: part of the workspace lies beyond the usable mark."
        found.append(Note("budget", text, "engine"))
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
    found += _calibration(setting)
    if setting.model.vision_params is None:
        text = "This model has a vision tower of unknown size: weights are a lower bound."
        found.append(Note("vision_unknown", text, "model"))
    if UNSOURCED in f"{setting.model.confidence}; {setting.model.source}":
        text = (
            "Some of this model's configuration has no published source (Trust says which part): "
            "compare it with the checkpoint's config.json before money depends on it."
        )
        found.append(Note("unsourced", text, "model"))
    return tuple(found)


def _calibration(setting: Setting) -> list[Note]:
    """Whether the calibration that the scenario carries is used, and where it was made."""
    asked = setting.scenario
    if asked.profile != CALIBRATED or asked.x is None:
        return []
    made, here = correction_in(asked.x), subject_of(asked)
    if not made.subject.meets(here):
        return [Note("calibration_elsewhere", not_applied(made, here), "profile")]
    elsewhere = "Variants with another model, accelerator, engine or weight precision are not calibrated."
    apart = taken_over(made, here, traffic_of(asked))
    return [
        Note("calibrated", f"{made.note} {elsewhere}", "profile"),
        *([Note(TAKEN_OVER, apart, "profile")] if apart else []),
    ]


def _unused(setting: Setting) -> tuple[tuple[str, str, str, bool], ...]:
    """What is asked for but changes nothing, or less than it seems: code, text, field, and whether it applies."""
    asked, model = setting.scenario, setting.model
    own = model.experts_precision or model.precision
    published = f"The published checkpoint is stored in {own}; {asked.weights} weights need one of their own."
    return (("checkpoint", published, "weights", own not in ("bf16", asked.weights) and setting.convention.overheads),)
