"""Long work: it runs elsewhere, says how far it is, stops when told to, and survives what machines do to processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest

from planner.optimise.answer import Progress
from planner.ui import jobs, worker
from planner.ui.jobs import MOST_JOBS, BusyError, Job, Workshop
from planner.ui.worker import Finished, Slot
from tests import doubles

SOON = 20.0


def until(holds: Callable[[], bool], seconds: float = SOON) -> bool:
    """Wait until something holds; whether it did in time."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.005)
    return holds()


@pytest.fixture(scope="module")
def apart() -> Iterator[Workshop]:
    """A workshop with one worker process."""
    made = Workshop(1)
    yield made
    made.close()


@pytest.fixture
def here() -> Iterator[Workshop]:
    """A workshop with a thread."""
    made = Workshop(0)
    yield made
    made.close()


@pytest.fixture(params=["apart", "here"])
def shop(request: pytest.FixtureRequest) -> Workshop:
    return request.getfixturevalue(request.param)


def done(job: Job) -> Finished:
    assert job.wait(SOON)
    return job.finished()


def test_a_job_says_how_far_it_is_and_what_came_of_it(shop: Workshop) -> None:
    job = shop.start(doubles.count_to, 60)
    assert job.subject == 60
    seen = set()
    assert until(lambda: (seen.add(job.progress()), not job.running)[1])
    steps = sorted(seen, key=lambda progress: progress.done)
    assert len(steps) > 5
    assert {step.total for step in steps} <= {0, 60}
    assert all(step.considered == 1000 * step.done for step in steps)
    assert steps[-1].best == pytest.approx(1 / steps[-1].done)
    assert job.finished() == Finished("done", 60)
    assert not job.waiting


def test_work_is_done_in_another_process_that_yields_to_pages(apart: Workshop) -> None:
    process, nice = done(apart.start(doubles.pid, None)).value
    assert process != os.getpid()
    assert nice == min(19, os.nice(0) + worker.POLITE)


def test_a_cancelled_job_stops_at_once_and_frees_the_worker(shop: Workshop) -> None:
    job = shop.start(doubles.count_to, 100_000)
    assert until(lambda: job.progress().done > 2)
    asked = time.monotonic()
    job.cancel()
    assert done(job).status == "cancelled"
    assert time.monotonic() - asked < 5.0, "counting to the end would take minutes"
    assert done(shop.start(doubles.count_to, 1)) == Finished("done", 1)


def test_a_job_that_waits_can_be_cancelled_before_it_begins(shop: Workshop) -> None:
    first = shop.start(doubles.count_to, 100_000)
    assert until(lambda: first.progress().done > 0)
    others = [shop.start(doubles.count_to, 100_000) for _ in range(3)]
    assert all(other.waiting for other in others)
    for job in (*others, first):
        job.cancel()
    assert {done(job).status for job in (*others, first)} == {"cancelled"}
    assert others[-1].progress().done == 0


def test_a_refusal_comes_back_as_words(shop: Workshop) -> None:
    found = done(shop.start(doubles.refuse, None))
    assert found == Finished("refused", reason="max_gpus = 0: must be at least 1")


def test_a_fault_of_the_program_is_raised_where_its_answer_is_read(shop: Workshop) -> None:
    job = shop.start(doubles.fail, None)
    assert job.wait(SOON)
    with pytest.raises(ZeroDivisionError, match="a fault of the program"):
        job.finished()


def test_the_queue_is_short(here: Workshop) -> None:
    running = [here.start(doubles.count_to, 100_000) for _ in range(MOST_JOBS)]
    with pytest.raises(BusyError, match="try again"):
        here.start(doubles.count_to, 1)
    for job in running:
        job.cancel()
    assert all(job.wait(SOON) for job in running)
    assert until(lambda: len(here._crew.free) == MOST_JOBS), "places in the queue were lost"
    assert done(here.start(doubles.count_to, 1)).status == "done"


def test_nothing_of_the_job_before_is_left_in_a_place(here: Workshop) -> None:
    assert done(here.start(doubles.count_to, 5)).status == "done"
    here._crew.free[:] = here._crew.free[-1:]
    fresh = here.start(doubles.refuse, None)
    assert done(fresh).status == "refused"
    assert fresh.progress() == Progress(0, 0, 0, None)


def test_a_job_has_its_time_and_no_more(monkeypatch: pytest.MonkeyPatch, here: Workshop) -> None:
    monkeypatch.setattr(worker, "LONGEST", 0.1)
    assert done(here.start(doubles.count_to, 100_000)) == Finished("late")


def test_a_job_that_nobody_asks_about_stops(monkeypatch: pytest.MonkeyPatch, here: Workshop) -> None:
    monkeypatch.setattr(worker, "ABANDONED", 0.1)
    assert done(here.start(doubles.count_to, 100_000)).status == "cancelled"


def test_asking_keeps_a_job_alive(monkeypatch: pytest.MonkeyPatch, here: Workshop) -> None:
    monkeypatch.setattr(worker, "ABANDONED", 0.2)
    job = here.start(doubles.count_to, 60)
    assert until(lambda: (job.progress(), not job.running)[1])
    assert job.finished() == Finished("done", 60)


def test_a_worker_that_vanishes_is_replaced() -> None:
    """What a machine short of memory does: the job is lost and says so, the next one finds a new process."""
    shop = Workshop(1)
    try:
        shop.prove(doubles.pid)
        assert [done(job).status for job in shop._proof] == ["done"]
        assert done(shop.start(doubles.vanish, None)) == Finished("broken")
        process, _ = done(shop.start(doubles.pid, None)).value
        assert process != os.getpid()
    finally:
        shop.close()


def test_a_machine_that_cannot_start_processes_uses_a_thread() -> None:
    shop = Workshop(1)
    try:
        shop.prove(doubles.vanish)
        assert [done(job).status for job in shop._proof] == ["broken"]
        process, _ = done(shop.start(doubles.pid, None)).value
        assert process == os.getpid()
    finally:
        shop.close()


def test_a_machine_that_refuses_a_process_uses_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError("resource temporarily unavailable")

    shop = Workshop(1)
    monkeypatch.setattr(shop._crew, "entry", refused)
    process, _ = done(shop.start(doubles.pid, None)).value
    assert process == os.getpid()
    shop.close()


def test_closing_stops_what_runs() -> None:
    shop = Workshop(0)
    job = shop.start(doubles.count_to, 100_000)
    assert until(lambda: job.progress().done > 0)
    shop.close()
    assert done(job).status == "cancelled"


def test_a_slot_holds_what_is_written_to_it_and_nothing_of_its_neighbours() -> None:
    board = [0.0] * jobs.CELL_COUNT
    one, other = Slot(board, 0), Slot(board, MOST_JOBS - 1)
    one.clear(), other.clear()
    one.report(Progress(3, 9, 1234, 0.25))
    assert one.progress() == Progress(3, 9, 1234, 0.25)
    assert other.progress() == Progress(0, 0, 0, None)
    assert len(board) == jobs.CELL_COUNT


@pytest.mark.parametrize(("cores", "workers"), [(None, 2), (1, 2), (2, 2), (3, 3), (64, 4)])
def test_no_search_waits_for_what_is_worked_out_around_another(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, workers: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert jobs.count() == workers
