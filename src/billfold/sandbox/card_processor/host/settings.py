"""Settings of the host, in variables of its own: CARD_PROCESSOR_*. It reads none of the bank's."""

import secrets
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from billfold.cli.context import CliError
from billfold.sandbox.card_processor.host.messages import LengthPrefix, MacAlgorithm
from billfold.sandbox.line_process import kept_file, write_private

PREFIX: Final = "CARD_PROCESSOR_"
DEFAULT_PORT: Final = 8583
_FILE: Final = "host.json"
_KEY_BYTES: Final = {"mac_key": 32, "pin_key": 16}

Key16 = Annotated[str, Meta(pattern=r"^[0-9A-Fa-f]{32}\Z")]
Key32 = Annotated[str, Meta(pattern=r"^[0-9A-Fa-f]{64}\Z")]


class HostOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of an operator."""

    port: Annotated[int, Meta(ge=1, le=65_535)] | None = None
    """The port; if unset, 8583 or, if that is taken, a free one."""
    length_prefix: LengthPrefix = LengthPrefix.TWO_BYTES
    mac_algorithm: MacAlgorithm = MacAlgorithm.HMAC
    mac_required: bool | None = None
    """True if messages without a MAC are refused; if unset, they are refused unless only this machine can send them.

    A MAC that is present is always checked.
    """
    mac_key: Key32 | None = None
    """Hexadecimal digits; if unset, a key is created and kept. The same applies to the next."""
    pin_key: Key16 | None = None
    stand_in_cents: Annotated[int, Meta(ge=0, le=100_000_00)] = 0
    """Cents approved per card and day while the bank does not answer. Zero: nothing."""


class HostSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The effective settings of a host."""

    mac_required: bool
    bank_url: str
    bank_address: str
    """The address on which the bank listens, under whatever name."""
    bank_key: str
    """The key that signs messages to the bank: hexadecimal digits."""
    trusted_ca: str | None
    options: HostOptions


def read_options(environ: Mapping[str, str], folder: Path) -> HostOptions:
    """Return the options of an environment, with the keys stored in the folder. Raises CliError."""
    given = {
        name.removeprefix(PREFIX).lower(): value.strip()
        for name, value in environ.items()
        if name.startswith(PREFIX) and value.strip()
    }
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    kept = {
        name: kept_file(folder / f"network_{name}", partial(_drawn, size)).decode() for name, size in _KEY_BYTES.items()
    }
    try:
        return msgspec.convert(kept | given, HostOptions, strict=False)
    except msgspec.ValidationError as error:
        next_step = f"Correct the {PREFIX}* variables; docs/guides/card_network.md lists them."
        raise CliError(f"{PREFIX}*: {error}", next_step) from None


def _drawn(size: int) -> bytes:
    return secrets.token_hex(size).encode()


def write_settings(folder: Path, settings: HostSettings) -> None:
    """Write the settings for the process of the host, readable by nobody else."""
    write_private(folder / _FILE, msgspec.json.encode(settings))


def read_settings(folder: Path) -> HostSettings:
    """Return the settings that `write_settings` wrote."""
    return msgspec.json.decode((folder / _FILE).read_bytes(), type=HostSettings)
