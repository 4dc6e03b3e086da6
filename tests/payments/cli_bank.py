"""The bank of a test of the command line, opened to prepare what commands find."""

import os

import pytest
from tests.fixtures.cli import SEED

from billfold.cli.context import run_with_bank
from billfold.wiring.cli_context import Wiring


@pytest.fixture
def prepare(founded, database_dsn, tmp_path, capsys):
    """Run a coroutine function on the bank; return its result."""
    environment = {
        "BILLFOLD_DATABASE_URL": database_dsn,
        "BILLFOLD_STATE_DIR": str(tmp_path),
        "BILLFOLD_SEED": SEED,
        "PATH": os.environ["PATH"],
    }

    def run(work):
        result = run_with_bank(Wiring(environment), work)
        capsys.readouterr()
        return result

    return run
