"""A bucket on a server of the tests, and a proxy between it and the bank."""

import asyncio
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore.store import S3Store

from billfold.documents.s3_store import S3FileStore, fixed_credentials


@dataclass(frozen=True)
class S3Server:
    """The address of the bucket and its credentials."""

    endpoint: str
    bucket: str
    access_key: str
    secret_key: str

    def store(self, prefix="documents", credentials=None, **changes):
        """The bank's store in this bucket."""
        server = replace(self, **changes)
        return S3FileStore(
            server.endpoint,
            server.bucket,
            region="us-east-1",
            prefix=prefix,
            credentials=credentials or fixed_credentials(server.access_key, server.secret_key),
        )

    async def write(self, name, content):
        """Write an object from outside the bank."""
        client = S3Store(
            self.bucket,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            client_options={"allow_http": True},
        )
        await obstore.put_async(client, name, content)

    @asynccontextmanager
    async def behind(self, *faults):
        """Yield the address of a way to the server: each connection meets the next fault, later ones none.

        A fault is how many bytes of the request pass before the connection ends, of the answer where it is
        negative, or an HTTP status.
        """
        pending, target = list(faults), urlsplit(self.endpoint)
        serving: set[asyncio.Task[Any]] = set()

        async def serve(reader, writer):
            if task := asyncio.current_task():
                serving.add(task)
            fault = pending.pop(0) if pending else None
            with closing(writer):
                if isinstance(fault, int) and fault >= 500 and fault < 600:
                    await reader.readuntil(b"\r\n\r\n")
                    writer.write(b"HTTP/1.1 %d Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % fault)
                    await writer.drain()
                else:
                    await _forward(reader, writer, target, fault)

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as way:
            yield f"http://127.0.0.1:{way.sockets[0].getsockname()[1]}"
        for task in serving:  # connections that are kept open for a next request
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _forward(reader, writer, target, passing):
    there_in, there_out = await asyncio.open_connection(target.hostname, target.port)

    async def copy(source, to, most):
        while (most is None or most > 0) and (part := await source.read(65_536)):
            to.write(part if most is None else part[:most])
            await to.drain()
            most = None if most is None else most - len(part)

    to_pass, to_return = (passing, None) if passing is None or passing > 0 else (None, -passing)
    onward = asyncio.create_task(copy(reader, there_out, to_pass))
    back = asyncio.create_task(copy(there_in, writer, to_return))
    with closing(there_out):
        try:
            await asyncio.wait({onward, back}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            onward.cancel()
            back.cancel()
            await asyncio.gather(onward, back, return_exceptions=True)
