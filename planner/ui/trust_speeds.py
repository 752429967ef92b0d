"""Tables of the speed constants: laws as fitted, collectives, what serving adds, and what this plan uses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.catalog.accelerators import accelerator_ids
from planner.catalog.fabric_records import (
    ExchangeRecord,
    ExchangeTable,
    exchanges,
    has_exchanges,
    scale_out,
)
from planner.catalog.fitted_constants import serving
from planner.catalog.profile_records import (
    CollectiveRecord,
    Constant,
    KernelTable,
    LawRecord,
    has_kernels,
    kernels,
    textbook,
)
from planner.physics import forward, passes
from planner.setting import resolve
from planner.specs.layout import Layout, layout
from planner.specs.profile import Law
from planner.specs.scenario import Scenario
from planner.ui.trust_tables import TERA, frame
from planner.units import DASH, GB
from planner.work import ONE, ZERO

MICRO: Final = 1e-6


@cache
def tables() -> tuple[KernelTable, ...]:
    """Kernel constants of every accelerator that has its own."""
    return tuple(kernels(part) for part in accelerator_ids() if has_kernels(part))


@cache
def law_table() -> pd.DataFrame:
    """Laws as they were fitted to timed kernels."""
    return frame(_law_row(table, record) for table in tables() for record in table.law)


def _law_row(table: KernelTable, record: LawRecord) -> dict[str, Any]:
    return {
        "Accelerator": table.accelerator,
        "Engine": record.engine,
        "Kernel": record.kind,
        "Precision": record.precision,
        "Tag": record.tag,
        "Floor, µs": record.floor_us,
        "Share of bandwidth": record.eff_bw,
        "Share of peak": record.eff_flops,
        "Corner p": f"{record.p:g}",
        "Peak, dense TFLOPS": record.peak_tflops,
        "Bandwidth, TB/s": record.bandwidth_tb_per_s,
        "Rise": f"{record.rise_us:g} µs over {record.rise_scale_us:g} µs" if record.rise_us else DASH,
        "Half length": f"{record.half_length_tokens:,.0f} tokens" if record.half_length_tokens else DASH,
        **_evidence(table, record),
    }


def _evidence(table: KernelTable, record: LawRecord | CollectiveRecord) -> dict[str, Any]:
    """How often it was timed, how well the law fits, and who says so."""
    return {
        "Timings": record.rows,
        "Median error, %": 100 * record.median_error,
        "Date": table.date,
        "Source": record.source,
        "Note": record.note,
    }


@cache
def collective_table() -> pd.DataFrame:
    """Collectives by group size."""
    return frame(row for table in tables() for record in table.collective for row in _collective_rows(table, record))


def _collective_rows(table: KernelTable, record: CollectiveRecord) -> Iterator[dict[str, Any]]:
    for devices, alpha, bus in zip(record.devices, record.alpha_us, record.bus_gb_per_s, strict=True):
        yield {
            "Accelerator": table.accelerator,
            "Engine": record.engine,
            "Collective": record.op,
            "Ranks": devices,
            "Tag": record.tag,
            "Alpha, µs": alpha,
            "Bus bandwidth, GB/s": bus,
            "Link, GB/s": record.link_gb_per_s,
            **_evidence(table, record),
        }


@cache
def exchange_table() -> pd.DataFrame:
    """Dispatch and combine of experts' tokens by expert-parallel size."""
    known = (exchanges(part) for part in accelerator_ids() if has_exchanges(part))
    return frame(row for table in known for record in table.exchange for row in _exchange_rows(table, record))


def _exchange_rows(table: ExchangeTable, record: ExchangeRecord) -> Iterator[dict[str, Any]]:
    sizes = zip(record.ranks, record.nodes, record.tags, record.alpha_us, record.gb_per_s, strict=True)
    for ranks, nodes, tag, alpha, bandwidth in sizes:
        yield {
            "Accelerator": table.accelerator,
            "Engine": record.engine,
            "Kernels": record.family,
            "Exchange": record.op,
            "Element": record.element,
            "Ranks": ranks,
            "Hosts": nodes,
            "Tag": tag,
            "Alpha, µs": alpha,
            "Logical bandwidth, GB/s": bandwidth,
            "Timings": record.rows,
            "Median error, %": DASH if record.median_error is None else f"{100 * record.median_error:.1f}",
            "Date": table.date,
            "Source": record.source,
            "Note": "; ".join(text for text in (record.caveat, record.note) if text),
        }


@cache
def serving_table() -> pd.DataFrame:
    """Constants of serving and of the network between domains, and what versions and borrowers change."""
    served, network = serving(), scale_out()
    constants = chain(_constants(served.constant, served.date), _constants(network.constant, network.date))
    return frame(chain(constants, _eras(), _borrowers(), _textbook()))


def unit_text(unit: str) -> str:
    """A unit of the preset files as it is read."""
    return {"us": "µs", "1": "ratio"}.get(unit, unit)


def _row(
    name: str, value: float, unit: str, tag: str, source: str, date: str, engines: str = DASH, span: str = DASH
) -> dict[str, Any]:
    return {
        "Constant": name,
        "Value": value,
        "Unit": unit_text(unit),
        "Range over fits": span,
        "By engine": engines,
        "Tag": tag,
        "Date": date,
        "Source": source,
    }


def _constants(known: dict[str, Constant], date: str) -> Iterator[dict[str, Any]]:
    for name, constant in known.items():
        span = DASH if constant.range is None else f"{constant.range[0]:g} to {constant.range[1]:g}"
        yield _row(name, constant.value, constant.unit, constant.tag, constant.source, date, _by_engine(constant), span)


def _by_engine(constant: Constant) -> str:
    replaced = [f"{engine} {value:g}" for engine, value in constant.by_engine.items()]
    return ", ".join([*replaced, *(f"{engine} ×{value:g}" for engine, value in constant.engine_factor.items())]) or DASH


def _eras() -> Iterator[dict[str, Any]]:
    for era in serving().era:
        versions = f"{era.engine} {era.from_version} to below {era.below}"
        yield _row(f"host time per sequence, {versions}", era.host_sequence_us, "µs", "fitted", era.source, era.date)
        for extra in era.expert_layer_extra:
            where = f"block-FP8 expert layer, {versions}, {', '.join(extra.accelerators)}"
            yield _row(where, extra.value_us, "µs", "fitted", era.source, era.date)


def _borrowers() -> Iterator[dict[str, Any]]:
    for lent in serving().borrower:
        parts = ", ".join(lent.accelerators)
        yield _row(f"bandwidth factor, {parts}", lent.eff_bw_factor, "1", lent.tag, lent.source, lent.date)
        yield _row(f"bus factor, {parts}", lent.bus_factor, "1", lent.tag, lent.source, lent.date)


def _textbook() -> Iterator[dict[str, Any]]:
    book = textbook()
    yield _row("textbook: share of peak", book.law.eff_flops, "1", book.law.tag, book.law.source, book.date)
    yield _row("textbook: share of bandwidth", book.law.eff_bw, "1", book.law.tag, book.law.source, book.date)
    for each in book.eff_bw:
        where = f"textbook: share of bandwidth, {', '.join(each.accelerators)}"
        yield _row(where, each.value, "1", book.law.tag, each.source, book.date)


@lru_cache(maxsize=32)
def in_use(scenario: Scenario) -> pd.DataFrame:
    """The laws that clock a plan's kernels, those of decoding and of prompts."""
    setting = resolve(scenario)
    placed = forward.place(setting.machine, _layout(scenario))
    both = passes.Pass(ONE, ONE, setting.decoding.context * ONE, setting.prompt.chunk * ONE, ZERO, ONE)
    clocked = (entry.work for entry in forward.forward(placed, both) if entry.work.kind not in ("host", "all_reduce"))
    used = dict.fromkeys((work.kind, work.precision) for work in clocked)
    return frame(_used_row(kind, precision, setting.profile.law(kind, precision)) for kind, precision in used)


def _layout(scenario: Scenario) -> Layout:
    return layout(scenario.tp, scenario.pp, scenario.dp, scenario.ep, scenario.cp, scenario.dcp)


def all_reduce_text(scenario: Scenario) -> str:
    """The all-reduce of a plan in a sentence; empty where there is none."""
    profile, ranks = resolve(scenario).profile, scenario.tp
    if ranks == 1 or not profile.per_operator:
        return ""
    alpha, bus = (float(column) for column in profile.links.all_reduce.constants(np.asarray(float(ranks))))
    law = profile.links.all_reduce
    speed = f"{alpha / MICRO:.2f} µs and {bus / GB:,.0f} GB/s of bus bandwidth"
    return f"All-reduce over {ranks} ranks: {speed} ({law.tag}; {law.source})."


def _used_row(kind: str, precision: str, law: Law) -> dict[str, Any]:
    return {
        "Kernel": kind,
        "Precision": precision,
        "Tag": law.tag,
        "Floor, µs": law.floor / MICRO,
        "Share of bandwidth": law.eff_bw,
        "Share of peak": law.eff_flops,
        "Corner p": f"{law.p:g}",
        "Peak, dense TFLOPS": law.peak / TERA,
        "Bandwidth, TB/s": law.bandwidth / TERA,
        "Timings": f"{law.rows:,}" if law.rows else DASH,
        "Median error, %": DASH if law.median_error is None else f"{100 * law.median_error:.1f}",
        "Source": law.source,
        "Note": law.note,
    }
