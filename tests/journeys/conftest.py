"""An environment of somebody who has no bank, but its client."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.environments import install, new_environment

CLIENT = Path(__file__).parents[2] / "clients/python"


@pytest.fixture(scope="session")
def outsider(tmp_path_factory):
    """The Python of an environment that has the wheel of the client, what it needs, and nothing of the bank."""
    folder = tmp_path_factory.mktemp("outsider")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=CLIENT, check=True, capture_output=True)
    python = new_environment(folder, "3.10")
    install(python, "--compile-bytecode", *folder.glob("*.whl"))
    return python
