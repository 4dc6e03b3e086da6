import io
import json
import logging
import os
import subprocess
import sys

import httpx
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from billfold import __version__
from billfold.platform.telemetry import logs
from billfold.platform.text import redact_text

_CANARY = "canary-5f0c9d"
_CARD = "4111111111111111"


@pytest.fixture
def log_records():
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    stream = io.StringIO()
    logs.configure_logging("INFO", stream=stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers, root.level = handlers, level
    structlog.contextvars.clear_contextvars()
    structlog.reset_defaults()


def test_a_log_event_is_one_line_of_json(log_records):
    logs.logger("billfold.ledger.engine").info("batch committed", commands=3, lines="a\r\nb")

    (line,) = log_records()
    assert line.pop("timestamp").endswith("Z")
    assert line.pop("resource") == {
        "service.name": "billfold",
        "service.version": __version__,
        "process.pid": os.getpid(),
    }
    assert line == {
        "severity_text": "INFO",
        "severity_number": 9,
        "body": "batch committed",
        "scope": {"name": "billfold.ledger.engine"},
        "attributes": {"commands": 3, "lines": "a\r\nb"},
    }


def test_library_logs_use_the_same_format_and_level(log_records):
    logging.getLogger("some.library").warning("sent %s to %s", "Bearer abcdefghij", "x")
    logging.getLogger("some.library").debug("quiet")

    (line,) = log_records()
    assert line["body"] == "sent Bearer [hidden] to x"
    assert line["severity_text"] == "WARN"


def test_bound_context_appears_on_every_log_line(log_records):
    structlog.contextvars.bind_contextvars(trace_id="t-1")

    logs.logger("a").info("one")
    logs.logger("b").info("two")

    assert [line["trace_id"] for line in log_records()] == ["t-1", "t-1"]


@pytest.mark.usefixtures("log_records")
def test_called_urls_are_not_logged():
    stream = io.StringIO()
    logs.configure_logging("DEBUG", stream=stream)
    transport = httpx.MockTransport(lambda _: httpx.Response(200))

    with httpx.Client(transport=transport) as client:
        client.get(f"https://receiver.example/hook?key={_CANARY}")
    logging.getLogger("httpcore.http11").debug("send_request_headers %s", _CANARY)

    assert not stream.getvalue()


def test_an_exception_is_logged_without_its_secrets(log_records):
    try:
        int("postgresql://user:" + _CANARY + "@host/db")
    except ValueError:
        logs.logger("a").exception("failed")

    (line,) = log_records()
    assert _CANARY not in str(line)
    shown = line["attributes"]
    assert shown["exception.type"] == "ValueError"
    assert "'postgresql://user:[hidden]@host/db'" in shown["exception.message"]
    assert shown["exception.stacktrace"].startswith("Traceback (most recent call last):\n")
    assert shown["exception.message"] in shown["exception.stacktrace"]


_WRITES = f"""
import logging, os, sys, threading, warnings
from billfold.platform.telemetry import logs
logs.log_as_configured(os.environ)
logs.logger("a").warning("careful", error="no")
print("printed", "Bearer {_CANARY}")
print("to the other", file=sys.stderr)
warnings.warn("old")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
{{}}["{_CANARY} of Bearer {_CANARY}"]
"""


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_all_process_output_is_structured_log_records(log_format):
    environment = os.environ | {"BILLFOLD_LOG_FORMAT": log_format, "BILLFOLD_LOG_LEVEL": "nonsense"}

    run = subprocess.run([sys.executable, "-c", _WRITES], env=environment, capture_output=True, text=True, check=False)

    assert (run.returncode, run.stdout) == (1, "")
    assert f"Bearer {_CANARY}" not in run.stderr
    if log_format == "text":
        assert 'WARN  a: careful error.message="no"\n' in run.stderr
        assert "\nZeroDivisionError: division by zero\n" in run.stderr
        return
    records = [json.loads(line) for line in run.stderr.splitlines()]
    assert [each["body"] for each in records[:3]] == ["careful", "printed Bearer [hidden]", "to the other"]
    assert "UserWarning: old" in records[3]["body"]
    failed = [each["attributes"]["exception.type"] for each in records[4:] if each["severity_text"] == "FATAL"]
    assert failed == ["ZeroDivisionError", "KeyError"]


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "Authorization",
        "x-service-signature",
        "DPoP",
        "client_assertion",
        "access_token",
        "shared_secret",
        "encrypted_pin",
        "pan",
        "cvv",
        "ssn",
        "Set-Cookie",
        "private_key",
        "identification_number",
        "api-key",
        "seed",
    ],
)
def test_values_with_secret_names_are_redacted_at_any_depth(name):
    event = {"event": "x", name: _CANARY, "in": [{"deep": {name: [_CANARY]}}], "n": {name: 123}}

    shown = json.dumps(logs.redact(None, "info", dict(event)), default=str)

    assert _CANARY not in shown
    assert "123" not in shown


@pytest.mark.parametrize("name", ["company", "spanning", "opinion", "token_type", "panel", "shipping"])
def test_values_with_harmless_names_are_not_redacted(name):
    assert logs.redact(None, "info", {name: "here"}) == {name: "here"}


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {_CANARY}",
        f"DPoP {_CANARY}",
        f"eyJhbGciOiJFUzI1NiJ9.{_CANARY}.{_CANARY}",
        f"token-eyJhbGciOiJFUzI1NiJ9.{_CANARY}.{_CANARY}",
        f"-----BEGIN PRIVATE KEY-----\n{_CANARY}\n-----END PRIVATE KEY-----",
        f"-----BEGIN EC PRIVATE KEY-----\n{_CANARY}",
        f"postgresql://user:{_CANARY}@host/db",
    ],
)
def test_credential_like_text_is_redacted(text):
    assert _CANARY not in redact_text(text)
    assert _CANARY not in str(logs.redact(None, "info", {"event": text}))


@pytest.mark.parametrize(
    "pump",
    ["-eyJ", "eyJ.", "Bearer ", "Basic\t", "://a:", "://", "-----BEGIN ", "PRIVATE KEY", "4111 ", "1-", "123-45-"],
)
@pytest.mark.parametrize("begin", ["", "://a:", "Bearer ", "-----BEGIN "])
def test_redaction_of_hostile_text_takes_linear_time(begin, pump):
    """Searching again from each character would take hours."""
    text = begin + pump * (1024 * 1024 // len(pump))
    assert _CANARY not in redact_text(f"{text} Bearer {_CANARY}")


@pytest.mark.parametrize(
    "number", [_CARD, "4111 1111 1111 1111", "4111-1111-1111-1111", "378282246310005", "123-45-6789"]
)
def test_card_and_social_security_numbers_are_redacted_in_text(number):
    assert redact_text(f"number {number} sent.") == "number [hidden] sent."


def test_a_card_number_logged_as_an_integer_is_redacted():
    assert logs.redact(None, "info", {"n": int(_CARD)}) == {"n": "[hidden]"}


@pytest.mark.parametrize(
    "text",
    [
        "6f9619ff-8b86-4011-b42d-00cf4fc964ff",
        "2025-06-02T13:00:00.000000Z",
        "4111111111111112",
        "912797QX1 at 99588556",
        "/api/v1/customers/",
        "basic auth",
    ],
)
def test_ordinary_text_is_not_redacted(text):
    assert redact_text(text) == text


@given(st.uuids())
def test_ids_are_not_redacted(key):
    assert redact_text(f"customer {key} opened") == f"customer {key} opened"


def test_log_values_that_json_cannot_represent_are_converted():
    circle: list[object] = []
    circle.append(circle)
    event: dict[str, object] = {"b": b"raw bytes", "n": None, "f": 1.5, "t": True, "s": {1}, "c": circle}

    shown = logs.redact(None, "info", event)

    assert shown["b"] == "[9 bytes]"
    assert (shown["n"], shown["f"], shown["t"], shown["s"]) == (None, 1.5, True, [1])
    assert "[...]" in json.dumps(shown)
