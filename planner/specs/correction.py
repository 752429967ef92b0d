"""A correction of the measured constants by a user's own benchmark: at most three numbers for TPOT, one for TTFT."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from planner.specs.profile import Profile

CALIBRATED: Final = "custom"
"""Id of a profile that carries a correction, and of the scenario's choice of one."""

TAKEN_OVER: Final = "calibration_taken_over"
"""Code of the note that a calibration is used where nothing was measured."""

NOTICED: Final = 1e-6
"""Host time a step below which none is spoken of [s]."""


KIND: Final = ("model", "gpu", "engine", "weights")
"""Fields of a subject in which a correction and a plan must agree."""

FURTHER: Final = 1.25
"""Ratio of two mean lengths above which a measurement at one says little of the band at the other."""

SAID: Final = {"kv": "{} cache"}
"""How fields of a subject are said that are not degrees."""


@dataclass(frozen=True)
class Traffic:
    """What was sent: mean input and output tokens, where prefill ran, share of input that the prefix cache served."""

    isl: int
    osl: int
    prefill: str
    prefix: float = 0.0


@dataclass(frozen=True)
class Subject:
    """What was measured: ids of the catalogue (`custom` for a model of one's own), precisions, degrees, whether it drafts."""

    model: str
    gpu: str
    engine: str
    weights: str
    kv: str
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    spec: bool = False

    def meets(self, other: Subject) -> bool:
        """Whether a correction made for this subject may be used on another: all but the cache and the layout agree."""
        return self._kind == other._kind

    @property
    def _kind(self) -> tuple[str, str, str, str, bool]:
        return self.model, self.gpu, self.engine, self.weights, self.spec

    def unlike(self, measured: Subject) -> tuple[str, ...]:
        """Beside its kind, in what it differs from what was measured, in words."""
        names = (each.name for each in fields(self) if each.name not in KIND)
        pairs = ((name, getattr(self, name), getattr(measured, name)) for name in names)
        return tuple(
            f"{_said(name, here)} (measured: {_said(name, there)})" for name, here, there in pairs if here != there
        )

    @property
    def words(self) -> str:
        """The subject in words."""
        drafts = " and drafted tokens" if self.spec else ""
        return f"{self.model} on {self.gpu} under {self.engine} with {self.weights} weights{drafts}"

    def words_beside(self, other: Subject) -> str:
        """The subject in words, with the drafts that it lacks and another has."""
        return self.words + (" without drafted tokens" if other.spec and not self.spec else "")

    @property
    def degrees(self) -> str:
        """Cache precision and layout in words."""
        return f"{self.kv} cache, TP {self.tp} · PP {self.pp} · DP {self.dp} · EP {self.ep}"


@dataclass(frozen=True)
class Correction:
    """What a benchmark adds to the measured constants.

    Attributes:
        subject: what it was made for.
        scale: factor on every operator's time and on the host's.
        host_step: time that each step takes beyond that, at least 0 [s].
        interference: factor on what grows with the batch beside the kernels: others' prefill, host time a sequence.
        ttft: factor on the time to first token of an idle replica, beyond what `scale` does to it.
        points: measured points that it was fitted to.
        before, after: median |predicted/measured − 1| of TPOT at these points, without and with it.
        band: 80 % band of measured over predicted TPOT with it, as (low, high) factors.
        sure: what measured over predicted TPOT stays below in four cases of five; None = the band's high end.
        traffic: what was sent as it was measured; None = not stated, so that nobody knows whether a plan's is like it.
    """

    subject: Subject
    scale: float = 1.0
    host_step: float = 0.0
    interference: float = 1.0
    ttft: float = 1.0
    points: int = 1
    before: float = 0.0
    after: float = 0.0
    band: tuple[float, float] = (1.0, 1.0)
    sure: float | None = None
    traffic: Traffic | None = None

    @property
    def words(self) -> str:
        """Its numbers in words."""
        parts = [f"every time × {self.scale:.3g}"]
        if self.host_step >= NOTICED:
            parts.append(f"{self.host_step * 1e3:.3g} ms more a step")
        if self.interference != 1.0:
            parts.append(f"interference × {self.interference:.3g}")
        if self.ttft != 1.0:
            parts.append(f"first token × {self.ttft:.3g}")
        return ", ".join(parts)

    @property
    def count(self) -> str:
        """How many points it was fitted to, in words."""
        return f"{self.points:,} measured point{'s' if self.points > 1 else ''}"

    @property
    def note(self) -> str:
        """What a reader of a corrected plan must know; whoever writes a link may write any figure into it."""
        return self._said(", as the link states")

    @property
    def finding(self) -> str:
        """The same of a correction that was fitted just now."""
        return self._said("")

    def _said(self, claimed: str) -> str:
        """By what it was made, what it changes and how far off the points were."""
        errors = f"Median error of TPOT there: {self.before:.1%} before, {self.after:.1%} after."
        subject = f"{self.subject.words} ({self.subject.degrees})"
        return f"Calibrated by {self.count} of {subject}{claimed}: {self.words}. {errors}"


def retimed(profile: Profile, scale: float, host_step: float, interference: float) -> Profile:
    """A profile with other TPOT constants; `host_step` is what every step takes beyond its scaled time [s]."""
    return replace(
        profile,
        scale=profile.scale * scale,
        host_step=profile.host_step + host_step / scale,
        host_sequence=profile.host_sequence * interference,
        phi=profile.phi * interference,
    )


def corrected(profile: Profile, by: Correction, subject: Subject, traffic: Traffic) -> Profile:
    """The measured constants of a subject with a correction; as they are, with a note, where it was made for another.

    Where layout, cache or traffic are not those of the measurement, the band is no narrower than without it.
    """
    if not by.subject.meets(subject):
        return replace(profile, notes=(*profile.notes, not_applied(by, subject)))
    timed = retimed(profile, by.scale, by.host_step, by.interference)
    low, high, sure = _confirmed(profile, by)
    made = replace(
        timed,
        id=CALIBRATED,
        ttft_fixed=profile.ttft_fixed * by.ttft,
        ttft_factor=profile.ttft_factor * by.ttft,
        band=(low, high),
        band_sure=sure,
        band_rate=(1.0 / high, 1.0 / low),
        notes=(*profile.notes, *notes_of(by, subject, traffic)),
    )
    return _widened(made, profile) if taken_over(by, subject, traffic) else made


def _confirmed(plain: Profile, by: Correction) -> tuple[float, float, float]:
    """A correction's band and surest factor; no wider than without it where its points confirm the prediction."""
    low, high = by.band
    sure = high if by.sure is None else min(by.sure, high)
    if not plain.band[0] <= by.scale <= plain.band[1]:
        return low, high, sure
    return max(low, plain.band[0]), min(high, plain.band[1]), min(sure, plain.band_sure)


def _widened(made: Profile, plain: Profile) -> Profile:
    """A profile whose bands of TPOT and throughput are at least as wide as another's."""
    return replace(
        made,
        band=wider(made.band, plain.band),
        band_sure=max(made.band_sure, plain.band_sure),
        band_rate=wider(made.band_rate, plain.band_rate),
    )


def wider(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The band that holds both."""
    return min(one[0], other[0]), max(one[1], other[1])


def notes_of(by: Correction, subject: Subject, traffic: Traffic) -> tuple[str, ...]:
    """What is said of a correction that is used; in what it was measured otherwise is named."""
    return tuple(filter(None, (by.note, taken_over(by, subject, traffic))))


def taken_over(by: Correction, subject: Subject, traffic: Traffic) -> str:
    """That a correction is used where nothing was measured, and in what that differs; empty where it was measured so."""
    unlike = (*subject.unlike(by.subject), *_unlike(traffic, by.traffic))
    if not unlike and by.traffic is not None:
        return ""
    stated = "" if by.traffic is not None else "The calibration does not state the lengths that it was measured at. "
    apart = f"The calibration was not measured with {', '.join(unlike)}. " if unlike else ""
    return f"{apart}{stated}It is taken over, and its band is as wide as without it."


def _unlike(here: Traffic, measured: Traffic | None) -> tuple[str, ...]:
    """In what traffic differs from what was measured, in words; nothing where that is not stated."""
    if measured is None:
        return ()
    told = (
        (_further(here.isl, measured.isl), f"{here.isl:,} input tokens", f"{measured.isl:,}"),
        (_further(here.osl, measured.osl), f"{here.osl:,} output tokens", f"{measured.osl:,}"),
        (here.prefill != measured.prefill, f"prefill {here.prefill}", measured.prefill),
        (here.prefix != measured.prefix, f"{here.prefix:.0%} of input from the prefix cache", f"{measured.prefix:.0%}"),
    )
    return tuple(f"{now} (measured: {then})" for differs, now, then in told if differs)


def _further(one: int, other: int) -> bool:
    """Whether two mean lengths are too far apart."""
    return max(one, other) > FURTHER * min(one, other)


def _said(name: str, value: object) -> str:
    """A field of a subject in words: `TP 4`, `fp8 cache`."""
    return SAID.get(name, f"{name.upper()} {{}}").format(value)


def not_applied(by: Correction, subject: Subject) -> str:
    """What is said of a correction that is not used."""
    return (
        f"The calibration of {by.subject.words_beside(subject)} is not applied to {subject.words_beside(by.subject)}: "
        "its constants and its band are the uncalibrated ones."
    )
