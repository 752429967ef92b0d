"""A second process for large searches: Python threads would wait for each other, the interpreter lets only one of them run.

It is started once and stays; it ends with the process that started it, however that ends.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Final

from planner.errors import HeadroomError
from planner.layouts import every_layout
from planner.optimise.question import Question
from planner.optimise.space import categories
from planner.setting import resolve

WORTH: Final = 60_000
"""Layouts, over all categories, from which on a search is shared."""


def helper_for(question: Question) -> ProcessPoolExecutor | None:
    """The second process where a question is worth it and the machine has a second core; None otherwise."""
    if (os.cpu_count() or 1) < 2:
        return None
    try:
        space = [each.scenario for each in categories(question) if each.scenario is not None]
        layouts = len(
            every_layout(resolve(space[0].with_(prefill="excluded", kv_link_eff=None)).model, question.max_gpus).tp
        )
    except (HeadroomError, IndexError):
        return None
    return second() if len(space) * layouts >= WORTH else None


@cache
def second() -> ProcessPoolExecutor:
    """The second process, spawned: a forked one would inherit locks that other threads hold."""
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=end_with_parent)
    atexit.register(pool.shutdown, wait=False, cancel_futures=True)
    return pool


def end_with_parent() -> None:
    """Let this process end as soon as the one that started it is gone."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    """Wait until the parent is gone, however it went, and go too."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
