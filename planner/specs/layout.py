"""How one replica is spread over devices, as columns: every field may be an array, all broadcast together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]
"""A column of numbers; a lone plan is a column of one."""


@dataclass(frozen=True)
class Layout:
    """Degrees of parallelism of one replica: `tp·dp·cp = expert_tp·ep` within a pipeline stage.

    Attributes (all float64 columns of broadcastable shapes, values are whole numbers ≥ 1):
        tp: tensor parallel, dp: attention data parallel, pp: pipeline stages, ep: expert parallel,
        cp: context parallel in prefill, dcp: context parallel of the decode cache.
    """

    tp: Column
    pp: Column
    dp: Column
    ep: Column
    cp: Column
    dcp: Column

    @property
    def devices(self) -> Column:
        """Devices of one replica."""
        return self.tp * self.dp * self.cp * self.pp

    @property
    def tall(self) -> Layout:
        """The same layouts as columns of shape (n, 1), ready to be crossed with batches of shape (1, m)."""
        columns = np.broadcast_arrays(self.tp, self.pp, self.dp, self.ep, self.cp, self.dcp)
        return Layout(*(column.reshape(-1, 1) for column in columns))

    @property
    def expert_tp(self) -> Column:
        """Ways each expert's matrices are split: what expert parallelism leaves of the stage."""
        return self.tp * self.dp * self.cp / self.ep


def layout(tp: object = 1, pp: object = 1, dp: object = 1, ep: object = 1, cp: object = 1, dcp: object = 1) -> Layout:
    """A layout from numbers or sequences; each becomes a float64 column (at least one-dimensional)."""
    return Layout(*(np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in (tp, pp, dp, ep, cp, dcp)))
