"""What is written down about a backup, beside its files."""

from datetime import datetime

import msgspec


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """`billfold.json` of a backup. Instants are of the wall clock; the database begins to be whole at `ended_at`."""

    label: str
    began_at: datetime
    ended_at: datetime
    release: str
    schema_version: int
    postgres: int  # the major version
    environment: str
    key_check: str  # hexadecimal: tells whether a key is the bank's, and nothing about it
    has_key: bool  # the key file of a sandbox is among the files
    first_segment: str  # the log of the database is needed from this file on
    size_bytes: int
