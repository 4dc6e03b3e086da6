"""The process of the signer: a request per line of its input, a response per line of its output.

It ends with its input, and so with the process that started it.
"""

import sys
from pathlib import Path

import msgspec

from billfold.payments.crypto.withdrawals.signing import SignerRefused, UnsignedTransaction
from billfold.platform.clock import wall_now
from billfold.sandbox.crypto_signer.vault import SigningVault
from billfold.sandbox.line_process import serve_lines


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """One call: to sign a transaction, or for the address of the wallet."""

    transaction: UnsignedTransaction | None = None


def answer(vault: SigningVault, request: Request) -> dict[str, str]:
    """Return the response to a call: `result`, or `refusal` with the reason."""
    if request.transaction is None:
        return {"result": vault.address}
    try:
        return {"result": vault.sign(request.transaction, today=wall_now().date())}
    except SignerRefused as refusal:
        return {"refusal": str(refusal)}


if __name__ == "__main__":
    signing_vault = SigningVault(Path(sys.argv[1]))
    serve_lines(Request, lambda request: answer(signing_vault, request))
