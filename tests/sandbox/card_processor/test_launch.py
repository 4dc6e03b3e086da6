"""Environment variables of the card processor in the sandbox."""

from dataclasses import replace
from pathlib import Path

import pytest

from billfold.cli.context import CliError
from billfold.platform.settings.settings import Settings
from billfold.sandbox.card_processor.launch import listen_to_network, prepare_card_host


@pytest.fixture
def prepare(tmp_path, monkeypatch):
    """Prepare the host under variables: `prepare("127.0.0.1", PORT="8583")`."""

    def make(host, **variables):
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(f"CARD_PROCESSOR_{name}", value)
            settings = replace(Settings(), host=host, state_dir=tmp_path)
            with listen_to_network(settings) as listener:
                port = listener.getsockname()[1]
                return prepare_card_host(settings, bytes(32), trusted_ca=Path("ca.pem"), port=port)

    return make


def test_a_mac_is_required_when_the_host_listens_beyond_loopback(prepare):
    own = prepare("127.0.0.1")
    assert (own.mac_required, prepare("0.0.0.0").mac_required) == (False, True)
    assert prepare("127.0.0.1", MAC_REQUIRED="true").mac_required
    assert (own.mac_key, own.pin_key) == (prepare("127.0.0.1").mac_key, prepare("127.0.0.1").pin_key)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "0"),
        ("PORT", "all"),
        ("MAC_KEY", "00" * 16),
        ("MAC_ALGORITHM", "crc"),
        ("STAND_IN_CENTS", "-1"),
        ("KEY", "1"),
    ],
)
def test_an_invalid_card_processor_variable_is_reported(prepare, name, value):
    with pytest.raises(CliError, match=f"CARD_PROCESSOR_.*{name.lower()}"):
        prepare("127.0.0.1", **{name: value})
