"""Processes that run workloads: their results, and how their failures are reported."""

import asyncio
import os

import pytest

from benchmarks.worker_processes import Worker, WorkloadError, run_together


class Counter:
    """Counts up in steps."""

    def __init__(self, start):
        self.count, self.by = start, 0

    async def step(self, step):
        if step < 0:
            raise ValueError("cannot count down")
        self.by = step
        return os.getpid()

    async def run(self):
        await asyncio.sleep(0)
        self.count += self.by
        return self.count

    async def close(self):
        pass


async def open_counter(start):
    if start < 0:
        raise ValueError("cannot begin below zero")
    return Counter(start)


@pytest.fixture
def child():
    with Worker(open_counter, start=1) as made:
        yield made


def test_a_benchmark_worker_answers_calls_from_a_separate_process(child):
    assert child.call("step", 2) != os.getpid()
    assert run_together([child], "run") == [3]
    assert child.call("run") == 5
    assert child.peak_memory_mib() > 0


def test_a_benchmark_worker_reports_a_failed_call_and_answers_the_next(child):
    child.call("step", 1)
    with pytest.raises(WorkloadError, match="cannot count down"):
        child.call("step", -1)
    assert child.call("run") == 2


def test_a_benchmark_worker_that_fails_to_start_reports_the_reason():
    with pytest.raises(WorkloadError, match="cannot begin below zero"):
        Worker(open_counter, start=-1)
