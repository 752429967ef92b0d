"""The catalogue's version: it changes exactly when a fact in the catalogue does, so nobody has to remember to."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Final

from planner.catalog.accelerators import PRESETS
from planner.catalog.prices import CATALOGUE_DATE

FACTS: Final = (
    "accelerators/*.toml",
    "engines/*.toml",
    "fabrics/*.toml",
    "models/*.toml",
    "prices.csv",
    "profiles/*.toml",
)
"""Files whose content a plan depends on; named scenarios and measurements are not among them."""


@cache
def catalogue_version() -> str:
    """The catalogue's day and eight digits of a digest over all facts, names and content; line endings do not matter."""
    digest = hashlib.sha256()
    for pattern in FACTS:
        for path in sorted(PRESETS.glob(pattern), key=lambda found: found.name):
            digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return f"{CATALOGUE_DATE.isoformat()}-{digest.hexdigest()[:8]}"
