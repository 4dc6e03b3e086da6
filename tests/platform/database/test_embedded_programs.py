"""The operating system user of the server, on machines without the usual accounts and tools."""

import os
import pwd
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from billfold.platform.database import embedded_programs
from billfold.platform.database.embedded_programs import EmbeddedPostgresError, ServerUser

SOMEBODY = pwd.getpwuid(os.getuid())


@pytest.fixture
def machine(monkeypatch):
    """A machine with these accounts and tools; `added` is what a tool was called with."""

    def make(*accounts, tools=(), works=True):
        known, added = set(accounts), []

        def getpwnam(name):
            if name not in known:
                raise KeyError(name)
            return SOMEBODY

        def run(words, **_):
            added.append(words)
            time.sleep(0.01)
            if works:
                known.add(words[-1])

        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        monkeypatch.setattr(pwd, "getpwnam", getpwnam)
        monkeypatch.setattr(subprocess, "run", run)
        monkeypatch.setattr(
            shutil, "which", lambda name, path: f"/usr/sbin/{name}" if name in tools and "/usr/sbin" in path else None
        )
        return added

    return make


@pytest.mark.parametrize(
    ("accounts", "tools", "works", "called"),
    [
        (["pgserver"], ["useradd"], True, []),
        ([], ["useradd"], True, ["/usr/sbin/useradd"]),
        ([], ["adduser"], True, ["/usr/sbin/adduser"]),
        (["nobody"], ["useradd"], False, ["/usr/sbin/useradd"]),
        (["nobody"], [], True, []),
    ],
)
def test_root_runs_postgres_under_a_lent_account_without_sbin_in_the_path(machine, accounts, tools, works, called):
    added = machine(*accounts, tools=tools, works=works)
    assert embedded_programs._server_account() is SOMEBODY
    assert [words[0] for words in added] == called


def test_processes_that_need_the_account_at_once_add_it_once(machine):
    added = machine(tools=["useradd"])
    with ThreadPoolExecutor(8) as pool:
        accounts = list(pool.map(lambda _: embedded_programs._server_account(), range(8)))
    assert accounts == [SOMEBODY] * 8
    assert len(added) == 1


def test_root_without_a_lendable_account_is_refused_with_a_next_step(machine):
    machine()
    with pytest.raises(EmbeddedPostgresError, match="run as another user, or set BILLFOLD_DATABASE_URL"):
        embedded_programs._server_account()


def test_a_user_without_a_passwd_entry_is_told_the_line_to_add(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    with pytest.raises(EmbeddedPostgresError, match=r"bank:x:54321:\d+::/tmp:/bin/sh"):
        ServerUser.of(tmp_path / "postgres", print)


def test_root_makes_programs_and_libraries_readable_despite_a_strict_umask(monkeypatch, tmp_path):
    programs_folder, libraries = tmp_path / "wheel" / "pginstall18" / "bin", tmp_path / "wheel.libs"
    monkeypatch.setattr(embedded_programs, "_bin_dir", lambda: programs_folder)
    for folder, name in ((programs_folder, "initdb"), (libraries, "libpq.so")):
        folder.mkdir(parents=True)
        (folder / name).touch(mode=0o600)
    for folder in (tmp_path / "wheel", programs_folder.parent, programs_folder, libraries):
        folder.chmod(0o700)
    embedded_programs._allow_reading()
    opened = (programs_folder.parent, programs_folder, programs_folder / "initdb", libraries, libraries / "libpq.so")
    assert [path.stat().st_mode & 0o007 for path in opened] == [5, 5, 5, 5, 4]
