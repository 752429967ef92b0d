"""Tables of the catalogue: every number with its unit in the header, and who says so. None means unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.catalog import accelerators, engines, models
from planner.catalog.prices import default_price, prices
from planner.catalog.scenarios import presets
from planner.physics.kv import bytes_per_token, cache_components
from planner.share import to_link
from planner.specs.accelerator import Accelerator
from planner.specs.model import ExpertFFN, GroupedAttention, LatentAttention, LinearAttention, ModelSpec
from planner.specs.precision import BF16
from planner.specs.profile import MEASURED
from planner.units import DASH, GB, GIB

TERA: Final = 1e12
BILLION: Final = 1e9


def frame(rows: Iterator[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a table."""
    return pd.DataFrame(list(rows))


def scaled(value: float | None, unit: float) -> float | None:
    """A number in a larger unit; unknown stays unknown."""
    return None if value is None else value / unit


@cache
def model_table() -> pd.DataFrame:
    """Models: size as worked out and as published, shape, cache."""
    return frame(_model_row(entry) for entry in models.presets().values())


def _model_row(entry: models.Preset) -> dict[str, Any]:
    spec = entry.model
    return {
        "Model": spec.id,
        "Name": spec.name,
        "Parameters, 10⁹": spec.total_params / BILLION,
        "Published, 10⁹": entry.published_total_b,
        "Active, 10⁹": spec.active_params / BILLION,
        "Layers": spec.layers,
        "Hidden": spec.hidden,
        "Vocabulary": spec.vocab,
        "Attention": ", ".join(dict.fromkeys(attention_word(group.attention) for group in spec.groups if group.attention)),
        "Experts": _experts(spec),
        "KV bytes per token": float(bytes_per_token(_cache(spec), np.ones(1), np.ones(1))[0]),
        "Longest sequence, tokens": spec.max_len,
        "Stored in": spec.precision if spec.experts_precision is None else f"{spec.precision}, experts {spec.experts_precision}",
        "Vision parameters, 10⁹": scaled(spec.vision_params, BILLION),
        "Confidence": spec.confidence,
        "Date": spec.date,
        "Source": "; ".join(entry.sources),
        "Published as": entry.published,
        "Notes": " ".join(spec.notes),
    }  # fmt: skip


def attention_word(attention: object) -> str:
    """A kind of attention in a word or two."""
    match attention:
        case GroupedAttention(window=None) as gqa:
            return f"{gqa.heads} heads, {gqa.kv_heads} KV"
        case GroupedAttention() as gqa:
            return f"{gqa.heads} heads, {gqa.kv_heads} KV, window {gqa.window:,}"
        case LatentAttention(index=None):
            return "latent (MLA)"
        case LatentAttention():
            return "latent (MLA), sparse"
        case LinearAttention():
            return "recurrent state"
        case _:
            return ""


def _experts(spec: ModelSpec) -> str:
    found = (f"{group.ffn.top_k} of {group.ffn.count}" for group in spec.groups if isinstance(group.ffn, ExpertFFN))
    return ", ".join(dict.fromkeys(found)) or DASH


def _cache(spec: ModelSpec) -> Any:
    return cache_components(spec, BF16, MEASURED.index_key_bytes)


@cache
def accelerator_table() -> pd.DataFrame:
    """Accelerators: capacities, peaks and links."""
    return frame(_accelerator_row(part) for part in accelerators.accelerators().values())


def _accelerator_row(part: Accelerator) -> dict[str, Any]:
    peaks = {f"{name}, dense TFLOPS": scaled(part.peak.get(key), TERA) for key, name in PEAKS.items()}
    return {
        "Accelerator": part.id,
        "Name": part.name,
        "Record of": part.unit,
        "Memory, GB": part.memory / GB,
        "Driver shows, GiB": scaled(part.visible_memory, GIB),
        "Framework shows, GiB": scaled(part.framework_memory, GIB),
        "Bandwidth, TB/s": part.bandwidth / TERA,
        **peaks,
        "Scale-up link": part.scale_up_name,
        "Scale-up, GB/s per direction": scaled(part.scale_up_bandwidth, GB),
        "Scale-up domain": part.scale_up_domain,
        "Scale-out, GB/s per direction": scaled(part.scale_out_bandwidth, GB),
        "Power, W": part.tdp,
        "Released": part.release_year,
        "Speeds borrowed from": part.borrows or DASH,
        "Confidence": part.confidence,
        "Date": part.date,
        "Notes": " ".join(part.notes),
    }


PEAKS: Final = {"bf16": "BF16", "fp16": "FP16", "fp8": "FP8", "int8": "INT8", "fp4": "FP4"}


@cache
def accelerator_numbers() -> pd.DataFrame:
    """One row a number: as the record writes it, the unit in its key, and its own source."""
    folder = accelerators.PRESETS / "accelerators"
    records = (accelerators.read_record(path) for path in sorted(folder.glob("*.toml")))
    return frame(
        {
            "Accelerator": record.id,
            "Number": key,
            "Value": value,
            "Source": record.sources.get(key, record.source),
            "Date": record.date,
            "Confidence": record.confidence,
        }
        for record in records
        for key, value in accelerators.numbers(record).items()
    )


@cache
def price_table() -> pd.DataFrame:
    """Prices as they were asked."""
    return frame(
        {
            "Accelerator": price.accelerator or "form factor not stated",
            "Provider": price.provider,
            "Price per accelerator-hour": price.usd_per_hour,
            "Currency": price.currency,
            "Kind": price.kind,
            "Per instance": price.per_instance_gpus,
            "Product": price.sku or DASH,
            "Date": price.date,
            "Confidence": price.confidence,
            "Source": price.source,
            "As written": price.note,
        }
        for price in prices()
    )


@cache
def assumed_price_table() -> pd.DataFrame:
    """What a plan assumes when no price is given; None where a person must give one."""
    return frame(_assumed(part) for part in accelerators.accelerator_ids())


def _assumed(part: str) -> dict[str, Any]:
    found = default_price(part)
    return {
        "Accelerator": part,
        "Median on-demand, $/h": None if found is None else found.usd_per_hour,
        "Lowest, $/h": None if found is None else found.low,
        "Highest, $/h": None if found is None else found.high,
        "Prices": 0 if found is None else found.count,
        "Oldest": DASH if found is None else found.oldest,
        "Newest": DASH if found is None else found.newest,
    }


@cache
def engine_table() -> pd.DataFrame:
    """One row a rule: engine, era of versions, value, source."""
    return frame(
        {
            "Engine": record.name,
            "From version": "any" if era.since == "0" else era.since,
            "Read from": era.version,
            "Rule": rule,
            "Value": value,
            "Source": era.sources.get(key, record.sources.get(key, "")),
            "Date": record.date,
        }
        for record in engines.records().values()
        for era in record.eras
        for rule, value, key in (*_era_rules(record, era), *_device_rules(era))
    )


def _era_rules(record: engines.EngineRecord, era: engines.EraRecord) -> Iterator[tuple[str, str, str]]:
    """Rules of an era as (what, value, key of its source)."""
    share = "what the reserve leaves" if era.memory_utilisation is None else f"{era.memory_utilisation:g}"
    yield "memory share", f"{share} ({record.budget})", "memory_utilisation"
    yield "block, tokens", f"{era.block_size}", "block_size"
    yield "sampler, bytes per logit", f"{era.sampler_bytes_per_logit:g}", "sampler_bytes_per_logit"
    yield "expert buffers stay beside the sampler", "yes" if era.keeps_expert_buffers else "no", "keeps_expert_buffers"
    yield "sparse index buffer, bytes per token", f"{era.index_buffer_per_token:,g}", "index_buffer_per_token"
    yield "images of any size, GiB", f"{era.image_gib:g}", "image_bytes"
    yield "prompts profiled whole up to, tokens", f"{era.whole_prompt_tokens:,}", "whole_prompt_tokens"
    yield "recurrent states' part of the pool over the cache's", f"{era.state_ratio:g}", "state_ratio"
    yield "runtime, GiB by TP degree", _by_degree(era.runtime_gib), "runtime_bytes"
    if era.runtime_plain_gib:
        yield "runtime without switched NVLink, GiB by TP degree", _by_degree(era.runtime_plain_gib), "runtime_bytes"
    yield "graphs inside the share", "yes" if era.graphs_in_budget else "no", "graphs_in_budget"
    yield "graphs, GiB", f"{era.graph_base_gib:g}", "graph_base"
    yield "graphs, bytes per weight byte", f"{era.graph_per_weight_byte:g}", "graph_per_weight_byte"
    yield "cache precisions", ", ".join(record.supports_kv), "supports_kv"
    yield "weight precisions", ", ".join(record.supports_weights), "supports_weights"


def _by_degree(table: Mapping[int, float]) -> str:
    """GiB by tensor-parallel degree."""
    return ", ".join(f"{tp}: {gib:g}" for tp, gib in table.items())


def _device_rules(era: engines.EraRecord) -> Iterator[tuple[str, str, str]]:
    """Defaults that an engine chooses by the device it finds."""
    for device in era.devices:
        where = f", device of {device.min_gib:g} GiB and more" if device.min_gib else ""
        where += f", not {device.not_named}" if device.not_named else ""
        yield f"most sequences{where}", f"{device.max_num_seqs:,}", "max_num_seqs"
        yield f"tokens a step{where}", f"{device.token_budget:,}", "token_budget"
        yield f"activation floor, GiB{where}", f"{device.activation_floor_gib:g}", "activation_floor"
        yield f"not free at start, GiB{where}", f"{device.taken_gib:g}", "start_bytes"
        if device.reserve_mib is not None:
            yield f"reserve, MiB{where}", f"{device.reserve_mib:,g}", "memory_utilisation"


@cache
def preset_table() -> pd.DataFrame:
    """Named scenarios with their links."""
    return frame(
        {
            "Preset": item.id,
            "Title": item.title,
            "Story": item.story,
            "Link": to_link(item.scenario),
            "Real twin": item.real or DASH,
            "Date": item.date,
            "Source": item.source,
        }
        for item in presets()
    )
