"""Arithmetic intensity of a pass, and the ridge of an accelerator."""

from __future__ import annotations

from planner.formula import formula
from planner.work import Column


@formula("definition of the roofline's corner: dense peak over memory bandwidth", "FLOP/B")
def ridge(peak: Column, bandwidth: Column) -> Column:
    """Operations a byte from which on an accelerator computes longer than it reads."""
    return peak / bandwidth  # [FLOP/B]


@formula("definition: operations over bytes between memory and chip", "FLOP/B")
def intensity(flops: Column, moved: Column) -> Column:
    """Arithmetic intensity of a pass; also of what one more sequence adds to it, which is the limit at large batches."""
    return flops / moved  # [FLOP/B]
