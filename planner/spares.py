"""Spare replicas: how many it takes so that as many as are needed are up for a share of the time."""

from __future__ import annotations

import numpy as np
from scipy.special import bdtr

EXACT = 1e-12
"""An availability that is reached to so much is reached."""

MOST_SPARES = 10_000
"""Spare replicas beyond which none are looked for."""


def spares_for(replicas: int, availability: float, failure_per_hour: float, repair_hours: float) -> int | None:
    """Fewest spare replicas so that as many as are needed are up for a share of the time; None where none are enough.

    Args:
        replicas: that are needed.
        availability: share of the time, below 1.
        failure_per_hour: failures of one replica in an hour of service.
        repair_hours: mean time until a failed one serves again [h].

    Replicas fail independently; a spare runs, and fails, like the others.
    """
    down = failure_per_hour * repair_hours / (1.0 + failure_per_hour * repair_hours)
    spares = np.arange(MOST_SPARES + 1.0)
    enough = bdtr(spares, (replicas + spares).astype(np.int64), down) >= availability - EXACT
    return int(np.argmax(enough)) if enough.any() else None
