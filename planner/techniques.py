"""Techniques on and off for one scenario: what each gains and costs, on the same model, devices and SLA.

Every row is a variant of the scenario priced through the one path. A variant that is refused, or whose effect is not
modelled, is shown with its reason and without numbers that would look like an effect of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np

from planner.advise.caches import copies_of
from planner.advise.degrees import NOTICEABLE
from planner.advise.drafts import DRAFTS
from planner.advise.pools import at_full_use, chunk_room
from planner.catalog.accelerators import accelerator
from planner.errors import HeadroomError
from planner.plan import Column
from planner.rows import bounds
from planner.serving import decode, prefill
from planner.serving.statics import contiguous_sequences, static_rate, static_ttft
from planner.setting import Setting, assemble, resolve
from planner.specs.fields import CachePrecision, WeightPrecision, options_of
from planner.specs.layout import layout
from planner.specs.model import ExpertFFN
from planner.specs.scenario import Scenario
from planner.tabulate import table
from planner.units import show
from planner.variants import Change, Gain, Outcome, changed, gain, known, outcome, row, tpot_at, tpots

HALF: Final = 0.5
"""Share of the prompt in the prefix cache that is tried beside none and the scenario's own."""

BLOCKS: Final = (1, 16, 64, 128)
"""Cache blocks that are compared [tokens]."""

NATIVE: Final = {"fp8": "fp8", "fp8-block": "fp8", "int8": "int8", "nvfp4": "fp4"}
"""Weight precisions that need a peak of their own; the others are unpacked into BF16."""

QUALITY: Final = {
    "bf16": "reference",
    "fp8": "article 8.3: 0.5 % of MMLU lost on Llama-70B",
    "fp8-block": "no figure in the articles; FP8 with a scale per tensor loses 0.5 % of MMLU there",
    "int8": "no figure in the articles",
    "int4": "article 8.3: 1.3 % of MMLU lost on Llama-70B, more on smaller models",
    "nvfp4": "no figure in the articles",
    "mxfp4": "no figure in the articles",
}
"""What a weight precision costs in quality: the article's own figures, or that it has none."""


@dataclass(frozen=True)
class Figures:
    """What a variant is compared by; None = not applicable or not known.

    Attributes:
        b_max: sequences of a replica within every limit. tpot_ms: at the scenario's own batch.
        ttft_ms, output_gpu, usd_good: at the variant's own largest batch, or at the batch that the scenario sets; tokens a
            second and device, $ per million.
        kv_tokens: cache tokens of a replica.
    """

    b_max: float | None = None
    tpot_ms: float | None = None
    ttft_ms: float | None = None
    output_gpu: float | None = None
    usd_good: float | None = None
    kv_tokens: float | None = None


@dataclass(frozen=True)
class Trial:
    """A variant to be tried: its group and name, the fields it changes, and what it costs in words."""

    group: str
    name: str
    change: Change | None = field(hash=False)
    cost: str


@dataclass(frozen=True)
class Technique:
    """One technique, on or off, beside the scenario as it is.

    Attributes:
        group, name: what it is; `current`: the scenario as it is.
        change: fields that would apply it; None where no field of a scenario says it.
        fits, meets_sla, engine_ok: verdicts on it. reason: why it is refused or not priced; empty when it stands.
        figures: its numbers; deltas: those less the scenario's own. cost: what it costs, in words.
        whole: whether it counts all work of serving; one that leaves some out is never the best.
    """

    group: str
    name: str
    current: bool
    change: Change | None = field(hash=False)
    fits: bool
    meets_sla: bool
    engine_ok: bool
    reason: str
    figures: Figures
    deltas: Figures
    cost: str
    whole: bool = True

    @property
    def stands(self) -> bool:
        """Whether it fits, is served and keeps the SLA."""
        return self.fits and self.meets_sla and self.engine_ok and not self.reason


@lru_cache(maxsize=128)
def techniques(scenario: Scenario) -> tuple[Technique, ...]:
    """Every technique on and off for a scenario, grouped; a batch that is set is kept in every row.

    Groups in which nothing can be differently chosen are left out.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    base = _figures(scenario, outcome(scenario), _batch(scenario))
    tried = tuple(_tried(scenario, trial, base) for trial in _trials(scenario))
    rows = (*tried, *_host(scenario, base), *_blocks(scenario, base), *_static(scenario, base))
    sizes = Counter(each.group for each in rows)
    return tuple(each for each in rows if sizes[each.group] > 1)


def _batch(s: Scenario) -> float:
    """The scenario's own operating batch."""
    return outcome(s).batch


def _trials(s: Scenario) -> Iterator[Trial]:
    """Variants in the order of the table."""
    yield from _weights(s)
    yield from _caches(s)
    yield from _drafting(s)
    yield from _prompts(s)
    yield from _expert_layouts(s)
    yield from _layouts(s)


def _weights(s: Scenario) -> Iterator[Trial]:
    """Every weight precision that the engine serves and the device computes."""
    setting, peak = resolve(s), accelerator(s.gpu).peak
    for word in options_of(WeightPrecision):
        offered = not setting.convention.overheads or word in setting.engine.supports_weights
        if word == s.weights or (offered and NATIVE.get(word, "bf16") in peak):
            yield Trial("weights", word, {"weights": word}, QUALITY[word])


def _caches(s: Scenario) -> Iterator[Trial]:
    """Every cache precision that the engine offers."""
    setting = resolve(s)
    for word in options_of(CachePrecision):
        if word == s.kv or not setting.convention.overheads or word in setting.engine.supports_kv:
            cost = "reference" if word == "bf16" else "no figure in the articles; long contexts feel it first"
            yield Trial("kv", word, {"kv": word}, cost)


def _drafting(s: Scenario) -> Iterator[Trial]:
    """Speculative decoding off, and on with the scenario's numbers or the article's."""
    off = {"spec": 0, "accept": 0.8, "draft": 0.1}
    yield Trial("spec", "off", off, "nothing")
    on = {"spec": s.spec or DRAFTS, "accept": s.accept, "draft": s.draft}
    name = f"{show(on['spec'], 'tokens').replace('token', 'draft token')}, accepted {percent(s.accept)}"
    cost = f"a draft model in memory, each draft token {percent(s.draft)} of a step; acceptance must be measured"
    yield Trial("spec", name, on, cost)


def percent(share: float) -> str:
    """A share as a whole or three-digit percentage, which no line break divides."""
    return f"{share * 100:.3g}\N{NO-BREAK SPACE}%"


def _prompts(s: Scenario) -> Iterator[Trial]:
    """Prefix cache, chunks, and where prefill runs."""
    for share in sorted({0.0, HALF, s.prefix}):
        yield Trial(
            "prefix", f"{percent(share)} of the prompt cached", {"prefix": share}, "needs shared prompts; takes cache"
        )
    for chunk in sorted({0, _room(s), s.chunk}):
        name = f"{chunk:,} tokens a step" if chunk else "whole prompt"
        cost = "longer TTFT for prompts of several chunks" if chunk else "steps that carry a prompt are long"
        yield Trial("chunk", name, {"chunk": chunk}, cost)
    pool = ("prefill_gpu", "prefill_tp", "prefill_workers", "decode_workers", "kv_link_eff")
    yield Trial(
        "prefill", "beside decoding", {"prefill": "colocated", **dict.fromkeys(pool)}, "steps carry prompts of others"
    )
    if s.prefill == "excluded":
        yield Trial("prefill", "not counted", {"prefill": "excluded"}, "no capacity is kept for reading prompts")
    yield Trial(
        "prefill", "in a pool of its own", {"prefill": "disaggregated"}, "a second pool, and the cache is handed over"
    )


def _room(s: Scenario) -> int:
    """The chunk that the TPOT of the SLA leaves room for at the scenario's batch, in whole sixteens; 0 where it leaves none."""
    at = outcome(s)
    if at.ttft_ms is None or at.tpot_ms is None:
        return 0
    room = int(chunk_room(s, int(at.batch)) // 16 * 16)
    return 0 if room >= s.isl else room


def _expert_layouts(s: Scenario) -> Iterator[Trial]:
    """TP+EP against DP+EP on the same devices, overlap, and spare copies of experts."""
    n = s.tp * s.dp
    if not resolve(s).model.has_experts or n == 1:
        return
    yield Trial(
        "experts",
        f"TP+EP {n}",
        {"tp": n, "dp": 1, "ep": n, "dcp": 1},
        "all-reduces; a latent cache is held by every rank",
    )
    yield Trial(
        "experts", f"DP+EP {n}", {"tp": 1, "dp": n, "ep": n, "dcp": 1}, "all-to-alls; attention weights on every GPU"
    )
    yield Trial("overlap", "off", {"overlap": False}, "the exchange with experts is waited for")
    yield Trial("overlap", "two micro-batches", {"overlap": True}, "each expert sees half of the tokens at a time")
    spare = _copies(s)
    for extra in sorted({0, spare, s.redundant}) if spare or s.redundant else ():
        name = f"{extra} extra {'copy' if extra == 1 else 'copies'}"
        yield Trial("redundant", name, {"redundant": extra}, "memory for the copies" if extra else "nothing")


EXTRA: Final = 8
"""One extra copy for so many experts: DeepSeek's prefill units hold 32 beside 256."""


def _copies(s: Scenario) -> int:
    """Extra copies of experts that are tried: as many on every rank; 0 where experts are not spread."""
    counts = [group.ffn.count for group in resolve(s).model.groups if isinstance(group.ffn, ExpertFFN)]
    return max(round(counts[0] / EXTRA / s.ep), 1) * s.ep if counts and s.ep > 1 else 0


def _layouts(s: Scenario) -> Iterator[Trial]:
    """Pipeline stages on the same devices, and context parallelism of the cache and of prefill."""
    here = {"tp": s.tp, "pp": s.pp, "cp": s.cp, "dcp": s.dcp}
    yield Trial(
        "layout", ", ".join(f"{name}={ways}" for name, ways in here.items() if ways > 1 or name == "tp"), here, "–"
    )
    if s.tp > 1 and s.tp % 2 == 0:
        stages = {"pp": s.pp * 2, "tp": s.tp // 2, "ep": max(s.ep // 2, 1), "dcp": 1}
        name = f"pp={s.pp * 2}, tp={s.tp // 2}, same GPUs"
        yield Trial("layout", name, stages, "a token passes all stages; they idle with few requests")
    if s.tp > 1:
        dcp = s.dcp if s.dcp > 1 else max(int(copies_of(s)), 2)
        yield Trial("layout", f"dcp={dcp}", {"dcp": dcp}, "partial attention is merged over ranks in every layer")
    yield Trial("layout", f"cp={s.cp * 2}, twice the GPUs", {"cp": s.cp * 2}, "the added GPUs decode nothing more")


def _tried(s: Scenario, trial: Trial, base: Figures) -> Technique:
    """One variant priced, or the reason why it is not."""
    change = trial.change or {}
    variant = changed(s, change)
    current = all(getattr(s, name) == value for name, value in change.items())
    if variant is None:
        return _refused(trial, current, "contradicts other inputs of this scenario")
    try:
        found = outcome(variant)
    except HeadroomError as error:
        return _refused(trial, current, str(error))
    figures = _figures(variant, found, _batch(s))
    if variant.prefill == "excluded" and trial.group == "prefill":
        return replace(_row(trial, current, found, replace(figures, ttft_ms=None), base), whole=False)
    return _row(trial, current, found, figures, base)


def _refused(trial: Trial, current: bool, reason: str) -> Technique:
    """A row without numbers."""
    nothing = Figures()
    return Technique(
        trial.group, trial.name, current, trial.change, False, False, False, reason, nothing, nothing, trial.cost
    )


def _row(trial: Trial, current: bool, found: Outcome, figures: Figures, base: Figures) -> Technique:
    """A row with numbers, and what they differ by."""
    return Technique(
        trial.group, trial.name, current, trial.change, found.fits, found.meets_sla, found.engine_ok,
        "" if found.stands else found.reason, figures, _less(figures, base), trial.cost,
    )  # fmt: skip


def _figures(s: Scenario, found: Outcome, batch: float) -> Figures:
    """Numbers of one outcome; TPOT at a given batch of the replica."""
    if not found.fits:
        return Figures()
    at = tpot_at(s, batch) if found.tpot_ms is not None else None
    full = outcome(at_full_use(s)) if s.prefill == "disaggregated" else found
    return Figures(
        b_max=found.b_max if found.ttft_ms is not None and found.engine_ok else None,
        tpot_ms=at,
        ttft_ms=found.ttft_ms,
        output_gpu=full.goodput_tok_s_gpu if found.engine_ok else None,
        usd_good=found.usd_per_m_goodput,
        kv_tokens=found.kv_capacity_tokens,
    )


def _less(figures: Figures, base: Figures) -> Figures:
    """Figures less those of the scenario; None where either is unknown."""
    pairs = {each.name: (getattr(figures, each.name), getattr(base, each.name)) for each in fields(Figures)}
    return Figures(**{name: None if None in pair else pair[0] - pair[1] for name, pair in pairs.items()})


def _blocks(s: Scenario, base: Figures) -> Iterator[Technique]:
    """Cache blocks of other sizes: the engine's own rules with the size replaced."""
    setting = resolve(s)
    if not setting.convention.overheads:
        return
    rows = tuple(_block_rows(s, setting, base))
    paged = [each for each in rows if not each.name.startswith("contiguous")]
    same = len({each.figures for each in paged}) == 1
    yield from (each for each in rows if not same or each.current or each not in paged)


def _block_rows(s: Scenario, setting: Setting, base: Figures) -> Iterator[Technique]:
    """One row for each size of a block."""
    for size in (*sorted({*BLOCKS, setting.engine.block_size}), *_reserved(setting)):
        rules = replace(setting.engine, block_size=size)
        variant = assemble(setting.scenario, setting.model, setting.gpu, rules)
        found = _outcome_of(variant)
        own = size == setting.engine.block_size
        shown = _figures(s, found, _batch(s))
        trial = Trial("block", _block_name(setting, size), None, _block_cost(setting, size))
        yield _row(trial, own, found, shown, base)


def _reserved(setting: Setting) -> tuple[int, ...]:
    """The longest sequence: one block of that size a sequence is what engines reserved before paging."""
    return () if setting.max_len is None else (setting.max_len,)


def _block_name(setting: Setting, size: int) -> str:
    """What a block size is called; one that holds the longest sequence is contiguous memory."""
    if (size,) == _reserved(setting):
        return f"contiguous, {size:,} tokens reserved"
    return f"{size} token{'' if size == 1 else 's'}"


def _block_cost(setting: Setting, size: int) -> str:
    """What stays empty."""
    length = setting.scenario.isl + setting.scenario.osl
    if (size,) == _reserved(setting):
        return f"{max(size - length, 0):,} tokens of a sequence stay empty, the baseline before paging"
    return f"{(size - 1) / 2:g} tokens of a sequence stay empty on average"


STEPS_A_CALL = 8
"""Steps that multi-step scheduling runs for one call of the host: the source article's figure (section 2.4)."""


def _host(s: Scenario, base: Figures) -> Iterator[Technique]:
    """Host time of a step: waited for, shared by several steps, or hidden behind the devices' work."""
    setting = resolve(s)
    profile = setting.profile
    if not profile.host_step and not profile.host_sequence:
        return
    trials = (
        (1.0, "waited for at every step", "the constant is fitted to engines as they were measured"),
        (
            1.0 / STEPS_A_CALL,
            f"{STEPS_A_CALL} steps a call",
            "tokens come in bursts, new requests wait for a whole call",
        ),
        (0.0, "hidden (asynchronous)", "steps are scheduled ahead; an upper limit, as some host time always shows"),
    )
    for share, name, cost in trials:
        clock = replace(profile, host_step=profile.host_step * share, host_sequence=profile.host_sequence * share)
        variant = replace(setting, profile=clock, decoding=replace(setting.decoding, profile=clock))
        found = _outcome_of(variant)
        shown = replace(_figures(s, found, _batch(s)), tpot_ms=_tpot_of(variant, _batch(s)))
        yield _row(Trial("host", name, None, cost), share == 1.0, found, shown, base)


def _tpot_of(setting: Setting, batch: float) -> float | None:
    """TPOT of a setting that no scenario spells at a batch [ms]; None where it has none."""
    s = setting.scenario
    place = layout(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp).tall
    made = row(table(setting, bounds(setting, place), np.full((1, 1), batch)), 0)
    return made.tpot_ms


def _outcome_of(setting: Setting) -> Outcome:
    """The outcome of a setting that no scenario spells."""
    s = setting.scenario
    place = layout(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp).tall
    held = None if s.at_batch is None else np.full((1, 1), float(s.at_batch))
    return row(table(setting, bounds(setting, place), held), 0)


def _static(s: Scenario, base: Figures) -> Iterator[Technique]:
    """The baseline of the articles: a batch is admitted whole, each request reserves the longest sequence."""
    plain = s.with_(prefill="excluded") if s.prefill == "colocated" else s
    found = outcome(plain)
    if found.ttft_ms is None or found.tpot_ms is None or not found.fits:
        return
    longest = float(s.max_len or s.isl + s.osl)
    reserved = np.asarray(found.kv_bytes_per_token * longest)
    held = float(contiguous_sequences(known(plain).bounds.space.pool, reserved, np.asarray(float(s.dp)))[0, 0])
    batch, prompt = _static_batch(s, plain, held)
    tpot = float(tpots(plain, np.full((1, 1), max(batch, 1.0)))[0, 0])
    first = float(static_ttft(np.asarray(max(batch, 1.0)), np.asarray(prompt))) * 1e3 if prompt else None
    rate = float(static_rate(np.asarray(batch), np.asarray(prompt), np.asarray(tpot / 1e3), float(s.osl)))
    at_own = tpot_at(plain, _batch(s))
    figures = Figures(batch, at_own, first, rate / found.gpus_per_replica, None, held * longest)
    reason = "" if batch else "no whole batch keeps the SLA"
    cost = "a batch waits for its prompts; equal lengths assumed: with others all wait for the longest"
    name = f"static, {longest:,.0f} tokens reserved"
    here = outcome(s)
    if here.stands:
        yield _row(Trial("batching", "continuous", None, "nothing"), True, here, base, base)
    yield Technique(
        "batching", name, False, None, held >= 1, batch >= 1, True, reason, figures, _less(figures, base), cost, False
    )


def _static_batch(s: Scenario, plain: Scenario, held: float) -> tuple[float, float]:
    """The largest batch, or the one that is set, that keeps the SLA when admitted whole, and the time of one prompt [s]."""
    found = known(plain)
    setting, placed = found.setting, found.bounds.clock.placed
    prompt = 0.0
    if s.prefill != "excluded":
        prompt = float(prefill.prompt_seconds(placed, setting.profile, setting.prompt)[0, 0])

    def keeps(batch: Column) -> np.ndarray:
        late = static_ttft(batch, np.asarray(prompt)) * 1e3 > s.sla_ttft_ms
        return np.asarray((tpots(plain, batch) <= s.sla_tpot_ms) & ~late)

    limit = min(float(decode.largest_batch(keeps, (1, 1))[0, 0]), held)
    if s.at_batch is not None:
        limit = float(s.at_batch) if s.at_batch <= limit else 0.0
    return limit, prompt


TRAFFIC: Final = ("prefix",)
"""Groups that the requests decide on and not who serves them."""

PHRASES: Final = {"weights": "{} weights", "kv": "{} KV cache", "chunk": "chunked prefill, {}", "prefill": "prefill {}"}
"""How a row is called outside its group."""


@dataclass(frozen=True)
class Finding:
    """The best change, or pair of changes, among the techniques.

    Attributes:
        name: what is changed. change: the fields that apply it.
        gain: what it gains on the scenario; None where the scenario as it is does not stand.
        outcome: the plan that it leads to.
    """

    name: str
    change: Change = field(hash=False)
    gain: Gain | None
    outcome: Outcome

    @property
    def rank(self) -> float:
        """What findings are compared by, more is better: cheap good tokens, or many of them where there is no price."""
        dollars = self.outcome.usd_per_m_goodput
        return -dollars if dollars else self.outcome.goodput_tok_s_gpu or 0.0


@lru_cache(maxsize=128)
def best_changes(scenario: Scenario) -> tuple[Finding, ...]:
    """The best single technique that is not used, and the best pair of the three best where it is better still.

    Raises:
        CatalogueError, ModelConfigError: when the scenario names what does not exist or cannot be sized.
    """
    singles = _singles(scenario)
    pairs = (_pair(scenario, one, two) for one, two in combinations(singles[:3], 2))
    pair = max((each for each in pairs if each is not None), key=lambda each: each.rank, default=None)
    if not singles:
        return ()
    return (
        (singles[0], pair)
        if pair is not None and pair.rank > singles[0].rank + _noticeable(singles[0])
        else singles[:1]
    )


def _noticeable(found: Finding) -> float:
    """How much two ranks must differ to be told apart."""
    return abs(found.rank) * NOTICEABLE


def _singles(s: Scenario) -> tuple[Finding, ...]:
    """The best row of each group that stands and gains something, best first."""
    found: dict[str, Finding] = {}
    for each in techniques(s):
        if each.change is None or each.current or not each.stands or not each.whole or each.group in TRAFFIC:
            continue
        made = _finding(s, PHRASES.get(each.group, "{}").format(each.name), each.change)
        if made is not None and (each.group not in found or made.rank > found[each.group].rank):
            found[each.group] = made
    return tuple(sorted(found.values(), key=lambda each: -each.rank))


def _finding(s: Scenario, name: str, change: Change) -> Finding | None:
    """A change that leads to a plan which stands and gains something; None for any other."""
    variant = changed(s, change)
    if variant is None or not (then := outcome(variant)).stands:
        return None
    now = outcome(s)
    gained = gain(now, then) if now.stands else None
    if now.stands and (gained is None or gained.share < NOTICEABLE):
        return None
    return Finding(name, {key: value for key, value in change.items() if value != getattr(s, key)}, gained, then)


def _pair(s: Scenario, one: Finding, two: Finding) -> Finding | None:
    """Two changes at once; None where they set one field to two values."""
    if any(one.change[key] != two.change[key] for key in one.change.keys() & two.change.keys()):
        return None
    return _finding(s, f"{one.name} and {two.name}", {**one.change, **two.change})
