"""Borrowed records follow the fitted ones that they name as their source, on the same accelerator or on another."""

from __future__ import annotations

from collections.abc import Sequence

from planner.calibrate.kernel_fit import rounded
from planner.catalog.profile_records import CollectiveRecord, KernelTable, LawRecord

OWN = ("engine", "tag", "note", "math", "peak_tflops", "bandwidth_tb_per_s")
"""What a borrowed law keeps."""

ON = " on "
"""Stands in a source before the accelerator that lends."""


def lent(table: KernelTable, tables: Sequence[KernelTable]) -> KernelTable:
    """A table whose borrowed records are those of their lenders; one whose lender is not found stays."""
    laws = tuple(_law(record, _lender(record.source, table, tables)) for record in table.law)
    links = tuple(_link(record, _lender(record.source, table, tables)) for record in table.collective)
    return table.model_copy(update={"law": laws, "collective": links})


def _lender(source: str, table: KernelTable, tables: Sequence[KernelTable]) -> KernelTable:
    """The accelerator whose records a source names: another one after `ON`, else the table's own."""
    _, said, name = source.rpartition(ON)
    return next((each for each in tables if said and each.accelerator == name), table)


def _bare(source: str) -> str:
    """Which timings a source names, without what a fit did and where."""
    return source.split(";")[0].rpartition(ON)[0] or source.split(";")[0]


def _law(record: LawRecord, lender: KernelTable) -> LawRecord:
    """A borrowed law with the fractions and times of its lender, at its own peaks."""
    if record.tag != "borrowed":
        return record
    for law in lender.law:
        same = (law.kind, law.precision, _bare(law.source)) == (record.kind, record.precision, _bare(record.source))
        if same and law.tag == "fitted":
            own = {name: getattr(record, name) for name in OWN}
            return law.model_copy(update={**own, "source": _source(law.source, record.source)})
    return record


def _link(record: CollectiveRecord, lender: KernelTable) -> CollectiveRecord:
    """A borrowed collective with its lender's constants, at the borrower's link."""
    if record.tag != "borrowed":
        return record
    for link in lender.collective:
        if (link.op, link.tag, _bare(link.source)) == (record.op, "fitted", _bare(record.source)):
            share = record.link_gb_per_s / link.link_gb_per_s
            bus = tuple(rounded(each * share) for each in link.bus_gb_per_s)
            fit = {"alpha_us": link.alpha_us, "bus_gb_per_s": bus, "rows": link.rows, "median_error": link.median_error}
            return record.model_copy(update=fit)
    return record


def _source(lender: str, borrower: str) -> str:
    """The lender's source, with the place that the borrower names."""
    _, said, name = borrower.rpartition(ON)
    return f"{lender}{ON}{name}" if said else lender
