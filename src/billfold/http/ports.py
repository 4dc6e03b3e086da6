"""Ports of the HTTP frame: the log of requests, and the types of documents that uploads replace."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol
from uuid import UUID

from billfold.http.operations import Operation
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, StreamedResponse
from billfold.platform.database.connection import Pool


class RequestLog(Protocol):
    """Keeps a log of the requests of each tenant."""

    def record(
        self, operation: Operation, request: RawRequest, response: HttpResponse | StreamedResponse, *, proven: bool
    ) -> None:
        """Log a request whose token is known, once."""

    async def close(self) -> None:
        """Write what is not written yet."""


class OwnedType(NamedTuple):
    """The type of a document, and whose it is."""

    customer_id: UUID
    type: str


FindDocumentType = Callable[[Pool, UUID], Awaitable[OwnedType | None]]
"""Returns the type of a document of any customer, with its owner."""
