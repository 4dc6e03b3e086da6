"""Validates settings: each one alone, and all of them together."""

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time
from pathlib import Path
from typing import Any

from billfold.platform.clock import EARLIEST, LATEST
from billfold.platform.settings.kinds import PLAID, Setting

PREFIX = "BILLFOLD_"
FILE_SUFFIX = "_FILE"
MASK = "[hidden]"
WIRE_HOURS = {"wires_open": time(8), "wire_cutoff": time(16), "international_wire_cutoff": time(15)}
_SEED_BYTES_MIN = 16
_S3_KEYS = ("files_s3_access_key", "files_s3_secret_key")
_ONLY_WITH_A_BUCKET = (
    *("files_s3_endpoint", "files_s3_credentials", *_S3_KEYS),
    *("files_s3_region", "files_s3_prefix", "files_s3_trusted_ca"),
)
_WITH_A_DATABASE = {"database_owner_url", "database_pooler_url", "database_replica_url"}
_WITH_PLAID = ("linking_client_id", "linking_secret")
_ONLY_WITH_PLAID = ("linking_url", *_WITH_PLAID)
_REQUIRED_IN_PRODUCTION = (
    *("database_url", "encryption_key", "seed", "domain", "mail_url", "mail_from"),
    *("custodian", "linking_provider", "identity_check"),
    *("bank_name", "bank_routing_number", "bank_bic", "bank_address", "bank_phone"),
)
_SANDBOX_ONLY = (
    *("clock_start", "execute_transfers", "sandbox_kyb_delay"),
    *("webhook_allowed_networks", "webhook_trusted_ca"),
)


@dataclass(frozen=True, slots=True)
class SettingMistake:
    """One wrong setting: its variable, its value, and the expected value."""

    name: str
    value: str | None
    expected: str
    unknown: bool = False

    @property
    def sentence(self) -> str:
        """Return the error in one line."""
        if self.unknown:
            return f"{self.name} is not a setting; expected {self.expected}"
        now = "is not set" if self.value is None else f"is {self.value!r}"
        return f"{self.name} {now}; expected {self.expected}"


class SettingsError(Exception):
    """The settings are wrong. Holds every error, secrets hidden."""

    def __init__(self, mistakes: list[SettingMistake]) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(mistake.sentence for mistake in mistakes))


def variable_name(name: str) -> str:
    """Return the variable that sets a field: `http_port` is BILLFOLD_HTTP_PORT."""
    return PREFIX + name.upper()


def format_setting(value: object) -> str:
    """Return a value in the form that people write."""
    if value is None or value == ():
        return "not set"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, time):
        return f"{value:%H:%M}"
    return value.isoformat() if isinstance(value, datetime) else str(value)


def find_conflicts(
    values: Mapping[str, Any], declared: Mapping[str, Setting], reported: set[str]
) -> list[SettingMistake]:
    """Return errors in the combination of settings, leaving out those already reported."""
    found = _tls_mistakes(values) + _file_store_mistakes(values) + _linking_mistakes(values)
    if values.get("environment") == "production":
        found += _production_mistakes(values, declared)
    if "database_url" not in values and _WITH_A_DATABASE & values.keys():
        found.append(SettingMistake(variable_name("database_url"), None, "the address for the application itself"))
    if values.get("trusted_proxies") and not values.get("behind_proxy"):
        found.append(SettingMistake(variable_name("behind_proxy"), "false", "true, as proxies are trusted"))
    opens, *ends = (values.get(name, usual) for name, usual in WIRE_HOURS.items())
    found += [
        SettingMistake(variable_name(name), format_setting(at), "later than BILLFOLD_WIRES_OPEN, 18:45 at the latest")
        for name, at in zip(list(WIRE_HOURS)[1:], ends, strict=True)
        if not opens < at <= time(18, 45)
    ]
    cutoff, start = values.get("ach_cutoff", time(12)), values.get("clock_start", EARLIEST)
    if not time(0) < cutoff <= time(16, 45):
        found.append(SettingMistake(variable_name("ach_cutoff"), format_setting(cutoff), "16:45 at the latest"))
    if not EARLIEST <= start < LATEST:
        expected = f"from {EARLIEST.isoformat()} on, where the packaged rates begin, and before {LATEST.isoformat()}"
        found.append(SettingMistake(variable_name("clock_start"), format_setting(start), expected))
    if values.get("port", 8443) == values.get("http_port", 8080):
        found.append(SettingMistake(variable_name("http_port"), str(values.get("http_port", 8080)), "another port"))
    found += _price_mistakes(values)
    largest = values.get("desk_max_face", 50_000_000)
    if largest < 2 * values.get("desk_min_face", 100_000):
        found.append(SettingMistake(variable_name("desk_max_face"), str(largest), "at least twice the smallest order"))
    found += _session_mistakes(values)
    return [mistake for mistake in found if not {mistake.name, mistake.name + FILE_SUFFIX} & reported]


def _session_mistakes(values: Mapping[str, Any]) -> list[SettingMistake]:
    names = [each.dealer for each in values.get("dealer_sessions", ())]
    dealers = values.get("dealers", ())
    if len(set(names)) == len(names) and set(names) <= set(dealers):
        return []
    expected = f"one session at most for each of {variable_name('dealers')}"
    return [SettingMistake(variable_name("dealer_sessions"), format_setting(tuple(names)), expected)]


def _price_mistakes(values: Mapping[str, Any]) -> list[SettingMistake]:
    age, interval = values.get("max_price_age"), values.get("market_fetch_seconds", 900)
    if age is None or not values.get("market_sources") or age >= 2 * interval:
        return []
    expected = f"at least twice {variable_name('market_fetch_seconds')}, {interval}"
    return [SettingMistake(variable_name("max_price_age"), str(age), expected)]


def _tls_mistakes(values: Mapping[str, Any]) -> list[SettingMistake]:
    files = ("tls_certificate", "tls_key")
    provided = [name for name in files if values.get(name)]
    found = [
        SettingMistake(variable_name(name), str(values[name]), "a file that is there")
        for name in provided
        if not values[name].is_file()
    ]
    needed = values.get("environment") == "production" and not values.get("behind_proxy")
    if provided or needed:
        found += [
            SettingMistake(variable_name(name), None, "a file: a certificate and its key go together")
            for name in files
            if name not in provided
        ]
    return found


def _file_store_mistakes(values: Mapping[str, Any]) -> list[SettingMistake]:
    bucket, trusted = variable_name("files_s3_bucket"), values.get("files_s3_trusted_ca")
    if "files_s3_bucket" not in values:
        others = [variable_name(name) for name in _ONLY_WITH_A_BUCKET if name in values]
        return [SettingMistake(bucket, None, f"to be set with {', '.join(others)}")] if others else []
    is_keyless = values.get("files_s3_credentials") == "aws"
    found = [
        SettingMistake(variable_name(name), None, f"to be set with {bucket}")
        for name in ("files_s3_endpoint", *(() if is_keyless else _S3_KEYS))
        if name not in values
    ]
    found += [
        SettingMistake(variable_name(name), MASK, f"nothing, since {variable_name('files_s3_credentials')} is aws")
        for name in _S3_KEYS
        if is_keyless and name in values
    ]
    if "files_dir" in values:
        expected = f"nothing, since {bucket} is set"
        found.append(SettingMistake(variable_name("files_dir"), format_setting(values["files_dir"]), expected))
    if trusted is not None and not trusted.is_file():
        found.append(SettingMistake(variable_name("files_s3_trusted_ca"), str(trusted), "a file that is there"))
    return found


def _linking_mistakes(values: Mapping[str, Any]) -> list[SettingMistake]:
    provider, chosen = variable_name("linking_provider"), values.get("linking_provider")
    if chosen == PLAID:
        return [
            SettingMistake(variable_name(name), None, f"to be set where {provider} is {PLAID}")
            for name in _WITH_PLAID
            if name not in values
        ]
    others = [variable_name(name) for name in _ONLY_WITH_PLAID if name in values]
    return [SettingMistake(provider, chosen, f"{PLAID}, as {', '.join(others)} is set")] if others else []


def _production_mistakes(values: Mapping[str, Any], declared: Mapping[str, Setting]) -> list[SettingMistake]:
    found = [
        SettingMistake(variable_name(name), None, f"to be set in production: {declared[name].kind.expected}")
        for name in _REQUIRED_IN_PRODUCTION
        if name not in values
    ]
    found += [
        SettingMistake(variable_name(name), format_setting(values[name]), "not to be set in production")
        for name in _SANDBOX_ONLY
        if name in values
    ]
    if len(values.get("seed", bytes(_SEED_BYTES_MIN))) < _SEED_BYTES_MIN:
        expected = f"{_SEED_BYTES_MIN} bytes or more in production"
        found.append(SettingMistake(variable_name("seed"), MASK, expected))
    if values.get("custodian", "none") != "none" and "custodian_account" not in values:
        found.append(SettingMistake(variable_name("custodian_account"), None, "the account that its messages name"))
    return found


_GROUP_OR_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_setting(
    name: str, declared: Setting, provided: Mapping[str, str], values: dict[str, Any], mistakes: list[SettingMistake]
) -> None:
    """Read one setting into `values`, or its error into `mistakes`."""
    variable = variable_name(name)
    raw = provided.get(variable)
    file_name = provided.get(variable + FILE_SUFFIX) if declared.secret else None
    if raw is not None and file_name is not None:
        expected = f"nothing, since {variable}{FILE_SUFFIX} is set"
        mistakes.append(SettingMistake(variable, MASK, expected))
        return
    if file_name is not None:
        raw = _secret_file(variable + FILE_SUFFIX, Path(file_name), mistakes)
    if raw is None:
        return
    try:
        values[name] = declared.kind.read_line(raw)
    except ValueError:
        displayed = MASK if declared.secret else raw
        mistakes.append(SettingMistake(variable, displayed, declared.kind.expected))


def _secret_file(variable: str, path: Path, mistakes: list[SettingMistake]) -> str | None:
    try:
        mode, content = path.stat().st_mode, path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        mistakes.append(SettingMistake(variable, str(path), "a file that can be read"))
        return None
    if mode & _GROUP_OR_OTHERS:
        expected = "a file that nobody else can read (chmod 600)"
        mistakes.append(SettingMistake(variable, str(path), expected))
        return None
    return content
