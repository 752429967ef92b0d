"""A plan, and the catalogue, as aligned text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from planner.answer import answer
from planner.confidence import BAND_FIELDS, ENDS, band_text, doubted, sure_text
from planner.plan import PLAN_FIELDS, Plan
from planner.queue_answer import queue_figures
from planner.share import pinned, to_link
from planner.units import DASH, show, unit_of

_FIGURES: Final = tuple(field for field in PLAN_FIELDS if field not in BAND_FIELDS)

SECTIONS: Final = (
    ("verdicts", ("fits", "meets_sla", "engine_ok", "binds", "reason")),
    ("size", ("gpus_per_replica", "replicas", "gpus")),
    ("memory", tuple(f for f in PLAN_FIELDS if "bytes" in f or f.startswith("kv_capacity"))),
    ("batch, sequences per replica", ("b_max_kv", "b_max_kv_mean", "b_max_sla", "b_max", "b_max_sure", "batch")),
    ("speed", tuple(f for f in _FIGURES if f.endswith("_ms") or "tok_s" in f)),
    ("money", tuple(f for f in _FIGURES if f.startswith("usd_"))),
)
"""Headings with their plan fields, in the order in which a reader wants them; a band stands beside its figure."""


def plan_text(plan: Plan) -> str:
    """The answer, every plan field with its unit, what there is to know about it, and the link."""
    blocks = (
        answer(plan),
        *(_section(plan, title, fields) for title, fields in SECTIONS),
        _queue(plan),
        _list("notes", [f"{note.code}: {note.text}" for note in plan.notes]),
        _list("assumptions", plan.assumptions),
        f"link: {to_link(pinned(plan.scenario))}",
    )
    return "\n\n".join(block for block in blocks if block) + "\n"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under a header in aligned columns; columns of numbers stand to the right, the last one runs free."""
    widths = [max(len(row[at]) for row in (header, *rows)) for at in range(len(header))]
    right = [bool(rows) and all(_is_number(row[at]) for row in rows) for at in range(len(header))]
    return "".join(f"{'  '.join(_cells(row, widths, right)).rstrip()}\n" for row in (header, *rows))


def _cells(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    for text, width, number in zip(row, widths, right, strict=True):
        yield text.rjust(width) if number else text.ljust(width)


def _is_number(text: str) -> bool:
    return text == DASH or text.replace(",", "").replace(".", "", 1).isdigit()


def _section(plan: Plan, title: str, fields: Sequence[str]) -> str:
    width = max(len(field) for field in PLAN_FIELDS)
    lines = (f"  {field.ljust(width)}  {_value(plan, field)}" for field in fields)
    return "\n".join((title, *lines))


def _queue(plan: Plan) -> str:
    """What queue theory says of the plan; nothing where it has no speed."""
    found = queue_figures(plan.scenario, plan)
    if found is None:
        return ""
    width = max(map(len, found))
    title = f"queues at P{plan.scenario.sla_pct:g}, one replica, Poisson arrivals of equal lengths"
    lines = (f"  {name.ljust(width)}  {_figure(name, value)}" for name, value in found.items())
    return "\n".join((title, *lines))


def _figure(name: str, value: object) -> str:
    """A figure of the queue with its unit."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value or DASH
    units = {"qps": "requests/s", "ms": "ms", "share": "%", "availability": "%"}
    number = None if value is None else float(str(value))
    unit = next((units[part] for part in (name.split("_")[-1], name.split("_")[0]) if part in units), "")
    return show(number, "%" if name.endswith("_share") else unit)


def _value(plan: Plan, field: str) -> str:
    value = getattr(plan, field)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value or DASH
    return f"{show(value, unit_of(field))}{_beside(plan, field)}"


def _beside(plan: Plan, field: str) -> str:
    """What stands behind a figure: its 80 % band, or what the surest batch means."""
    if field == "b_max_sure":
        return f" ({sure_text(plan)})" if doubted(plan) else ""
    found = band_text(plan, field) if field in ENDS else ""
    return f" (80\u00a0% band {found})" if found else ""


def _list(title: str, items: Sequence[str]) -> str:
    return "\n".join((title, *(f"  - {item}" for item in items))) if items else ""
