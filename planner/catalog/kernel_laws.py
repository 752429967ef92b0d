"""Kernel laws of one accelerator under one engine, as served: which timed kernel, on which peaks, with which factors.

A law is looked up in this order: the engine's own kernel on this accelerator; another engine's kernel on it; the
nearest precision on it; for a few, a named other accelerator. An accelerator without timed kernels takes the fractions
of the accelerator that it names in `borrows` and multiplies them by its *own* peak and bandwidth. Each step away from
an own, fitted kernel is said in the law's `tag` and `note`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.catalog.profile_records import Borrower, CollectiveRecord, LawRecord, Serving, kernels
from planner.errors import CatalogueError
from planner.specs.accelerator import Accelerator
from planner.specs.collective import CollectiveLaw
from planner.specs.precision import WEIGHTS
from planner.specs.profile import Law

TIMED_KINDS = ("gemm", "experts", "attn_decode", "mla_decode", "attn_prefill", "mla_prefill")
ASSUMED_KINDS = ("state", "elementwise", "index")
PRECISIONS = tuple(WEIGHTS)

NEAREST: dict[str, tuple[str, ...]] = {
    "bf16": ("bf16",),
    "fp8": ("fp8", "fp8-block", "bf16"),
    "fp8-block": ("fp8-block", "fp8", "bf16"),
    "int8": ("int8", "fp8", "bf16"),
    "int4": ("int4", "mxfp4", "bf16"),
    "nvfp4": ("nvfp4", "mxfp4", "int4", "bf16"),
    "mxfp4": ("mxfp4", "int4", "bf16"),
}
"""Kernel precisions to look for, nearest first."""

ANY = "any"
"""Accelerator of a band that an engine has on every accelerator with timed kernels."""

LENDING_ENGINES = ("vllm", "trtllm", "sglang")
"""Order in which other engines' kernels stand in."""

PCIE_LINK = 100e9
"""A scale-up link below this is PCIe [B/s]."""

FLOOR_FACTOR = {
    "experts": "experts_floor_factor",
    "attn_decode": "decode_attention_floor_factor",
    "mla_decode": "decode_attention_floor_factor",
}
EFF_BW_FACTOR = {
    "gemm": "gemm_eff_bw_factor",
    "experts": "experts_eff_bw_factor",
    "attn_decode": "attention_eff_bw_factor",
    "mla_decode": "attention_eff_bw_factor",
}
EFF_FLOPS_FACTOR = {
    "gemm": "gemm_eff_flops_factor",
    "experts": "experts_eff_flops_factor",
    "attn_prefill": "prefill_attention_eff_flops_factor",
    "mla_prefill": "prefill_attention_eff_flops_factor",
}


@dataclass(frozen=True)
class Lookup:
    """Where laws are taken from: the accelerator planned for, the one whose kernels are used, the engine.

    Attributes:
        accelerator: the accelerator planned for.
        lender: id of the accelerator whose kernels are used (its own where it has any).
        engine: id of the engine in the kernel tables.
        borrower: what measurements say about the lender's fractions on this accelerator.
        served: the serving constants that kernels are clocked with.
    """

    accelerator: Accelerator
    lender: str
    engine: str
    borrower: Borrower | None
    served: Serving

    @property
    def borrowed(self) -> bool:
        """Whether the kernels are another accelerator's."""
        return self.lender != self.accelerator.id

    @property
    def peaks(self) -> dict[str, float]:
        """Dense peaks by precision [FLOP/s]; a timed accelerator's are those that its fractions were fitted against."""
        known = {**self.accelerator.peak, "bf16": bf16_peak(self.accelerator)}
        return known if self.borrowed else known | kernels(self.lender).peaks


def bf16_peak(accelerator: Accelerator) -> float:
    """Dense 16-bit peak; half of the FP8 peak where only that is published [FLOP/s]."""
    peaks = accelerator.peak
    known = peaks.get("bf16") or peaks.get("fp16") or 0.5 * peaks.get("fp8", 0.0)
    if not known:
        raise CatalogueError(f"accelerator {accelerator.id}: no dense peak to compute at")
    return known


def laws(look: Lookup) -> dict[tuple[str, str], Law]:
    """Every (kind, precision), so that nothing is looked up later."""
    timed = {(kind, precision): _timed(look, kind, precision) for kind in TIMED_KINDS for precision in PRECISIONS}
    assumed = {(kind, precision): _assumed(look, kind, precision) for kind in ASSUMED_KINDS for precision in PRECISIONS}
    return {**timed, **assumed}


def _timed(look: Lookup, kind: str, precision: str) -> Law:
    """One law from the kernel tables, as served on this accelerator; a published one goes first where none was timed."""
    published = _published(look, kind)
    if published is not None:
        return published
    record, owner = _record(look, kind, precision)
    law = _slowed(_serve(record.as_law(), kind, look), look, kind, record.precision)
    law = _at_home(law, record, look, kind, precision, owner)
    remarks = [*_remarks(record, look, precision, owner), law.note]
    tag = law.tag if record.precision == precision else "borrowed"
    return replace(law, tag=tag, note="; ".join(remark for remark in remarks if remark))


def timed_on(look: Lookup, kind: str, precision: str) -> str:
    """Precision of the timed kernel that serves a kind and precision."""
    return _record(look, kind, precision)[0].precision


def _published(look: Lookup, kind: str) -> Law | None:
    """The law that the accelerator's makers published, at its own 16-bit peak and bandwidth."""
    found = (r for r in look.served.published if r.kind == kind and look.accelerator.id in r.accelerators)
    record = next(found, None)
    if record is None:
        return None
    return Law(
        floor=record.floor_us * 1e-6,
        eff_bw=record.eff_bw,
        eff_flops=record.eff_flops,
        p=record.p,
        peak=look.peaks["bf16"],
        bandwidth=look.accelerator.bandwidth,
        tag="published",
        source=record.source,
        note=record.note,
    )


def _record(look: Lookup, kind: str, precision: str) -> tuple[LawRecord, str]:
    """The nearest timed kernel and the accelerator it was timed on."""
    for wanted in NEAREST[precision]:
        for owner in (look.lender, *_stand_ins(look, kind, wanted)):
            record = _of_engine(owner, look.engine, kind, wanted)
            if record is not None:
                return record, owner
    raise CatalogueError(f"kernels-{look.lender}.toml: no law of kind {kind}")


def _stand_ins(look: Lookup, kind: str, precision: str) -> Iterator[str]:
    """Other accelerators that a kind and precision may be taken from."""
    return (each.accelerator for each in look.served.stand_in if (each.kind, each.precision) == (kind, precision))


def _of_engine(owner: str, engine: str, kind: str, precision: str) -> LawRecord | None:
    """The law of an engine, or of the first other engine that has one."""
    laws = kernels(owner).by_key
    order = (engine, *LENDING_ENGINES)
    return next((laws[each, kind, precision] for each in order if (each, kind, precision) in laws), None)


def _serve(law: Law, kind: str, look: Lookup) -> Law:
    """A kernel's law as engines launch it; fractions never exceed the peak."""
    return replace(
        law,
        floor=_served_floor(law.floor, kind, look),
        eff_bw=min(1.0, law.eff_bw * _factor(EFF_BW_FACTOR, kind, look)),
        eff_flops=min(1.0, law.eff_flops * _factor(EFF_FLOPS_FACTOR, kind, look)),
    )


def _slowed(law: Law, look: Lookup, kind: str, precision: str) -> Law:
    """A served law with the factor that its own kernel was found to need."""
    factor = look.served.factors.get((look.accelerator.id, look.engine, kind, precision), 1.0)
    if factor == 1.0:
        return law
    eff_bw, eff_flops = (min(1.0, share / factor) for share in (law.eff_bw, law.eff_flops))
    return replace(law, floor=law.floor * factor, eff_bw=eff_bw, eff_flops=eff_flops)


def _served_floor(floor: float, kind: str, look: Lookup) -> float:
    """Floor of a served kernel [s]: one number for every GEMM, the kernel's own times a factor elsewhere."""
    if kind == "gemm":
        return look.served.constant["gemm_floor"].of(look.engine)
    return floor * _factor(FLOOR_FACTOR, kind, look)


def _factor(table: dict[str, str], kind: str, look: Lookup) -> float:
    """A serving factor of a kind; 1 where the kernel tables need none."""
    return look.served.constant[table[kind]].of(look.engine) if kind in table else 1.0


def _at_home(law: Law, record: LawRecord, look: Lookup, kind: str, precision: str, owner: str) -> Law:
    """Put a law's fractions on the peak and bandwidth of the accelerator planned for."""
    peak = look.peaks[_math(look, record, kind, precision)]
    if owner == look.accelerator.id:
        return replace(law, peak=peak)
    eff_bw = min(1.0, law.eff_bw * _eff_bw_factor(look))
    return replace(law, peak=peak, bandwidth=look.accelerator.bandwidth, eff_bw=eff_bw, tag="borrowed")


def _math(look: Lookup, record: LawRecord, kind: str, precision: str) -> str:
    """Precision whose peak the kernel runs at: its own, or BF16 where this accelerator has nothing faster.

    INT8 serving multiplies INT8 activations, so a slow INT8 peak (B300) is slow and not stood in for.
    """
    attention = kind.startswith(("attn", "mla"))
    wanted = record.math if attention or record.precision == precision else WEIGHTS[precision].math
    return wanted if look.peaks.get(wanted, 0.0) >= look.peaks["bf16"] or _slow_int8(look, wanted) else "bf16"


def _slow_int8(look: Lookup, wanted: str) -> bool:
    """Whether arithmetic is INT8 on an accelerator that has little of it."""
    return wanted == "int8" and "int8" in look.peaks


def _eff_bw_factor(look: Lookup) -> float:
    """Measured factor on borrowed bandwidth fractions."""
    return look.borrower.eff_bw_factor if look.borrowed and look.borrower else 1.0


def _remarks(record: LawRecord, look: Lookup, precision: str, owner: str) -> Iterator[str]:
    """What stands between a law and an own kernel of this engine, precision and accelerator."""
    if owner != look.accelerator.id:
        yield f"fractions of {owner} at this accelerator's own peak and bandwidth"
    if record.engine != look.engine:
        yield f"kernel of {record.engine}"
    if record.precision != precision:
        yield f"no {precision} kernel timed: {record.precision} fractions"


def _assumed(look: Lookup, kind: str, precision: str) -> Law:
    """Laws of kinds that no kernel table times."""
    constant = look.served.constant
    floor = constant["gemm_floor" if kind == "index" else f"{kind}_floor"]
    eff_bw = constant[f"{kind}_eff_bw"]
    flops = constant.get(f"{kind}_eff_flops")
    home = _home(look, precision if kind == "index" else "bf16")
    return replace(
        home,
        floor=floor.of(look.engine),
        eff_bw=min(1.0, eff_bw.of(look.engine) * _eff_bw_factor(look)),
        eff_flops=flops.of(look.engine) if flops else 1.0,
        source=eff_bw.source,
    )


def _home(look: Lookup, precision: str) -> Law:
    """Peak and bandwidth of the accelerator planned for, as its own GEMM law has them."""
    gemm = _timed(look, "gemm", precision)
    return Law(0.0, 1.0, 1.0, math.inf, gemm.peak, gemm.bandwidth, tag="assumed")


def all_reduce(look: Lookup) -> CollectiveLaw:
    """All-reduce inside a scale-up domain, as served."""
    law = collective_law(look, "all_reduce")
    alpha_factor = look.served.constant["all_reduce_floor_factor"].of(look.engine)
    return replace(law, alpha=tuple(alpha * alpha_factor for alpha in law.alpha))


def collective_law(look: Lookup, op: str) -> CollectiveLaw:
    """A collective inside a scale-up domain, as timed alone, on the link of the accelerator planned for."""
    record, owner = collective(look, op)
    law = record.as_collective()
    bus_factor = _bus_factor(look, record)
    away = owner != look.accelerator.id
    return replace(
        law,
        bus_bandwidth=tuple(bus * bus_factor for bus in law.bus_bandwidth),
        tag="borrowed" if away else law.tag,
        source=f"{law.source} on {owner}" if away else law.source,
    )


def collective(look: Lookup, op: str = "all_reduce") -> tuple[CollectiveRecord, str]:
    """A collective of this engine, NCCL's where it has none, and the accelerator it was timed on."""
    owner = look.served.pcie.accelerator if needs_pcie(look) else look.lender
    found = {record.engine: record for record in kernels(owner).collective if record.op == op}
    return found.get(look.engine) or found["nccl"], owner


def needs_pcie(look: Lookup) -> bool:
    """Whether a borrower's link is PCIe while its lender's is not."""
    own = look.accelerator.scale_up_bandwidth
    lent = kernels(look.lender).collective[0].link_gb_per_s * 1e9
    return look.borrowed and own is not None and own < PCIE_LINK <= lent


def _bus_factor(look: Lookup, record: CollectiveRecord) -> float:
    """Own link over the lender's, times what measurements say, for a collective."""
    return link_factor(look, record.link_gb_per_s * 1e9) if look.borrowed else 1.0


def link_factor(look: Lookup, lent: float) -> float:
    """Own link over a lender's of `lent` [B/s], times what measurements say; 1 for a link that is unknown."""
    own = look.accelerator.scale_up_bandwidth or lent
    measured = look.borrower.bus_factor if look.borrower else 1.0
    return measured * own / lent
