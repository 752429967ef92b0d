"""Exchange of tokens with experts on one accelerator under one engine: whose kernels, on which links.

Inside a scale-up domain: the accelerator's own table (its engine's kernels, else another engine's); a lender's at this
accelerator's link; NCCL's all-to-all where no dispatch kernels exist. Across domains: the table's own sizes where it has
them; else what crossing adds to the reference (DeepEP on H100 over 1 to 32 hosts), at this accelerator's NIC.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.fabric_records import (
    ExchangeRecord,
    ExchangeTable,
    Family,
    Op,
    exchanges,
    has_exchanges,
    scale_out,
)
from planner.catalog.kernel_laws import Lookup, collective_law, link_factor, needs_pcie
from planner.specs.links import Exchange, ExchangeLaw

UNKNOWN_DOMAIN = 8
"""Devices in a scale-up domain whose size is not known: those of a usual host."""

LENDING_ENGINES = ("sglang", "vllm", "trtllm")
"""Order in which other engines' kernels stand in: DeepEP with the least work around it first."""

NCCL_BYTES = 2.0
"""Bytes of an element that NCCL's all-to-all moves both ways: BF16, no kernel quantises on the way [B]."""


@dataclass(frozen=True)
class Kernel:
    """A dispatch or combine kernel as found: its law inside (and, where timed, across) domains, and its wire format."""

    law: ExchangeLaw
    element_bytes: float
    note: str = ""


def domain(look: Lookup) -> int:
    """Devices in one scale-up domain."""
    return look.accelerator.scale_up_domain or UNKNOWN_DOMAIN


def nic(look: Lookup) -> float:
    """NIC share of one device, the slowest class where it is unknown [B/s]."""
    return look.accelerator.scale_out_bandwidth or scale_out().constant["unknown_nic"].of(look.engine)


def exchange(look: Lookup, family: Family) -> Exchange:
    """Dispatch and combine by the kernels of one family."""
    dispatch, combine = _kernel(look, family, "dispatch"), _kernel(look, family, "combine")
    return Exchange(
        dispatch=_across(dispatch.law, look, family, "dispatch"),
        combine=_across(combine.law, look, family, "combine"),
        dispatch_bytes=dispatch.element_bytes,
        combine_bytes=combine.element_bytes,
    )


def remark(look: Lookup, family: Family) -> str:
    """What stands between the exchange laws of one family and kernels of this engine timed on this accelerator."""
    use = {"low-latency": "decode", "high-throughput": "prefill"}[family]
    kernel = _kernel(look, family, "dispatch")
    law = _across(kernel.law, look, family, "dispatch")
    crossing = "" if law is kernel.law else _crossing(family)
    last = f"above {law.ranks[-1]} ranks as over {law.ranks[-1]}"
    return f"Expert exchange in {use}: {'; '.join(text for text in (kernel.note, crossing, last) if text)}."


def _crossing(family: Family) -> str:
    """How sizes that cross domains come about."""
    caveat = _reference(family, "dispatch").caveat
    reference = f"DeepEP adds on {scale_out().reference}" + (f" ({caveat})" if caveat else "")
    return f"across domains as {reference}, at this accelerator's NIC"


def _table(look: Lookup) -> ExchangeTable | None:
    """The table whose kernels are used; None = NCCL's all-to-all."""
    named = {part: each.lender for each in scale_out().lender for part in each.accelerators}
    own = look.accelerator.id
    if has_exchanges(own):
        return exchanges(own)
    lender = named.get(own, look.lender)
    return exchanges(lender) if has_exchanges(lender) and not needs_pcie(look) else None


def _kernel(look: Lookup, family: Family, op: Op) -> Kernel:
    """The kernel of one family and operation."""
    table = _table(look)
    if table is None:
        return _nccl(look)
    record = _record(table, look.engine, family, op)
    note = "; ".join(text for text in (_stand_in(table, record, look), record.caveat) if text)
    law = record.as_exchange()
    return Kernel(law if _owned(table, look) else _borrowed(law, table, look), record.element_bytes, note)


def _owned(table: ExchangeTable, look: Lookup) -> bool:
    """Whether a table is of the accelerator planned for."""
    return table.accelerator == look.accelerator.id


def _record(table: ExchangeTable, engine: str, family: Family, op: Op) -> ExchangeRecord:
    """The engine's kernel, or that of the first other engine that has one."""
    found = {record.engine: record for record in table.exchange if (record.family, record.op) == (family, op)}
    return next(found[each] for each in (engine, *LENDING_ENGINES) if each in found)


def _reference(family: Family, op: Op) -> ExchangeRecord:
    """The kernel that says what crossing domains adds."""
    return _record(exchanges(scale_out().reference), LENDING_ENGINES[0], family, op)


def _stand_in(table: ExchangeTable, record: ExchangeRecord, look: Lookup) -> str:
    """Whose kernel stands in for one of this engine on this accelerator."""
    engine = "" if record.engine == look.engine else f"kernel of {record.engine}"
    place = "" if _owned(table, look) else f"as on {table.accelerator}, at this accelerator's link"
    return " ".join(text for text in (engine, place) if text)


def _borrowed(law: ExchangeLaw, table: ExchangeTable, look: Lookup) -> ExchangeLaw:
    """The sizes inside the lender's domain, at this accelerator's link."""
    factor = link_factor(look, table.link_gb_per_s * 1e9)
    inside = _until(law, table.domain)
    return replace(
        inside,
        bandwidth=tuple(bandwidth * factor for bandwidth in inside.bandwidth),
        tag="borrowed",
        source=f"{law.source} on {table.accelerator}",
    )


def _nccl(look: Lookup) -> Kernel:
    """NCCL's all-to-all as an exchange: logical bytes count those to the rank itself too."""
    law = collective_law(look, "all_to_all")
    logical = tuple(bus * n / (n - 1) for n, bus in zip(law.devices, law.bus_bandwidth, strict=True))
    exchanged = ExchangeLaw(law.devices, law.alpha, logical, law.tag, law.source, law.median_error)
    return Kernel(exchanged, NCCL_BYTES, "no dispatch kernels were timed for it: all-to-all of NCCL in BF16")


def _until(law: ExchangeLaw, last: int) -> ExchangeLaw:
    """A law without its sizes above `last`; its smallest size stays."""
    count = max(1, sum(n <= last for n in law.ranks))
    return replace(law, ranks=law.ranks[:count], alpha=law.alpha[:count], bandwidth=law.bandwidth[:count])


def _across(law: ExchangeLaw, look: Lookup, family: Family, op: Op) -> ExchangeLaw:
    """A law with sizes that cross the scale-up domain.

    2, 4, ... domains cost what 2, 4, ... hosts cost on the reference: the alpha that they add there, and the bytes at the
    reference's speed scaled by the NIC. What the kernel takes longer than the reference inside a domain stays on top.
    """
    edge = domain(look)
    if law.ranks[-1] > edge and law.tag != "borrowed":
        return law
    table, beyond = exchanges(scale_out().reference), _reference(family, op).as_exchange()
    alpha, bandwidth = (float(column) for column in law.constants(np.asarray(float(edge))))
    slower = max(0.0, 1 / bandwidth - 1 / beyond.bandwidth[0])
    share = nic(look) / (table.nic_gb_per_s * 1e9)
    inside = tuple(n for n in law.ranks if n < edge)
    hosts = tuple(n // table.domain for n in beyond.ranks[1:])
    return replace(
        law,
        ranks=(*inside, edge, *(edge * count for count in hosts)),
        alpha=(*law.alpha[: len(inside)], alpha, *(alpha + max(0.0, a - beyond.alpha[0]) for a in beyond.alpha[1:])),
        bandwidth=(
            *law.bandwidth[: len(inside)],
            bandwidth,
            *(min(bandwidth, 1 / (slower + 1 / (share * b))) for b in beyond.bandwidth[1:]),
        ),
        source=f"{law.source}; across domains DeepEP on {table.accelerator}",
    )
