"""What every file store has in common: how a file is named, and what proves it unchanged."""

import hashlib
import secrets

from billfold.documents.ports import StoredFile, StoredFileMissing

_KEY_BYTES = 20
_KEY = frozenset("0123456789abcdef")


def new_file(content: bytes) -> StoredFile:
    """Return what is known of a file that is going to be kept, under a new random name."""
    return StoredFile(
        key=secrets.token_hex(_KEY_BYTES), size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest()
    )


def is_key(text: str) -> bool:
    """Tell whether a text is the name of a file in a store."""
    return len(text) == 2 * _KEY_BYTES and _KEY.issuperset(text)


def check_key(key: str) -> None:
    """Raise StoredFileMissing for what is no name of a file."""
    if not is_key(key):
        raise StoredFileMissing("not the name of a file")


def check_unaltered(file: StoredFile, content: bytes) -> None:
    """Raise StoredFileMissing for other bytes than those that were kept."""
    if len(content) != file.size_bytes or hashlib.sha256(content).hexdigest() != file.sha256:
        raise altered(file)


def missing(file: StoredFile) -> StoredFileMissing:
    """Return the refusal of a file that the store does not have."""
    return StoredFileMissing(f"no file {file.key}")


def altered(file: StoredFile) -> StoredFileMissing:
    """Return the refusal of a file that is another than was kept."""
    return StoredFileMissing(f"file {file.key} is not what was kept")
