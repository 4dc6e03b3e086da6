"""The throwaway server: it runs while it is used and is removed afterwards, also after an error."""

import pytest

from benchmarks.throwaway_server import throwaway_server
from billfold.platform.database import embedded


def test_the_throwaway_server_is_removed_when_the_benchmark_fails(state_dir):
    with pytest.raises(ValueError, match="it failed"), throwaway_server(state_dir) as database:
        assert database.path.is_dir()
        raise ValueError("it failed")
    assert list(state_dir.iterdir()) == []


def test_the_throwaway_server_of_a_killed_benchmark_is_removed_by_the_next_run(state_dir):
    left = state_dir / "bench-left"
    left.mkdir(mode=0o755)
    server = embedded.start(left)
    server.hold.release()  # as the kernel does when a process dies
    with throwaway_server(state_dir) as database:
        assert not left.exists()
        assert database.path != left


def test_the_throwaway_server_of_a_running_benchmark_is_not_removed_by_a_second_run(state_dir):
    with throwaway_server(state_dir) as first, throwaway_server(state_dir) as second:
        assert first.path != second.path
        assert first.path.exists()
    assert list(state_dir.iterdir()) == []
