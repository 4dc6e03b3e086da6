"""A client of the Partner API that writes down what it is told, byte for byte.

It signs as any client would and knows nothing of the bank but addresses and credentials. Its
idempotency keys are drawn from a seed, so that the same story is the same requests.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode
from uuid import UUID

import httpx
import jwt
import msgspec

from billfold.interfaces.cli.ground import CannotGoOn
from billfold.kit import ids
from billfold.kit.crypto import sign_request

PATIENCE_SECONDS = 120.0
ASSERTION_LASTS = timedelta(minutes=2)
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Where the bank is and with what one calls it; as in `.billfold/sandbox.json`."""

    base_url: str
    host: str
    ca_file: str
    username: str
    shared_secret: str
    private_key: str
    kid: str


@dataclass(frozen=True, slots=True)
class Told:
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


class PartnerClient:
    """Calls the Partner API over https. Use it as a context."""

    def __init__(self, access: Access, *, seed: bytes, transcript: Path | None = None) -> None:
        self._access = access
        self._seed = seed
        self._http = httpx.Client(
            base_url=access.base_url,
            verify=ssl.create_default_context(cafile=access.ca_file),
            timeout=PATIENCE_SECONDS,
            trust_env=False,
        )
        self._token = ""
        self._transcript = transcript.open("w", encoding="utf-8") if transcript else None
        self.answers: list[Told] = []

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close connections and the transcript."""
        self._http.close()
        if self._transcript:
            self._transcript.close()

    def get_token(self, wall: datetime) -> None:
        """Exchange an assertion signed with the private key for a token (RFC 7523)."""
        access = self._access
        claims = {
            "iss": access.username,
            "sub": access.username,
            "aud": f"https://{access.host}/token/",
            "iat": wall,
            "exp": wall + ASSERTION_LASTS,
            "jti": str(ids.new()),
        }
        assertion = jwt.encode(claims, access.private_key, "ES256", headers={"kid": access.kid})
        form = urlencode({"grant_type": GRANT, "assertion": assertion}).encode()
        headers = {"content-type": "application/x-www-form-urlencoded"}
        answer = self._send("POST", "/token/", headers, form)
        self._token = _checked(answer).json()["access_token"]

    def get(self, path: str) -> Told:
        """Ask for something; the path may carry a query."""
        return self._call("GET", path, b"")

    def post(self, path: str, body: dict[str, Any] | None = None) -> Told:
        """Ask for something to be done."""
        return self._call("POST", path, b"" if body is None else msgspec.json.encode(body))

    def _call(self, method: str, path: str, body: bytes) -> Told:
        number = len(self.answers) + 1
        key = str(_key(self._seed, number))
        headers = {
            "authorization": f"Bearer {self._token}",
            "x-service-idempotency": key,
            "x-service-signature": sign_request(
                self._access.shared_secret, key, path.partition("?")[0], body
            ),
        }
        if body:
            headers["content-type"] = "application/json"
        answer = _checked(self._send(method, path, headers, body))
        text = answer.text
        told = Told(number, method, path, answer.status_code, text, answer.json() if text else None)
        self.answers.append(told)
        if self._transcript:
            line = {"method": method, "path": path, "status": told.status, "body": text}
            self._transcript.write(msgspec.json.encode(line).decode() + "\n")
            self._transcript.flush()
        return told

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> httpx.Response:
        """Send to the address in the name of the host, which no machine needs to know."""
        request = self._http.build_request(
            method,
            path,
            headers={**headers, "host": self._access.host},
            content=body or None,
            extensions={
                "sni_hostname": self._access.host.partition(":")[0],
                "timeout": self._http.timeout.as_dict(),
            },
        )
        try:
            return self._http.send(request)
        except httpx.TransportError as error:
            raise CannotGoOn(
                f"{method} {path} did not reach the bank: {error}", "Is the server up?"
            ) from error


def _key(seed: bytes, number: int) -> UUID:
    return ids.derive(seed, ids.command_id("story", str(number)), 0)


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_error:
        request = answer.request
        raise CannotGoOn(
            f"{request.method} {request.url.path} was answered {answer.status_code}: {answer.text}",
            "See the log of the server.",
        )
    return answer
