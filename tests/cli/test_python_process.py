"""No child process imports from the folder that it was started in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.documents.test_inspection import a_pdf
from tests.support.import_traps import set_import_traps

import billfold
from billfold.cli.python_process import python_command
from billfold.documents.inspection import SubprocessFileInspector
from billfold.platform.file_kinds import FileKind

SOURCE = Path(billfold.__file__).parent
POOL = """
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from billfold.__main__ import main

if __name__ == "__main__":
    main()
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        print(pool.submit(abs, -5).result())
"""


@pytest.fixture
def trapped(tmp_path):
    """A folder of import traps, and the file that lists the triggered ones."""
    folder = tmp_path / "trapped"
    folder.mkdir()
    set_import_traps(folder, tmp_path / "imported.txt")
    yield folder
    told = tmp_path / "imported.txt"
    assert not told.exists(), told.read_text()


def run(command, folder):
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True).stdout.split()


def test_a_child_process_ignores_modules_of_the_same_name_in_the_working_directory(trapped):
    code = "import asyncio, ssl, uvloop, billfold.wiring.cli.serve; print(billfold.__file__)"
    assert run(python_command("-c", code), trapped) == [str(SOURCE / "__init__.py")]


def test_a_pool_process_ignores_modules_of_the_same_name_in_the_working_directory(trapped, tmp_path):
    script = tmp_path / "elsewhere" / "pool.py"
    script.parent.mkdir()
    script.write_text(POOL)
    assert run([sys.executable, str(script), "--version"], trapped) == ["billfold", billfold.__version__, "5"]


async def test_file_inspection_ignores_modules_of_the_same_name_in_the_working_directory(trapped, monkeypatch):
    monkeypatch.chdir(trapped)
    await SubprocessFileInspector().inspect(a_pdf(), FileKind.PDF)


def test_every_child_command_line_excludes_the_working_directory_from_imports():
    naming = {str(each.relative_to(SOURCE)) for each in SOURCE.rglob("*.py") if "sys.executable" in each.read_text()}
    assert naming == {"cli/python_process.py", "documents/inspection.py"}
