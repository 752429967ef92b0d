"""What a plan takes for granted, and where each of its inputs comes from."""

from __future__ import annotations

from planner.setting import Setting
from planner.specs.model import ExpertFFN


def assumptions(setting: Setting) -> tuple[str, ...]:
    """What was taken for granted, each with its direction where it has one."""
    asked = setting.scenario
    found = [
        f"Mean context {setting.decoding.context:,.0f} tokens: input plus half of the output.",
        "b_max_kv reserves full length for every sequence (pessimistic); b_max_kv_mean reserves the mean.",
        "TTFT is that of an unloaded replica plus half a step; queues are not in it (optimistic under load).",
        "The curve's cost is that of one replica at full use: no spare replica, no rounding to instances.",
        *_engine(setting),
    ]
    if asked.qps > 0:
        found.append("Replicas are sized for the operating batch; at the asked rate each runs below it, and faster.")
    if asked.prefill == "colocated":
        found.append(
            f"Each step carries B/osl new prompts; {setting.profile.phi:.0%} of their cost lands on running requests."
        )
    if any(isinstance(group.ffn, ExpertFFN) for group in setting.model.groups):
        found.append("Tokens choose experts uniformly and independently (pessimistic: real routing repeats itself).")
    return (*found, *setting.model.notes, *setting.profile.notes)


def _engine(setting: Setting) -> tuple[str, ...]:
    """The engine's limits, where they are counted."""
    if not setting.convention.overheads:
        return ()
    engine = setting.engine
    limits = f"{setting.max_seqs:,} sequences, {setting.token_budget:,} tokens a step"
    return (f"Engine {engine.name} {engine.version}: memory share {setting.utilisation:g}, {limits}.",)


def sources(setting: Setting) -> tuple[str, ...]:
    """Where model, accelerator, engine, speed constants and price come from, with dates."""
    model, gpu, engine = setting.model, setting.gpu, setting.engine
    found = [
        f"Model {model.name}: {model.source} ({model.date})",
        *(f"{gpu.name}, {field}: {source}" for field, source in sorted(gpu.sources.items())),
        *(f"{engine.name} {engine.version}, {field}: {source}" for field, source in sorted(engine.sources.items())),
        *sorted({f"Speed constants: {law.source}" for law in setting.profile.laws.values() if law.source}),
    ]
    if setting.cost.quoted is not None:
        quoted = setting.cost.quoted
        found.append(f"Price: {quoted.provider} {quoted.sku}, {quoted.source} ({quoted.date})")
    elif setting.cost.default is not None:
        newest = setting.cost.default
        found.append(f"Price: median of {newest.count} prices, {newest.oldest} to {newest.newest}")
    return tuple(found)
