"""The PostgreSQL server that comes with Billfold, started under a state directory.

Every `start` takes a shared lock on one file and `stop` releases it; the last to release it stops the
server. The kernel drops the lock of a process that dies, so no count is left wrong by a crash: the
server then keeps running until the next user of the directory attaches and stops. It listens on a Unix
socket only, never on TCP, and only its owner (and root) may connect.
"""

import fcntl
import hashlib
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import asyncpg
import psutil

from billfold.platform.database.embedded_programs import MAJOR, EmbeddedPostgresError, ServerUser

__all__ = ["DEFAULT_SETTINGS", "THROWAWAY_SETTINGS", "EmbeddedPostgresError", "Server", "find_running", "start", "stop"]

SUPERUSER = "postgres"
PORT = 5432  # names the socket file; nothing listens on a port

# For two cores that also run the application. Durable: an acknowledged commit survives a power cut.
DEFAULT_SETTINGS: Mapping[str, str] = {
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "max_connections": "60",
    "max_wal_size": "2GB",
    # The archive destination is set without a restart: `billfold backup --continuous`.
    "archive_mode": "on",
    "archive_command": "true",
    "checkpoint_timeout": "15min",
    "wal_compression": "pglz",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "autovacuum_naptime": "30s",
    "autovacuum_vacuum_scale_factor": "0.05",
    "autovacuum_analyze_scale_factor": "0.05",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# Nothing survives a power cut, everything survives `kill -9`: for tests and benchmarks of the CPU.
THROWAWAY_SETTINGS: Mapping[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "128MB",
    "autovacuum": "off",
    "archive_mode": "off",
}

_START_SECONDS = 600  # recovery replays up to max_wal_size; a slow disk may need minutes
_STOP_SECONDS = 60
_ORPHAN_SECONDS = 5.0
_SOCKET_LINE, _STATUS_LINE = 4, 7  # of postmaster.pid
_SOCKET_PATH_BYTES = 103  # what macOS allows; Linux allows 107
_DATABASE_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and its lock. Pass it to `stop` when done."""

    data_dir: Path
    socket_dir: Path
    pid: int
    hold: "_SharedLock" = field(repr=False)

    @property
    def dsn(self) -> str:
        """The address of the maintenance database `postgres`."""
        return self.dsn_for("postgres")

    def dsn_for(self, database: str, user: str = SUPERUSER) -> str:
        """Return the address of `database`, for asyncpg and libpq; neither it nor the user need exist."""
        return _address(self.socket_dir, database, user)

    async def create_database(self, name: str, *, template: str = "template1") -> str:
        """Create database `name` unless it exists, as a copy of `template`; return its address."""
        for each in (name, template):
            if not _DATABASE_NAME.fullmatch(each):
                raise ValueError(f"not a database name: {each!r}")
        connection = await asyncpg.connect(self.dsn)
        try:
            with suppress(asyncpg.DuplicateDatabaseError, asyncpg.UniqueViolationError):
                # By files, not through the log: ten times faster for a database without rows.
                await connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        finally:
            await connection.close()
        return self.dsn_for(name)


def start(
    state_dir: Path,
    *,
    settings: Mapping[str, str] | None = None,
    progress: Callable[[str], None] | None = None,
    seconds: int = _START_SECONDS,
) -> Server:
    """Start the server of `state_dir`, or attach to it if it is running, and return it once it is ready.

    The first start creates the cluster (about a second). After a crash of the server, or of the
    machine, the start recovers. `settings` (postgresql.conf names) override DEFAULT_SETTINGS
    and take effect only when the server starts. Blocks, for `seconds` at most. Raises EmbeddedPostgresError.
    """
    report = progress or _ignore_progress
    state_dir = state_dir.expanduser().resolve()
    try:
        state_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedPostgresError(f"{state_dir} cannot be made: {error.strerror}") from error
    if not os.access(state_dir, os.W_OK):
        raise EmbeddedPostgresError(f"{state_dir} is not writable; choose another state dir")
    data_dir = state_dir / "postgres"
    merged_settings = {**DEFAULT_SETTINGS, **(settings or {})}
    with _exclusive(state_dir):
        hold = _SharedLock(state_dir)
        try:
            owner = ServerUser.of(data_dir, report)
            if not data_dir.exists():
                _create_cluster(data_dir, owner, durable=merged_settings["fsync"] != "off", report=report)
            _check_version(data_dir)
            postmaster = _find_postmaster(data_dir)
            if postmaster is None:
                postmaster = _launch(data_dir, owner, merged_settings, report=report, seconds=seconds)
            else:
                report("Attached to the running PostgreSQL")
        except BaseException:  # Ctrl-C too, which must not leave a server behind
            _release(data_dir, hold)
            raise
    return Server(data_dir, postmaster.socket_dir, postmaster.pid, hold=hold)


def find_running(state_dir: Path, database: str, user: str = SUPERUSER) -> str | None:
    """Return the address of `database` on the running server of `state_dir`, or None. Starts and writes nothing."""
    postmaster = _find_postmaster(state_dir.expanduser().resolve() / "postgres")
    return None if postmaster is None else _address(postmaster.socket_dir, database, user)


def stop(server: Server) -> bool:
    """Release `server`; the last to release it stops it (a fast shutdown, nothing is lost).

    Return whether it has no more users. Does nothing the second time. Blocks. Raises
    EmbeddedPostgresError if the server does not end.
    """
    state_dir = server.data_dir.parent
    if not server.hold.is_held or not state_dir.exists():
        return False
    with _exclusive(state_dir):
        if not _release(server.data_dir, server.hold):
            return False
        if server.socket_dir != server.data_dir:
            with suppress(OSError):  # a later start creates it again
                server.socket_dir.rmdir()
    return True


def _release(data_dir: Path, hold: "_SharedLock") -> bool:
    """Release the lock; stop the server unless others use it; tell whether none do."""
    try:
        if not hold.is_last():
            return False
        if _find_postmaster(data_dir):
            _shut_down(data_dir)
    finally:
        hold.release()
    return True


def _shut_down(data_dir: Path) -> None:
    owner = ServerUser.of(data_dir, _ignore_progress)
    target_options = ("-D", str(data_dir), "-w", "-t", str(_STOP_SECONDS))
    try:
        owner.run("pg_ctl", "stop", *target_options, "-m", "fast")
    except EmbeddedPostgresError:
        if _find_postmaster(data_dir):  # a stuck backend: the next start recovers
            owner.run("pg_ctl", "stop", *target_options, "-m", "immediate")


def _address(socket_dir: Path, database: str, user: str) -> str:
    host = quote(os.fsencode(socket_dir), safe="/")
    return f"postgresql://{user}@/{quote(database)}?host={host}&port={PORT}"


class _SharedLock:
    """A shared lock which shows that this process uses the server of this state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._file: int | None = os.open(state_dir / "postgres.users", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_SH)

    @property
    def is_held(self) -> bool:
        return self._file is not None

    def is_last(self) -> bool:
        """Try to lock it exclusively. Either way the shared lock is released."""
        if self._file is None:
            return False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        if self._file is not None:
            # Closing is not enough: a forked child has the same lock open.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = None


@dataclass(frozen=True, slots=True)
class _Postmaster:
    """The contents of the lock file of a running, ready server."""

    pid: int
    socket_dir: Path


def _ignore_progress(_: str) -> None:
    pass


@contextmanager
def _exclusive(state_dir: Path) -> Iterator[None]:
    """Lock out every other start and stop of this directory for the duration of the block."""
    with (state_dir / "postgres.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _create_cluster(data_dir: Path, owner: ServerUser, *, durable: bool, report: Callable[[str], None]) -> None:
    """Create the cluster next to its place and move it there, so a partial cluster is never used."""
    report("Creating the database cluster")
    incomplete = data_dir.with_name("postgres.unfinished")
    shutil.rmtree(incomplete, ignore_errors=True)
    incomplete.mkdir(mode=0o700)
    owner.take(incomplete)
    # The builtin locale sorts and folds the same on every machine and after every upgrade.
    locale = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    options = (*locale, "--encoding=UTF8", "--auth=trust", "--no-instructions", "-U", SUPERUSER)
    owner.run("initdb", *options, *(() if durable else ("--no-sync",)), "-D", str(incomplete))
    incomplete.rename(data_dir)


def _check_version(data_dir: Path) -> None:
    found = (data_dir / "PG_VERSION").read_text().strip()
    if found != str(MAJOR):
        raise EmbeddedPostgresError(
            f"{data_dir} was made by PostgreSQL {found}; this is {MAJOR}. "
            "Dump it with the older release and restore it into a new state directory"
        )


def _launch(
    data_dir: Path, owner: ServerUser, settings: Mapping[str, str], report: Callable[[str], None], seconds: int
) -> _Postmaster:
    socket_dir = _socket_dir(data_dir, owner)
    if (data_dir / "postmaster.pid").exists():
        report("PostgreSQL ended without warning; recovering")
        _kill_orphans(data_dir)
        _clear_stale_pid(data_dir / "postmaster.pid")
        _clear_stale_pid(socket_dir / f".s.PGSQL.{PORT}.lock")
    else:
        report("Starting PostgreSQL")
    _write_settings(data_dir, owner, settings, socket_dir=socket_dir)
    log = data_dir / "server.log"
    target_options = ("-D", str(data_dir), "-l", str(log), "-w", "-t", str(seconds))
    try:
        owner.run("pg_ctl", "start", *target_options, seconds=2 * seconds)
    except EmbeddedPostgresError as error:
        tail = log.read_text(encoding="utf-8", errors="replace")[-2000:] if log.exists() else ""
        raise EmbeddedPostgresError(f"PostgreSQL did not start. {error}\n{tail}") from error
    postmaster = _find_postmaster(data_dir)
    if postmaster is None:
        raise EmbeddedPostgresError(f"PostgreSQL ended right after its start; see {log}")
    return postmaster


def _cluster_name(data_dir: Path) -> str:
    return f"billfold-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:12]}"


def _write_settings(data_dir: Path, owner: ServerUser, settings: Mapping[str, str], socket_dir: Path) -> None:
    overrides = {
        "listen_addresses": "",
        "port": str(PORT),
        "unix_socket_directories": str(socket_dir),
        # Any local user could otherwise connect as superuser.
        "unix_socket_permissions": "0700",
        "cluster_name": _cluster_name(data_dir),
    }
    quoted = {name: value.replace("\\", "\\\\").replace("'", "''") for name, value in {**settings, **overrides}.items()}
    lines = ["# Written at every start; use Billfold's settings instead.\n"]
    lines += [f"{name} = '{value}'\n" for name, value in quoted.items()]
    path = data_dir / "postgresql.conf"
    path.write_text("".join(lines), encoding="utf-8")
    path.chmod(0o600)
    owner.take(path)


def _socket_dir(data_dir: Path, owner: ServerUser) -> Path:
    """Return the cluster's own folder, or one in the temporary folder if its name is too long."""
    socket = os.fsencode(data_dir / f".s.PGSQL.{PORT}.lock")
    if len(socket) <= _SOCKET_PATH_BYTES and b"," not in socket:  # a comma separates folders
        return data_dir
    short = Path(tempfile.gettempdir()) / _cluster_name(data_dir)
    with suppress(FileExistsError):
        short.mkdir(mode=0o700)
        owner.take(short)
    found = short.lstat()
    if short.is_symlink() or found.st_uid != owner.uid or found.st_mode & 0o077:
        raise EmbeddedPostgresError(f"{short} is not ours; remove it or choose a shorter state dir")
    return short


def _find_postmaster(data_dir: Path) -> _Postmaster | None:
    """Return the running server of `data_dir` once it is ready, or None when none runs."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            lines = _read_pid_file(data_dir / "postmaster.pid").splitlines()
            pid = int(lines[0])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        if not _belongs_to(data_dir, pid):
            return None
        if lines[_STATUS_LINE:] and lines[_STATUS_LINE].strip() == "ready":
            return _Postmaster(pid, Path(lines[_SOCKET_LINE]))
        if time.monotonic() > deadline:
            raise EmbeddedPostgresError(f"PostgreSQL (process {pid}) runs but does not become ready")
        time.sleep(0.05)


def _read_pid_file(path: Path) -> str:
    """The file names folders, in their own encoding."""
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def _clear_stale_pid(lock_file: Path) -> None:
    """Make the server take over a lock file whose pid now belongs to another program, or to a zombie.

    It would refuse to start. It ignores a pid that is its grandparent's, ours, and still
    checks everything else: whether shared memory is in use, or another server runs on the same files.
    """
    try:
        pid, rest = _read_pid_file(lock_file).split("\n", 1)
        process = psutil.Process(int(pid))
        is_live_server = process.name() == "postgres" and process.status() != psutil.STATUS_ZOMBIE
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        return
    if not is_live_server:
        lock_file.write_text(f"{os.getpid()}\n{rest}", encoding="utf-8", errors="surrogateescape")


def _belongs_to(data_dir: Path, pid: int) -> bool:
    """Tell whether the process belongs to the server of `data_dir`, by its command line.

    Its folder would be more reliable, but in a container root may not inspect another user's process.
    """
    try:
        arguments = psutil.Process(pid).cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
    return str(data_dir) in arguments or f"{_cluster_name(data_dir)}:" in " ".join(arguments)


def _kill_orphans(data_dir: Path) -> None:
    """Wait until the children of a dead server notice; kill those that do not."""
    orphans = [pid for pid in psutil.pids() if _belongs_to(data_dir, pid)]
    orphans = _wait_for_exit(data_dir, orphans, _ORPHAN_SECONDS)
    for pid in orphans:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if orphans := _wait_for_exit(data_dir, orphans, _ORPHAN_SECONDS):
        raise EmbeddedPostgresError(f"processes of the dead server remain: {orphans}")


def _wait_for_exit(data_dir: Path, pids: list[int], seconds: float) -> list[int]:
    """Wait for the processes to end; one that nobody reaps counts as ended."""
    deadline = time.monotonic() + seconds
    while pids and time.monotonic() < deadline:
        time.sleep(0.02)
        pids = [pid for pid in pids if _belongs_to(data_dir, pid)]
    return pids
