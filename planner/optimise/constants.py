"""Law constants of a speed profile, each with the band that is stated for it, and the profile with one of them moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from planner.catalog.fabric_records import scale_out
from planner.catalog.fitted_constants import serving
from planner.catalog.profile_records import UNITS, Constant
from planner.optimise.slower import slower, slower_link, stretched
from planner.physics import forward
from planner.physics.passes import Pass
from planner.serving.decode import Clock
from planner.setting import Setting
from planner.specs.collective import CollectiveLaw
from planner.specs.correction import CALIBRATED
from planner.specs.links import ExchangeLaw, Links
from planner.specs.profile import Law, Profile
from planner.work import ONE, ZERO

TIMES: Final = "× time"
"""Unit of a law that is moved as a whole: every time it gives is multiplied."""

KERNELS: Final = {
    "gemm": "matrix kernels",
    "experts": "expert kernels",
    "attn_decode": "decode attention",
    "mla_decode": "latent decode attention",
    "attn_prefill": "prefill attention",
    "mla_prefill": "latent prefill attention",
    "state": "recurrent layers",
    "elementwise": "norms and activations",
    "index": "sparse index",
}

FLOORS: Final = {
    "gemm_floor": ("gemm", "index"),
    "experts_floor_factor": ("experts",),
    "decode_attention_floor_factor": ("attn_decode", "mla_decode"),
    "elementwise_floor": ("elementwise",),
    "state_floor": ("state",),
}
"""Serving constants that set launch floors, and the kinds of kernels whose floors they set."""

SERVING: Final = {
    "host_step": "host time of a step",
    "host_sequence": "host time of a sequence and step",
    "phi": "share of prefill that delays running sequences (phi)",
    "expert_popularity": "popularity of experts",
    "context_efficiency": "scaling of context-parallel prefill",
    "ttft_fixed": "front-end time of a request",
    "ttft_factor": "lone prompt over its kernels",
}
"""Serving constants that a profile holds under the same name."""

CONTEXT_ENDS: Final = (0.8, 1.0)
"""Assumed ends of the efficiency of context parallelism, of which one run is published."""


@dataclass(frozen=True)
class Band:
    """Between which values a constant may lie.

    Attributes:
        low, high: ends, in the constant's unit.
        basis: what says so; assumed: whether nothing does, so that a wider documented band stands in.
    """

    low: float
    high: float
    basis: str
    assumed: bool = False


@dataclass(frozen=True)
class Moved:
    """One constant of a profile.

    Attributes:
        key: stable name; name: what it is, in words; unit: of its values.
        band: where it may lie on a profile; now: its value there; move: the profile with another value.
    """

    key: str
    name: str
    unit: str
    band: Callable[[Profile], Band]
    now: Callable[[Profile], float]
    move: Callable[[Profile, float], Profile]

    def at_low(self, profile: Profile) -> Profile:
        """The profile with the constant at the low end of its own band."""
        return self.move(profile, self.band(profile).low)

    def at_high(self, profile: Profile) -> Profile:
        """The profile with the constant at the high end of its own band."""
        return self.move(profile, self.band(profile).high)


def constants(setting: Setting, clock: Clock) -> Iterator[Moved]:
    """Every constant that a plan on this layout may depend on, the band of TPOT as a whole first."""
    if setting.profile.band[0] < setting.profile.band[1]:
        yield _whole()
    kinds = list(dict.fromkeys(_kinds(setting, clock)))
    yield from (_kernel(kind, precision) for kind, precision in kinds if kind in KERNELS)
    if setting.profile.id not in ("measured", CALIBRATED):
        return
    present = {kind for kind, _ in kinds}
    yield from (_floor(name, part) for name, part in FLOORS.items() if present & set(part))
    yield from _links(present)
    yield from (_served(name, words) for name, words in SERVING.items())


def _kinds(setting: Setting, clock: Clock) -> Iterator[tuple[str, str]]:
    """Kind and kernel precision of every operator of a step that decodes and reads a prompt."""
    both = Pass(ONE, ONE, setting.decoding.context * ONE, setting.prompt.chunk * ONE, ZERO, ONE)
    return ((entry.work.kind, entry.work.precision) for entry in forward.forward(clock.placed, both))


def _times(error: float | None, fitted: bool, profile: Profile, basis: str) -> Band:
    """Band of a law as a factor on its times: its own median error, else the widest band that is documented for it."""
    if fitted and error is not None:
        return Band(1.0 / (1.0 + error), 1.0 + error, f"median error of {basis}: {100 * error:.1f} %")
    wide = serving().band
    low, high = min(wide.borrowed_low, profile.band[0]), max(wide.borrowed_high, profile.band[1])
    return Band(low, high, "assumed: no error is stated; the 80 % band of TPOT on borrowed kernels", True)


def _one(_: Profile) -> float:
    """A law as it is: its times taken once."""
    return 1.0


# --- the whole -----------------------------------------------------------------------------------------------------


def _whole() -> Moved:
    """All times of kernels, links and host together: TPOT at the ends of its band; prompts take longer with it."""
    return Moved("tpot_band", "all times together", TIMES, _measured, _one, slower)


def _measured(profile: Profile) -> Band:
    """The profile's own band."""
    return Band(*profile.band, "80 % band of measured over predicted TPOT")


# --- kernels -------------------------------------------------------------------------------------------------------


def _kernel(kind: str, precision: str) -> Moved:
    """The law of one kind of kernel in one precision."""
    return Moved(
        f"law.{kind}.{precision}",
        f"{KERNELS[kind]} ({precision})",
        TIMES,
        lambda profile: _law_band(profile.law(kind, precision), profile),
        _one,
        lambda profile, times: _with_laws(profile, ((kind, precision),), lambda law: stretched(law, times)),
    )


def _law_band(law: Law, profile: Profile) -> Band:
    """What is stated for a kernel's law; what stands between it and an own kernel is said beside it."""
    band = _times(law.median_error, law.tag == "fitted", profile, f"the fit to {law.rows:,} timed kernels")
    return replace(band, basis=f"{band.basis} ({law.note})") if law.note else band


def _with_laws(profile: Profile, keys: Iterable[tuple[str, str]], change: Callable[[Law], Law]) -> Profile:
    """A profile with some laws changed; what falls back to BF16 constants gets laws of its own."""
    return replace(profile, laws=profile.laws | {key: change(profile.law(*key)) for key in keys})


def _floor(name: str, kinds: tuple[str, ...]) -> Moved:
    """The launch floor of some kinds of kernels, as served."""
    constant = serving().constant[name]
    words = " and ".join(KERNELS[kind] for kind in kinds)

    def move(profile: Profile, times: float) -> Profile:
        keys = [key for key in profile.laws if key[0] in kinds]
        return _with_laws(profile, keys, lambda law: replace(law, floor=law.floor * times))

    return Moved(f"floor.{kinds[0]}", f"launch floor: {words}", "× floor", lambda _: _share(constant), _one, move)


def _share(constant: Constant) -> Band:
    """A constant's stated range over its value."""
    low, high = constant.range or (constant.value, constant.value)
    return Band(low / constant.value, high / constant.value, "range of the fits that each left a part out")


# --- links ---------------------------------------------------------------------------------------------------------


def _links(present: set[str]) -> Iterator[Moved]:
    """Links that the plan uses."""
    for kind, words in LINKS.items():
        if kind in present:
            yield Moved(f"link.{kind}", words, TIMES, partial(_link_band, kind), _one, partial(_move_link, kind))
    if "nic" in present:
        network = scale_out().constant
        alpha, share = network["message_alpha"], network["nic_efficiency"]
        yield Moved("link.nic_alpha", "latency between hosts", TIMES, lambda _: _share(alpha), _one, _late)
        yield Moved("link.nic_rate", "reached share of the NIC", "× rate", lambda _: _share(share), _one, _faster)


LINKS: Final = {
    "all_reduce": "all-reduce", "gather": "all-gather and reduce-scatter", "hop": "messages inside a domain",
    "dispatch": "dispatch to experts", "combine": "combine from experts",
}  # fmt: skip


def _link_band(kind: str, profile: Profile) -> Band:
    """What is stated for a link: the larger error where two kernel families share the work."""
    laws = _laws_of(kind, profile.links)
    known = [law.median_error for law in laws if law.median_error is not None]
    fitted = bool(laws) and len(known) == len(laws) and all(law.tag == "fitted" for law in laws)
    return _times(max(known, default=None), fitted, profile, "the fit to timed transfers")


def _laws_of(kind: str, links: Links) -> tuple[CollectiveLaw | ExchangeLaw, ...]:
    """Laws that carry an error, by kind of link."""
    match kind:
        case "all_reduce":
            return (links.all_reduce,)
        case "gather":
            return (links.gather,)
        case "dispatch":
            return links.small.dispatch, links.large.dispatch
        case "combine":
            return links.small.combine, links.large.combine
        case _:
            return ()


def _move_link(kind: str, profile: Profile, times: float) -> Profile:
    """A profile with one kind of link slower."""
    return replace(profile, links=slower_link(profile.links, kind, times))


def _late(profile: Profile, times: float) -> Profile:
    """Messages between hosts with another latency."""
    return replace(profile, links=replace(profile.links, out_alpha=profile.links.out_alpha * times))


def _faster(profile: Profile, times: float) -> Profile:
    """NICs of which another share is reached."""
    return replace(profile, links=replace(profile.links, out_bandwidth=profile.links.out_bandwidth * times))


# --- serving -------------------------------------------------------------------------------------------------------


def _served(name: str, words: str) -> Moved:
    """A serving constant in the unit of its record."""
    constant = serving().constant[name]
    unit = UNITS[constant.unit]

    def now(profile: Profile) -> float:
        return float(getattr(profile, name)) / unit

    def move(profile: Profile, value: float) -> Profile:
        changes: dict[str, float] = {name: value * unit}
        return replace(profile, **changes)  # type: ignore[arg-type]

    shown = {"us": "µs", "1": ""}.get(constant.unit, constant.unit)
    return Moved(f"serving.{name}", words, shown, lambda profile: _range(constant, now(profile)), now, move)


def _range(constant: Constant, own: float) -> Band:
    """The stated range; in proportion to an engine's own value where engines have factors, or it lies outside."""
    if constant.range is None:
        return Band(*CONTEXT_ENDS, "assumed: one published run", True)
    low, high = constant.range
    basis, assumed = "stated range of the serving fit", constant.tag == "assumed"
    if low <= own <= high and not constant.engine_factor:
        return Band(low, high, f"assumed: {basis}" if assumed else basis, assumed)
    scale = own / constant.value
    return Band(low * scale, high * scale, f"{basis}, in proportion to this engine's value", assumed)
