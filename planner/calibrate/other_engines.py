"""Factors of engines that are not planned: measured over predicted under the laws of one of ours.

`write_other_engines` makes `presets/profiles/other-engines.toml` from a table of served points. An engine has one factor,
the geometric mean over its configurations; one that launches its kernels one by one also has a least time for each layer,
fitted with it. The error is that of pairs (model family, accelerator) predicted without their own rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from planner.case_engines import Served
from planner.case_words import CaseError, Row, number
from planner.catalog.models import find_model
from planner.catalog.other_engines import OtherEngine
from planner.errors import HeadroomError
from planner.predict import read_table
from planner.predict_serving import predict_serving

DATE: Final = "2026-11-30"

ASSUMED_LENGTH: Final = "256"
"""Taken where a point states no length [tokens]: these are single sequences, whose step hardly depends on it."""

FACTORS: Final = np.round(np.arange(0.50, 4.0, 0.01), 2)
FLOORS_US: Final = np.arange(0.0, 1500.0, 10.0)
"""What is tried where a factor and a floor of a layer are fitted together."""


@dataclass(frozen=True)
class Group:
    """An engine that is fitted, before its fit.

    Attributes:
        name, names, like, utilisation, pads_heads: as in `OtherEngine`.
        floored: a step has a least time for each layer (kernels launched one by one from the host, or collectives of many
            cores), which is fitted with the factor.
        of: engine whose factor it takes instead of a fit of its own, and why; empty = fitted.
    """

    name: str
    names: tuple[str, ...]
    like: str = "vllm"
    utilisation: float | None = None
    pads_heads: bool = False
    floored: bool = False
    of: str = ""
    why: str = ""


GROUPS: Final = (
    Group("ATOM", ("ATOM",)),
    Group("DeepSpeed-MII", ("Deepspeed-MII",)),
    Group("ExLlamaV2", ("ExLlamaV2",), utilisation=1.0),
    Group("llama.cpp", ("llama.cpp",), utilisation=1.0, floored=True),
    Group("LMDeploy", ("LMDeploy", "LMDeploy TurboMind")),
    Group(
        "NIM", ("NIM (TensorRT-LLM)", "TRT-LLM", "Nvidia TensorRT-LLM"), like="trtllm", of="trtllm",
        why="other names of TensorRT-LLM, whose own constants hold",
    ),
    Group(
        "Ollama", ("Ollama",), utilisation=1.0, of="llama.cpp",
        why="runs models on the kernels of llama.cpp",
    ),
    Group("TGI", ("TGI", "TGI AWQ", "TGI eetq")),
    Group("transformers-neuronx", ("transformers-neuronx",), pads_heads=True, floored=True),
    Group("vLLM-TPU", ("vLLM-TPU",)),
    Group("vLLM of 2023", ("vLLM (modified; Splitwise paper)",), floored=True),
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """One served point under the laws of the engine that stands in, at factor 1.

    Attributes:
        configuration, pair: what is averaged over, and what is left out together.
        measured_ms, predicted_ms: time per output token [ms].
        layers: of its model.
    """

    configuration: str
    pair: tuple[str, str]
    measured_ms: float
    predicted_ms: float
    layers: int


@dataclass(frozen=True)
class Clock:
    """A factor on every time, and the least time of a layer [us]."""

    factor: float
    floor_us: float = 0.0

    def seconds_ms(self, points: Sequence[Point]) -> npt.NDArray[np.float64]:
        """Predicted times per output token [ms]."""
        predicted = np.array([point.predicted_ms for point in points])
        layers = np.array([point.layers for point in points], dtype=np.float64)
        return np.maximum(self.factor * predicted, self.floor_us * layers * 1e-3)


def write_other_engines(table: str, out: str) -> None:
    """Fit every engine to the served points of a table and write the preset.

    Raises:
        InputError: the table cannot be read.
        OSError: the preset cannot be written.
    """
    Path(out).write_text(as_toml(fitted(read_table(Path(table))[1])), encoding="utf-8")


def fitted(rows: Iterable[Row]) -> tuple[OtherEngine, ...]:
    """Every engine with its fit, by name; one of which the rows have no point is left out."""
    kept = [row for row in rows if row.get("tier") == "T1"]
    own = {group.name: fit(group, points(group, kept)) for group in GROUPS if not group.of}
    found = (_taken(group, own) if group.of else own[group.name] for group in GROUPS)
    return tuple(engine for engine in found if engine is not None)


def points(group: Group, rows: Iterable[Row]) -> list[Point]:
    """The points of an engine that can be predicted."""
    names = {name.casefold() for name in group.names}
    mine = (row for row in rows if row.get("engine", "").casefold() in names)
    return [point for row in mine if (point := _point(group, row)) is not None]


def _point(group: Group, row: Row) -> Point | None:
    """One point; None where it measures no time per token or cannot be predicted."""
    measured, model = number(row, "tpot_best_ms"), find_model(row.get("model", ""))
    if measured is None or measured <= 0.0 or model is None:
        return None
    lengths = {name: row.get(name) or ASSUMED_LENGTH for name in ("isl", "osl")}
    served = Served(group.like, _engine(group, Clock(1.0), (), None))
    try:
        found = predict_serving({**row, **lengths}, served)
    except (CaseError, HeadroomError):
        return None
    pair = row.get("model_family", ""), row.get("gpu", "")
    name = row.get("config_id") or row.get("row_id", "")
    return Point(name, pair, measured, found.tpot_ms, model.layers)


def fit(group: Group, found: Sequence[Point]) -> OtherEngine | None:
    """An engine's clock and its error out of fold; None without a point."""
    return _engine(group, clock(group, found), found, error_out_of_fold(group, found)) if found else None


def clock(group: Group, found: Sequence[Point]) -> Clock:
    """The clock that fits these points."""
    return floored_clock(found) if group.floored else Clock(round(float(np.exp(_mean_log(found, Clock(1.0)))), 3))


def _mean_log(found: Sequence[Point], at: Clock) -> float:
    """Mean over configurations of the logarithm of measured over predicted."""
    return float(np.mean(_by_configuration(found, at)))


def _by_configuration(found: Sequence[Point], at: Clock) -> npt.NDArray[np.float64]:
    """Mean logarithm of measured over predicted of each configuration."""
    logs = defaultdict(list)
    for point, predicted in zip(found, at.seconds_ms(found), strict=True):
        logs[point.configuration].append(float(np.log(point.measured_ms / predicted)))
    return np.array([np.mean(each) for each in logs.values()])


def floored_clock(found: Sequence[Point]) -> Clock:
    """Factor and floor of a layer with the smallest mean absolute error of the logarithm over points."""
    measured = np.log([point.measured_ms for point in found])
    floors = FLOORS_US[:, None] * np.array([point.layers for point in found]) * 1e-3  # [ms], (floor, point)
    best, least = Clock(1.0), np.inf
    for factor in FACTORS:
        plain = Clock(float(factor)).seconds_ms(found)
        misses = np.abs(np.log(np.maximum(plain, floors)) - measured).mean(axis=1)
        if misses.min() < least:
            best, least = Clock(float(factor), float(FLOORS_US[int(misses.argmin())])), float(misses.min())
    return best


def error_out_of_fold(group: Group, found: Sequence[Point]) -> float | None:
    """Median over configurations of the error of pairs predicted without their own rows; None with one pair."""
    pairs = sorted({point.pair for point in found})
    if len(pairs) < 2:
        return None
    errors: list[float] = []
    for pair in pairs:
        mine = [point for point in found if point.pair == pair]
        errors += _errors(mine, clock(group, [point for point in found if point.pair != pair]))
    return round(float(np.median(errors)), 3)


def _errors(found: Sequence[Point], at: Clock) -> list[float]:
    """Mean |predicted / measured - 1| of each configuration."""
    misses = defaultdict(list)
    for point, predicted in zip(found, at.seconds_ms(found), strict=True):
        misses[point.configuration].append(abs(predicted / point.measured_ms - 1.0))
    return [float(np.mean(each)) for each in misses.values()]


def _engine(group: Group, at: Clock, found: Sequence[Point], error: float | None) -> OtherEngine:
    """An engine's record."""
    return OtherEngine(
        name=group.name,
        names=group.names,
        like=group.like,
        factor=at.factor,
        layer_floor_us=at.floor_us,
        utilisation=group.utilisation,
        pads_heads=group.pads_heads,
        tag="fitted",
        configurations=len({point.configuration for point in found}),
        pairs=len({point.pair for point in found}),
        error=error,
        source="fit to public serving measurements of this engine under the laws of the engine that stands in",
    )


def _taken(group: Group, own: Mapping[str, OtherEngine | None]) -> OtherEngine | None:
    """An engine that takes another's clock: 1 under the laws of one of ours; None where that other has no fit."""
    lender = own.get(group.of)
    if group.of in own and lender is None:
        return None
    at = Clock(lender.factor, lender.layer_floor_us) if lender else Clock(1.0)
    return _engine(group, at, (), None).model_copy(update={"tag": "borrowed", "source": group.why})


def as_toml(engines: Iterable[OtherEngine]) -> str:
    """The preset's text; the same for the same engines."""
    head = (
        "# Engines that measurement tables name and no scenario does: clocked as one of ours times a factor on every time.",
        "# Written by planner.calibrate.other_engines; `error` is out of fold, absent where one pair was measured.",
        'id = "other-engines"',
        f'date = "{DATE}"',
    )
    return "\n".join((*head, *(line for engine in engines for line in _lines(engine)))) + "\n"


def _lines(engine: OtherEngine) -> Iterable[str]:
    """One engine's table; what is at its default is left out."""
    yield from ("", "[[engine]]")
    stated = engine.model_dump(exclude_defaults=True)
    for key, value in stated.items():
        yield f"{key} = {_spelled(value)}"


def _spelled(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(_spelled(each) for each in value)}]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"
