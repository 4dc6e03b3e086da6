"""The process of the local chain: `python -m billfold.sandbox.chain FOLDER PORT WALLET`, on loopback only."""

import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
from typing_extensions import override

from billfold.cli.process_supervisor import exit_with_parent
from billfold.sandbox.chain.accounts import CHAIN_ID, faucet_address
from billfold.sandbox.chain.faucet import signed_deployment, signed_funding
from billfold.sandbox.chain.json_rpc import Nodes
from billfold.sandbox.chain.local_chain import GENESIS_SECONDS, LocalChain

_BODY_BYTES_MAX = 4 * 1024 * 1024
_IDLE_SECONDS = 30
_BLOCK_SECONDS = 1.0


def make_server(folder: Path | None, port: int = 0, wallet: str | None = None) -> ThreadingHTTPServer:
    """Return a server of the chain in a folder; without one it is forgotten in the end.

    A new chain has the test token, and gives the wallet what it pays with. Finality comes by itself.
    """
    nodes = Nodes(_open_chain(folder, wallet))

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
    if wallet:
        threading.Thread(target=_finalize, args=(nodes,), daemon=True).start()
    return server


def _open_chain(folder: Path | None, wallet: str | None) -> LocalChain:
    journal = None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        journal = folder / "blocks.jsonl"
    chain = LocalChain(CHAIN_ID, faucet_address(), journal)
    if chain.height == 0:
        for raw in (signed_deployment(CHAIN_ID), *(signed_funding(CHAIN_ID, wallet) if wallet else ())):
            chain.send(bytes.fromhex(raw[2:]), GENESIS_SECONDS)
    return chain


def _finalize(nodes: Nodes) -> None:
    """Mine while a transaction is not final yet: nobody else makes blocks on this chain."""
    while True:
        time.sleep(_BLOCK_SECONDS)
        nodes.finalize()


if __name__ == "__main__":
    exit_with_parent()
    with make_server(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]) as chain_server:
        chain_server.serve_forever()
