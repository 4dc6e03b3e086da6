"""Commands in unusual environments work, or name the next step in one line."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def billfold(*words, **environ):
    command = [sys.executable, "-m", "billfold", *words]
    bare = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, env=bare | environ, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize("command", [("doctor",), ("doctor", "--json"), ("clock", "show"), ("verify",), ("--help",)])
def test_characters_that_the_terminal_cannot_encode_do_not_fail_a_command(tmp_path, command):
    plain = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    nowhere = f"postgresql://nobody@/none?host={tmp_path}"
    done = billfold(*command, **plain, BILLFOLD_STATE_DIR=str(tmp_path / "Zürich"), BILLFOLD_DATABASE_URL=nowhere)
    assert b"Traceback" not in done.stderr
    assert done.returncode == (0 if command == ("--help",) else 1)


@pytest.mark.parametrize("certificate", ["", "no certificate"])
def test_doctor_starts_no_process_and_writes_no_file(tmp_path, certificate):
    state = tmp_path / "state"
    if certificate:
        (state / "tls").mkdir(parents=True)
        (state / "tls" / "server.pem").write_text(certificate)
    before = sorted(tmp_path.rglob("*"))
    done = billfold("doctor", BILLFOLD_STATE_DIR=str(state))
    assert (done.returncode, b"Traceback" in done.stderr) == (1, False)
    assert b"is not running" in done.stdout
    assert sorted(tmp_path.rglob("*")) == before


def test_a_missing_time_zone_database_is_reported_with_the_package_to_install(tmp_path):
    (tmp_path / "tzdata").mkdir()
    (tmp_path / "tzdata" / "__init__.py").touch()
    done = billfold("doctor", PYTHONTZPATH="", PYTHONPATH=f"{tmp_path}:{ROOT / 'src'}")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)
    assert b"install the package tzdata" in done.stderr


def test_a_moved_clone_is_set_up_again(tmp_path):
    client = [f"clients/python/{name}" for name in ("pyproject.toml", "generate.py")]
    for name in ("Makefile", "pyproject.toml", "uv.lock", "tools/setup.sh", *client):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    ready = tmp_path / ".venv" / ".ready"
    ready.parent.mkdir()
    for place, is_made in ((tmp_path, False), (tmp_path / "former", True)):
        ready.write_text(str(place))
        planned = subprocess.run(["make", "-n", "setup"], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert ("tools/setup.sh" in planned.stdout) == is_made
