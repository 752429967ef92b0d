"""An answer as text for a terminal, the options that ask for it, and a line that says how far a search is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Final, TextIO

from planner.optimise.answer import Answer, Choice, Progress
from planner.optimise.calibrated import calibration_mark, calibration_words
from planner.optimise.question import LIMITED, MOST_GPUS, OBJECTIVES, Question
from planner.optimise.search import OnProgress
from planner.optimise.shadow import relaxations
from planner.optimise.tails import is_on_means
from planner.optimise.trial import Trial
from planner.optimise.verdict import VERDICTS, good_words, percentile_words, verdict
from planner.optimise.verified import Verified
from planner.report import table
from planner.share import pinned, to_link
from planner.specs.scenario import describe
from planner.units import DASH, dollars, show, significant, unit_of, whole

MOST_SHOWN: Final = 100
"""Most plans that are shown."""

QUESTION_HELP: Final = {
    "accelerators": ("ID,ID", "accelerators that are tried: ids, `all`, or `measured` (with a price and own kernels)"),
    "precisions": ("P,P", f"weight precisions that are tried: {describe('weights').allowed}"),
    "caches": ("P,P", f"KV-cache precisions that are tried: {describe('kv').allowed}"),
    "modes": ("M,M", "where prefill runs: colocated, excluded, disaggregated"),
    "prefill_accelerators": ("ID,ID", "accelerators of prefill pools (otherwise those of --accelerators)"),
    "chunks": ("N,N", "prefill tokens a step that are tried (0 = the whole prompt)"),
    "drafts": ("N,N", "draft tokens a step that are tried (0 = none)"),
    "max_gpus": ("N", f"most GPUs of the whole deployment, 1 to {MOST_GPUS:,} (default 16)"),
    "objective": ("O", f"what is made best: {', '.join(OBJECTIVES)}"),
    "limits": (
        "L,L",
        f"what must hold beside the SLA, as in 'tpot_ms<=30,usd_per_hour<=100'; fields: {', '.join(LIMITED)}",
    ),
}
"""Options of a question: what stands for the value, and what it means. Lists not given are the scenario's own value."""

SAME: Final = 0.05
"""Percent below which two values are shown as the same."""

EVERY: Final = 0.1
"""Seconds between two states of the line."""


class ProgressLine:
    """One line that is written over on a terminal; elsewhere a line every second, and the last one."""

    def __init__(self, out: TextIO, say: Callable[[Progress], str] | None = None) -> None:
        self.out = out
        self.say = searched if say is None else say
        self.terminal = out.isatty()
        self.last = float("-inf")
        self.said = ""

    def show(self, progress: Progress) -> None:
        """Say how far the work is, unless it has just been said."""
        now, ended = time.monotonic(), progress.done >= progress.total
        if now - self.last < (EVERY if self.terminal else 10 * EVERY) and not ended:
            return
        text = self.say(progress)
        if text == self.said:
            return
        self.last, self.said = now, text
        self.out.write(f"\r\x1b[2K{text}{chr(10) if ended else ''}" if self.terminal else f"{text}\n")
        self.out.flush()


def simulated(progress: Progress) -> str:
    """How far the simulations of an answer are."""
    return f"simulated {progress.done:,} of {progress.total:,} plans, {progress.considered:,} requests"


def searched(progress: Progress) -> str:
    """How far a search is."""
    best = "" if progress.best is None else f", best so far on means {significant(progress.best)}"
    return f"searched {progress.done:,} of {progress.total:,} parts, {progress.considered:,} rows{best}"


def answer_text(answer: Answer, on_progress: OnProgress | None = None, executor: Executor | None = None) -> str:
    """The answer in a sentence, the best plans with their links, and what was refused and why.

    Where nothing stands the smallest relaxations are looked for, with progress, shared with an executor's worker.
    """
    blocks = [_answered(answer) if answer.best else _open(answer, on_progress, executor), _counts(answer)]
    return "\n\n".join(blocks) + "\n"


SAID: Final = {
    "usd_per_m_goodput": "costs {} per million good tokens",
    "usd_per_hour": "costs {} an hour",
    "gpus": "needs {}",
    "tpot_ms": "takes {} per output token",
    "ttft_ms": "takes {} to the first token",
    "goodput_tok_s": "serves {} good tok/s",
}
"""What the best comes to, by objective."""


def headline(answer: Answer, winner: Choice) -> str:
    """The winner in a sentence, and by how much the next of another kind is worse."""
    objective = answer.question.objective
    if objective.startswith("usd"):
        value = dollars(winner.value)
    else:
        value = significant(winner.value) if objective == "goodput_tok_s" else show(winner.value, unit_of(objective))
    other = answer.second
    said = f"{winner.kind}{calibration_mark(answer.question, winner.scenario)} {SAID[objective].format(value)}."
    if other is None or not winner.value:
        return said
    behind = (other.value / winner.value - 1) * 100
    much = "the same" if abs(behind) < SAME else f"{behind:+.1f} %"
    mark = calibration_mark(answer.question, other.scenario)
    return f"{said} Next of another kind: {other.kind}{mark}, {much}."


def infeasible(question: Question, on_means: bool) -> str:
    """That nothing stands, before what would make something stand; whether the latter is known on means only."""
    only = " on means (P50)" if on_means else ""
    return f"{nothing(question)} One of these changes alone would be enough{only}:"


def nothing(question: Question) -> str:
    """That nothing stands."""
    at = "" if is_on_means(question) else f" at {percentile_words(question.scenario.sla_pct)}"
    return f"Nothing within {question.max_gpus:,} GPUs keeps all constraints{at}."


def _answered(answer: Answer) -> str:
    """The winner in a sentence and the table of the best."""
    head = "\n".join(filter(None, (headline(answer, answer.best[0]), calibration_words(answer.question))))
    return f"{head}\n\n{_listed(answer.best)}"


def _listed(choices: Sequence[Choice]) -> str:
    """Plans as a table, with their links."""
    rows = [_row(rank, choice) for rank, choice in enumerate(choices, start=1)]
    links = (f"  {rank}  {to_link(pinned(choice.scenario))}" for rank, choice in enumerate(choices, start=1))
    return f"{table(HEADER, rows)}\nlinks\n" + "\n".join(links)


HEADER: Final = (
    "rank", "plan", "$/Mtok good", "$/h", "GPUs", "batch", "TPOT (ms)", "TTFT (ms)", "good tok/s/GPU", "good tok/s, all",
)  # fmt: skip
"""Columns; the last is of all replicas that serve."""


def _row(rank: int, choice: Choice) -> tuple[str, ...]:
    """One of the best as cells."""
    found = choice.outcome
    cost, hourly = (_number(each) for each in (found.usd_per_m_goodput, found.usd_per_hour))
    serving = (found.replicas or 0) - choice.scenario.spare
    whole_rate = None if found.goodput_tok_s is None else found.goodput_tok_s * serving
    times = (*(_number(each) for each in (found.tpot_ms, found.ttft_ms, found.goodput_tok_s_gpu)), _number(whole_rate))
    return (str(rank), choice.kind, cost, hourly, whole(found.gpus), whole(found.batch), *times)


def _number(value: float | None) -> str:
    """A number to three digits."""
    return DASH if value is None else significant(value)


def _open(answer: Answer, on_progress: OnProgress | None, executor: Executor | None) -> str:
    """That nothing is feasible, what would be, and what stands on means where only queues are in the way."""
    question = answer.question
    found = relaxations(question, None, executor, on_progress, answer.beyond)
    lines = [f"  {each.field} {each.needed:,g} instead of {each.now:,g}: {each.choice.kind}" for each in found]
    on_means = not is_on_means(question) and not answer.beyond
    none = f"{nothing(question).removesuffix('.')}, and no single change of one is enough."
    if answer.nearest is not None and not found:
        none = nothing(question)
    said = "\n".join([infeasible(question, on_means), *lines]) if lines else none
    if answer.nearest is None:
        return said
    return f"{said}\n\nBy queue theory these come nearest:\n\n{_listed(answer.beyond)}"


def verified_text(found: Verified) -> str:
    """The verdict in a sentence, and every plan that was simulated."""
    rows = [_trial_row(each) for each in found.trials]
    links = [f"  {_place(each)}  {to_link(pinned(each.scenario))}" for each in found.trials if each.more]
    head = f"{verdict(found)}\n\n{table(_trial_header(found), rows)}"
    return "\n".join((head, *(["links", *links] if links else []), ""))


def _trial_header(found: Verified) -> tuple[str, ...]:
    """Titles of the table of trials."""
    at = percentile_words(found.question.scenario.sla_pct)
    cost = ("$/Mtok good, simulated", "$/Mtok good, plan")
    return ("rank", "plan", "replicas", "GPUs", f"TTFT {at} (ms)", f"TPOT {at} (ms)", "good (%)", *cost, "verdict")


def _trial_row(trial: Trial) -> tuple[str, ...]:
    """One trial as cells."""
    times = (_number(trial.ttft_at_pct_ms), _number(trial.tpot_at_pct_ms), good_words(trial))
    costs = (_number(trial.usd_per_m_good), _number(trial.usd_per_m_goodput))
    return (
        _place(trial), trial.kind, whole(trial.replicas), whole(trial.gpus), *times, *costs, VERDICTS[trial.holds],
    )  # fmt: skip


def _place(trial: Trial) -> str:
    """Rank of a choice, and how many replicas were added to it or taken away."""
    return f"{trial.rank} {trial.more:+d}".replace("-", "−") if trial.more else str(trial.rank)


def _counts(answer: Answer) -> str:
    """How much was looked at, and why candidates fell."""
    rows = [(f"{each.count:,}", each.rule, each.reason) for each in answer.refused]
    looked = (
        f"{answer.candidates:,} candidates, {answer.considered:,} rows (layout × batch) evaluated "
        f"in {show(answer.seconds * 1e3, 'ms')}"
    )
    return f"{looked}\n\n{table(('refused', 'rule', 'reason'), rows)}" if rows else looked
