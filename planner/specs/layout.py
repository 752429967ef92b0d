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
        return self.stage * self.pp

    @property
    def tall(self) -> Layout:
        """The same layouts as columns of shape (n, 1), ready to be crossed with batches of shape (1, m)."""
        columns = np.broadcast_arrays(self.tp, self.pp, self.dp, self.ep, self.cp, self.dcp)
        return Layout(*(column.reshape(-1, 1) for column in columns))

    @property
    def stage(self) -> Column:
        """Devices of one pipeline stage."""
        return self.tp * self.dp * self.cp

    @property
    def apart(self) -> Column:
        """1 where attention ranks of a stage hold different tokens, so that tokens must travel to the experts; else 0."""
        return np.asarray(self.dp * self.cp > 1.0, dtype=np.float64)

    def dispatches(self, top_k: int) -> Column:
        """1 where tokens travel by dispatch and combine: whole experts, on more ranks than a token has experts; else 0.

        On fewer ranks nearly every rank needs every token, so engines gather them all instead (TensorRT-LLM's rule is
        ep > top-k), and so they do for experts that are also split (`expert_tp` above 1). Where tokens are dispatched
        every rank runs shared experts for its own tokens, so each holds them whole.
        """
        whole = (self.ep > top_k) & (self.expert_tp == 1.0)
        return np.asarray(self.apart * whole)

    @property
    def context_ways(self) -> Column:
        """Ways that the cache of a sequence is cut along its length."""
        return self.dcp * self.cp

    @property
    def expert_tp(self) -> Column:
        """Ways each expert's matrices are split: what expert parallelism leaves of the stage."""
        return self.stage / self.ep


def layout(tp: object = 1, pp: object = 1, dp: object = 1, ep: object = 1, cp: object = 1, dcp: object = 1) -> Layout:
    """A layout from numbers or sequences; each becomes a float64 column (at least one-dimensional)."""
    return Layout(*(np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in (tp, pp, dp, ep, cp, dcp)))
