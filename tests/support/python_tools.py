"""Third-party Python programs, each in its own environment outside the repository."""

import shutil
import subprocess
import sys
import venv

import pytest
from tests.support.maven import CACHE


def program_of(package, version, tmp_path_factory):
    """The program of a package, installed once; where no package index is reached the test is skipped."""
    folder = CACHE / f"{package}-{version}-{sys.version_info.major}.{sys.version_info.minor}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = tmp_path_factory.mktemp(package)
        venv.create(draft / "tools", with_pip=True)
        words = [draft / "tools/bin/python", "-m", "pip", "install", "-q", "--target", draft / "packages"]
        if subprocess.run([*words, f"{package}=={version}"], check=False, capture_output=True, timeout=300).returncode:
            pytest.skip(f"pip does not get {package}")
        shutil.move(draft / "packages", folder)
    return folder
