"""Operations of a sandbox on its chain: deploy the test token, mint it, send it, give ether. Works on anvil too."""

from __future__ import annotations

from enum import StrEnum
from importlib import resources
from typing import TYPE_CHECKING, Any

from coincurve import PrivateKey
from eth_hash.auto import keccak

from billfold.payments.crypto.chains import checksum_address
from billfold.payments.crypto.nodes import JsonRpcClient, topic_of

CHAIN_ID = 31337
CHAIN_NAME = "ETHEREUM"
DEPOSIT_XPUB = (
    "xpub6Ce9NcJvTk36xtLSrJLZqE7wtgA5deCeYs7rSQtreh4cj6ByPtrg9sD7V2FNFLPnf8heNP3FGkeV9qwfzvZNSd54JoNXVsXFYSYwHsnJxqP"
)
TEST_DOLLAR = "0xa4A2243Cb7033B0234e8644CE20D130DB2515e36"
"""The contract that the faucet's first transaction makes: the test token."""
DECIMALS = 6
FAUCET_KEY = keccak(b"the faucet of a billfold sandbox")


OTHER_KEY = keccak(b"who makes another token in a billfold sandbox")
"""The account whose first transaction creates a token that the bank does not accept."""


def address_of(key: bytes) -> str:
    """Return the address of a private key."""
    return checksum_address(keccak(PrivateKey(key).public_key.format(compressed=False)[1:])[-20:])


def first_contract_of(address: str) -> str:
    """Return the address of the contract created by the first transaction of an account (RLP of address and zero)."""
    return checksum_address(keccak(b"\xd6\x94" + bytes.fromhex(address[2:]) + b"\x80")[-20:])


def faucet_address() -> bytes:
    """Return the address that initially has all ether, and mints the test tokens."""
    return bytes.fromhex(address_of(FAUCET_KEY)[2:])


if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

# The first four bytes of the hash of each signature.
MINT = "0x40c10f19"  # mint(address,uint256)
TRANSFER = "0xa9059cbb"  # transfer(address,uint256)
LOG_TRANSFER = "0xf51ac936"  # logTransfer(address,address,uint256)
PAUSE = "0x02329a29"  # pause(bool)
GAS = 1_500_000
WALLET_UNITS = 10**6 * 10**6
WALLET_WEI = 10 * 10**18
MAKER_WEI = 10**18


class NodeFault(StrEnum):
    """The fault of a node."""

    DOWN = "DOWN"
    LAG = "LAG"
    LIE = "LIE"


class Faucet:
    """Signs with the key of the faucet, or another one. `send` does not wait for a block where none is mined."""

    def __init__(self, url: str) -> None:
        self.rpc = JsonRpcClient(url)

    async def deploy_token(self) -> None:
        """Deploy the test token, which a new chain of our own already has."""
        await self.rpc.call("eth_sendRawTransaction", signed_deployment(await self._chain_id()))

    async def mint(self, token: str, recipient: str, units: int, key: bytes = FAUCET_KEY) -> str:
        """Mint new units of the test token for an address; return the hash of the transaction."""
        return await self.send(token, call_data(MINT, recipient, units), key=key)

    async def mint_other(self, recipient: str, units: int) -> None:
        """Mint units of another token for an address; the first time also create the token."""
        maker = address_of(OTHER_KEY)
        if await self.rpc.call("eth_getTransactionCount", maker, "latest") == "0x0":
            await self.give_ether(maker, MAKER_WEI)
            await self.rpc.call("eth_sendRawTransaction", signed_deployment(await self._chain_id(), OTHER_KEY))
        await self.mint(first_contract_of(maker), recipient, units, key=OTHER_KEY)

    async def transfer(self, token: str, recipient: str, units: int, key: bytes = FAUCET_KEY) -> str:
        """Send units of a token; return the hash of the transaction."""
        return await self.send(token, call_data(TRANSFER, recipient, units), key=key)

    async def give_ether(self, recipient: str, wei: int) -> str:
        """Send ether, which pays for transactions."""
        return await self.send(recipient, "0x", wei=wei)

    async def send(self, recipient: str, data: str, *, wei: int = 0, key: bytes = FAUCET_KEY) -> str:
        """Sign and send a transaction."""
        sender = _account(key).address
        nonce = int(await self.rpc.call("eth_getTransactionCount", sender, "pending"), 16)
        fields = {"chainId": await self._chain_id(), "nonce": nonce, "to": recipient, "value": wei, "data": data}
        return str(await self.rpc.call("eth_sendRawTransaction", _sign(key, fields)))

    async def _chain_id(self) -> int:
        return int(await self.rpc.call("eth_chainId"), 16)

    async def mine(self, blocks: int = 1) -> None:
        """Mine blocks."""
        await self.rpc.call("anvil_mine", hex(blocks))

    async def reorganize(self, depth: int, *, keep: bool = False) -> None:
        """Replace the newest blocks by as many empty ones; on our chain `keep` moves their transactions on."""
        await self.rpc.call("anvil_reorg", depth, [keep] if keep else [])

    async def aclose(self) -> None:
        """Close the connections."""
        await self.rpc.aclose()


def call_data(selector: str, *words: str | int) -> str:
    """Return the data of a call: addresses and numbers as 32 bytes each."""
    return selector + "".join(f"{word:064x}" if isinstance(word, int) else topic_of(word)[2:] for word in words)


def signed_deployment(chain_id: int, key: bytes = FAUCET_KEY) -> str:
    """Return the first transaction of an account, which creates a token whose address is always the same."""
    code = resources.files(__package__).joinpath("TestToken.bin").read_text().strip()
    return _sign(key, {"chainId": chain_id, "nonce": 0, "to": b"", "value": 0, "data": code})


def signed_funding(chain_id: int, wallet: str) -> tuple[str, str]:
    """Return the transactions that give a wallet a million test dollars and ten ether after the deployment."""
    token = {"to": TEST_DOLLAR, "data": call_data(MINT, wallet, WALLET_UNITS), "value": 0, "nonce": 1}
    ether = {"to": wallet, "data": "0x", "value": WALLET_WEI, "nonce": 2}
    return _sign(FAUCET_KEY, {"chainId": chain_id, **token}), _sign(FAUCET_KEY, {"chainId": chain_id, **ether})


def _sign(key: bytes, fields: dict[str, Any]) -> str:
    fees = {"type": 2, "gas": GAS, "maxFeePerGas": 100 * 10**9, "maxPriorityFeePerGas": 2 * 10**9}
    return "0x" + bytes(_account(key).sign_transaction(fees | fields).raw_transaction).hex()


def _account(key: bytes) -> LocalAccount:
    from eth_account import Account  # noqa: PLC0415 - loads for a second, and only a sandbox that sends needs it

    found: Any = Account.from_key(key)
    return found  # type: ignore[no-any-return]
