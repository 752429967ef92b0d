"""The one path from a scenario and candidate layouts to plans; page, command line, CSV and optimiser all use it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from typing import Any

import numpy as np

from planner.allocator import keep_freed_memory
from planner.candidates import Candidates
from planner.plan import Plans
from planner.rows import bounds
from planner.setting import Setting, resolve
from planner.specs.layout import Layout
from planner.specs.scenario import Scenario
from planner.tabulate import table

BLOCK_ROWS = 1 << 16
"""Rows evaluated at a time: few enough that memory does not grow with the table, enough that the search for the largest
batch, which each block makes once, costs little."""

WORKERS = 2
"""Threads over blocks; NumPy releases the interpreter lock inside its loops."""


def evaluate(scenario: Scenario, candidates: Candidates) -> Plans:
    """Plans of candidate layouts (and batches) under one scenario.

    Args:
        scenario: what is asked; its own layout and batch are not looked at.
        candidates: layouts of shape (n, 1), batches of shape (1, m), (n, m) or None (each layout's own largest).

    Returns:
        A table of n·m rows, layout by layout. Infeasible rows are there too, with a reason.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist.
    """
    return evaluate_setting(resolve(scenario), candidates)


def evaluate_setting(setting: Setting, candidates: Candidates) -> Plans:
    """As `evaluate`, for a setting that is already resolved."""
    keep_freed_memory()
    parts = _blocks(candidates)
    if len(parts) == 1:
        return _block(setting, parts[0])
    with ThreadPoolExecutor(WORKERS) as pool:
        tables = list(pool.map(lambda part: _block(setting, part), parts))
    return _joined(tables)


def evaluate_blocks(scenario: Scenario, candidates: Candidates) -> Iterator[Plans]:
    """As `evaluate`, block by block, for tables that should not be held at once; memory stays bounded.

    Raises:
        CatalogueError, ModelConfigError: as `evaluate`.
    """
    setting = resolve(scenario)
    for part in _blocks(candidates):
        yield _block(setting, part)


def _block(setting: Setting, part: Candidates) -> Plans:
    """Plans of one block of candidates, layout by layout."""
    return table(setting, bounds(setting, part.layout), part.batch)


def _blocks(candidates: Candidates) -> list[Candidates]:
    """Candidates cut into pieces of about `BLOCK_ROWS` rows, layouts first, then batches."""
    across = 1 if candidates.batch is None else candidates.batch.shape[1]
    tall = max(1, BLOCK_ROWS // across)
    count = candidates.layout.tp.shape[0]
    pieces = [_rows(candidates, slice(start, start + tall)) for start in range(0, max(count, 1), tall)]
    return pieces if across <= BLOCK_ROWS else [c for p in pieces for c in _wide(p)]


def _rows(candidates: Candidates, part: slice) -> Candidates:
    """Some layouts of a table of candidates."""
    at = candidates.layout
    layout = Layout(at.tp[part], at.pp[part], at.dp[part], at.ep[part], at.cp[part], at.dcp[part])
    batch = candidates.batch
    return Candidates(layout, batch if batch is None or batch.shape[0] == 1 else batch[part])


def _wide(candidates: Candidates) -> list[Candidates]:
    """One layout's batches in pieces."""
    batch = candidates.batch
    if batch is None:
        return [candidates]
    starts = range(0, batch.shape[1], BLOCK_ROWS)
    return [Candidates(candidates.layout, batch[:, start : start + BLOCK_ROWS]) for start in starts]


def _joined(tables: list[Plans]) -> Plans:
    """Tables one after another."""
    names = [field.name for field in fields(Plans) if field.name != "reasons"]
    columns: dict[str, Any] = {name: np.concatenate([getattr(table, name) for table in tables]) for name in names}
    return replace(tables[0], **columns)
