"""Number formats: how many bytes a stored element takes, and at which peak the arithmetic runs."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Precision:
    """A storage format of weights or cache.

    Attributes:
        id: the scenario's word for it.
        bytes: bytes per element, scales included.
        nominal_bytes: bytes per element without scales (what the textbook counts).
        math: precision whose peak the matrix units run at (`bf16`, `fp8`, `int8`, `fp4`).
        kernel: name in the measured kernel tables.
        note: where the scale overhead comes from.
    """

    id: str
    bytes: float
    nominal_bytes: float
    math: str
    kernel: str
    note: str = ""
    tile: float = 1.0
    """Kernels pad an expert's width on a rank to a multiple of this."""
    hidden_tile: int = 1
    """Kernels pad the hidden width of experts to a multiple of this."""


BF16 = Precision("bf16", 2.0, 2.0, "bf16", "bf16")

WEIGHTS: dict[str, Precision] = {
    "bf16": BF16,
    "fp8": Precision("fp8", 1.0, 1.0, "fp8", "fp8", "one scale a tensor or channel: under 0.1 %"),
    "fp8-block": Precision(
        "fp8-block", 1.0 + 4 / (128 * 128), 1.0, "fp8", "fp8-block", "float32 scale per 128x128 block"
    ),
    "int8": Precision("int8", 1.0, 1.0, "int8", "int8", "one scale a channel: under 0.1 %"),
    "int4": Precision(
        "int4",
        0.5 + 4 / 128,
        0.5 + 4 / 128,
        "bf16",
        "int4",
        "16-bit scale and zero point per group of 128 (weight-only: BF16 arithmetic)",
    ),
    "nvfp4": Precision("nvfp4", 0.5 + 1 / 16, 0.5, "fp4", "nvfp4", "FP8 scale per block of 16"),
    "mxfp4": Precision(
        "mxfp4", 0.5 + 1 / 32, 0.5, "bf16", "mxfp4", "8-bit scale per block of 32 (BF16 activations)", 128, 256
    ),
}


FP32 = Precision("fp32", 4.0, 4.0, "bf16", "bf16", "dtype = float32: weights, vectors and cache alike")
"""What engines load when told to; no scenario offers it, start-ups are still sized."""


def grouped_int4(group: int) -> Precision:
    """INT4 whose scale is shared by `group` weights: scale and zero point at the usual 128, else a scale alone."""
    usual = WEIGHTS["int4"]
    return usual if group == 128 else replace(usual, bytes=0.5 + 2 / group, note=f"16-bit scale per group of {group}")


CACHE: dict[str, Precision] = {
    "bf16": BF16,
    "fp8": Precision("fp8", 1.0, 1.0, "fp8", "fp8"),
    "int8": Precision("int8", 1.0, 1.0, "int8", "int8"),
}
