"""A comparison as CSV (a row a plan, which reads back) and as one JSON document."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from planner.compare.comparison import Comparison
from planner.compare.link import LETTERS, comparison_link
from planner.compare.quantities import QUANTITIES
from planner.compare.sentences import MEANING
from planner.export import Json, document, to_csv
from planner.specs.spelling import Value


def comparison_csv(found: Comparison, start: str = "") -> str:
    """All plans as `export.to_csv` writes them, in the order of their letters; `start`: address of the Plan page."""
    return to_csv(found.plans, start)


def comparison_json(found: Comparison, start: str = "", base: str = "") -> str:
    """The comparison as one JSON object: plans, what differs, ratios, sentences, link.

    Args:
        found: the comparison.
        start, base: addresses of the Plan page and of the Compare page, without query.
    """
    return json.dumps(compared(found, start, base), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def compared(found: Comparison, start: str = "", base: str = "") -> Mapping[str, Json]:
    """What `comparison_json` writes."""
    names = found.names
    return {
        "plans": {name: document(plan, start) for name, plan in zip(names, found.plans, strict=True)},
        "against": names[found.against],
        "differences": {row.field: dict(zip(names, map(_plain, row.values), strict=True)) for row in found.differences},
        "asked_differently": list(found.asked_differently),
        "headline": found.headline,
        "sentences": list(found.sentences),
        "meaning": MEANING,
        "ratios": {LETTERS[at]: _ratios(found, at) for at in range(len(names)) if at != found.against},
        "link": comparison_link(found.scenarios, base, found.against),
    }


def _ratios(found: Comparison, at: int) -> Mapping[str, Json]:
    """A plan's figures over those of the one it is held against; null where there is no ratio."""
    return {quantity.name: found.ratio(at, quantity) for quantity in QUANTITIES}


def _plain(value: Value) -> Json:
    """A value that JSON can hold; what is not a number becomes null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
