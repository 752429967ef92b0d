"""Every formula of the planner, wherever it is written."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from planner.formula import REGISTRY, Formula


@cache
def registered() -> dict[str, Formula]:
    """Formulas by name, after every module of the physics and of serving has been imported."""
    for name in ("planner.physics", "planner.serving"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    return {name: entry for name, entry in REGISTRY.items() if entry.module.startswith("planner.")}
