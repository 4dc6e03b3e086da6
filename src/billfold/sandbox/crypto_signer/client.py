"""Calls the process of the simulated signer."""

from pathlib import Path
from typing import Any

from billfold.payments.crypto.withdrawals.signing import SignerRefused, UnsignedTransaction
from billfold.sandbox.line_process import LineProcess

SIGNER_FOLDER = "crypto_signer"
"""Where the signer keeps its key, below the state directory."""


class SimulatedSigner:
    """One process per bank process; they share the folder of the key."""

    def __init__(self, folder: Path) -> None:
        self._process = LineProcess(__package__ or "", folder, "signer")
        self._address: str | None = None

    async def address(self) -> str:
        """Return the address of the wallet."""
        if self._address is None:
            self._address = await self._call({})
        return self._address

    async def sign(self, transaction: UnsignedTransaction) -> str:
        """Return the signed transaction. Raises SignerRefused."""
        return await self._call({"transaction": transaction})

    async def close(self) -> None:
        """End the process."""
        await self._process.close()

    async def _call(self, request: dict[str, Any]) -> str:
        response = await self._process.request(request)
        if "refusal" in response:
            raise SignerRefused(response["refusal"])
        return str(response["result"])
