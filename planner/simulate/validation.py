"""Simulated load tests against measurements, beside the closed formulas on the same rows."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from planner.case_words import Row
from planner.errors import Fault, InputError
from planner.optimise.answer import Progress
from planner.optimise.report import ProgressLine
from planner.predict import Cells, predict_rows, read_table
from planner.simulate.measured import Found, Seen, simulated
from planner.simulate.simulated_points import simulated_text, stating
from planner.specs.fields import shown
from planner.validate import SERVING, Errors, Validation, as_text, grouped, validate

KINDS: Final = ("closed formulas", "simulated")
"""What errors are of, in the order in which they are told."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `validate`."""
    parser.add_argument("cases", metavar="CASES.csv", type=Path, help="measured cases, of serving or of memory")
    parser.add_argument("--by", metavar="COLUMN", action="append", default=[], help="group the errors by a column too")
    parser.add_argument("--simulate", action="store_true", help="simulate the load tests too (serving cases)")
    parser.add_argument("--limit", metavar="N", type=int, help="simulate N rows, spread over configurations")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the simulated rows to a CSV instead")


def run(asked: argparse.Namespace) -> str:
    """What `validate` writes: errors of the closed formulas, with `--simulate` of simulations too, or a sentence on a file.

    Raises:
        InputError: see `compared`.
    """
    if not asked.simulate:
        for name in ("limit", "out"):
            if getattr(asked, name) is not None:
                raise InputError((Fault(name, shown(str(getattr(asked, name))), "goes with --simulate"),))
        return as_text(validate(str(asked.cases), asked.by))
    line = ProgressLine(sys.stderr, told)
    if asked.out is None:
        return as_text(compared(asked.cases, asked.by, asked.limit, line.show))
    _, rows = _cases(asked.cases)
    rows = spread(stating(rows), asked.limit)
    asked.out.write_text(simulated_text(rows, line.show), encoding="utf-8")
    return f"{asked.out.name}: {len(rows):,} rows\n"


def told(progress: Progress) -> str:
    """How far the load tests are."""
    return f"simulated {progress.done:,} of {progress.total:,} load tests"


def compared(
    path: Path,
    by: Sequence[str] = (),
    limit: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Validation:
    """Simulate the load tests of a table and hold them and the closed formulas against its measured columns.

    Args:
        path: CSV of serving cases.
        by: columns to group the errors by as well.
        limit: simulate only so many rows, spread over configurations; None = all of them.
        on_progress, cancelled: see `simulated`.

    Returns:
        Errors of both on the rows that both predict; `predicted` counts these rows.

    Raises:
        InputError: when the table cannot be read, is not of serving cases or lacks a column of `by`.
        Cancelled: when `cancelled` says so.
    """
    header, rows = _cases(path)
    for column in by:
        if column not in header:
            raise InputError((Fault("by", column[:80], "must be a column of the table"),))
    rows = spread(rows, limit)
    found = simulated(rows, on_progress, cancelled)
    closed = list(predict_rows(header, rows))
    made = [
        (row, cell, seen)
        for row, cell, seen in zip(rows, closed, found, strict=True)
        if isinstance(seen, Seen) and cell["pred_tpot_ms"]
    ]
    errors = list(_errors([row for row, _, _ in made], [(c, _cells(f)) for _, c, f in made], by))
    reasons = Counter(seen for seen in found if isinstance(seen, str))
    return Validation(len(rows), len(made), tuple(errors), tuple(reasons.most_common()))


def _cases(path: Path) -> tuple[list[str], list[Row]]:
    """A table of serving cases.

    Raises:
        InputError: when the table cannot be read or is not one of them.
    """
    header, rows = read_table(path)
    missing = [name for name in ("model", "gpu", "engine", "isl", "osl", "tpot_best_ms") if name not in header]
    if missing:
        raise InputError((Fault("CASES.csv", path.name, f"must be of serving cases: it lacks {', '.join(missing)}"),))
    return header, rows


def spread(rows: Sequence[Row], limit: int | None) -> list[Row]:
    """At most so many rows: the middle one of every configuration, spread over the table, then its neighbours.

    Raises:
        InputError: for a limit below one.
    """
    if limit is None:
        return list(rows)
    if limit < 1:
        raise InputError((Fault("limit", str(limit), "must be at least 1"),))
    configurations: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        configurations.setdefault(row.get("config_id") or f"row {at}", []).append(at)
    turns = [(abs(2 * rank - len(each) + 1), at) for each in configurations.values() for rank, at in enumerate(each)]
    first = sorted(at for distance, at in turns if distance <= 1)
    if limit < len(first):
        return [rows[first[at * len(first) // limit]] for at in range(limit)]
    return [rows[at] for at in sorted(at for _, at in sorted(turns)[:limit])]


def _cells(found: Found) -> Cells:
    """A simulated row in the columns of predictions."""
    if not isinstance(found, Seen):
        return {}
    numbers = (found.tpot_ms, found.ttft_ms, found.out_tps_per_gpu)
    names = ("pred_tpot_ms", "pred_ttft_ms", "pred_out_tps_per_gpu")
    return {name: "" if value is None else f"{value:.6g}" for name, value in zip(names, numbers, strict=True)}


def _errors(rows: Sequence[Row], pairs: Sequence[tuple[Cells, Cells]], by: Sequence[str]) -> Iterator[Errors]:
    """Errors of each metric by either kind, in turn."""
    for metric in SERVING:
        for kind, name in enumerate(KINDS):
            for each in grouped(metric, rows, [pair[kind] for pair in pairs], by):
                yield replace(each, group=name if each.group == "all" else f"{name}, {each.group}")
