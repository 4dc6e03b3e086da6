"""The values that a sandbox gives to the samples of its documentation; that they run is a story of `tests/journeys`."""

import pytest
from tests.sandbox.control_room.test_control_room import HERE, write_credentials

from billfold.apis.partner_api import partner_document, partner_operations
from billfold.platform.settings.settings import Settings
from billfold.sandbox.control_room import room
from billfold.sandbox.control_room.sample_values import SampleValues


@pytest.fixture
def calls(bank):
    """The signed calls of a sandbox of which nothing answers."""
    return room.SignedCalls(
        {"partner": room.ServedApi(None, "", lambda: partner_document(Settings(), partner_operations()))},
        bank.settings.state_dir,
    )


async def test_only_the_sandbox_s_own_machine_gets_its_values(bank, calls):
    values, operation = SampleValues(calls), calls.find("partner", "log_in")
    assert await values(operation, HERE) is None, "no sandbox has started this bank"
    bank.settings.state_dir.mkdir(exist_ok=True)
    write_credentials(bank)
    for client in ("192.0.2.7", "", "localhost", "0.0.0.0"):
        assert await values(operation, client) is None
    own = await values(operation, HERE)
    assert own is not None
    assert own.call.operation is operation
    assert f"BILLFOLD_STATE_DIR={bank.settings.state_dir}" in own.home.shell
