"""Stand-ins for a search, importable by a worker process: they last, refuse, fail or vanish as a test needs it."""

from __future__ import annotations

import os
import time

from planner.errors import Fault, InputError
from planner.optimise.answer import Cancelled, Progress
from planner.ui.worker import Report, Stop


def count_to(parts: int, report: Report, stop: Stop) -> int:
    """Work for `parts` hundredths of a second, telling of each; the answer is the number of parts."""
    for done in range(parts):
        if stop():
            raise Cancelled("stopped")
        report(Progress(done, parts, 1000 * done, None if done < 2 else 1.0 / done))
        time.sleep(0.01)
    return parts


def pid(_: object, report: Report, stop: Stop) -> tuple[int, int]:
    """The process that works, and its niceness."""
    return os.getpid(), os.nice(0)


def refuse(_: object, report: Report, stop: Stop) -> None:
    """Refuse the subject as the planner does, with an error that does not survive the way between processes."""
    raise InputError((Fault("max_gpus", "0", "must be at least 1"),))


def fail(_: object, report: Report, stop: Stop) -> None:
    """A fault of the program."""
    raise ZeroDivisionError("a fault of the program")


def vanish(_: object, report: Report, stop: Stop) -> None:
    """What a machine without memory does to a process."""
    os._exit(9)
