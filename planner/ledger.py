"""Where the time of one output token goes at the operating point, operator by operator; the rows add up to TPOT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.physics import forward
from planner.physics.comms import LINK_KINDS
from planner.physics.roofline import bound_by, entry_seconds, terms
from planner.plan import LedgerRow
from planner.serving import decode
from planner.serving.decode import Clock
from planner.serving.speculative import Draft, expected_tokens
from planner.setting import Setting
from planner.work import ONE, Column, Entry, Ledger


def ledger_rows(setting: Setting, clock: Clock, batch: Column, tpot: float) -> tuple[LedgerRow, ...]:
    """Rows of one layout at one batch, per output token; what prompts of other requests add comes last.

    A verified draft shares the rows of its verification among the tokens that it yields. Two micro-batches run every
    operator twice; of the shorter of computing and moving only what is not hidden is counted.
    """
    draft, layout = setting.decoding.draft, clock.placed.layout
    rows = _pass_rows(setting, clock, batch, 1.0 if draft is None else draft.tokens + 1.0)
    stretch = _one(decode.stage_stretch(setting.model.layers, layout.pp)) if layout.pp[0, 0] > 1 else 1.0
    share = stretch if draft is None else stretch / _yielded(draft)
    rows = [_times(row, share) for row in rows]
    if draft is not None:
        rows.append(_drafting(clock, batch, draft))
    return (*rows, *_prefill(setting, tpot - sum(row.seconds for row in rows)))


def _pass_rows(setting: Setting, clock: Clock, batch: Column, new_tokens: float) -> list[LedgerRow]:
    """Rows of the pass that every step makes: decoding, or verifying a draft."""
    step = decode.step_pass(clock, batch, new_tokens)
    if not (setting.decoding.overlap and setting.profile.per_operator):
        return _rows(setting, forward.forward(clock.placed, step))
    half = forward.forward(clock.placed, decode.half_pass(step))
    whole = _rows(setting, (forward.host(step.sequences),))
    return [*_hidden(setting, [e for e in half if e.group != "host"]), *whole]


def _hidden(setting: Setting, entries: Sequence[Entry]) -> list[LedgerRow]:
    """Rows of two halves, the shorter side cut to what the longer does not hide: one layer's part of one half."""
    rows = [_times(row, 2.0) for row in _rows(setting, tuple(entries))]
    moving = [entry.work.kind in LINK_KINDS for entry in entries]
    spent = [
        sum(row.seconds for row, moves in zip(rows, moving, strict=True) if moves is side) for side in (True, False)
    ]
    shorter = spent[0] <= spent[1]
    left = 0.5 / setting.model.layers
    return [
        replace(row, seconds=row.seconds * (left if moves is shorter else 1.0))
        for row, moves in zip(rows, moving, strict=True)
    ]


def _drafting(clock: Clock, batch: Column, draft: Draft) -> LedgerRow:
    """Drafting: so many draft tokens, each at a share of a step of the model, per token that they yield."""
    plain = replace(clock, decoding=replace(clock.decoding, draft=None, prompt=None))
    step = _one(decode.tpot(plain, batch)[1])
    return LedgerRow("drafting", "weights", draft.tokens * draft.cost * step / _yielded(draft), 0.0, 0.0, 0.0, "memory")


def _rows(setting: Setting, entries: Ledger) -> list[LedgerRow]:
    """Operators over all their launches; the textbook, which clocks once, shows shares of the term that wins."""
    rows = [_row(entry, setting) for entry in entries]
    return rows if setting.profile.per_operator else _textbook_shares(rows, entries, setting)


def _row(entry: Entry, setting: Setting) -> LedgerRow:
    """One operator over all its launches."""
    work, launches = entry.work, _one(entry.work.launches)
    return LedgerRow(
        operator=entry.name,
        group=entry.group,
        seconds=_one(entry_seconds(entry, setting.profile)),
        flops=_one(work.flops) * launches,
        hbm_bytes=_one(work.hbm_bytes) * launches,
        link_bytes=_one(work.link_bytes) * launches,
        bound_by=bound_by(entry, setting.profile),
    )


def _textbook_shares(rows: list[LedgerRow], entries: Ledger, setting: Setting) -> list[LedgerRow]:
    """Each operator's share of the summed term that wins."""
    timed = [
        (row, terms(entry.work, setting.profile))
        for row, entry in zip(rows, entries, strict=True)
        if row.group != "host"
    ]
    launches = [_one(entry.work.launches) for entry in entries if entry.group != "host"]
    compute = [_one(t[0]) * n for (_, t), n in zip(timed, launches, strict=True)]
    memory = [_one(t[1]) * n for (_, t), n in zip(timed, launches, strict=True)]
    wins, bound = (memory, "memory") if sum(memory) >= sum(compute) else (compute, "compute")
    return [replace(row, seconds=seconds, bound_by=bound) for (row, _), seconds in zip(timed, wins, strict=True)]


def _times(row: LedgerRow, factor: float) -> LedgerRow:
    """A row of so many passes."""
    return LedgerRow(
        row.operator, row.group, row.seconds * factor, row.flops * factor, row.hbm_bytes * factor,
        row.link_bytes * factor, row.bound_by,
    )  # fmt: skip


def _prefill(setting: Setting, added: float) -> tuple[LedgerRow, ...]:
    """What other requests' prefill adds to the step; nothing when prefill is elsewhere."""
    if setting.decoding.prompt is None:
        return ()
    return (LedgerRow("prefill of other requests", "prefill", max(added, 0.0), 0.0, 0.0, 0.0, "compute"),)


def _yielded(draft: Draft) -> float:
    """Tokens that a verification yields."""
    return _one(expected_tokens(draft.accept * ONE, draft.tokens * ONE))


def _one(column: object) -> float:
    """The first number of a column."""
    return float(np.asarray(column).reshape(-1)[0])
