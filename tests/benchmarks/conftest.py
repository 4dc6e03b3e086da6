"""A folder for throwaway servers: in memory where there is room, as no measurement is made."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import MEMORY


@pytest.fixture
def state_dir() -> Iterator[Path]:
    """A folder that other users may traverse, unlike pytest's own folders."""
    with tempfile.TemporaryDirectory(prefix="billfold-bench-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)
