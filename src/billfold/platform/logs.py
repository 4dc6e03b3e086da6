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
from billfold.platform.redaction import REDACTED, is_card, redact_text

_DEPTH_MAX = 8
# They tell of every call: its whole address at INFO, its headers at DEBUG.
_NOISY_LOGGERS = ("httpx", "httpcore")
_SECRET_NAMES = re.compile(
    r"passw|secret|token|assertion|authorization|cookie|signature|dpop|credential"
    r"|api_?key|private_?key|encryption_?key|(^|_)(pan|cvv|cvc|pin|ssn|otp|kek|seed)(_|$)"
    r"|card_?number|identification_number|tax_?id|date_of_birth"
)


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
        return REDACTED if is_card(str(value)) else value
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    return redact_text(str(value))


def _redacted_items(key: str, value: Mapping[object, object] | Iterable[object], depth: int) -> object:
    if isinstance(value, Mapping):
        return {redact_text(str(k)): _redacted(str(k), each, depth) for k, each in value.items()}
    return [_redacted(key, each, depth) for each in value]


def _add_timestamp(_logger: object, _method: str, event: MutableMapping[str, object]) -> MutableMapping[str, object]:
    event["at"] = iso_z(wall_now())
    return event


def _to_json(event: object, **_: object) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()
