"""Calls of the Partner API whose answers are numbered, and written to a file byte for byte.

Idempotency keys are derived from a seed, so that the same story is the same requests.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
import msgspec

from billfold.cli.context import CliError
from billfold.platform import ids

_LATER = (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE)
_RETRIES = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the bank. `text` is the body as it came."""

    number: int
    method: str
    path: str
    status: int
    text: str
    body: Any = field(repr=False)

    def at(self, where: str) -> Any:  # noqa: ANN401 - whatever the bank answered
        """Return what stands at a place like `items.0.amount.formatted`."""
        found = self.body
        for part in where.split("."):
            found = found[int(part)] if isinstance(found, list) else found[part]
        return found


class RecordingClient:
    """Calls with an httpx client that signs, which it closes. Use it as a context."""

    def __init__(self, http: httpx.Client, *, seed: bytes, transcript: Path | None = None) -> None:
        self._http = http
        self._seed = seed
        self._transcript = transcript.open("w", encoding="utf-8") if transcript else None
        self.answers: list[Answer] = []

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close connections and the transcript."""
        self._http.close()
        if self._transcript:
            self._transcript.close()

    def get(self, path: str) -> Answer:
        """Read; the path may carry a query."""
        return self._call("GET", path, b"")

    def post(self, path: str, body: dict[str, Any] | None = None) -> Answer:
        """Create or change."""
        return self._call("POST", path, b"" if body is None else msgspec.json.encode(body))

    def _call(self, method: str, path: str, body: bytes) -> Answer:
        number = len(self.answers) + 1
        command = ids.command_id("story", str(number))
        headers = {"x-service-idempotency": str(ids.derive(self._seed, command, 0))}
        if body:
            headers["content-type"] = "application/json"
        received = self._send(method, path, headers=headers, content=body or None)
        if received.is_error:
            raise CliError(
                f"{method} {path} was answered {received.status_code}: {received.text}", "See the log of the server."
            )
        text = received.text
        parsed = received.json() if text else None
        answer = Answer(number, method, path, status=received.status_code, text=text, body=parsed)
        self.answers.append(answer)
        if self._transcript:
            line = {"method": method, "path": path, "status": answer.status, "body": text}
            self._transcript.write(msgspec.json.encode(line).decode() + "\n")
            self._transcript.flush()
        return answer

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Send a request, again when it is asked to come later: its key lets it do nothing twice."""
        try:
            response = self._http.request(method, path, **request)
            for _ in range(_RETRIES):
                if response.status_code not in _LATER:
                    break
                time.sleep(int(response.headers.get("retry-after", 1)))
                response = self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise CliError(f"{method} {path} did not reach the bank: {error}", "Is the server up?") from error
        return response
