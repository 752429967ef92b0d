"""Every case of the articles with what measures it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.sources import fits, fleet, glm, serving
from tests.sources.asked import Inputs

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "source_cases.json").read_text(encoding="utf-8")
)
MEASURES: dict[str, Callable[[Inputs], float]] = {**glm.MEASURES, **serving.MEASURES, **fleet.MEASURES}
FITS = fits.FITS
