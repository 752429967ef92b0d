"""The memory of some layouts, taken out of a table of many."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.candidates import Flags
from planner.physics.memory import Workspace
from planner.rows import Room


def some_rooms(space: Room, rows: npt.NDArray[np.int64] | Flags) -> Room:
    """The memory of some layouts of a table."""
    at = {f.name: _chosen(getattr(space, f.name), rows) for f in fields(Room) if f.name != "space"}
    inside = {f.name: _chosen(getattr(space.space, f.name), rows) for f in fields(Workspace)}
    return Room(space=Workspace(**inside), **at)


def _chosen(value: Any, rows: npt.NDArray[np.int64] | Flags) -> Any:
    """Some rows of a column; a number for all rows, or a column of one, stays."""
    return value[rows] if isinstance(value, np.ndarray) and len(value) > 1 else value
