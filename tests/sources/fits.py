"""The article's unexplained tables under the constants that were fitted to them (presets/profiles/article.toml)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.catalog.article import constant, dequantising
from planner.serving import baselines
from planner.specs.profile import TEXTBOOK
from tests import asking
from tests.asking import column, one
from tests.sources.asked import Inputs, at, fitted_tpot_ms, step_ms
from tests.sources.serving import prefix_gain


def table_6_3(case: Inputs) -> float:
    return fitted_tpot_ms(case["batch"], 1)


def table_9_4(case: Inputs) -> float:
    return fitted_tpot_ms(case["batch"], case["tp"])


def table_9_6(case: Inputs) -> float:
    batch = column(case["batch"])
    shape = [constant(f"speculation_{name}") for name in ("gain", "batch", "power")]
    return one(baselines.fading_gain(batch, *shape))


def unpacking(batch: float) -> float:
    """Speed of INT4 weights that are unpacked at the fitted rate, over BF16's."""
    slow = at(weights="int4")
    slow = replace(slow, profile=dequantising(slow.profile))
    return step_ms(batch, 0) / (one(asking.step_seconds(slow, batch, 0)) * 1e3)


FITS: dict[str, Callable[[Inputs], float]] = {
    "S3.3-01": lambda _: 100 * TEXTBOOK.cache_utilisation,
    "S3.5-01": prefix_gain, "S3.5-02": prefix_gain, "S3.5-03": prefix_gain,
    "S5.3-01": lambda i: i["accept_len"] / constant("speculation_overhead"),
    "S6.3-T1": table_6_3, "S6.3-T4": table_6_3, "S6.3-T16": table_6_3, "S6.3-T64": table_6_3,
    "S8.2-09": lambda _: unpacking(64),
    "S9.4-T1": table_9_4, "S9.4-T4": table_9_4, "S9.4-T16": table_9_4, "S9.4-T64": table_9_4, "S9.4-T128": table_9_4,
    "S9.5-C7": lambda i: fitted_tpot_ms(i["batch"], i["tp"]) / 2,
    "S9.6-S4": table_9_6, "S9.6-S16": table_9_6, "S9.6-S64": table_9_6, "S9.6-S128": table_9_6,
}  # fmt: skip
