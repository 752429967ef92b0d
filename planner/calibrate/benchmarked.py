"""A scenario held against a benchmark that was read: what the points alone cannot tell is asked of the text first."""

from __future__ import annotations

from planner.calibrate.correction import Fit, correction
from planner.catalog.models import find_model
from planner.errors import Fault, InputError
from planner.logs.readings import Benchmark
from planner.specs.scenario import Scenario
from planner.specs.spelling import Value


def benchmarked(scenario: Scenario, benchmark: Benchmark) -> Fit:
    """The correction of a scenario by a benchmark.

    Raises:
        InputError: when tokens were drafted in one of the two alone, and as `correction`.
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    if benchmark.drafted and not scenario.spec:
        allowed = "does not go with drafted tokens: set spec and accept in the scenario, or measure without drafts"
        raise InputError((Fault("spec", "0", allowed),))
    if scenario.spec and not benchmark.drafted:
        allowed = "needs results that state drafts (acceptance length): set spec = 0, or measure with drafts"
        raise InputError((Fault("spec", f"{scenario.spec}", allowed),))
    return correction(scenario, benchmark.points)


def same_model(scenario: Scenario, benchmark: Benchmark) -> None:
    """Refuses a benchmark of another model of the catalogue than the scenario's; one's own may be of any name.

    Raises:
        InputError: naming both.
    """
    told: Value = dict(benchmark.stated).get("model") or benchmark.model
    found = find_model(str(told)) if told else None
    if found is not None and scenario.model not in (found.id, "custom"):
        allowed = f"the results are of {found.id}: name the model in SCENARIO (model={found.id})"
        raise InputError((Fault("model", scenario.model, allowed),))
