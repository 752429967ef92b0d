"""Searches of a session: what runs, what came of it, and which inputs it belongs to.

An answer is kept under the question that it answers, and is only ever shown for that very question, or as an old one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import streamlit as st

from planner.ui.jobs import BusyError, Job, workshop
from planner.ui.worker import Finished, Status, Task

State: TypeAlias = Status | Literal["idle", "running", "busy"]
MOST_ANSWERS: Final = 32
"""Answers that all sessions together remember."""


@dataclass
class Shelf:
    """The latest answers of all sessions, by what was asked."""

    lock: Any = field(default_factory=threading.Lock)
    kept: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)

    def put(self, asked: Hashable, answer: Any) -> None:
        """Keep an answer; the one that was longest not asked for goes."""
        with self.lock:
            self.kept[asked] = answer
            self.kept.move_to_end(asked)
            while len(self.kept) > MOST_ANSWERS:
                self.kept.popitem(last=False)

    def get(self, asked: Hashable) -> Any:
        """The answer to what is asked, or None."""
        with self.lock:
            if asked in self.kept:
                self.kept.move_to_end(asked)
            return self.kept.get(asked)


@st.cache_resource(show_spinner=False)
def shelf() -> Shelf:
    """The shelf of this server."""
    return Shelf()


@dataclass(frozen=True)
class View:
    """What there is for the inputs shown.

    Attributes:
        state: of the work on them; `done` when `value` is their answer.
        reason: why there is none.
        job: what runs for them.
        old: the session's last answer, when it answers other inputs.
    """

    state: State
    value: Any = None
    reason: str = ""
    job: Job | None = None
    old: Any = None


@dataclass(frozen=True)
class Desk:
    """One kind of work of a session; one job at a time, the one before is cancelled."""

    name: str

    def view(self, asked: Hashable) -> View:
        """What there is for what is asked now; work on anything else is cancelled."""
        self._collect()
        found = shelf().get((self.name, asked))
        if found is not None:
            st.session_state[self._last] = (asked, found)
            return View("done", found)
        old = self._old(asked)
        if (running := self._job_for(asked)) is not None:
            return View("running", job=running, old=old)
        ended: tuple[Hashable, State, str] | None = st.session_state.get(self._end)
        if ended is not None and ended[0] == asked:
            return View(ended[1], reason=ended[2], old=old)
        return View("idle", old=old)

    def known(self, asked: Hashable) -> Any:
        """What came of something asked before; None where nothing did. Nothing begins with it."""
        return shelf().get((self.name, asked))

    def last(self) -> Any:
        """The session's last answer, whatever it answers; None before the first."""
        kept: tuple[Hashable, Any] | None = st.session_state.get(self._last)
        return None if kept is None else kept[1]

    def start(self, task: Task, asked: Hashable, subject: Any) -> None:
        """Begin work on what is asked."""
        self.cancel()
        st.session_state.pop(self._end, None)
        try:
            st.session_state[self._job] = (asked, workshop().start(task, subject))
        except BusyError as error:
            st.session_state[self._end] = (asked, "busy", str(error))

    def cancel(self) -> None:
        """Stop what runs, and remember that it was stopped."""
        held: tuple[Hashable, Job] | None = st.session_state.pop(self._job, None)
        if held is not None:
            held[1].cancel()
            st.session_state[self._end] = (held[0], "cancelled", "")

    @property
    def _job(self) -> str:
        return f"_{self.name}_job"

    @property
    def _end(self) -> str:
        return f"_{self.name}_end"

    @property
    def _last(self) -> str:
        return f"_{self.name}_last"

    def _collect(self) -> None:
        """Take what a job that has ended hands back."""
        held: tuple[Hashable, Job] | None = st.session_state.get(self._job)
        if held is None or held[1].running:
            return
        del st.session_state[self._job]
        asked, ended = held[0], held[1].finished()
        if ended.status == "done":
            shelf().put((self.name, asked), ended.value)
            st.session_state[self._last] = (asked, ended.value)
        else:
            st.session_state[self._end] = _ending(asked, ended)

    def _job_for(self, asked: Hashable) -> Job | None:
        """The job that works on what is asked; one that works on anything else is of no use any more."""
        held: tuple[Hashable, Job] | None = st.session_state.get(self._job)
        if held is None:
            return None
        if held[0] != asked:
            self.cancel()
            return None
        return held[1]

    def _old(self, asked: Hashable) -> Any:
        """The last answer, when it is to something else."""
        last: tuple[Hashable, Any] | None = st.session_state.get(self._last)
        return None if last is None or last[0] == asked else last[1]


def _ending(asked: Hashable, ended: Finished) -> tuple[Hashable, State, str]:
    return asked, ended.status, ended.reason
