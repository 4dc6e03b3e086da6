"""Both APIs for clients that wait: they run in a thread, the bank in the loop of the test."""

import asyncio
from functools import wraps

import httpx
from typing_extensions import override


def in_thread(test):
    """Run a blocking test in a thread."""

    @wraps(test)
    async def run(**fixtures):
        await asyncio.to_thread(test, **fixtures)

    return run


class Bridge(httpx.BaseTransport):
    """Passes requests from other threads to an application in the event loop of the test."""

    def __init__(self, app):
        self._loop = asyncio.get_running_loop()
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.requests = []

    @override
    def handle_request(self, request):
        """Send a request from another thread."""
        self.requests.append(request)
        return asyncio.run_coroutine_threadsafe(self._send(request), self._loop).result(30)

    async def _send(self, request):
        carried = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        answer = await self._inner.handle_async_request(carried)
        body = await answer.aread()
        return httpx.Response(answer.status_code, headers=answer.headers, content=body)
