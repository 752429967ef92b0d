"""The table of techniques of a scenario, priced."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache

from planner.errors import HeadroomError
from planner.specs.scenario import Scenario
from planner.techniques.rows import Figures, Technique, Trial, batch_of, figures_of, refused_row, row_of
from planner.techniques.trials import trials
from planner.techniques.unspelled import blocks, host, static
from planner.variants import changed, outcome


@lru_cache(maxsize=128)
def techniques(scenario: Scenario) -> tuple[Technique, ...]:
    """Every technique on and off for a scenario, grouped; a batch that is set is kept in every row.

    Groups in which nothing can be differently chosen are left out.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    base = figures_of(scenario, outcome(scenario), batch_of(scenario))
    tried = tuple(_tried(scenario, trial, base) for trial in trials(scenario))
    rows = (*tried, *host(scenario, base), *blocks(scenario, base), *static(scenario, base))
    sizes = Counter(each.group for each in rows)
    return tuple(each for each in rows if sizes[each.group] > 1)


def _tried(s: Scenario, trial: Trial, base: Figures) -> Technique:
    """One variant priced, or the reason why it is not."""
    change = trial.change or {}
    variant = changed(s, change)
    current = all(getattr(s, name) == value for name, value in change.items())
    if variant is None:
        return refused_row(trial, current, "contradicts other inputs of this scenario")
    try:
        found = outcome(variant)
    except HeadroomError as error:
        return refused_row(trial, current, str(error))
    figures = figures_of(variant, found, batch_of(s))
    if variant.prefill == "excluded" and trial.group == "prefill":
        return replace(row_of(trial, current, found, replace(figures, ttft_ms=None), base), whole=False)
    return row_of(trial, current, found, figures, base)
