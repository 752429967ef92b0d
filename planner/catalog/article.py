"""The article profile: constants that make the serving article's own tables come out. Not for planning.

Its parameters are fits to printed tables; where one cannot be a property of hardware its note says "not physical".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from planner.catalog.kernel_laws import ASSUMED_KINDS, PRECISIONS, TIMED_KINDS, bf16_peak
from planner.catalog.links import UNKNOWN_DOMAIN, free_links
from planner.catalog.profile_records import FOLDER, read
from planner.catalog.records import Record
from planner.errors import CatalogueError
from planner.specs.accelerator import Accelerator
from planner.specs.collective import Tag
from planner.specs.profile import Law, Profile


@dataclass(frozen=True)
class Parameter:
    """One constant of the article profile.

    Attributes:
        name: key in the preset.
        value: in `unit`.
        unit: as written in the preset (1, ms, tokens, sequences).
        tag: `fitted` to a printed table, `assumed`, or `published` by the article.
        source: what it was fitted to or where it is printed.
        note: "not physical: …" where no hardware could have it; else empty.
    """

    name: str
    value: float
    unit: str
    tag: Tag
    source: str
    note: str = ""

    @property
    def physical(self) -> bool:
        """Whether hardware could have this value."""
        return "not physical" not in self.note


@dataclass(frozen=True)
class Quote:
    """A measurement that the article quotes; nothing computes it.

    Attributes:
        name: key in the preset.
        low, value: the figure in `unit`; `low` is the lower end where a range is printed.
        unit, section, about: what it is and where it is printed.
    """

    name: str
    low: float
    value: float
    unit: str
    section: str
    about: str


class _Parameter(Record):
    unit: str
    value: float
    tag: Tag
    source: str
    note: str = ""


class _Quote(Record):
    unit: str
    value: float
    low: float | None = None
    section: str
    about: str


class _Article(Record):
    id: str
    date: str
    source: str
    parameter: dict[str, _Parameter]
    quoted: dict[str, _Quote]


@cache
def _record() -> _Article:
    """`article.toml`."""
    return read(FOLDER / "article.toml", _Article)


@cache
def parameters() -> dict[str, Parameter]:
    """Every constant of the article profile by name."""
    return {
        name: Parameter(name, found.value, found.unit, found.tag, found.source, found.note)
        for name, found in _record().parameter.items()
    }


@cache
def quotes() -> dict[str, Quote]:
    """Every quoted measurement by name."""
    return {
        name: Quote(
            name, found.value if found.low is None else found.low, found.value, found.unit, found.section, found.about
        )
        for name, found in _record().quoted.items()
    }


def constant(name: str) -> float:
    """The value of one parameter, in the unit that the preset states.

    Raises:
        CatalogueError: no such parameter.
    """
    try:
        return parameters()[name].value
    except KeyError:
        raise CatalogueError(f"article.toml: no parameter {name}") from None


def article(accelerator: Accelerator) -> Profile:
    """A roofline over the summed work of a step, with the article's fitted constants, on one accelerator."""
    law = Law(
        floor=0.0,
        eff_bw=constant("eff_bw"),
        eff_flops=constant("eff_flops"),
        p=float("inf"),
        peak=bf16_peak(accelerator),
        bandwidth=accelerator.bandwidth,
        tag="fitted",
        source=parameters()["eff_flops"].source,
        note=parameters()["eff_flops"].note,
    )
    return Profile(
        id="article",
        per_operator=False,
        laws={(kind, precision): law for kind in (*TIMED_KINDS, *ASSUMED_KINDS) for precision in PRECISIONS},
        links=free_links(float(accelerator.scale_up_domain or UNKNOWN_DOMAIN), law.source),
        host_step=constant("host_step") * 1e-3,
        host_sequence=constant("host_sequence") * 1e-3,
        phi=1.0,
        band=(1.0, 1.0),
        notes=tuple(f"{each.name}: {each.note}." for each in parameters().values() if not each.physical),
    )


def dequantising(profile: Profile) -> Profile:
    """A profile whose INT4 matrices compute at the article's share of the BF16 rate: weights are unpacked first."""
    slow = constant("dequantisation")
    laws = {
        key: replace(law, eff_flops=law.eff_flops * slow) if key[1] == "int4" else law
        for key, law in profile.laws.items()
    }
    return replace(profile, laws=laws)
