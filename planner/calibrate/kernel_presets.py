"""Kernel constants as preset files: the same constants give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from planner.catalog.profile_records import CollectiveRecord, KernelTable, LawRecord

HEADER: Final = """\
# Kernel law constants of {accelerator}, fitted to the kernel tables of NVIDIA aiconfigurator-core 0.12.0 (Apache-2.0):
#   seconds = floor + ((flops / (eff_flops * peak))^p + (bytes / (eff_bw * bandwidth))^p)^(1/p)
# They describe isolated kernels, before the serving constants in measured.toml.
# A fraction belongs to the peak_tflops (named by `math`) and bandwidth_tb_per_s of its own record.
# For attention kinds `precision` is that of the cache. Causal prefill counts half of S*S. Experts read each touched expert
# once and move 4 bytes per routed token and hidden unit. Prefill attention reaches
# eff_flops * length / (length + half_length). Decode attention adds rise * (1 - exp(-t_mem / rise_scale)).
# `out_of_fold_error` is the median error on shapes that the fit was not shown; it is missing where one shape was timed,
# and where the constants are of a fit to timings that are not in the tables.
"""

GATHERS: Final = """
# NCCL collectives besides all-reduce: all-gather and reduce-scatter of sharded sequences; all-to-all, whose pairs of
# sends and receives are also what a hop between two devices is.
"""

OPTIONAL: Final = {
    "rise_us": 0.0,
    "rise_scale_us": 1.0,
    "half_length_tokens": 0.0,
    "out_of_fold_error": None,
    "note": "",
}
"""Keys that are left out where they say nothing."""


def preset_text(table: KernelTable) -> str:
    """The preset file of one accelerator."""
    head = (f"{key} = {_value(getattr(table, key))}" for key in ("id", "accelerator", "licence", "date"))
    return "".join(
        (HEADER.format(accelerator=table.accelerator), "\n", *(f"{line}\n" for line in head), *_blocks(table))
    )


def write_presets(tables: tuple[KernelTable, ...], folder: Path) -> None:
    """Write one file an accelerator.

    Raises:
        OSError: the folder is missing or cannot be written.
    """
    for table in tables:
        (folder / f"{table.id}.toml").write_text(preset_text(table), encoding="utf-8", newline="\n")


def _blocks(table: KernelTable) -> Iterator[str]:
    """Every law and collective as a table of TOML."""
    for law in table.law:
        yield "\n[[law]]\n" + "".join(_lines(law))
    said = False
    for record in table.collective:
        if record.op != "all_reduce" and not said:
            yield GATHERS
            said = True
        yield "\n[[collective]]\n" + "".join(_lines(record))


def _lines(record: LawRecord | CollectiveRecord) -> Iterator[str]:
    """Keys and values of a record."""
    for key in type(record).model_fields:
        value = getattr(record, key)
        if key not in OPTIONAL or value != OPTIONAL[key]:
            yield f"{key} = {_value(value)}\n"


def _value(value: object) -> str:
    """A value of TOML; texts of the presets hold neither quotes nor backslashes, and are escaped if they ever do."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)
