"""The one place where work becomes seconds.

    seconds = floor + ((flops / (eff_flops · peak))^p + (bytes / (eff_bw · bandwidth))^p)^(1/p)

The textbook profile has floor 0 and p = ∞ and applies it once to the summed work of a pass; the measured profile
applies it operator by operator with constants fitted to measured kernels.
"""

from __future__ import annotations

import numpy as np

from planner.formula import formula
from planner.physics.comms import LINK_KINDS
from planner.specs.links import Links
from planner.specs.profile import Law, Profile
from planner.work import Column, Entry, Ledger, Work

TINY = 1e-30
"""Keeps 0/0 out of operators that do nothing [s]."""


@formula("roofline with a rounded corner: exact max at p = ∞; constants fitted to measured kernels", "s")
def law_seconds(compute: Column, memory: Column, floor: float, p: float) -> Column:
    """Time of one launch from its compute time and its memory time, both at reachable rates."""
    larger = np.maximum(compute, memory)  # [s]
    smaller = np.minimum(compute, memory)  # [s]
    ratio = smaller / np.maximum(larger, TINY)  # [1]
    return floor + larger * (1.0 + ratio**p) ** (1.0 / p)  # [s]


@formula("the same law at p = ∞: the plain roofline", "s")
def corner_seconds(compute: Column, memory: Column, floor: float) -> Column:
    """Time of one launch whose compute and memory time overlap completely."""
    return floor + np.maximum(compute, memory)  # [s]


@formula("the same law at p = 1: nothing overlaps", "s")
def summed_law_seconds(compute: Column, memory: Column, floor: float) -> Column:
    """Time of one launch whose compute and memory time add up."""
    return floor + compute + memory  # [s]


@formula("definition: operations over the reachable share of the dense peak", "s")
def compute_seconds(flops: Column, eff_flops: float, peak: float) -> Column:
    """Time to compute at the reachable rate."""
    reachable = eff_flops * peak  # [FLOP/s]
    return flops / reachable  # [s]


@formula("definition: bytes over the reachable share of the memory bandwidth", "s")
def memory_seconds(hbm_bytes: Column, eff_bw: float, bandwidth: float) -> Column:
    """Time to move bytes between memory and chip at the reachable rate."""
    reachable = eff_bw * bandwidth  # [B/s]
    return hbm_bytes / reachable  # [s]


@formula("fit to measured decode attention: a launch that is past its floor but short of full bandwidth pays more", "s")
def rise_seconds(memory: Column, rise: float, rise_scale: float) -> Column:
    """The extra term of decode attention between its floor and full bandwidth."""
    return rise * (1.0 - np.exp(-memory / rise_scale))  # [s]


@formula("fit to measured prefill attention: half of full efficiency at `half_length` prompt tokens", "s")
def short_prompt_seconds(compute: Column, length: Column, half_length: float) -> Column:
    """Compute time of prefill attention, which is less efficient on short prompts."""
    loss = 1.0 + half_length / np.maximum(length, 1.0)  # [1]
    return compute * loss  # [s]


@formula("alpha-beta law of a collective, nccl-tests bus bandwidth", "s")
def collective_seconds(traffic: Column, ranks: Column, alpha: Column, bus_bandwidth: Column) -> Column:
    """Time of one collective; a group of one rank costs nothing."""
    moving = traffic / bus_bandwidth  # [s]
    return (alpha + moving) * (ranks > 1.0)  # [s]


@formula("alpha-beta law of messages that follow each other", "s")
def message_seconds(link_bytes: Column, messages: Column, alpha: float, bandwidth: float) -> Column:
    """Time to move bytes in several messages in sequence between two devices or domains."""
    waiting = alpha * messages  # [s]
    moving = link_bytes / bandwidth  # [s]
    return waiting + moving  # [s]


@formula("alpha-beta laws of the two kernel families, measured by the number of ranks; engines pick the faster", "s")
def exchange_seconds(
    link_bytes: Column, alpha: Column, bandwidth: Column, bulk_alpha: Column, bulk_bandwidth: Column
) -> Column:
    """Time of one dispatch or combine; latency and bandwidth follow the ranks, not one over them."""
    quick = alpha + link_bytes / bandwidth  # [s]
    bulk = bulk_alpha + link_bytes / bulk_bandwidth  # [s]
    return np.minimum(quick, bulk)  # [s]


@formula("fit to public serving measurements: a constant a step and a cost a running sequence", "s")
def host_seconds(host_step: float, host_sequence: float, sequences: Column) -> Column:
    """Host time of one step."""
    return host_step + host_sequence * sequences  # [s]


def terms(work: Work, profile: Profile) -> tuple[Column, Column, Law]:
    """Compute seconds, memory seconds and the law of one launch."""
    law = profile.law(work.kind, work.precision)
    return (*reachable_seconds(work, law), law)


def reachable_seconds(work: Work, law: Law) -> tuple[Column, Column]:
    """Compute seconds and memory seconds of one launch at the rates that a law reaches."""
    compute = compute_seconds(work.flops, law.eff_flops, law.peak)
    if law.half_length:
        compute = short_prompt_seconds(compute, work.length, law.half_length)
    return compute, memory_seconds(work.hbm_bytes, law.eff_bw, law.bandwidth)


def operator_seconds(work: Work, law: Law) -> Column:
    """Time of one launch of an operator under a law [s]."""
    compute, memory = reachable_seconds(work, law)
    seconds = overlapped_seconds(compute, memory, law)
    return seconds + rise_seconds(memory, law.rise, law.rise_scale) if law.rise else seconds


def overlapped_seconds(compute: Column, memory: Column, law: Law) -> Column:
    """The law by its sharpness: two of its cases need no power [s]."""
    if np.isinf(law.p):
        return corner_seconds(compute, memory, law.floor)
    if law.p == 1.0:
        return summed_law_seconds(compute, memory, law.floor)
    return law_seconds(compute, memory, law.floor, law.p)


def launch_seconds(work: Work, profile: Profile) -> Column:
    """Time of one launch of an operator [s]."""
    if work.kind == "host":
        return host_seconds(profile.host_step, profile.host_sequence, work.length)
    if work.kind in LINK_KINDS:
        return link_seconds(work, profile.links)
    seconds = operator_seconds(work, profile.law(work.kind, work.precision))
    if work.kind == "experts" and work.precision == "fp8-block":
        return seconds + profile.expert_layer_extra
    return seconds


def link_seconds(work: Work, links: Links) -> Column:
    """Time of one collective, message or exchange [s]."""
    match work.kind:
        case "all_reduce" | "gather":
            law = links.all_reduce if work.kind == "all_reduce" else links.gather
            return collective_seconds(work.link_bytes, work.messages, *law.constants(work.messages))
        case "hop":
            return message_seconds(work.link_bytes, work.messages, links.hop_alpha, links.hop_bandwidth)
        case "nic":
            return message_seconds(work.link_bytes, work.messages, links.out_alpha, links.out_bandwidth)
        case _:
            return _exchange_seconds(work, links)


def _exchange_seconds(work: Work, links: Links) -> Column:
    """Dispatch or combine by the faster of the two kernel families: engines pick by the number of tokens."""
    small, large = (each.dispatch if work.kind == "dispatch" else each.combine for each in (links.small, links.large))
    alpha, bandwidth = large.constants(work.messages)
    return exchange_seconds(work.link_bytes, *small.constants(work.messages), alpha, bandwidth / _wider(work, links))


def _wider(work: Work, links: Links) -> float:
    """Bytes an element of the high-throughput family over those of the low-latency family."""
    if work.kind == "dispatch":
        return links.large.dispatch_bytes / links.small.dispatch_bytes
    return links.large.combine_bytes / links.small.combine_bytes


def entry_seconds(entry: Entry, profile: Profile) -> Column:
    """Time of all launches of an entry in one pass [s], as calibrated; stacked kernels are added up."""
    return over_kernels(entry.work.launches * profile.scale * launch_seconds(entry.work, profile))


def over_kernels(column: Column) -> Column:
    """Sum over the leading axis of stacked kernels; other columns as they are."""
    return column.sum(axis=0) if column.ndim == 3 else column


def pass_seconds(ledger: Ledger, profile: Profile) -> Column:
    """Time of a pass [s]: operator by operator, or the law once on the summed work (textbook)."""
    if profile.per_operator:
        return sum((entry_seconds(entry, profile) for entry in ledger), np.zeros(1))
    return summed_seconds(ledger, profile)


def summed_seconds(ledger: Ledger, profile: Profile) -> Column:
    """The law applied once: compute times add up, memory times add up, then the corner; host time comes on top."""
    compute, memory = np.zeros(1), np.zeros(1)
    for entry in ledger:
        if entry.work.kind not in (*LINK_KINDS, "host"):
            flops_time, bytes_time, _ = terms(entry.work, profile)
            compute = compute + over_kernels(entry.work.launches * flops_time)
            memory = memory + over_kernels(entry.work.launches * bytes_time)
    return overlapped_seconds(compute, memory, profile.law("gemm", "bf16")) + _host(ledger, profile)


def _host(ledger: Ledger, profile: Profile) -> Column:
    """Host time of a pass [s]; none where the profile has none (the textbook)."""
    if not profile.host_step and not profile.host_sequence:
        return np.zeros(1)
    return sum((launch_seconds(e.work, profile) for e in ledger if e.work.kind == "host"), np.zeros(1))


def bound_by(entry: Entry, profile: Profile) -> str:
    """What most of an entry's time goes to, first row of the columns: compute, memory, link, floor or host."""
    work = entry.work
    if work.kind in (*LINK_KINDS, "host"):
        return "host" if work.kind == "host" else "link"
    compute, memory, law = terms(work, profile)
    parts = {"compute": _first(compute), "memory": _first(memory), "floor": law.floor}
    return max(parts, key=lambda part: parts[part])


def _first(column: Column) -> float:
    """The first number of a column."""
    return float(np.asarray(column).reshape(-1)[0])
