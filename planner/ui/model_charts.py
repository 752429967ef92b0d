"""Specifications of the Model page's charts: constant per theme, as all of them (see `planner.ui.charts`)."""

from __future__ import annotations

from functools import cache
from typing import Final

from planner.ui.curve_chart import BATCHES
from planner.ui.line_chart import DASHES, Scale, Series, channel, lines
from planner.ui.marks import Spec, axis, chart, legend, text, tip
from planner.ui.theme import Mode, Palette, palette

FAMILIES: Final = (
    "Attention", "Sparse index", "Dense FFN, shared experts", "Routed experts, used", "Routed experts, idle",
    "Embedding, head", "Router, norms", "Multi-token prediction", "Vision tower",
)  # fmt: skip
"""What the parameter bars are coloured by, in the order of the bars."""

BARS: Final = ("all", "used")
"""The two bars: every parameter, and those that a token uses."""

WEIGHTS_ONLY, EVERYTHING = "Weights alone", "With cache and index"
READS: Final = ("Keys, values or latent", "Index keys", "State, read and written", "Stored")
FILLS: Final = ("64 rows a tile", "8 rows a tile")
PHASES: Final = ("Prefill", "Decode")

LENGTHS: Final = [2**power for power in range(7, 25)]
DIGITS: Final = [float(f"{digit}e{power}") for power in range(-3, 8) for digit in (1, 2, 5)]
BAR_PIXELS: Final = 44
LABEL_PIXELS: Final = 96
"""Room for a label beyond the outermost marks."""

MARKS: Final = 3
"""Contexts that are marked for a model with a sparse index: the scenario's, the knee, and where index reads overtake."""


BATCH: Final = Scale("Batch: decoding sequences of a replica", tuple(BATCHES), ",d")


@cache
def parameters(shown: Mode, families: tuple[str, ...] = FAMILIES) -> Spec:
    """All parameters and those that a token uses, each as one bar cut by what they are for; only what there is has a name."""
    ink = palette(shown)
    hue = (ink.weights, ink.kv, ink.prompt, ink.experts, ink.free, ink.host, ink.machinery, ink.promise, ink.muted)
    hues = [hue[FAMILIES.index(family)] for family in families]
    y: Spec = {"field": "bar", "type": "nominal", "scale": {"domain": list(BARS), "padding": 0}, "axis": None}
    x = {
        "type": "quantitative",
        "scale": {"domain": [0, 100], "nice": False},
        "axis": axis(ink, "% of the bar's parameters", format=",~r", tickCount=5, grid=False),
    }
    tips = {"part": "Part", "billions": "Parameters", "share": "Share of the bar"}
    bars = {
        "data": {"name": "parts"},
        "mark": {"type": "bar", "height": BAR_PIXELS, "yOffset": 12, "stroke": ink.paper, "strokeWidth": 1},
        "encoding": {
            "y": y,
            "x": {"field": "start", **x},
            "x2": {"field": "end"},
            "color": {
                "field": "family",
                "type": "nominal",
                "scale": {"domain": list(families), "range": hues},
                "legend": legend(ink, columns=2),
            },
            "tooltip": [tip(*pair) for pair in tips.items()],
        },
    }
    return chart(ink, 160, [bars, _names(ink, y), *_headings(ink, y)], resolve={"scale": {"color": "independent"}})


def _names(ink: Palette, y: Spec) -> Spec:
    """Names on the parts that have room for one."""
    on = [ink.on_weights, *[ink.on_kv] * 3, ink.on_free, *[ink.on_kv] * 3, ink.paper]
    colour = {
        "field": "family",
        "type": "nominal",
        "scale": {"domain": list(FAMILIES), "range": on},
        "legend": None,
    }
    mark = {**text(ink.ink), "lineBreak": "\n", "lineHeight": 15, "baseline": "middle", "dy": 5}
    del mark["color"]
    x = {"field": "middle", "type": "quantitative"}
    return {
        "data": {"name": "parts"},
        "mark": mark,
        "encoding": {"y": y, "x": x, "text": {"field": "label"}, "color": colour},
    }


def _headings(ink: Palette, y: Spec) -> list[Spec]:
    """What each bar is, above it."""
    return [
        {
            "data": {"name": "bars"},
            "mark": {**text(ink.ink), "align": "left", "baseline": "middle", "dy": -22},
            "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"}},
        }
    ]


@cache
def experts(shown: Mode) -> Spec:
    """Distinct experts hit in a layer over batch."""
    return _routed(shown, "Experts hit in a layer", Series("Experts hit", palette(shown).experts))


@cache
def weights(shown: Mode) -> Spec:
    """Weight bytes that a step reads over batch."""
    return _routed(shown, "GB of weights a step", Series("Weights read", palette(shown).weights))


def _routed(shown: Mode, scale: str, series: Series) -> Spec:
    """One quantity over batch; both charts of routing tell all of it in their tooltips."""
    tips = {"at": "Batch", "experts": "Experts hit in a layer", "weights": "Weights read", "token": "Per sequence"}
    return lines(palette(shown), 236, (BATCH, Scale(scale)), [series], tips, quiet=True)


@cache
def intensity(shown: Mode) -> Spec:
    """Arithmetic intensity of a decode step over batch, beside the accelerator's ridge."""
    ink = palette(shown)
    series = [Series(EVERYTHING, ink.kv), Series(WEIGHTS_ONLY, ink.weights)]
    tips = {"at": "Batch", "with": EVERYTHING, "without": WEIGHTS_ONLY, "flops": "Step", "bytes": "Moved"}
    return lines(ink, 270, (BATCH, Scale("FLOP per byte of a decode step", tuple(DIGITS))), series, tips)


@cache
def reads(shown: Mode, kinds: tuple[str, ...] = READS) -> Spec:
    """Cache bytes that a sequence reads in a step, and what it stores, over context; only what a model has has a line."""
    ink = palette(shown)
    hues = dict(zip(READS, (ink.kv, ink.machinery, ink.prompt, ink.ink), strict=True))
    series = [Series(name, hues[name], DASHES[READS.index(name)]) for name in kinds]
    tips = {"at": "Context, tokens", "kv": READS[0], "index": READS[1], "state": READS[2], "stored": READS[3]}
    scales = (
        Scale("Context: tokens behind a sequence", tuple(LENGTHS), ",d"),
        Scale("MB a sequence (10⁶ bytes)", tuple(DIGITS)),
    )
    return lines(ink, 270, scales, series, tips, rows=MARKS if READS[1] in kinds else 1)


@cache
def tiles(shown: Mode) -> Spec:
    """How full the tiles of an expert's matrices are over batch."""
    ink = palette(shown)
    series = [Series(FILLS[0], ink.weights), Series(FILLS[1], ink.machinery)]
    tips = {"at": "Batch", "mean": "Tokens on an expert, mean", "large": FILLS[0], "small": FILLS[1]}
    return lines(ink, 250, (BATCH, Scale("% of tile rows that hold a token")), series, tips)


@cache
def phases(shown: Mode) -> Spec:
    """A prompt and a decode step on one axis of intensity, either side of the ridge."""
    ink = palette(shown)
    x = channel(ink, "x", Scale("FLOP per byte", tuple(DIGITS)))
    x["scale"] |= {"padding": LABEL_PIXELS}
    colour = {"field": "phase", "type": "nominal", "legend": None}
    hues, shapes = [ink.prompt, ink.weights], ["square", "circle"]
    rule = {
        "data": {"name": "ridge"},
        "mark": {"type": "rule", "strokeWidth": 2, "color": ink.ink},
        "encoding": {"x": x, "y": {"value": 18}, "y2": {"value": "height"}},
    }
    tips = {"phase": "Pass", "flops": "Operations", "bytes": "Moved", "ratio": "Intensity", "side": "Bound by"}
    points = {
        "data": {"name": "phases"},
        "mark": {"type": "point", "filled": True, "size": 170, "opacity": 1, "stroke": ink.paper, "strokeWidth": 1},
        "encoding": {
            "x": x,
            "y": {"value": {"expr": "datum.row * 26 + 38"}},
            "color": {**colour, "scale": {"domain": list(PHASES), "range": hues}},
            "shape": {**colour, "scale": {"domain": list(PHASES), "range": shapes}},
            "tooltip": [tip(*pair) for pair in tips.items()],
        },
    }
    return chart(ink, 92, [rule, _beside(ink, "ridge", "8"), points, _beside(ink, "phases", "datum.row * 26 + 38")])


def _beside(ink: Palette, name: str, y: str) -> Spec:
    """Labels beside marks, on the side with room."""
    side = {
        "align": {"expr": "datum.toward"},
        "dx": {"expr": "datum.toward === 'left' ? 12 : -12"},
        "baseline": "middle",
    }
    where = {"x": {"field": "x", "type": "quantitative"}, "y": {"value": {"expr": y}}, "text": {"field": "label"}}
    return {"data": {"name": name}, "mark": {**text(ink.ink), **side}, "encoding": where}
