"""The process of the local chain: `python -m billfold.sandbox.chain FOLDER PORT`, on loopback only."""

from __future__ import annotations

import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
from typing_extensions import override

from billfold.cli.process_supervisor import exit_with_parent
from billfold.sandbox.chain.accounts import CHAIN_ID, faucet_address
from billfold.sandbox.chain.faucet import signed_deployment
from billfold.sandbox.chain.json_rpc import Nodes
from billfold.sandbox.chain.local_chain import GENESIS_SECONDS, LocalChain

_BODY_BYTES_MAX = 4 * 1024 * 1024
_IDLE_SECONDS = 30


def make_server(folder: Path | None, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the chain in a folder; without one it is forgotten in the end."""
    journal = None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        journal = folder / "blocks.jsonl"
    chain = LocalChain(CHAIN_ID, faucet_address(), journal)
    if chain.height == 0:
        chain.send(bytes.fromhex(signed_deployment(CHAIN_ID)[2:]), GENESIS_SECONDS)
    nodes = Nodes(chain)

    class Requests(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _IDLE_SECONDS

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 < length <= _BODY_BYTES_MAX:
                self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                return
            try:
                request = msgspec.json.decode(self.rfile.read(length), type=dict[str, object])
            except msgspec.MsgspecError:
                self.send_error(HTTPStatus.BAD_REQUEST)
                return
            status, body = nodes.answer(self.path, request)
            content = msgspec.json.encode(body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        @override
        def log_message(self, format: str, *args: object) -> None:  # a line per request helps nobody
            return

    server = ThreadingHTTPServer(("127.0.0.1", port), Requests)
    server.daemon_threads = True
    return server


if __name__ == "__main__":
    exit_with_parent()
    with make_server(Path(sys.argv[1]), int(sys.argv[2])) as chain_server:
        chain_server.serve_forever()
