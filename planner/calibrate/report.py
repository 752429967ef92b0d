"""A calibration as text for a terminal: what was understood, how far the plan was off, before and after, and the link."""

from __future__ import annotations

from collections.abc import Sequence

from planner.calibrate.correction import Fit
from planner.calibrate.given_points import Given
from planner.calibrate.loads import advice
from planner.logs.readings import Benchmark, Reading, Understood
from planner.report import table
from planner.share import to_link
from planner.units import show

HEADER = ("point", "requests", "in tok", "out tok", "measured ms", "before ms", "off", "after ms", "off")


def understood_text(reading: Reading) -> str:
    """What was found in a text, and what was there and is not used."""
    what = reading.format if isinstance(reading, Benchmark) else "start-up log"
    title = f"understood: {what}" + (f" of {reading.model}" if reading.model else "")
    lines = [f"  {_said(each)}" for each in dict.fromkeys(reading.understood)]
    lines += [f"  not used: {each}" for each in reading.ignored]
    return "\n".join((title, *lines))


def _said(found: Understood) -> str:
    """One statement with its line."""
    where = f" (line {found.line})" if found.line else ""
    return f"{found.name}: {found.value}{where}"


def fit_text(fit: Fit) -> str:
    """The correction, every point before and after, what was left out, and the link that plans with it."""
    made = fit.correction
    low, high = fit.band
    blocks = (
        made.finding,
        "TPOT, predicted without and with the calibration:\n" + table(HEADER, _rows(fit)).rstrip(),
        f"median error: {made.before:.1%} before, {made.after:.1%} after",
        *fit.assumed,
        f"80 % band from here on: measured TPOT is {low:.3g} to {high:.3g} times the prediction",
        fit.apart,
        first_token_text(fit),
        *(f"Point {each.number} is left out: {each.reason}" for each in fit.left_out),
        advice(fit),
        f"link: {to_link(fit.scenario)}",
    )
    return "\n\n".join(block for block in blocks if block) + "\n"


def _rows(fit: Fit) -> Sequence[Sequence[str]]:
    """One row a point, by batch."""
    return [
        (
            f"{p.number}", f"{p.batch:,}", f"{p.isl:,}", f"{p.osl:,}", f"{p.measured_ms:,.2f}",
            f"{p.before_ms:,.2f}", _signed(p.before), f"{p.after_ms:,.2f}", _signed(p.after),
        )
        for p in fit.points
    ]  # fmt: skip


def _signed(share: float) -> str:
    """A share in percent with its sign, unless it rounds to none."""
    said = f"{share:+.1%}"
    return said[1:] if said in ("+0.0%", "-0.0%") else said


def first_token_text(fit: Fit) -> str:
    """What TTFT says, or why it says nothing."""
    first = fit.first_token
    if first is None:
        return "TTFT is left to follow the scale: no point of 4 requests a replica or fewer states one."
    if not first.fitted:
        return (
            f"TTFT is left as it was: point {first.number} states {show(first.measured_ms, 'ms')}, "
            f"{first.measured_ms / first.before_ms:.3g} times the predicted {show(first.before_ms, 'ms')}; check its unit "
            "(ms or s) and whether requests queued."
        )
    before, after, measured = (show(value, "ms") for value in (first.before_ms, first.after_ms, first.measured_ms))
    return f"TTFT of a lone request (point {first.number}): {before} before, {after} after, {measured} measured."


def given_text(found: Given) -> str:
    """What giving points of public curves did to the others, in one sentence."""
    which = "the middle point" if found.given == 1 else "the lowest, the middle and the highest point"
    return (
        f"With {which} of each curve given, the other {found.rows:,} points of {found.curves:,} curves are predicted "
        f"within {found.after:.1%} instead of {found.before:.1%} (mean of a curve, median over curves); "
        f"80 % of measured over predicted TPOT lie between {found.low:.2f} and {found.high:.2f}."
    )
