"""How requests of our own, for tokens, are put between those of a caller."""

from collections.abc import AsyncGenerator, Generator

import httpx
from typing_extensions import override


class AuthFlow(httpx.Auth):
    """Reads the answers to its own requests and leaves those to the caller's alone.

    So an answer that does not end, a stream of events, reaches the caller as it comes.
    """

    @override
    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send what the flow wants to be sent."""
        request.read()
        flow = self.auth_flow(request)
        try:
            next_request = next(flow)
            while True:
                response = yield next_request
                if next_request is not request:
                    response.read()
                next_request = flow.send(response)
        except StopIteration:
            return

    @override
    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Do the same for a client that awaits."""
        await request.aread()
        flow = self.auth_flow(request)
        try:
            next_request = next(flow)
            while True:
                response = yield next_request
                if next_request is not request:
                    await response.aread()
                next_request = flow.send(response)
        except StopIteration:
            return
