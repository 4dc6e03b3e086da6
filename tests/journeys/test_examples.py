"""The examples, run as their readers run them, against a running sandbox."""

import os
import subprocess
import sys

import pytest
from tests.interfaces.cli.test_sandbox import SOURCE, Sandbox

EXAMPLES = SOURCE.parent / "examples"
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    """A running sandbox whose story has not been told."""
    running = Sandbox(tmp_path_factory.mktemp("examples"), "--seed", "7", "--no-story")
    try:
        yield running.wait_up()
    finally:
        running.end()


def printed(sandbox, name):
    """Return what an example prints in the folder of the sandbox."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=sandbox.state.parent,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_partner_opens_a_pocket_and_money_becomes_bills(sandbox):
    told = printed(sandbox, "partner.py")
    assert "Holds 100 units of US T-Bill" in told
    assert "Worth $9,99" in told


def test_a_company_reads_its_pockets_with_a_token_bound_to_a_key(sandbox):
    told = printed(sandbox, "customer.py")
    assert "A DPoP token, bound to " in told
    assert "Dummy Customer Inc. (OPEN)" in told
    assert told.count("UST-13W") == 1
    again = printed(sandbox, "customer.py")
    assert again.count("UST-13W") == 1


def test_every_example_is_run_here():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"customer.py", "partner.py"}
