"""Executors that work is spread over: threads, processes, and a Dask cluster on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import pytest


@contextmanager
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


@contextmanager
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@contextmanager
def dask_cluster() -> Iterator[Executor]:
    """Two worker processes of a Dask cluster on this machine, as docs/SWEEP.md has it."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client.get_executor()


EXECUTORS = [threads, processes, pytest.param(dask_cluster, marks=pytest.mark.alone)]
"""All of them; a cluster starts where nothing else does, since two at once may not come up in time."""
