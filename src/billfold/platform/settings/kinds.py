"""Kinds of settings: each parses the text of an environment variable.

A kind raises ValueError for invalid text; the valid values are described once, in `expected`.
"""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, time
from email.utils import getaddresses
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from billfold.platform.dates import require_aware
from billfold.platform.settings.usage_limits import parse_limit

T = TypeVar("T")
Default = TypeVar("Default")
Network = IPv4Network | IPv6Network

_SECRET_KEY_BYTES = 32
_LABEL_CHARS_MAX = 63
_DISTINCT_BYTES_MIN = 12
_SEED_BYTES_MAX = 64
NO_ADAPTER = "none"
"""The value of an adapter that the bank does not have: its operations are refused."""
FILES = "files"
"""The custodian whose messages are exchanged as files in the folder of the rails."""
PLAID = "plaid"
"""The linking provider that comes with Billfold."""
_DEALER = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_MASTER_KEY = re.compile(r"file|(aws-kms|vault-transit):[A-Za-z0-9/_.:=@-]{1,2000}")
_BIC = re.compile(r"[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX_PART = re.compile(r"(?!\.+$)[A-Za-z0-9._-]{1,100}")
THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}
_ABA_DIGITS = 9
_CATEGORY_DIGITS = 4
_ABA_WEIGHTS = (3, 7, 1) * 3
_WEAK_PATTERNS = (b"change", b"default", b"secret", b"example", b"password", b"0123456789", b"abcdef")


@dataclass(frozen=True, slots=True)
class SettingType(Generic[T]):
    """A parser of a setting, and the description of valid values."""

    expected: str
    read: Callable[[str], T]

    def read_line(self, raw: str) -> T:
        """Read a setting, which is one line: later lines in a secret's file are ignored."""
        return self.read(_require(raw, raw.isprintable()))


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of a setting besides its type and default."""

    kind: SettingType[Any]
    meaning: str
    secret: bool = False


def setting(kind: SettingType[T], meaning: str, default: Default, *, secret: bool = False) -> T | Default:
    """Declare a setting as the field of a dataclass."""
    declared: Any = field(default=default, repr=not secret, metadata={"setting": Setting(kind, meaning, secret)})
    return declared  # type: ignore[no-any-return]


def text(expected: str = "some text", *, max_length: int = 200) -> SettingType[str]:
    """Return the kind for any text up to a length."""

    def read(raw: str) -> str:
        return _require(raw, len(raw) <= max_length)

    return SettingType(f"{expected} of at most {max_length} characters", read)


def integer(minimum: int, maximum: int, unit: str = "") -> SettingType[int]:
    """Return the kind for a whole number between two bounds, both included."""

    def read(raw: str) -> int:
        number = int(_require(raw, raw.isascii() and raw.isdigit()))
        return _require(number, minimum <= number <= maximum)

    return SettingType(f"a whole number from {minimum} to {maximum}{unit and ' ' + unit}", read)


def choice(*choices: str, normalize: Callable[[str], str] = str.lower) -> SettingType[str]:
    """Return the kind for one of a few words, in any capitalization."""

    def read(raw: str) -> str:
        return _require(normalize(raw), normalize(raw) in choices)

    return SettingType("one of " + ", ".join(choices), read)


def list_of(item: SettingType[T]) -> SettingType[tuple[T, ...]]:
    """Return the kind for comma-separated items; spaces around them are ignored."""

    def read(raw: str) -> tuple[T, ...]:
        return tuple(item.read(part.strip()) for part in raw.split(",") if part.strip())

    return SettingType(f"a list between commas, each {item.expected}", read)


def _require(value: T, accepted: bool) -> T:  # noqa: FBT001 - the condition is the point of it
    if not accepted:
        raise ValueError(value)
    return value


def _boolean(raw: str) -> bool:
    answers = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    return answers[_require(raw.lower(), raw.lower() in answers)]


def _database(raw: str) -> str:
    hosts = urlsplit(raw).netloc.rpartition("@")[2].split(",")
    _ = [urlsplit(f"//{host}").port for host in hosts]
    return _require(raw, raw.startswith(("postgresql://", "postgres://")))


def _https_origin(raw: str) -> str:
    parts = urlsplit(raw)
    has_no_path = parts._replace(scheme="", netloc="").geturl().strip("/") == ""
    ok = parts.scheme == "https" and parts.username is None and has_no_path
    _ = parts.port, _host(parts.hostname or "")
    return _require(raw.lower().rstrip("/"), ok)


def _provider_origin(raw: str) -> str:
    is_here = urlsplit(raw).scheme == "http" and urlsplit(raw).hostname in THIS_MACHINE
    origin = _https_origin(f"https{raw.removeprefix('http')}" if is_here else raw)
    return f"http{origin.removeprefix('https')}" if is_here else origin


def _object_prefix(raw: str) -> str:
    prefix = raw.strip("/")
    return _require(prefix, all(map(_PREFIX_PART.fullmatch, prefix.split("/"))))


def _bucket(raw: str) -> str:
    return _require(raw, _BUCKET.fullmatch(raw) is not None and ".." not in raw)


def _adapter(raw: str) -> str:
    words = raw.replace(":", ".").split(".")
    is_named = raw.count(":") == 1 and all(map(str.isidentifier, words)) and words[0] != "billfold"
    return _require(raw, is_named or raw == NO_ADAPTER)


def _custodian(raw: str) -> str:
    return raw if raw == FILES else _adapter(raw)


def _linking_provider(raw: str) -> str:
    return raw if raw == PLAID else _adapter(raw)


def _master_key(raw: str) -> str:
    return _require(raw, _MASTER_KEY.fullmatch(raw) is not None)


def _bic(raw: str) -> str:
    return _require(raw.upper(), _BIC.fullmatch(raw.upper()) is not None)


def _mail_address(raw: str) -> str:
    ((_, address),) = getaddresses([raw])
    local, _, domain = address.rpartition("@")
    is_address = local != "" and " " not in local and all(map(is_dns_label, domain.split(".")))
    return _require(raw, address.isascii() and is_address)


def _mail_server(raw: str) -> str:
    parts = urlsplit(raw)
    _ = parts.port, _host(parts.hostname or "")
    return _require(raw, parts.scheme in {"smtp", "smtps"})


def _host(raw: str) -> str:
    try:
        return str(ip_address(raw))
    except ValueError:
        return _domain(raw)


def _domain(raw: str) -> str:
    name = raw.lower().rstrip(".")
    return _require(name, name.isascii() and all(map(is_dns_label, name.split("."))))


def _dealer(raw: str) -> str:
    return _require(raw, _DEALER.fullmatch(raw) is not None)


def _market_source(raw: str) -> str:
    """Return an absolute path, or an address of https without a user, a password or a fragment."""
    parts = urlsplit(raw)
    _ = parts.port
    is_address = parts.scheme == "https" and parts.hostname and "@" not in parts.netloc and not parts.fragment
    return _require(raw, bool(is_address) or raw.startswith("/"))


def _instant(raw: str) -> datetime:
    return require_aware(datetime.fromisoformat(raw))


def _time_of_day(raw: str) -> time:
    hour, minute = raw.split(":")
    return time(int(hour), int(minute))


def _merchant_category(raw: str) -> str:
    return _require(raw, len(raw) == _CATEGORY_DIGITS and raw.isascii() and raw.isdigit())


def _routing_number(raw: str) -> str:
    ok = len(raw) == _ABA_DIGITS and raw.isascii() and raw.isdigit() and int(raw) > 0
    digits = map(int, _require(raw, ok))
    total = sum(weight * digit for weight, digit in zip(_ABA_WEIGHTS, digits, strict=True))
    return _require(raw, total % 10 == 0)


def _seed(raw: str) -> bytes:
    return _require(raw.encode(), len(raw.encode()) <= _SEED_BYTES_MAX)


def _secret_key(raw: str) -> bytes:
    try:
        key = base64.b64decode(raw, validate=True)
    except binascii.Error as error:
        raise ValueError(raw) from error
    return _require(key, len(key) == _SECRET_KEY_BYTES and is_hard_to_guess(key))


def is_dns_label(text: str) -> bool:
    """Tell whether a text is a valid ASCII label of a host name; hyphens only inside."""
    return (
        0 < len(text) <= _LABEL_CHARS_MAX
        and text.replace("-", "a").isalnum()
        and not text.startswith("-")
        and not text.endswith("-")
    )


def is_hard_to_guess(key: bytes) -> bool:
    """Tell whether a key looks random: no repeated pattern, no sequence, no placeholder word.

    32 random bytes practically never have fewer than 12 different ones.
    """
    steps = {(after - before) % 256 for before, after in pairwise(key)}
    return (
        len(set(key)) >= _DISTINCT_BYTES_MIN
        and len(steps) > 1
        and key[: len(key) // 2] != key[len(key) // 2 :]
        and not any(word in key.lower() for word in _WEAK_PATTERNS)
    )


BOOLEAN = SettingType("true or false", _boolean)
DATABASE = SettingType("an address like postgresql://user:password@host:5432/name", _database)
ADAPTER = SettingType("`package.module:name` of what you installed, called without arguments, or none", _adapter)
CUSTODIAN = SettingType(f"{FILES}, or {ADAPTER.expected}", _custodian)
LINKING_PROVIDER = SettingType(f"{PLAID}, or {ADAPTER.expected}", _linking_provider)
MASTER_KEY = SettingType("file, aws-kms:<key id, ARN or alias> or vault-transit:<mount>/<key>", _master_key)
BIC = SettingType("a BIC of 8 or 11 characters", _bic)
MAIL_ADDRESS = SettingType("an address like no-reply@bank.example or Bank <no-reply@bank.example>", _mail_address)
MAIL_SERVER = SettingType("an address like smtps://user:password@mail.example.com:465", _mail_server)
DOMAIN = SettingType("a host name", _domain)
HOST = SettingType("an IP address or a host name", _host)
HTTPS_ORIGIN = SettingType("an address like https://auth.example.com, without a path", _https_origin)
S3_ENDPOINT = SettingType(
    "an address like https://s3.us-east-1.amazonaws.com; http on this machine only", _provider_origin
)
LINKING_URL = SettingType("an address like https://production.plaid.com; http on this machine only", _provider_origin)
BUCKET = SettingType("the name of a bucket: 3 to 63 lower-case letters, digits, points and hyphens", _bucket)
OBJECT_PREFIX = SettingType(
    "names between slashes, of letters, digits, points, hyphens and underscores", _object_prefix
)
DEALER = SettingType("a name of up to 32 lower-case letters, digits and hyphens", _dealer)
MARKET_SOURCE = SettingType("the path of a folder, or an address like https://home.treasury.gov/...", _market_source)
PATH = SettingType("a path", Path)
INSTANT = SettingType("a date and time with its offset, like 2025-06-02T09:00:00-04:00", _instant)
TIME_OF_DAY = SettingType("a time of day in New York, like 16:00", _time_of_day)
ROUTING_NUMBER = SettingType("an ABA routing number: nine digits, the last a check digit", _routing_number)
MERCHANT_CATEGORY = SettingType("a merchant category code: four digits", _merchant_category)
NETWORK: SettingType[Network] = SettingType("an address or a network like 10.0.0.0/8", ip_network)
SEED = SettingType(f"a text of at most {_SEED_BYTES_MAX} bytes", _seed)
SECRET_KEY = SettingType("32 random bytes in base64 (make them with: openssl rand -base64 32)", _secret_key)
USAGE_LIMIT = SettingType("a limit and a number, like cards.customer=5", parse_limit)
