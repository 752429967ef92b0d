"""Rows behind the bars of parameters and the two passes of the Model page."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import pyarrow as pa

from planner.anatomy import Anatomy
from planner.anatomy_steps import Phase
from planner.ui.data import Row, rows
from planner.ui.marks import Datasets
from planner.ui.model_charts import BARS, FAMILIES, PHASES
from planner.ui.model_data import MEGA, schema
from planner.units import DASH, GB, gigabytes, show, significant, whole

BILLION: Final = 1e9
SMALLEST_LABEL: Final = 18.0
"""Percent of a bar below which a part's name does not fit into it."""

KINDS: Final = {
    "attention": ("Attention projections", FAMILIES[0]),
    "index": ("Sparse index", FAMILIES[1]),
    "dense": ("Dense FFN", FAMILIES[2]),
    "shared": ("Shared experts", FAMILIES[2]),
    "used": ("Routed experts, used by a token", FAMILIES[3]),
    "idle": ("Routed experts, idle", FAMILIES[4]),
    "router": ("Router", FAMILIES[6]),
    "embedding": ("Embedding", FAMILIES[5]),
    "head": ("Output head", FAMILIES[5]),
    "norms": ("Norms, biases", FAMILIES[6]),
    "mtp": (FAMILIES[7], FAMILIES[7]),
    "vision": (FAMILIES[8], FAMILIES[8]),
    "weights": ("All weights", FAMILIES[2]),
}
"""Name and family of each part of a model."""

SHORT: Final = {
    "attention": "Attention",
    "used": "Experts, used",
    "idle": "Experts, idle",
    "shared": "Shared",
    "mtp": "Multi-token\nprediction",
}
"""Names where there is room for one word or two."""

PART_TEXTS: Final = ("bar", "part", "family", "label", "billions", "share")
PHASE_TEXTS: Final = ("phase", "label", "toward", "flops", "bytes", "ratio", "side")
LABELS: Final = pa.schema([("x", pa.float64()), ("label", pa.string()), ("toward", pa.string())])


def billions(params: float) -> str:
    """Parameters in billions; millions below one tenth of one."""
    return f"{significant(params / BILLION)} B" if params >= BILLION / 10 else f"{significant(params / MEGA)} M"


# --- parameters -------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def parameters(found: Anatomy) -> Datasets:
    """Parts of the two bars, and what each bar is."""
    everything = [(part.name, part.params) for part in found.parts]
    used = [(part.name, part.active) for part in found.parts if part.active]
    parts = _bar(BARS[0], everything, found.total) + _bar(BARS[1], used, found.active)
    heads = [(BARS[0], f"{billions(found.total)} parameters"), (BARS[1], f"{billions(found.active)} used by a token")]
    bars = pa.schema([("bar", pa.string()), ("label", pa.string())])
    return {"parts": rows(schema(("start", "end", "middle"), PART_TEXTS), parts), "bars": rows(bars, heads)}


def families(found: Anatomy) -> tuple[str, ...]:
    """What the bars of a model are coloured by: families that it has, in the order of the bars."""
    held = {KINDS[part.name][1] for part in found.parts}
    return tuple(family for family in FAMILIES if family in held)


def _bar(bar: str, parts: list[tuple[str, int]], total: int) -> list[Row]:
    """One bar from left to right, in percent, family by family."""
    found: list[Row] = []
    start = 0.0
    for name, params in sorted(parts, key=lambda part: FAMILIES.index(KINDS[part[0]][1])):
        share = 100.0 * params / total
        said, family = KINDS[name]
        label = f"{SHORT.get(name, said)}\n{billions(params)}" if share >= SMALLEST_LABEL else ""
        found.append(
            (
                start,
                start + share,
                start + share / 2,
                bar,
                said,
                family,
                label,
                billions(params),
                f"{significant(share)} %",
            )
        )
        start += share
    return found


PARAMETER_HEADER: Final = ("Part", "10⁹", "of all", "used, 10⁹")
"""Columns of the table of parameters."""


def parameter_table(found: Anatomy) -> list[Row]:
    """Every part, and the sum."""
    parts = [(KINDS[p.name][0], p.params, p.active) for p in found.parts]
    return [
        (
            name,
            f"{params / BILLION:,.3f}",
            f"{100 * params / found.total:.2f} %",
            f"{active / BILLION:,.3f}" if active else DASH,
        )
        for name, params, active in (*parts, ("All", found.total, found.active))
    ]


# --- prefill and decode -----------------------------------------------------------------------------


@lru_cache(maxsize=32)
def phases(found: Anatomy) -> Datasets:
    """The two passes and the ridge on one axis."""
    passes = dict(zip(PHASES, (found.prompt, found.decode), strict=True))
    points = [
        (each.intensity, float(at), name, *_said(each, name, found)) for at, (name, each) in enumerate(passes.items())
    ]
    corner = (found.roof.ridge, f"ridge {significant(found.roof.ridge)}", "left")
    return {
        "phases": rows(schema(("x", "row"), PHASE_TEXTS), points),
        "ridge": rows(LABELS, [corner]),
    }


def _said(phase: Phase, name: str, found: Anatomy) -> Row:
    label = f"{name} {significant(phase.intensity)}"
    numbers = (show(phase.flops / 1e12, "TFLOP"), gigabytes(phase.moved), show(phase.intensity, "FLOP/B"))
    return (label, _toward(phase, found), *numbers, side_of(phase, found))


def _toward(phase: Phase, found: Anatomy) -> str:
    """Where a label begins: it stands on the far side of its mark from the ridge, whose rule would strike it through."""
    return "left" if phase.intensity >= found.roof.ridge else "right"


def side_of(phase: Phase, found: Anatomy) -> str:
    """Which side of the ridge a pass is on."""
    return "compute" if phase.intensity >= found.roof.ridge else "memory"


def phase_header(found: Anatomy) -> tuple[str, ...]:
    """Columns of the table of passes."""
    return "Pass", f"Prefill of {whole(found.prompt.tokens)}", f"Decode of {whole(found.batch)}"


def phase_table(found: Anatomy) -> list[Row]:
    """Both passes side by side."""
    both = (found.prompt, found.decode)
    return [
        ("TFLOP", *(f"{each.flops / 1e12:,.2f}" for each in both)),
        ("GFLOP per token", *(f"{each.flops / each.tokens / 1e9:,.1f}" for each in both)),
        ("GB moved", *(f"{each.moved / GB:,.1f}" for each in both)),
        ("GB per token", *(f"{each.moved / each.tokens / GB:,.3f}" for each in both)),
        ("FLOP/B", *(significant(each.intensity) for each in both)),
        ("Bound by", *(side_of(each, found) for each in both)),
    ]
