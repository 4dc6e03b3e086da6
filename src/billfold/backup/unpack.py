"""Unpacks the files of a database from a base backup, each compared with its checksum in PostgreSQL's manifest."""

import hashlib
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from billfold.backup.folder import MANIFEST
from billfold.cli.context import CliError

StepProgress = Callable[[str, int, int], None]
"""Called with what is being done, how far it is, and how far it goes (bytes; 0 of 0 where nobody knows)."""
_CHECKSUM_BEGINS = b'"Manifest-Checksum"'
_EARLIER = "Restore an earlier one: --backup LABEL; `billfold backups DIR` lists them."


class _File(msgspec.Struct, rename="pascal"):
    checksum: str
    path: str | None = None
    encoded_path: str | None = msgspec.field(name="Encoded-Path", default=None)


class _Manifest(msgspec.Struct):
    files: list[_File] = msgspec.field(name="Files")
    checksum: str = msgspec.field(name="Manifest-Checksum")


def unpack_database(source: Path, data_dir: Path, progress: StepProgress) -> None:
    """Unpack the database of a backup with the log that makes it whole. Raises CliError for a damaged one, OSError."""
    try:
        expected = _read_manifest(source / MANIFEST)
        data_dir.mkdir(mode=0o700)
        _unpack(source / "base.tar.gz", data_dir, expected, progress)
        if expected:
            raise _damaged(f"{next(iter(expected))} is missing")
        _unpack(source / "pg_wal.tar.gz", data_dir / "pg_wal", {}, progress)
    except (tarfile.TarError, EOFError, zlib.error, msgspec.MsgspecError) as error:
        raise _damaged(str(error)) from error
    except FileNotFoundError as error:
        raise _damaged(f"{error.filename} is missing") from error


def _read_manifest(path: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by its path."""
    raw = path.read_bytes()
    manifest = msgspec.json.decode(raw, type=_Manifest)
    if hashlib.sha256(raw[: raw.index(_CHECKSUM_BEGINS)]).hexdigest() != manifest.checksum:
        raise _damaged(f"{MANIFEST} was altered")
    return {each.path or bytes.fromhex(each.encoded_path or "").decode(): each.checksum for each in manifest.files}


def _unpack(archive: Path, target: Path, expected: dict[str, str], progress: StepProgress) -> None:
    """Unpack what lies in the folder and nothing beside it; files that are found leave `expected`."""
    size = archive.stat().st_size
    with archive.open("rb") as raw, tarfile.open(fileobj=raw, mode="r:gz") as tar:
        for member in tar:
            tar.extract(member, target, filter="data")
            checksum = expected.pop(member.name, None)
            if checksum is not None:
                with (target / member.name).open("rb") as file:
                    if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                        raise _damaged(f"{member.name} is not as it was written")
            progress(f"Unpacking {archive.name.partition('.')[0]}", raw.tell(), size)


def _damaged(what: str) -> CliError:
    return CliError(f"The backup is damaged: {what}.", _EARLIER)
