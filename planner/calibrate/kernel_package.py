"""Timed kernels as aiconfigurator-core ships them, cut to the shapes of the tables that `kernel_tables` reads.

The package keeps one Parquet file for each accelerator, family, engine and version under `systems/data`. A cut keeps a
few shapes of large models over a grid of sizes: enough for six constants, and the same for every engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from planner.calibrate.kernel_tables import (
    ACCELERATORS,
    CollectiveRow,
    DecodeRow,
    ExpertsRow,
    GemmRow,
    LatentDecodeRow,
    LatentPrefillRow,
    OperatorRow,
    PrefillRow,
    Tables,
    checked,
)
from planner.errors import Fault, InputError
from planner.specs.fields import shown

GEMMS: Final = {
    (7168, 16384): "DSv3 o_proj tp1",
    (7168, 2048): "DSv3 shared down",
    (4096, 7168): "DSv3 shared gate_up",
    (8192, 7168): "L70 down tp4",
    (8192, 3584): "L70 down tp8",
    (7168, 8192): "L70 gate_up tp8",
    (8192, 2048): "L70 o tp4",
    (10240, 8192): "L70 qkv tp1",
    (2560, 8192): "L70 qkv tp4",
    (2048, 7168): "~DSv3 qkv_a (2112)",
    (65536, 8192): "~L70 gate_up tp1 / lm_head",
    (16384, 8192): "~L70 gate_up tp4 (14336)",
}
"""Matrices by outputs and inputs."""

EXPERTS: Final = {
    (7168, 2048, 8, 256): "DSv3",
    (4096, 14336, 2, 8): "Mixtral-8x7B",
    (4096, 1536, 8, 128): "Qwen3-235B",
    (2880, 2880, 4, 128): "gpt-oss-120b",
}
"""Experts by hidden size, width, experts a token and experts."""

HEADS: Final = {(64, 8): "L70 tp1", (16, 2): "L70 tp4", (8, 1): "L70 tp8"}
"""Grouped heads by query heads and key-value heads."""

LAYOUTS: Final = ((1, 1), (1, 8), (1, 32), (8, 1))
"""Tensor and expert parallelism of expert layers."""

SLICE: Final = 64
"""An expert's width on a rank is a multiple of this; kernels pad other widths, and would be timed at work not counted."""

LATENT_HEADS: Final = (16, 128)
CONTEXTS: Final = tuple(2**power for power in (7, *range(9, 18)))

Cells = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """Files of one kind of timing, and which of their rows are kept.

    Attributes:
        folder, file: where they are.
        model: what their rows become.
        precision: column of the format.
        within: values that columns must have; columns that a file lacks are not asked for.
        shape: name of a row's shape; None = not of the cut.
        newest: only the newest version that has the file is read.
    """

    folder: str
    file: str
    model: type[OperatorRow]
    precision: str
    within: tuple[tuple[str, tuple[object, ...]], ...]
    shape: Callable[[Cells], str | None]
    newest: bool = True


def _heads(row: Cells) -> str | None:
    return HEADS.get((row["num_heads"], row["nkv"]))


def _experts(row: Cells) -> str | None:
    whole = row["inter_size"] % (row["moe_tp_size"] * SLICE) == 0
    held = whole and (row["moe_tp_size"], row["moe_ep_size"]) in LAYOUTS
    return EXPERTS.get((row["hidden_size"], row["inter_size"], row["topk"], row["num_experts"])) if held else None


def _latent(row: Cells) -> str | None:
    return f"DSv3 heads={row['num_heads']}"


PLAIN: Final = (("window_size", (0,)), ("beam_width", (1,)))
DECODED: Final = ("step", tuple(context - 1 for context in CONTEXTS))
PROMPTS: Final = tuple(2**power for power in range(7, 15))

FAMILIES: Final = (
    Family(
        "gemm",
        "gemm_perf",
        GemmRow,
        "gemm_dtype",
        (("m", tuple(2**power for power in range(15))),),
        lambda row: GEMMS.get((row["n"], row["k"])),
    ),
    Family(
        "moe",
        "moe_perf",
        ExpertsRow,
        "moe_dtype",
        (("num_tokens", (1, 16, 64, 256, 1024, 4096, 8192)), ("distribution", ("balanced", "power_law_1.01"))),
        _experts,
        newest=False,
    ),
    Family(
        "attention",
        "generation_attention_perf",
        DecodeRow,
        "kv_cache_dtype",
        (("batch_size", (1, 4, 16, 32, 64, 128, 256, 512)), ("head_dim", (128,)), DECODED, *PLAIN),
        _heads,
    ),
    Family(
        "mla",
        "generation_mla_perf",
        LatentDecodeRow,
        "kv_cache_dtype",
        (("batch_size", (1, 4, 16, 32, 64, 128, 256)), ("num_heads", LATENT_HEADS), DECODED),
        _latent,
    ),
    Family(
        "attention",
        "context_attention_perf",
        PrefillRow,
        "attn_dtype",
        (("batch_size", (1, 2, 4, 8, 16)), ("isl", PROMPTS), ("head_dim", (128,)), ("step", (0,)), *PLAIN),
        _heads,
    ),
    Family(
        "mla",
        "context_mla_perf",
        LatentPrefillRow,
        "mla_dtype",
        (("batch_size", (1, 2, 4, 8)), ("isl", (*PROMPTS[1:], 2**15)), ("num_heads", LATENT_HEADS), ("step", (0,))),
        _latent,
    ),
)

OURS: Final = {"num_key_value_heads": "nkv"}
"""Columns that our tables call otherwise."""

DECIMALS: Final = 3
"""Decimals of a microsecond that our tables keep."""

HALVES: Final = ("half", "bfloat16")
AUTOTUNED: Final = "trtllm"
"""Engine that times its expert kernels and takes the fastest; the others take one by a rule."""


def is_package(folder: Path) -> bool:
    """Whether a folder is laid out like the package's data."""
    return any((folder / name / "gemm").is_dir() for name in ACCELERATORS)


def read_package(folder: Path) -> Tables:
    """The cut of every family, and all collectives.

    Raises:
        InputError: a file cannot be read or does not hold what its name says.
    """
    operators = tuple(row for family in FAMILIES for row in _operators(folder, family))
    return Tables(operators, tuple(_collectives(folder)))


def _operators(folder: Path, family: Family) -> Iterator[OperatorRow]:
    """The cut of one family, one row a case; files come by ascending version."""
    kept: dict[tuple[object, ...], OperatorRow] = {}
    for path in _files(folder, f"*/{family.folder}/*/*/{family.file}.parquet", newest=family.newest):
        for cells in _cut(path, family):
            row = checked(path, cells, family.model)
            tuned = row.backend == AUTOTUNED
            case = tuple(value for name, value in row if name not in _told_apart(tuned=tuned))
            if case not in kept or _replaces(row, kept[case], tuned=tuned):
                kept[case] = row
    yield from kept.values()


def _told_apart(*, tuned: bool) -> tuple[str, ...]:
    """Columns in which timings of one case may differ."""
    return ("measured_us", "backend_version", *(("kernel_source",) if tuned else ()))


def _replaces(row: OperatorRow, kept: OperatorRow, *, tuned: bool) -> bool:
    """Whether a later timing of a case is the better one: faster, or of a newer version of an engine that does not tune."""
    return row.measured_us < kept.measured_us or not (tuned or row.backend_version == kept.backend_version)


def _files(folder: Path, pattern: str, *, newest: bool) -> list[Path]:
    """Files of our accelerators, by accelerator, engine and ascending version."""
    found = [path for path in folder.glob(pattern) if path.relative_to(folder).parts[0] in ACCELERATORS]
    found.sort(key=lambda path: [_natural(part) for part in path.relative_to(folder).parts])
    return list({path.parents[1]: path for path in found}.values()) if newest else found


def _natural(text: str) -> list[tuple[int, str]]:
    """A key by which 0.10 comes after 0.9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)]


def _cut(path: Path, family: Family) -> Iterator[Cells]:
    """Those rows of a file that are of the cut, under the names of our tables."""
    for cells in _read(path, family.within):
        row = _renamed(path, cells, str(cells.get(family.precision)))
        try:
            shape = family.shape(row)
        except KeyError as error:
            raise _refused(path, f"must have the column {error.args[0]}") from None
        if shape is not None:
            yield {**row, "shape": shape}


def _renamed(path: Path, cells: Cells, precision: str) -> Cells:
    """A row of the package under the names of our tables; decode follows a context of `step` tokens and one more."""
    *_, gpu, _, backend, version, _ = path.parts
    context = cells.get("isl", 0) + cells.get("step", 0)
    head = {"gpu": gpu, "backend": backend, "backend_version": version, "precision": precision, "ctx": context}
    renamed = {OURS.get(name, name): value for name, value in cells.items()}
    return {**renamed, **head, "measured_us": round(1e3 * cells["latency"], DECIMALS)}


def _read(path: Path, within: Iterable[tuple[str, tuple[object, ...]]]) -> list[Cells]:
    """Rows of a Parquet file that have the values asked for.

    Raises:
        InputError: it is no such file, or times nothing.
    """
    try:
        names = pq.read_schema(path).names
        asked = [(name, "in", list(values)) for name, values in within if name in names]
        rows: list[Cells] = pq.read_table(path, filters=asked or None).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise _refused(path, f"cannot be read as Parquet: {type(error).__name__}") from None
    if "latency" not in names:
        raise _refused(path, "must have the column latency")
    return rows


def _refused(path: Path, allowed: str) -> InputError:
    return InputError((Fault("--kernels", shown("/".join(path.parts[-5:])), allowed),))


def _collectives(folder: Path) -> Iterator[CollectiveRow]:
    """Collectives of engines and of NCCL, whose messages are counted in elements of 16 bits."""
    for name, precision in (("custom_allreduce_perf", "allreduce_dtype"), ("nccl_perf", "nccl_dtype")):
        halves = ((precision, HALVES),)
        for path in _files(folder, f"*/comm/*/*/{name}.parquet", newest=False):
            for cells in _read(path, halves):
                row = _renamed(path, cells, str(cells.get(precision)))
                kernel = "nccl" if name == "nccl_perf" else cells["kernel_source"]
                named: Cells = {"kernel": kernel, "op": cells["op_name"], "bytes": 2.0 * cells["message_size"]}
                yield checked(path, {**row, **named}, CollectiveRow)
