"""What a fit of serving constants found, as `served.toml`: values with their range over folds, errors and bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from planner.calibrate.cases import Case
from planner.calibrate.clocked import clock
from planner.calibrate.first_token import Loop, loop, waits, waits_of_folds
from planner.calibrate.parameters import ENGINES, law_factors, served_with
from planner.calibrate.serving_fit import Fit
from planner.catalog.band_records import Bands, OwnBand, Span
from planner.catalog.fitted_constants import FittedValue, GroupError, Served
from planner.catalog.kernel_laws import ANY
from planner.catalog.profile_records import starting
from planner.catalog.records import Record

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SMALLEST_GROUP: Final = 10
"""Groups of fewer configurations have no band of their own and no line in the table of errors."""
VENDORS: Final = ("NVIDIA", "AMD")
"""Makers of accelerators whose borrowed kernels were held against points."""
LOW, SURE, HIGH = 0.1, 0.8, 0.9
FEWEST_PAIRS: Final = 3
"""Groups of fewer pairs say how one model went, not how the next will."""
FEW_IN_FLIGHT: Final = 4.0
"""Requests in flight up to which a first token is taken to come without a queue."""
FEWEST_POINTS: Final = 20
NAME: Final = "served.toml"
HEADER: Final = """# Serving constants as fitted to presets/measurements/serving.csv,
# written by `python -m planner calibrate --serving`.
# `start` is the belief before the fit; `range` spans the fits that each left out one pair of model and accelerator
# family. Factors of single kernels multiply their time. Errors are per configuration; `out_of_fold` predicts each pair
# by a fit without it. Bands hold 80 % of measured over predicted, out of fold.

"""


@dataclass(frozen=True)
class Table:
    """Cases with what is known of each: the names that groups are made of, whether its kernels are borrowed, and whether
    it is of a source that no steady service explains (which bands leave out)."""

    cases: tuple[Case, ...]
    engines: NDArray[np.str_]
    accelerators: NDArray[np.str_]
    families: NDArray[np.str_]
    borrowed: Flags
    odd: Flags


def served(found: Fit, table: Table, date: str) -> Served:
    """The record of a fit."""
    posed = found.problem
    fitted_to = posed.weights > 0.0
    loops = loop(posed.stack, clock(posed.stack, served_with(posed.start, posed.parameters, found.theta)), found.unseen)
    waited = waits(loops, table.engines, posed.weights)
    configurations = len(set(posed.configurations[fitted_to].tolist()))
    return Served(
        id="served",
        date=date,
        source="public measurements with a permissive licence, tier T1; sources in the table's own rows",
        points=int(fitted_to.sum()),
        configurations=configurations,
        pairs=len(set(posed.pairs[fitted_to].tolist())),
        fitted=(*_values(found), *_waits(waited, waits_of_folds(loops, table.engines, posed.weights, posed.pairs))),
        law_factor=tuple(
            each.model_copy(update={"factor": _digits(each.factor)})
            for each in law_factors(posed.parameters, found.theta)
        ),
        error=tuple(_errors(found, table)),
        band=bands(
            np.log(posed.measured / found.unseen),
            np.log(posed.measured / found.within),
            unseen_accelerators(found),
            table,
            date,
            tuple(spans(loops, table, waited)),
        ),
    )


def _values(found: Fit) -> Iterator[FittedValue]:
    """Fitted numbers, in the order of the parameters."""
    folds = np.stack(list(found.folds.values()))
    for index, each in enumerate(found.problem.parameters):
        if each.law is None:
            around = each.start * np.exp(folds[:, index])
            yield FittedValue(
                name=each.name,
                unit=each.unit,
                value=_digits(each.start * float(np.exp(found.theta[index]))),
                start=each.start,
                range=(_digits(float(around.min())), _digits(float(around.max()))),
            )


def _waits(found: dict[str, float], folds: dict[str, list[float]]) -> Iterator[FittedValue]:
    """The share of others' prompts that is waited for, of each engine that states times to first token."""
    start = starting().constant["closed_loop_wait"]
    for engine in ENGINES:
        if engine in found:
            factor, before = _digits(found[engine] / start.value), start.engine_factor.get(engine, 1.0)
            around = [each / start.value for each in folds[engine]]
            ends = _digits(min(around)), _digits(max(around))
            yield FittedValue(name=f"closed_loop_wait.{engine}", unit="1", value=factor, start=before, range=ends)


def spans(loops: Loop, table: Table, waited: dict[str, float]) -> Iterator[Span]:
    """Bands of time to first token, alone and in a loop, by engine, and of throughput by grounds."""
    wait = np.array([waited.get(engine, 0.0) for engine in table.engines.tolist()])
    first = np.log(loops.ttft_measured / loops.ttft(wait))
    rate = np.log(loops.rate_measured / loops.rate(wait))
    few = loops.in_flight <= FEW_IN_FLIGHT
    for engine in ENGINES:
        own = (table.engines == engine) & ~table.odd
        yield from _spanned("ttft", engine, first[own & few])
        yield from _spanned("ttft_loop", engine, first[own & ~few])
    yield from _spanned("rate", "fitted", rate[~table.borrowed & ~table.odd])
    yield from _spanned("rate", "borrowed", rate[table.borrowed & ~table.odd])


def _spanned(of: Literal["ttft", "ttft_loop", "rate"], group: str, off: Floats) -> Iterator[Span]:
    """One band, where enough points state the quantity."""
    stated = off[np.isfinite(off)]
    if stated.size >= FEWEST_POINTS:
        low, high, _ = _span(stated)
        yield Span(of=of, group=group, low=low, high=high, points=int(stated.size))


def _errors(found: Fit, table: Table) -> Iterator[GroupError]:
    """Errors over everything, then by engine, accelerator and model family."""
    yield _error("all", np.ones(len(table.cases), dtype=np.bool_), found)
    for what, names in (("engine", table.engines), ("accelerator", table.accelerators), ("family", table.families)):
        for name in sorted(set(names.tolist())):
            group = names == name
            if len(set(found.problem.configurations[group].tolist())) >= SMALLEST_GROUP:
                yield _error(f"{what} {name}", group, found)


def _error(name: str, group: Flags, found: Fit) -> GroupError:
    """Errors of one group, averaged per configuration."""
    measured, configurations = found.problem.measured[group], found.problem.configurations[group]
    within = per_configuration(np.abs(found.within[group] / measured - 1.0), configurations)
    unseen = per_configuration(np.abs(found.unseen[group] / measured - 1.0), configurations)
    bias = per_configuration(np.log(found.unseen[group] / measured), configurations)
    return GroupError(
        group=name,
        configurations=len(unseen),
        points=int(group.sum()),
        within=_digits(float(np.median(within))),
        out_of_fold=_digits(float(np.median(unseen))),
        mean=_digits(float(np.mean(unseen))),
        p90=_digits(float(np.quantile(unseen, 0.9))),
        bias=_digits(float(np.exp(np.median(bias)))),
    )


def per_configuration(values: Floats, configurations: NDArray[np.str_]) -> Floats:
    """Mean of values over the points of each configuration."""
    _, index, counts = np.unique(configurations, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(index, values) / counts, dtype=np.float64)


def unseen_accelerators(found: Fit) -> Floats:
    """log(measured / predicted) of every case when borrowing accelerators have no factor of their own."""
    posed = found.problem
    theta = found.theta.copy()
    for index, each in enumerate(posed.parameters):
        if each.name.startswith("borrower."):
            theta[index] = -np.log(each.start)
    return np.asarray(np.log(posed.measured / posed.tpot(theta)))


def bands(off: Floats, within: Floats, strange: Floats, table: Table, date: str, span: tuple[Span, ...]) -> Bands:
    """80 % bands of measured over predicted from residuals log(measured / predicted).

    A band holds 80 % out of fold (`off`: what a new model meets) and 80 % within the fit (`within`: what the models in the
    table meet), whichever reaches further. `strange` are residuals of a fit that knows nothing of the accelerators that
    borrow; which way another such accelerator is off is not known, so that band reaches as far down as up.
    """
    own = ~table.borrowed & ~table.odd
    vendors = np.array([case.setting.gpu.vendor in VENDORS for case in table.cases])
    lent = table.borrowed & ~table.odd & vendors
    low, high, sure = _widest(off[own], within[own])
    borrowed, unseen = _widest(off[lent], within[lent]), _widest(off[lent], strange[lent], -strange[lent])
    configurations = len({case.configuration for case, inside in zip(table.cases, own | lent, strict=True) if inside})
    return Bands(
        low=low, high=high, sure=sure,
        borrowed_low=borrowed[0], borrowed_high=borrowed[1], borrowed_sure=borrowed[2],
        unseen_low=unseen[0], unseen_high=unseen[1], unseen_sure=unseen[2],
        wide_low=0.4, wide_high=4.0, wide_sure=4.0,
        borrowed_vendors=VENDORS, date=date,
        source=f"residuals of {configurations} configurations, out of fold and within the fit; wide: a convention where the "
        "vendor, the link or the law was not measured",
        own=tuple(_own(off, within, table)), span=span,
    )  # fmt: skip


def _own(off: Floats, within: Floats, table: Table) -> Iterator[OwnBand]:
    """Bands of engines on accelerators with timed kernels and enough points, then of engines on any of these."""
    for engine in sorted(set(table.engines.tolist())):
        for accelerator in sorted(set(table.accelerators.tolist())):
            group = (table.engines == engine) & (table.accelerators == accelerator) & ~table.odd & ~table.borrowed
            yield from _band_of(off, within, table, group, engine, accelerator)
    for engine in sorted(set(table.engines.tolist())):
        group = (table.engines == engine) & ~table.borrowed & ~table.odd
        yield from _band_of(off, within, table, group, engine, ANY)


def _band_of(
    off: Floats, within: Floats, table: Table, group: Flags, engine: str, accelerator: str
) -> Iterator[OwnBand]:
    """The band of one group, where it has enough configurations of enough pairs."""
    inside = [case for case, member in zip(table.cases, group, strict=True) if member]
    configurations, pairs = {case.configuration for case in inside}, {case.pair for case in inside}
    if len(configurations) >= SMALLEST_GROUP and len(pairs) >= FEWEST_PAIRS:
        low, high, sure = _widest(off[group], within[group])
        yield OwnBand(engine=engine, accelerator=accelerator, low=low, high=high, sure=sure)


def _widest(*residuals: Floats) -> tuple[float, float, float]:
    """The ends that reach furthest of the bands of several sets of residuals."""
    lows, highs, sures = zip(*map(_span, residuals), strict=True)
    return min(lows), max(highs), max(sures)


def _span(off: Floats) -> tuple[float, float, float]:
    """Ends of the band that holds 80 %, and what 80 % stay below, as factors; the prediction itself is always inside."""
    low, sure, high = np.exp(np.quantile(off, [LOW, SURE, HIGH]))
    low, high, sure = min(low, 1.0), max(high, 1.0), max(sure, 1.0)
    return _digits(float(low)), _digits(float(high)), _digits(float(sure))


def _digits(value: float) -> float:
    """Three significant digits."""
    return float(f"{value:.3g}")


def write(found: Served, folder: Path) -> Path:
    """Write the record; the same record gives the same bytes.

    Raises:
        OSError: when it cannot be written.
    """
    path = folder / NAME
    path.write_text(HEADER + as_toml(found), encoding="utf-8")
    return path


def as_toml(record: Record) -> str:
    """A flat record with tables of flat records, as TOML."""
    tables: list[str] = []
    lines: list[str] = []
    for name, value in record.model_dump().items():
        if isinstance(value, dict):
            tables.append(f"[{name}]\n" + _nested(name, value))
        elif isinstance(value, (tuple, list)) and value and isinstance(value[0], dict):
            tables += [f"[[{name}]]\n" + "".join(_line(key, cell) for key, cell in each.items()) for each in value]
        else:
            lines.append(_line(name, value))
    return "\n".join(["".join(lines), *tables])


def _nested(name: str, value: dict[str, object]) -> str:
    """A table inside the record, its own tables behind it."""
    flat, rest = [], []
    for key, cell in value.items():
        if isinstance(cell, (tuple, list)) and cell and isinstance(cell[0], dict):
            rest += [f"\n[[{name}.{key}]]\n" + "".join(_line(k, v) for k, v in each.items()) for each in cell]
        elif isinstance(cell, (tuple, list)) and not cell:
            flat.append(f"{key} = []\n")
        else:
            flat.append(_line(key, cell))
    return "".join([*flat, *rest])


def _line(key: str, value: object) -> str:
    """One entry."""
    return f"{key} = {_cell(value)}\n"


def _cell(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_cell, value))}]"
    return repr(value)


def tables_of(cases: Sequence[Case], families: Sequence[str], odd: Flags) -> Table:
    """Cases with their names, for groups."""
    return Table(
        tuple(cases),
        np.array([case.setting.scenario.engine for case in cases]),
        np.array([case.setting.gpu.id for case in cases]),
        np.array(families),
        np.array([case.setting.profile.borrowed_from is not None for case in cases], dtype=np.bool_),
        odd,
    )


__all__ = ["Table", "as_toml", "bands", "per_configuration", "served", "tables_of", "write"]
