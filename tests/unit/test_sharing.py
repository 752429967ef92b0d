"""A search shared with another process: the same answer, whoever was faster, and whoever was lost."""

from __future__ import annotations

import pickle
import platform
import subprocess
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest

from planner.allocator import keep_freed_memory
from planner.errors import Fault, InputError, LinkError, ModelConfigError
from planner.optimise import Question, optimise
from planner.optimise.answer import Cancelled, Progress
from planner.optimise.second import WORTH, helper_for, second
from planner.optimise.sharing import shared_out
from planner.specs.scenario import Scenario

WIDE = Question(
    scenario=Scenario(model="gpt-oss-120b", weights="mxfp4", gpu="h200-sxm", sla_ttft_ms=500.0),
    accelerators=("h100-sxm", "h200-sxm", "b200-sxm", "mi300x"), modes=("colocated", "disaggregated"), max_gpus=32,
)  # fmt: skip


class Lost(Executor):
    """Workers that vanish after a few parts."""

    def __init__(self, parts: int) -> None:
        self.left = parts

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.left -= 1
        if self.left < 0:
            raise BrokenProcessPool("gone")
        if self.left == 0:
            future.set_exception(BrokenProcessPool("gone"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


@pytest.fixture(scope="module")
def pool() -> ProcessPoolExecutor:
    return second()


def same(one: Any, two: Any) -> None:
    assert one.best == two.best
    assert one.front == two.front
    assert (one.candidates, one.considered, one.refused) == (two.candidates, two.considered, two.refused)


def test_a_second_process_changes_nothing_but_the_time(pool: ProcessPoolExecutor) -> None:
    same(optimise(WIDE), optimise(WIDE, executor=pool))


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_a_lost_process_leaves_its_parts_to_this_one(parts: int) -> None:
    same(optimise(WIDE), optimise(WIDE, executor=Lost(parts)))


def test_progress_and_cancel_reach_a_shared_search(pool: ProcessPoolExecutor) -> None:
    told: list[Progress] = []
    with pytest.raises(Cancelled):
        optimise(WIDE, told.append, lambda: len(told) > 2, executor=pool)
    assert len(told) < 12


def test_every_part_comes_once_in_any_order() -> None:
    with ThreadPoolExecutor(1) as threads:
        found = [(at, value) for at, value in shared_out(pow, [(n, 2) for n in range(50)], threads) if at >= 0]
    assert sorted(found) == [(n, n * n) for n in range(50)]


def test_an_error_of_a_part_is_the_searchs_error(pool: ProcessPoolExecutor) -> None:
    with pytest.raises(ZeroDivisionError):
        list(shared_out(divmod, [(1, 0)] * 8, pool))


def test_only_large_questions_are_shared() -> None:
    assert helper_for(Question(scenario=Scenario(weights="fp8"), max_gpus=16)) is None
    assert (
        helper_for(Question(scenario=Scenario(model="deepseek-v3"), max_gpus=512, precisions=("fp8", "int4")))
        is not None
    )
    assert helper_for(Question(scenario=Scenario(model="nonsense"), max_gpus=512)) is None
    assert WORTH > 10_000


@pytest.mark.parametrize(
    "error",
    [
        InputError((Fault("tp", "3", "must be 1, 2 or 4"),)),
        LinkError((Fault("tp", "3", "must be 1, 2 or 4"), Fault("pp", "0", "must be above 0"))),
        ModelConfigError("rope_scaling", {"type": "odd"}, "is not understood"),
    ],
)
def test_errors_survive_the_way_between_processes(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_the_second_process_ends_with_the_first() -> None:
    """However that one ends: here it is killed by itself."""
    script = (
        "import os, signal\n"
        "from planner.optimise.second import second\n"
        "def main():\n"
        "    print(second().submit(os.getpid).result(), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "if __name__ == '__main__':\n"
        "    main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    waited = subprocess.run(
        [
            "sh",
            "-c",
            f"for i in $(seq 50); do kill -0 {int(done.stdout)} 2>/dev/null || exit 0; sleep 0.1; done; exit 1",
        ],
        check=False,
    )
    assert waited.returncode == 0


def test_freed_memory_is_kept_where_the_c_library_can() -> None:
    assert keep_freed_memory() is keep_freed_memory()
    assert keep_freed_memory() == (platform.libc_ver()[0] == "glibc")
