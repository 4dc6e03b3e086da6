"""The throwaway server: there while it is used, gone afterwards, whatever happened."""

import pytest

from billfold.adapters import embedded_postgres
from billfold.bench.ground import proving_ground


def test_ground_is_gone_when_the_benchmark_failed(state_dir):
    with pytest.raises(ValueError, match="it failed"), proving_ground(state_dir) as ground:
        assert ground.path.is_dir()
        raise ValueError("it failed")
    assert list(state_dir.iterdir()) == []


def test_ground_of_a_killed_benchmark_is_swept_away_by_the_next(state_dir):
    left = state_dir / "bench-left"
    left.mkdir(mode=0o755)
    server = embedded_postgres.start(left)
    server.hold.release()  # as the kernel does when a process dies
    with proving_ground(state_dir) as ground:
        assert not left.exists()
        assert ground.path != left


def test_ground_of_a_running_benchmark_is_left_alone_by_another(state_dir):
    with proving_ground(state_dir) as first, proving_ground(state_dir) as second:
        assert first.path != second.path
        assert first.path.exists()
    assert list(state_dir.iterdir()) == []
