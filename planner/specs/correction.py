"""A correction of the measured constants by a user's own benchmark: at most three numbers for TPOT, one for TTFT."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from planner.specs.profile import Profile

CALIBRATED: Final = "custom"
"""Id of a profile that carries a correction, and of the scenario's choice of one."""

NOTICED: Final = 1e-6
"""Host time a step below which none is spoken of [s]."""


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
    def note(self) -> str:
        """What a reader of a corrected plan must know."""
        count = f"{self.points:,} measured point{'s' if self.points > 1 else ''}"
        errors = f"Median error of TPOT there: {self.before:.1%} before, {self.after:.1%} after."
        return f"Calibrated by {count} of {self.subject.words} ({self.subject.degrees}): {self.words}. {errors}"


def retimed(profile: Profile, scale: float, host_step: float, interference: float) -> Profile:
    """A profile with other TPOT constants; `host_step` is what every step takes beyond its scaled time [s]."""
    return replace(
        profile,
        scale=profile.scale * scale,
        host_step=profile.host_step + host_step / scale,
        host_sequence=profile.host_sequence * interference,
        phi=profile.phi * interference,
    )


def corrected(profile: Profile, by: Correction, subject: Subject) -> Profile:
    """The measured constants of a subject with a correction; as they are, with a note, where it was made for another."""
    if not by.subject.meets(subject):
        return replace(profile, notes=(*profile.notes, not_applied(by, subject)))
    timed, (low, high) = retimed(profile, by.scale, by.host_step, by.interference), by.band
    return replace(
        timed,
        id=CALIBRATED,
        ttft_fixed=profile.ttft_fixed * by.ttft,
        ttft_factor=profile.ttft_factor * by.ttft,
        band=by.band,
        band_sure=high if by.sure is None else min(by.sure, high),
        band_rate=(1.0 / high, 1.0 / low),
        notes=(*profile.notes, *notes_of(by, subject)),
    )


def notes_of(by: Correction, subject: Subject) -> tuple[str, ...]:
    """What is said of a correction that is used; a cache or a layout that it was not measured with is named."""
    if by.subject == subject:
        return (by.note,)
    return (
        by.note,
        f"The calibration was not measured with {subject.degrees}: it is taken over from {by.subject.degrees}.",
    )


def not_applied(by: Correction, subject: Subject) -> str:
    """What is said of a correction that is not used."""
    return (
        f"The calibration of {by.subject.words_beside(subject)} is not applied to {subject.words_beside(by.subject)}: "
        "its constants and its band are the uncalibrated ones."
    )
