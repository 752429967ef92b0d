"""Speed profiles: every law constant of one (profile, accelerator, engine), resolved before physics starts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from planner.catalog.article import article
from planner.catalog.fitted_constants import serving
from planner.catalog.kernel_laws import (
    ANY,
    ASSUMED_KINDS,
    LENDING_ENGINES,
    PRECISIONS,
    TIMED_KINDS,
    Lookup,
    bf16_peak,
    collective,
    laws,
)
from planner.catalog.links import UNKNOWN_DOMAIN, free_links, links
from planner.catalog.profile_records import Borrower, Era, Serving, has_kernels, kernels, textbook
from planner.errors import CatalogueError
from planner.specs.accelerator import Accelerator
from planner.specs.correction import CALIBRATED
from planner.specs.profile import Law, Profile


@cache
def profile(profile_id: str, accelerator: Accelerator, engine_id: str, *, engine_version: str | None = None) -> Profile:
    """All constants of one profile on one accelerator under one engine.

    Args:
        profile_id: `measured`, `textbook`, or `article` (the article's own tables; no scenario names it). A `custom`
            profile starts from the measured constants; `specs.correction.corrected` puts the correction on them.
        accelerator: the accelerator planned for.
        engine_id: `vllm`, `sglang`, `trtllm` or `vllm-ascend`.
        engine_version: version of the engine; None = current, without the costs of any past version.

    Raises:
        CatalogueError: no such profile or engine, or an accelerator with neither kernels nor a lender.
    """
    if profile_id == "textbook":
        return _textbook(accelerator)
    if profile_id == "article":
        return article(accelerator)
    if profile_id in ("measured", CALIBRATED):
        return measured(accelerator, engine_id, engine_version, serving())
    raise CatalogueError(f"profile {profile_id}: there are measured, textbook, article and custom")


@cache
def profile_laws_as_fitted(accelerator_id: str) -> dict[tuple[str, str, str], Law]:
    """Laws of isolated kernels by (engine, kind, precision), before any serving constant."""
    return {key: record.as_law() for key, record in kernels(accelerator_id).by_key.items()}


def measured(accelerator: Accelerator, engine_id: str, engine_version: str | None, served: Serving) -> Profile:
    """The measured profile under given serving constants; for the other arguments and errors see `profile`."""
    look = lookup(accelerator, engine_id, served)
    era = _era(look, engine_version)
    constant = served.constant
    return Profile(
        id="measured",
        per_operator=True,
        laws=laws(look),
        links=links(look),
        host_step=constant["host_step"].of(look.engine),
        host_sequence=era.host_sequence_us * 1e-6 if era else constant["host_sequence"].of(look.engine),
        phi=constant["phi"].of(look.engine),
        band=_about(*_band(look)[:2]),
        band_sure=_band(look)[2],
        band_ttft=_about(*served.band.spanned("ttft", *(() if _unmeasured(look) else (look.engine,)))),
        band_rate=_about(*_rate_band(look)),
        borrowed_from=look.lender if look.borrowed else None,
        notes=tuple(_notes(look, engine_id, era)),
        expert_layer_extra=_expert_layer_extra(look, era),
        expert_popularity=constant["expert_popularity"].of(look.engine),
        context_efficiency=constant["context_efficiency"].of(look.engine),
        ttft_fixed=constant["ttft_fixed"].of(look.engine),
        ttft_factor=constant["ttft_factor"].of(look.engine),
        ttft_ceiling=constant["ttft_ceiling"].of(look.engine),
        closed_loop_wait=constant["closed_loop_wait"].of(look.engine),
    )


def lookup(accelerator: Accelerator, engine_id: str, served: Serving) -> Lookup:
    """Decide whose kernels to use."""
    engine = served.engine_alias.get(engine_id, engine_id)
    if engine not in LENDING_ENGINES:
        known = ", ".join((*LENDING_ENGINES, *served.engine_alias))
        raise CatalogueError(f"engine {engine_id}: the measured profile knows {known}")
    lender = accelerator.id if has_kernels(accelerator.id) else accelerator.borrows
    if lender is None or not has_kernels(lender):
        raise CatalogueError(f"accelerator {accelerator.id}: no timed kernels, and borrows = {lender} has none either")
    return Lookup(accelerator, lender, engine, _borrower(accelerator.id, served), served)


def _borrower(accelerator_id: str, served: Serving) -> Borrower | None:
    """Factors of an accelerator without kernel tables."""
    return next((each for each in served.borrower if accelerator_id in each.accelerators), None)


def _era(look: Lookup, version: str | None) -> Era | None:
    """The known costs of one engine version."""
    if version is None:
        return None
    return next((era for era in look.served.era if era.engine == look.engine and _within(version, era)), None)


def _within(version: str, era: Era) -> bool:
    """Whether a version lies in an era."""
    return _numbers(era.from_version) <= _numbers(version) < _numbers(era.below)


def _numbers(version: str) -> tuple[int, int]:
    """Major and minor number of a version; what cannot be read counts as (0, 0)."""
    parts = [part for part in version.lstrip("v").split(".")[:2] if part.isdigit()]
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 else (0, 0)


def _expert_layer_extra(look: Lookup, era: Era | None) -> float:
    """Extra time of a block-FP8 expert layer in this engine version [s]."""
    known = era.expert_layer_extra if era else ()
    return next((extra.value_us * 1e-6 for extra in known if look.lender in extra.accelerators), 0.0)


def _band(look: Lookup) -> tuple[float, float, float]:
    """80 % band of measured over predicted TPOT, and what four cases in five stay below."""
    bands = look.served.band
    if _unmeasured(look):
        return bands.wide_low, bands.wide_high, bands.wide_sure
    own = {(each.engine, each.accelerator): (each.low, each.high, each.sure) for each in bands.own}
    if (look.engine, look.accelerator.id) in own:
        return own[look.engine, look.accelerator.id]
    if look.borrowed and not _seen(look):
        return bands.unseen_low, bands.unseen_high, bands.unseen_sure
    if look.borrowed:
        return bands.borrowed_low, bands.borrowed_high, bands.borrowed_sure
    return own.get((look.engine, ANY), (bands.low, bands.high, bands.sure))


def _about(low: float, high: float) -> tuple[float, float]:
    """A band that reaches its own estimate: where most measurements lay on one side, it ends or begins there."""
    return min(low, 1.0), max(high, 1.0)


def _seen(look: Lookup) -> bool:
    """Whether points of a borrowing accelerator itself were fitted to."""
    return look.borrower is not None and look.borrower.tag == "fitted"


def _rate_band(look: Lookup) -> tuple[float, float]:
    """80 % band of throughput: never narrower than one over that of TPOT, which is all there is where nothing was seen."""
    if _unmeasured(look) or (look.borrowed and not _seen(look)):
        low, high, _ = _band(look)
        return 1.0 / high, 1.0 / low
    slow, fast = look.served.band.spanned("rate", "borrowed" if look.borrowed else "fitted")
    low, high, _ = _band(look)
    return min(slow, 1.0 / high), max(fast, 1.0 / low)


def _unmeasured(look: Lookup) -> bool:
    """Whether nothing measured says how well the borrowed constants fit: an unmeasured vendor or an unknown link."""
    known = look.accelerator.vendor in look.served.band.borrowed_vendors
    return look.borrowed and not (known and look.accelerator.scale_up_bandwidth is not None)


def _notes(look: Lookup, engine_id: str, era: Era | None) -> Iterator[str]:
    """What a reader of a prediction has to know about its constants."""
    if look.borrowed:
        yield from _borrowed_notes(look)
    if engine_id != look.engine:
        yield f"{engine_id} has no timed kernels: the constants are those of {look.engine}."
    if era:
        yield f"{era.note}."
    if look.borrowed and "bf16" not in look.accelerator.peak:
        yield "No dense BF16 peak is published: FP16's, or half of FP8's, stands in."
    note = collective(look)[0].note
    if note:
        yield f"All-reduce: {note}."


def _borrowed_notes(look: Lookup) -> Iterator[str]:
    """What borrowing means for this accelerator."""
    yield f"No kernels of {look.accelerator.name} were timed: fractions of {look.lender} at its own peak and bandwidth."
    if look.borrower:
        yield f"Bandwidth fractions x{look.borrower.eff_bw_factor:g}: {look.borrower.source}."
    if look.accelerator.scale_up_bandwidth is None:
        yield f"Its scale-up bandwidth is unknown: all-reduce as on {look.lender}, in the widest band."
    if look.accelerator.vendor not in look.served.band.borrowed_vendors:
        yield f"No law of accelerators by {look.accelerator.vendor} was confirmed by measurements: the widest band."


def _textbook(accelerator: Accelerator) -> Profile:
    """The plain roofline: free collectives, no host, no band."""
    source = textbook().law
    law = Law(
        floor=source.floor_us * 1e-6,
        eff_bw=_textbook_eff_bw(accelerator.id),
        eff_flops=source.eff_flops,
        p=source.p,
        peak=bf16_peak(accelerator),
        bandwidth=accelerator.bandwidth,
        tag=source.tag,
        source=source.source,
    )
    return Profile(
        id="textbook",
        per_operator=False,
        laws={(kind, precision): law for kind in (*TIMED_KINDS, *ASSUMED_KINDS) for precision in PRECISIONS},
        links=free_links(float(accelerator.scale_up_domain or UNKNOWN_DOMAIN), source.source),
        host_step=0.0,
        host_sequence=0.0,
        phi=1.0,
        band=(1.0, 1.0),
    )


def _textbook_eff_bw(accelerator_id: str) -> float:
    """The article's memory efficiency."""
    special = (each.value for each in textbook().eff_bw if accelerator_id in each.accelerators)
    return next(special, textbook().law.eff_bw)
