"""Processes that run workloads: what they answer, and what becomes of their failures."""

import asyncio
import os

import pytest

from benchmarks.worker_processes import Worker, WorkloadError, run_together


class Counter:
    """Counts up to what it is told."""

    def __init__(self, start):
        self.count = start

    async def prepare(self, task):
        if task < 0:
            raise ValueError("cannot count down")
        self.task = task
        return os.getpid()

    async def run(self):
        await asyncio.sleep(0)
        self.count += self.task
        return self.count

    async def close(self):
        pass


async def open_counter(start):
    if start < 0:
        raise ValueError("cannot begin below zero")
    return Counter(start)


@pytest.fixture
def child():
    made = Worker(open_counter, start=1)
    yield made
    made.close()


def test_racer_runs_what_it_prepared_in_a_process_of_its_own(child):
    assert child.prepare(2) != os.getpid()
    assert run_together([child]) == [3]
    assert child.run(4) == 7
    assert child.peak_memory_mib() > 0


def test_racer_tells_why_it_failed_and_goes_on(child):
    with pytest.raises(WorkloadError, match="cannot count down"):
        child.prepare(-1)
    assert child.run(1) == 2


def test_racer_that_cannot_open_tells_why():
    with pytest.raises(WorkloadError, match="cannot begin below zero"):
        Worker(open_counter, start=-1)
