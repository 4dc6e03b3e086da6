"""JSON-RPC 2.0 over HTTP, as nodes of chains speak it. A node is not trusted: answers are bounded and checked."""

from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

ANSWER_SECONDS = 15.0
ANSWER_BYTES = 32 * 1024 * 1024


class NodeUnavailable(Exception):
    """A node gave no usable answer. `reason` has no address or key of it."""

    def __init__(self, host: str, reason: str) -> None:
        self.host = host
        self.reason = reason
        super().__init__(f"{host}: {reason}")


class NodeRefused(Exception):
    """A node answered with an error of JSON-RPC, whose message is the node's own."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{message} ({code})")


class _Error(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Answer(msgspec.Struct):
    id: int | str | None = None
    result: Any = None
    error: _Error | None = None


class JsonRpcClient:
    """One node. Calls are not repeated here: their caller knows whether that is safe."""

    def __init__(self, url: str, *, timeout: float = ANSWER_SECONDS) -> None:
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self._url = url
        self._last_id = 0
        self._client = httpx.AsyncClient(timeout=timeout, trust_env=False)

    async def call(self, method: str, *params: object) -> Any:  # noqa: ANN401 - the method says what it is
        """Return the result. Raises NodeUnavailable, or NodeRefused with the node's error."""
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        body = await self._post(msgspec.json.encode(request))
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except msgspec.DecodeError:
            raise NodeUnavailable(self.host, f"{method}: the answer is no JSON-RPC") from None
        if answer.error is not None:
            raise NodeRefused(answer.error.code, answer.error.message[:200])
        if answer.id != request["id"]:
            raise NodeUnavailable(self.host, f"{method}: the answer is to another request")
        return answer.result

    async def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                content = bytearray()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > ANSWER_BYTES:
                        raise NodeUnavailable(self.host, f"the answer has more than {ANSWER_BYTES} bytes")
        except httpx.HTTPError as error:
            raise NodeUnavailable(self.host, type(error).__name__) from None
        # Some nodes answer an error of JSON-RPC with a status of their own.
        if response.status_code != HTTPStatus.OK and not content.startswith(b'{"'):
            raise NodeUnavailable(self.host, f"status {response.status_code}")
        return bytes(content)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
