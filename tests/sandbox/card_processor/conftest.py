"""A simulated bank with scripted answers, and a card processor."""

import pytest
from tests.support.card_network import Place, StubBank


@pytest.fixture
async def bank():
    stub = StubBank()
    await stub.open()
    yield stub
    await stub.close()


@pytest.fixture
async def place(tmp_path, bank):
    return Place(tmp_path / "processor", bank)
