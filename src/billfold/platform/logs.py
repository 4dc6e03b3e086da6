"""The log: one JSON object per line on standard error, in which no secret ever appears.

Whatever carries a secret's name is left out, whatever looks like one is blotted out, wherever
it stands. Libraries that log the usual way come out the same way.
"""

import logging
import re
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from typing import TextIO

import msgspec
import structlog

from billfold.platform.clock import wall_now
from billfold.platform.dates import iso_z

REDACTED = "[hidden]"
_DEPTH_MAX = 8
# They tell of every call: its whole address at INFO, its headers at DEBUG.
_NOISY_LOGGERS = ("httpx", "httpcore")
_SECRET_NAMES = re.compile(
    r"passw|secret|token|assertion|authorization|cookie|signature|dpop|credential"
    r"|api_?key|private_?key|encryption_?key|(^|_)(pan|cvv|cvc|pin|ssn|otp|kek|seed)(_|$)"
    r"|card_?number|identification_number|tax_?id|date_of_birth"
)
_CREDENTIAL = re.compile(r"\b(Bearer|DPoP|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_JWT = re.compile(r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*")
_URL_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s@]+@")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END|\Z)", re.DOTALL)
_SSN = re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)")
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")


def configure_logging(level: str = "INFO", *, stream: TextIO | None = None) -> None:
    """Send every log of this process, structured or plain, to standard error from `level` on."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _add_timestamp,
    ]
    finish: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        redact,
        structlog.processors.JSONRenderer(serializer=_to_json),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()], processors=finish
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return the logger of a module: `logger(__name__)`."""
    bound: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return bound


def redact(_logger: object, _method: str, event: MutableMapping[str, object]) -> MutableMapping[str, object]:
    """Blot every secret out of an event, at any depth; the event itself is not changed."""
    return {key: _redacted(key, value, _DEPTH_MAX) for key, value in event.items()}


def redact_text(text: str) -> str:
    """Return a text with what looks like a credential, a private key, a card or an SSN hidden."""
    text = _CREDENTIAL.sub(rf"\1 {REDACTED}", text)
    text = _JWT.sub(REDACTED, text)
    text = _PRIVATE_KEY.sub(REDACTED, text)
    text = _URL_PASSWORD.sub(rf"\1{REDACTED}@", text)
    text = _SSN.sub(REDACTED, text)
    return _CARD.sub(lambda match: REDACTED if _is_card(match[0]) else match[0], text)


def _redacted(key: str, value: object, depth: int) -> object:
    if value is None or isinstance(value, bool | float):
        return value
    name = key.lower().replace("-", "_")
    if name != "token_type" and _SECRET_NAMES.search(name):
        return REDACTED
    return _redacted_value(key, value, depth)


def _redacted_value(key: str, value: object, depth: int) -> object:
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return _redacted_items(key, value, depth - 1) if depth else "[...]"
    if isinstance(value, int):
        return REDACTED if _is_card(str(value)) else value
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    return redact_text(str(value))


def _redacted_items(key: str, value: Mapping[object, object] | Iterable[object], depth: int) -> object:
    if isinstance(value, Mapping):
        return {redact_text(str(k)): _redacted(str(k), each, depth) for k, each in value.items()}
    return [_redacted(key, each, depth) for each in value]


def _is_card(text: str) -> bool:
    """Tell whether a text has the length and the check digit (Luhn) of a card number."""
    digits = [int(char) for char in text if char.isdigit()]
    if not 13 <= len(digits) <= 19:  # noqa: PLR2004 - the lengths ISO/IEC 7812 allows
        return False
    odd, even = digits[-1::-2], digits[-2::-2]
    return (sum(odd) + sum(sum(divmod(2 * digit, 10)) for digit in even)) % 10 == 0


def _add_timestamp(_logger: object, _method: str, event: MutableMapping[str, object]) -> MutableMapping[str, object]:
    event["at"] = iso_z(wall_now())
    return event


def _to_json(event: object, **_: object) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()
