"""Scenario fields that a start-up log states, each checked as a link's would be; what is no such value is named, not kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner.case_words import CaseError, cache_precision, weight_precision
from planner.catalog.models import find_model
from planner.errors import InputError
from planner.logs.arguments import Settings
from planner.logs.facts import Found, number
from planner.logs.lines import Log
from planner.specs.spelling import Value, check

COUNTS: Final = (
    ("tp", ("tensor_parallel_size", "tp_size", "tensor_parallel", "tp")),
    ("pp", ("pipeline_parallel_size", "pp_size", "pipeline_parallel", "pp")),
    ("dp", ("data_parallel_size", "dp_size", "dp")),
    ("ep", ("ep_size", "moe_expert_parallel_size", "ep")),
    ("dcp", ("decode_context_parallel_size", "dcp_size")),
    ("max_seqs", ("max_num_seqs", "max_running_requests", "max_num_requests", "max_batch_size")),
    ("token_budget", ("max_num_batched_tokens", "chunked_prefill_size", "max_num_tokens")),
    ("max_len", ("max_seq_len", "max_model_len", "context_length")),
)
"""Scenario fields that are whole numbers, and the settings that mean them, the resolved name first."""

SHARES: Final = (
    "gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction", "kv_cache_free_gpu_memory_fraction",
    "kv_cache_free_gpu_mem_fraction",
)  # fmt: skip

MODEL: Final = ("model", "model_path", "model_tag")

HF_ID: Final = r"[A-Za-z0-9._-]{1,96}/[A-Za-z0-9._-]{1,96}"

LOADED: Final = re.compile(rf"(?:to load model |█\s{{1,8}}model\s{{1,8}}|vllm serve )({HF_ID})(?![/A-Za-z0-9_-])")

MENTIONS: Final = ("load model", "█", "vllm serve")

FOLDERS: Final = frozenset(
    ". .. ~ app cache checkpoint checkpoints ckpt ckpts content data dev disk engine engines home hub llm llms local media "
    "mnt model models nas nfs opt raid repo root scratch share shared srv storage tmp users var volume volumes weights "
    "work workspace".split()
)
"""First parts of `a/b` that are folders, not organisations; what holds a dot is an address or a hidden folder."""

FILES: Final = (".bin", ".engine", ".gguf", ".json", ".onnx", ".plan", ".pt", ".pth", ".safetensors")
"""Endings of files, which are not models' names."""

HALF: Final = ("bfloat16", "torch.bfloat16", "float16", "torch.float16", "half", "bf16", "fp16")


@dataclass(frozen=True)
class Stated:
    """One scenario field that a text states: its value, and the line (0 = worked out from several)."""

    field: str
    value: Value
    line: int


@dataclass(frozen=True)
class Configuration:
    """What a text states of an engine's configuration; `ignored` says in sentences what is there and is not used."""

    model: str
    fields: tuple[Stated, ...]
    ignored: tuple[str, ...]


def configuration(engine: str, log: Log, found: Found, known: Settings) -> Configuration:
    """Model and scenario fields that the text states."""
    model = model_name(log, known)
    told = (*_counts(found, known), *_share(found, known), *_speculation(found, known))
    layout = _layout(engine, told, log, known)
    words = (*_cache(found, known), *_weights(engine, model, found, known))
    checked = tuple(_checked(each) for each in (*layout, *words))
    fields = tuple(each for each in checked if isinstance(each, Stated))
    return Configuration(model, fields, tuple(each for each in checked if isinstance(each, str)))


def model_name(log: Log, known: Settings) -> str:
    """The model as a Hugging Face id; empty when the text has none or names a folder, which is the user's own affair."""
    named = [each.text for name in MODEL for each in known.known if each.name == name]
    mentions = log.holding(MENTIONS)
    told = (line.text for line in log.lines if any(word in line.text for word in mentions))
    loaded = (hit[1].rstrip(".") for text in told for hit in LOADED.finditer(text))
    ids = (name for name in (*named, *loaded) if re.fullmatch(HF_ID, name) and not _folder(name))
    return next(ids, "")


def _folder(name: str) -> bool:
    """Whether `a/b` is a path rather than an organisation's model."""
    organisation, _, rest = name.partition("/")
    return organisation.lower() in FOLDERS or "." in organisation or rest.startswith(".") or rest.endswith(FILES)


def _checked(stated: Stated | str) -> Stated | str:
    """A statement if its scenario field allows it, else a sentence about it."""
    if isinstance(stated, str):
        return stated
    try:
        return Stated(stated.field, check(stated.field, stated.value, stated.value), stated.line)
    except InputError:
        return f"The log's {stated.field} is outside what can be planned; it is not used."


def _counts(found: Found, known: Settings) -> Iterator[Stated]:
    for field, names in COUNTS:
        fact = found.of(field)[-1:]
        setting = known.get(*names)
        if fact and fact[0].value >= 1.0:
            yield Stated(field, int(fact[0].value), fact[0].line)
        elif setting is not None and re.fullmatch(r"[0-9]{1,9}", setting.text):
            yield Stated(field, int(setting.text), setting.line)


def _share(found: Found, known: Settings) -> Iterator[Stated]:
    setting, printed = known.get(*SHARES), found.first("util")
    if setting is not None and re.fullmatch(r"[01]?\.[0-9]{1,17}|1", setting.text):
        yield Stated("util", number(setting.text), setting.line)
    elif printed is not None:
        yield Stated("util", printed.value, printed.line)


def _speculation(found: Found, known: Settings) -> Iterator[Stated]:
    """Draft tokens a step: vLLM's own word, or SGLang's steps where it drafts at all."""
    drafts, method = found.first("spec"), known.get("speculative_algorithm")
    steps = known.get("speculative_num_steps") if method is not None else None
    if drafts is not None:
        yield Stated("spec", int(drafts.value), drafts.line)
    elif steps is not None and re.fullmatch(r"[0-9]{1,4}", steps.text):
        yield Stated("spec", int(steps.text), steps.line)


def _layout(engine: str, told: tuple[Stated, ...], log: Log, known: Settings) -> Iterator[Stated | str]:
    """Degrees as the planner counts them: SGLang's TP holds its attention DP, vLLM's EP is all devices of a stage."""
    at = {each.field: each for each in told}
    tp, dp = (int(at[field].value or 1) if field in at else 1 for field in ("tp", "dp"))
    ranks = _ranks(log) if "tp" not in at else 1
    inside = engine == "sglang" and dp > 1
    for each in told:
        if each.field == "dp" and inside and not known.says("enable_dp_attention", "True"):
            yield "The log's data parallelism is of whole replicas; a plan sizes one of them."
        elif each.field == "tp" and inside and known.says("enable_dp_attention", "True"):
            yield Stated("tp", max(1, tp // dp), each.line)
        else:
            yield each
    if ranks > 1:
        yield Stated("tp", ranks, 0)
    if known.says("enable_expert_parallel", "True") and "ep" not in at and tp * dp > 1:
        yield Stated("ep", tp * dp, 0)


RANK: Final = re.compile(r"(?:\b|_)TP([0-9]{1,3})\b")


def _ranks(log: Log) -> int:
    """Tensor-parallel ranks that printed something, when they are a whole power of two; 1 otherwise."""
    seen = {int(hit[1]) for line in log.lines if "TP" in line.text[:100] and (hit := RANK.search(line.text[:100]))}
    return len(seen) if seen == set(range(len(seen))) and len(seen) in (2, 4, 8, 16, 32) else 1


def _cache(found: Found, known: Settings) -> Iterator[Stated | str]:
    """Cache precision: what the engine says it stores, else what was set; `auto` is the model's own half precision."""
    stored, setting, dtype = found.word("cache"), known.get("kv_cache_dtype"), known.get("dtype")
    text, line = (stored.text, stored.line) if stored else (setting.text, setting.line) if setting else ("", 0)
    half = any(each is not None and each.text in HALF for each in (dtype, found.word("dtype")))
    if not text or (text == "auto" and not half):
        return
    try:
        yield Stated("kv", cache_precision("bf16" if text == "auto" else text, "bf16")[0], line)
    except CaseError:
        yield "The log's cache format is not one that is planned; it is not used."


def _weights(engine: str, model: str, found: Found, known: Settings) -> Iterator[Stated | str]:
    """Weight precision: the engine's word for the quantisation, or half precision where it says that there is none."""
    told, setting, dtype = found.word("quant"), known.get("quantization"), known.get("dtype")
    text, line = (told.text, told.line) if told else (setting.text, setting.line) if setting else ("", 0)
    plain = engine != "sglang" and known.says("quantization", "None") and dtype is not None and dtype.text in HALF
    spec = find_model(model) if model else None
    if text in ("", "auto", "compressed-tensors", "modelopt", "bitsandbytes", "ascend", "quark") or spec is None:
        if plain and dtype is not None and not text:
            yield Stated("weights", "bf16", dtype.line)
        return
    try:
        yield Stated("weights", weight_precision(text, spec, model)[0], line)
    except CaseError:
        yield "The log's weight format is not one that is planned; it is not used."
