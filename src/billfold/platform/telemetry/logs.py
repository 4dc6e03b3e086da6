"""The log: one record per line on standard error, without any secrets.

A record has the fields of the OpenTelemetry log data model; the arguments of a call are its attributes. Fields with
the name of a secret are left out, texts that look like one are masked, at any depth. Records of libraries,
warnings and printed texts have the same form.
"""

import io
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping, MutableMapping
from enum import StrEnum
from types import TracebackType
from typing import TextIO

import msgspec
import structlog
from typing_extensions import override

from billfold import __version__
from billfold.platform.clock import wall_now
from billfold.platform.dates import iso_z
from billfold.platform.telemetry.tracing import tracing
from billfold.platform.text import REDACTED, is_card, redact_text

_DEPTH_MAX = 8
# They log every call: its whole address at INFO, its headers at DEBUG.
_NOISY_LOGGERS = ("httpx", "httpcore")
_SECRET_NAMES = re.compile(
    r"passw|secret|token|assertion|authorization|cookie|signature|dpop|credential"
    r"|api_?key|private_?key|encryption_?key|(^|_)(pan|cvv|cvc|pin|ssn|otp|kek|seed)(_|$)"
    r"|card_?number|identification_number|tax_?id|date_of_birth"
)
_SEVERITY_NUMBERS = {"debug": 5, "info": 9, "warning": 13, "error": 17, "critical": 21}
_SEVERITY_TEXTS = {"warning": "WARN", "critical": "FATAL"}
_TRACE_FIELDS = ("trace_id", "span_id", "trace_flags")
_ATTRIBUTE_NAMES = {
    "error": "error.message",
    "method": "http.request.method",
    "path": "url.path",
    "status": "http.response.status_code",
}
"""Names that follow the semantic conventions, by the short names used in calls."""


class LogFormat(StrEnum):
    """The format of log records."""

    JSON = "json"
    TEXT = "text"


def configure_logging(
    level: str = "INFO", log_format: LogFormat = LogFormat.JSON, *, stream: TextIO | None = None
) -> None:
    """Send every log of this process, structured or plain, to standard error from `level` on."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
    ]
    finish: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        _add_exception,
        redact,
        _as_record,
        _to_json if log_format is LogFormat.JSON else _to_text,
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
    handler = logging.StreamHandler(stream or sys.__stderr__)
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


def log_as_configured(environ: Mapping[str, str]) -> None:
    """Configure the log from BILLFOLD_LOG_LEVEL and BILLFOLD_LOG_FORMAT, even if other settings are wrong.

    With a format, all output of this process becomes a record: prints, warnings, fatal errors.
    """
    level = environ.get("BILLFOLD_LOG_LEVEL", "").strip().upper()
    level = level if level in logging.getLevelNamesMapping() else "INFO"
    log_format = environ.get("BILLFOLD_LOG_FORMAT", "").strip().lower()
    if log_format not in set(LogFormat):
        configure_logging(level)
        return
    configure_logging(level, LogFormat(log_format))
    _log_other_output()


def _log_other_output() -> None:
    logging.captureWarnings(True)  # noqa: FBT003 - the library's
    sys.excepthook = _log_fatal_error
    threading.excepthook = lambda failed: _log_fatal_error(
        failed.exc_type, failed.exc_value or failed.exc_type(), failed.exc_traceback
    )
    sys.stdout, sys.stderr = _LoggedStream(logging.INFO), _LoggedStream(logging.WARNING)


class _LoggedStream(io.TextIOBase):
    """Standard output or error whose texts become records, one for each print."""

    encoding = "utf-8"

    def __init__(self, severity: int) -> None:
        super().__init__()
        self._severity = severity
        self._line_begun = ""

    @override
    def write(self, text: str) -> int:
        """Log complete lines only: a line is printed in parts."""
        whole, ended, rest = (self._line_begun + text).rpartition("\n")
        self._line_begun = rest
        if ended and whole.strip():
            logging.getLogger("billfold.output").log(self._severity, "%s", whole.strip())
        return len(text)

    @override
    def writable(self) -> bool:
        return True


def _log_fatal_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("billfold").critical("process_failed", exc_info=(kind, error, trace))


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return the logger of a module: `logger(__name__)`."""
    bound: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return bound


def redact(_logger: object, _method: str, event: MutableMapping[str, object]) -> MutableMapping[str, object]:
    """Mask every secret in an event, at any depth; the event itself is not changed."""
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


def _add_exception(_logger: object, _method: str, event: MutableMapping[str, object]) -> MutableMapping[str, object]:
    """Put an exception into the attributes of the conventions, its trace as one text."""
    found = event.pop("exc_info", None)
    error = sys.exc_info()[1] if found is True else found[1] if isinstance(found, tuple) else found
    if isinstance(error, BaseException):
        event["exception.type"] = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
        event["exception.message"] = str(error)
        event["exception.stacktrace"] = "".join(traceback.format_exception(error))
    return event


def _as_record(_logger: object, _method: str, event: MutableMapping[str, object]) -> MutableMapping[str, object]:
    """Return the fields of the log data model."""
    level = str(event.pop("level", "info"))
    record: dict[str, object] = {
        "timestamp": iso_z(wall_now()),
        "severity_text": _SEVERITY_TEXTS.get(level, level.upper()),
        "severity_number": _SEVERITY_NUMBERS.get(level, 9),
        "body": event.pop("event", ""),
        "scope": {"name": event.pop("logger", "")},
        "resource": {"service.name": "billfold", "service.version": __version__, "process.pid": os.getpid()},
    }
    for name, found in tracing.current_ids().items():
        event.setdefault(name, found)
    record.update({name: event.pop(name) for name in _TRACE_FIELDS if name in event})
    if attributes := {_ATTRIBUTE_NAMES.get(name, name): value for name, value in event.items()}:
        record["attributes"] = attributes
    return record


def _to_json(_logger: object, _method: str, record: MutableMapping[str, object]) -> str:
    return msgspec.json.encode(record, enc_hook=str).decode()


def _to_text(_logger: object, _method: str, record: MutableMapping[str, object]) -> str:
    """Return a record in human-readable form: a line, below it the trace of an exception."""
    scope, found = record["scope"], record.get("attributes")
    attributes = dict(found) if isinstance(found, dict) else {}
    trace = str(attributes.pop("exception.stacktrace", "")).rstrip()
    more = {**{name: record[name] for name in _TRACE_FIELDS if name in record}, **attributes}
    shown = [f"{name}={msgspec.json.encode(value, enc_hook=str).decode()}" for name, value in more.items()]
    name = scope["name"] if isinstance(scope, dict) else ""
    line = " ".join(
        [str(record["timestamp"]), f"{record['severity_text']:<5}", f"{name}:", str(record["body"]), *shown]
    )
    return f"{line}\n{trace}" if trace else line
