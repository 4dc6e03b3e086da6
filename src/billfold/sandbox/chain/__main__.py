"""The process of the local chain: `python -m billfold.sandbox.chain FOLDER PORT WALLET`, on loopback only."""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
from eth_utils.address import to_canonical_address
from typing_extensions import override

from billfold.cli.process_supervisor import exit_with_parent
from billfold.platform.clock import wall_now
from billfold.sandbox.chain.faucet import CHAIN_ID, NodeFault, faucet_address, signed_deployment, signed_funding
from billfold.sandbox.chain.local_chain import FINALITY_BLOCKS, GENESIS_SECONDS, ChainRefusal, LocalChain, hex_of

CALL_GAS = 2_000_000
GAS_MARGIN_PERCENT = 130
LAG_BLOCKS = 12
_TIP_WEI = 10**9
_REFUSED, _NO_METHOD, _BAD_PARAMS = -32000, -32601, -32602
_EARLIEST, _FINAL, _NEWEST = "earliest", ("finalized", "safe"), ("latest", "pending")


class Nodes:
    """Answers requests to both nodes, one at a time."""

    def __init__(self, chain: LocalChain) -> None:
        self._chain = chain
        self._lock = threading.Lock()
        self.faults: dict[str, NodeFault] = {}
        self._methods: Mapping[str, Callable[..., Any]] = {
            "eth_chainId": lambda: hex(chain.chain_id),
            "net_version": lambda: str(chain.chain_id),
            "web3_clientVersion": lambda: "billfold/local-chain",
            "eth_sendRawTransaction": lambda raw: chain.send(bytes.fromhex(raw[2:]), _seconds()),
            "eth_getTransactionByHash": lambda hash_: chain.transactions.get(hash_.lower()),
            "eth_getTransactionReceipt": lambda hash_: chain.receipts.get(hash_.lower()),
            "eth_getBalance": lambda address, _tag="latest": hex(chain.backend.get_balance(_address(address))),
            "eth_getCode": lambda address, _tag="latest": hex_of(chain.backend.get_code(_address(address))),
            "eth_estimateGas": self._estimate_gas,
            "eth_maxPriorityFeePerGas": lambda: hex(max(_TIP_WEI, chain.minimum_tip)),
            "eth_gasPrice": lambda: hex(self._base_fee() + _TIP_WEI),
            "anvil_mine": self._mine,
            "evm_mine": self._mine,
            "anvil_reorg": self._reorganize,
            "evm_setAutomine": self._set_automine,
            "sandbox_setMinimumTip": self._set_minimum_tip,
            "sandbox_setFault": self._set_fault,
        }
        self._by_height: Mapping[str, Callable[..., Any]] = {
            "eth_blockNumber": hex,
            "eth_getBlockByNumber": self._block,
            "eth_getBlockByHash": self._block_by_hash,
            "eth_getTransactionCount": self._nonce,
            "eth_getLogs": self._logs,
            "eth_call": self._call,
            "eth_feeHistory": self._fee_history,
        }

    def answer(self, node: str, request: Mapping[str, Any]) -> tuple[HTTPStatus, dict[str, Any]]:
        """Return the status and the body of an answer."""
        method, params = str(request.get("method")), list(request.get("params") or ())
        with self._lock:
            fault = None if method.startswith(("sandbox_", "anvil_", "evm_")) else self.faults.get(node)
            if fault == NodeFault.DOWN:
                return HTTPStatus.SERVICE_UNAVAILABLE, {}
            body: dict[str, Any] = {"jsonrpc": "2.0", "id": request.get("id")}
            try:
                result = self._result(method, params, fault)
                return HTTPStatus.OK, body | {"result": _alter_answer(result) if fault == NodeFault.LIE else result}
            except ChainRefusal as error:
                return HTTPStatus.OK, body | {"error": {"code": _REFUSED, "message": str(error)}}
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                return HTTPStatus.OK, body | {"error": {"code": _BAD_PARAMS, "message": f"invalid params: {error!r}"}}

    def _result(self, method: str, params: list[Any], fault: NodeFault | None) -> Any:  # noqa: ANN401 - any JSON
        if method in self._by_height:
            height = max(self._chain.height - (LAG_BLOCKS if fault == NodeFault.LAG else 0), 0)
            return self._by_height[method](height, *params)
        if method not in self._methods:
            raise ChainRefusal(f"the method {method} does not exist")
        return self._methods[method](*params)

    def finalize(self) -> None:
        """Mine a block while one of the newest has transactions."""
        with self._lock:
            if self._chain.is_automining and any(
                each["transactions"] for each in self._chain.blocks[-FINALITY_BLOCKS:]
            ):
                self._chain.mine(_seconds())

    def _number(self, height: int, tag: Any) -> int:  # noqa: ANN401 - a tag, a number, or an object with one
        if isinstance(tag, dict):
            tag = tag.get("blockNumber", "latest")
        if tag in _NEWEST:
            return height
        if tag in _FINAL:
            return max(height - FINALITY_BLOCKS, 0)
        return 0 if tag == _EARLIEST else int(tag, 16)

    def _block(self, height: int, tag: str, full: object = None) -> dict[str, Any] | None:
        number = self._number(height, tag)
        if number > height:
            return None
        block = self._chain.blocks[number]
        return (
            block | {"transactions": [self._chain.transactions[each] for each in block["transactions"]]}
            if full
            else block
        )

    def _block_by_hash(self, height: int, hash_: str, _full: object = None) -> dict[str, Any] | None:
        return next((each for each in self._chain.blocks[: height + 1] if each["hash"] == hash_.lower()), None)

    def _logs(self, height: int, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        first, last = (self._number(height, query.get(name, "latest")) for name in ("fromBlock", "toBlock"))
        addresses = query.get("address") or []
        addresses = {each.lower() for each in ([addresses] if isinstance(addresses, str) else addresses)}
        return [
            log
            for block in self._chain.blocks[first : min(last, height) + 1]
            for hash_ in block["transactions"]
            for log in self._chain.receipts[hash_]["logs"]
            if (not addresses or log["address"].lower() in addresses) and _matches(log["topics"], query.get("topics"))
        ]

    def _call(self, height: int, call: Mapping[str, Any], tag: Any = "latest") -> str:  # noqa: ANN401 - as above
        return hex_of(self._chain.call(_evm_call(call), self._number(height, tag)))

    def _nonce(self, height: int, address: str, tag: str = "latest") -> str:
        block = None if tag == "pending" else self._number(height, tag)
        return hex(self._chain.nonce(_address(address), block))

    def _estimate_gas(self, call: Mapping[str, Any], _tag: str = "latest") -> str:
        self._chain.call(_evm_call(call), self._chain.height)
        return hex(self._chain.backend.estimate_gas(_evm_call(call)) * GAS_MARGIN_PERCENT // 100)

    def _base_fee(self) -> int:
        return int(self._chain.backend.chain.get_block().header.base_fee_per_gas)

    def _fee_history(
        self, height: int, count: str | int, tag: str, percentiles: list[float] | None = None
    ) -> dict[str, Any]:
        newest = self._number(height, tag)
        wanted = int(count, 16) if isinstance(count, str) else count
        blocks = self._chain.blocks[max(newest - wanted + 1, 0) : newest + 1]
        tip = hex(max(_TIP_WEI, self._chain.minimum_tip))
        return {
            "oldestBlock": blocks[0]["number"],
            "baseFeePerGas": [*(each["baseFeePerGas"] for each in blocks), hex(self._base_fee())],
            "gasUsedRatio": [int(each["gasUsed"], 16) / int(each["gasLimit"], 16) for each in blocks],
            "reward": [[tip for _ in percentiles or ()] for _ in blocks],
        }

    def _mine(self, count: str | int = 1, _interval: object = None) -> str:
        for _ in range(int(count, 16) if isinstance(count, str) else count):
            self._chain.mine(_seconds())
        return hex(self._chain.height)

    def _reorganize(self, depth: int, keep: list[Any] | bool = False) -> str:  # noqa: FBT001, FBT002 - JSON
        """Revert blocks and mine as many without their transactions, which `keep` returns to the pool."""
        self._chain.reorganize(depth, keep=bool(keep))
        for _ in range(depth):
            self._chain.mine_empty(_seconds())
        return hex(self._chain.height)

    def _set_automine(self, is_automining: bool) -> bool:  # noqa: FBT001 - JSON
        self._chain.is_automining = is_automining
        return True

    def _set_minimum_tip(self, wei: int | str) -> bool:
        self._chain.minimum_tip = int(wei, 16) if isinstance(wei, str) else wei
        return True

    def _set_fault(self, node: int, fault: str | None) -> bool:
        self.faults.pop(f"/{node}", None)
        if fault is not None:
            self.faults[f"/{node}"] = NodeFault(fault)
        return True


def _alter_answer(result: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return an answer with altered block hashes and larger amounts."""
    if isinstance(result, list):
        return [_alter_answer(each) for each in result]
    if not isinstance(result, dict):
        return result
    shown = dict(result)
    for name in {"hash", "parentHash", "blockHash"} & shown.keys():
        if isinstance(shown[name], str) and not ("nonce" in shown and name == "hash"):
            shown[name] = "0xbad" + shown[name][5:]
    if "data" in shown and shown["data"] != "0x":
        shown["data"] = hex_of((int(shown["data"], 16) * 10).to_bytes(32, "big"))
    return shown


def _matches(topics: list[str], wanted: list[Any] | None) -> bool:
    for place, each in enumerate(wanted or ()):
        accepted = None if each is None else {each.lower()} if isinstance(each, str) else {t.lower() for t in each}
        if accepted is not None and (place >= len(topics) or topics[place] not in accepted):
            return False
    return True


def _evm_call(call: Mapping[str, Any]) -> dict[str, Any]:
    data = call.get("data") or call.get("input") or "0x"
    # py-evm charges a call like a transaction, so its sender must be able to pay for it.
    caller = _address(call["from"]) if call.get("from") else faucet_address()
    found: dict[str, Any] = {"from": caller, "data": bytes.fromhex(data[2:]), "gas": CALL_GAS}
    if call.get("to"):
        found["to"] = _address(call["to"])
    return found | ({"value": int(call["value"], 16)} if call.get("value") else {})


def _address(text: str) -> bytes:
    return bytes(to_canonical_address(text))


def _seconds() -> int:
    return int(wall_now().timestamp())


_BODY_BYTES_MAX = 4 * 1024 * 1024
_IDLE_SECONDS = 30
_BLOCK_SECONDS = 1.0


def make_server(folder: Path | None, port: int = 0, wallet: str | None = None) -> ThreadingHTTPServer:
    """Return a server of the chain in a folder; without one the chain is discarded at the end.

    A new chain has the test token, and funds the wallet. Finality comes automatically.
    """
    nodes = Nodes(_open_chain(folder, wallet))

    class Requests(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _IDLE_SECONDS
        disable_nagle_algorithm = True  # the body follows the head at once, not after 40 ms

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
        def log_message(self, format: str, *args: object) -> None:  # no line per request
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
    """Mine while a transaction is not final yet: nothing else makes blocks on this chain."""
    while True:
        time.sleep(_BLOCK_SECONDS)
        nodes.finalize()


if __name__ == "__main__":
    exit_with_parent()
    with make_server(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]) as chain_server:
        chain_server.serve_forever()
