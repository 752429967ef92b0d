"""What new kernel constants change: errors by accelerator, kind and precision, before and after, as text."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Final

from planner.calibrate.kernel_refit import Change, Refit
from planner.report import table
from planner.units import DASH

HEADER: Final = (
    "accelerator", "kind", "precision", "engine", "rows", "median old (%)", "median new (%)", "unseen shapes (%)",
    "mean old (%)", "mean new (%)", "p90 old (%)", "p90 new (%)", "bias new",
)  # fmt: skip


def report(refits: Sequence[Refit]) -> str:
    """A line a law that was fitted, then how many there are."""
    changes = [change for each in refits for change in each.changes]
    summary = "".join(f"{line}\n" for line in _summary(refits))
    return f"{table(HEADER, [_row(change) for change in changes])}\n{summary}"


def _row(change: Change) -> tuple[str, ...]:
    """One law: errors in percent of the measured time."""
    old, new, law = change.old, change.new, change.record
    unseen = DASH if law.out_of_fold_error is None else _percent(law.out_of_fold_error)
    pairs = ((old.mean, new.mean), (old.p90, new.p90))
    rest = (_percent(value) for pair in pairs for value in pair)
    head = (change.accelerator, law.kind, law.precision, law.engine, str(new.rows))
    return (*head, _percent(old.median), _percent(new.median), unseen, *rest, f"{new.bias:.2f}")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _summary(refits: Sequence[Refit]) -> Iterator[str]:
    """How many laws were fitted, how many are better, how many stay."""
    changes = [change for each in refits for change in each.changes]
    if changes:
        old, new = (statistics.mean(getattr(c, end).mean for c in changes) for end in ("old", "new"))
        better = sum(change.new.mean <= change.old.mean for change in changes)
        yield f"{len(changes)} laws fitted: mean error {_percent(old)} % before, {_percent(new)} % now; {better} no worse."
    kept = sum(each.kept for each in refits)
    if kept:
        yield f"{kept} laws have no timings in this folder and stay as they are."
