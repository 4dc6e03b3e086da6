"""Dates and times on the command line have the same range as everywhere else."""

import pytest
from tests.wiring.cli.test_app import ALL

from billfold.wiring.cli.app import run
from billfold.wiring.cli_context import Wiring

ID = "5d0c2a4e-8f00-8000-8000-0000000000e1"


@pytest.mark.parametrize("day", ["0001-01-01", "1599-12-31", "9999-12-31", "2025-02-30"])
@pytest.mark.parametrize(
    "words",
    [
        ("calendar", "override", "DAY", "--bond", "closed", "--reason", "A storm"),
        ("custody", "receive", ID, "912797PT8", "1", "--from", "Harbor", "--account", "1", "--acquired-on", "DAY"),
        ("agreements", "publish", "agreements.toml", "--release-date", "DAY"),
        ("screening", "import", "sdn.csv", "--published", "DAY"),
        ("proof", "customer", ID, "--day", "DAY"),
        ("tax", "status", ID, "--withhold-from", "DAY"),
        ("document-keys", "revoke", "key", "--reason", "Stolen", "--since", "DAYT00:00:00Z"),
    ],
    ids=lambda words: " ".join(words[:2]) if isinstance(words, tuple) else words,
)
def test_a_command_with_an_out_of_range_date_is_refused(capsys, words, day):
    assert words[:2] in ALL
    assert run(Wiring({}), arguments=[each.replace("DAY", day) for each in words]) == 2
    assert "from 1600-01-01 to 2199-12-31" in " ".join(capsys.readouterr().err.replace("│", " ").split())
