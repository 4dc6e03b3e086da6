"""Starts the local chain of a sandbox: a separate process, its token, and the bank's configuration file for it."""

import importlib.util
import socket
from pathlib import Path

from billfold.cli.process_supervisor import Supervisor
from billfold.cli.python_process import python_command
from billfold.payments.crypto.chains import LOCAL_CHAINS, units_of
from billfold.sandbox.chain.crypto_signer import SIGNER_FOLDER, ChainPolicy, SimulatedSigner, write_policy
from billfold.sandbox.chain.faucet import CHAIN_ID, CHAIN_NAME, DECIMALS, DEPOSIT_XPUB, TEST_DOLLAR

_TRANSACTION_CENTS, _DAY_CENTS, _GWEI_MAX = 250_000_00, 1_000_000_00, 2_000
"""Limits of the signer of a sandbox."""


def local_node_urls(port: int) -> tuple[str, str]:
    """Return the addresses of both nodes of a local chain."""
    return f"http://127.0.0.1:{port}/1", f"http://127.0.0.1:{port}/2"


def local_chain_file(port: int) -> str:
    """Return the file of chains with only the local chain."""
    nodes = ", ".join(f'"{url}"' for url in local_node_urls(port))
    return f"""# Written when the sandbox starts its chain.
[[chain]]
name = "{CHAIN_NAME}"
chain_id = {CHAIN_ID}
rpc_urls = [{nodes}]
xpub = "{DEPOSIT_XPUB}"

[[chain.tokens]]
asset = "USDC"
address = "{TEST_DOLLAR}"
decimals = {DECIMALS}
"""


async def start_local_chain(supervisor: Supervisor, state_dir: Path) -> str:
    """Start the chain of a state directory, which continues where it was, and return its address.

    It answers some seconds later. Without its packages there is no chain.
    """
    file = state_dir / LOCAL_CHAINS
    file.parent.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("eth_tester") is None:
        file.unlink(missing_ok=True)
        return "none: install billfold[sandbox]"
    port = _free_port()
    wallet = await provision_signer(state_dir)
    words = python_command("-m", __package__ or "", str(file.parent), str(port), wallet)
    await supervisor.start("local chain", words, state_dir / "logs" / "chain.log")
    url, _ = local_node_urls(port)
    file.write_text(local_chain_file(port))
    return f"{url} ({CHAIN_NAME}, chain id {CHAIN_ID}, USDC at {TEST_DOLLAR})"


async def provision_signer(state_dir: Path) -> str:
    """Write the policy of a sandbox's signer for the local chain; return the address of its wallet."""
    folder = state_dir / SIGNER_FOLDER
    write_policy(
        folder,
        ChainPolicy(
            chain_id=CHAIN_ID,
            tokens=(TEST_DOLLAR,),
            units_per_transaction=units_of(_TRANSACTION_CENTS, DECIMALS),
            units_per_day=units_of(_DAY_CENTS, DECIMALS),
            max_fee=_GWEI_MAX * 10**9,
        ),
    )
    signer = SimulatedSigner(folder)
    try:
        return await signer.address()
    finally:
        await signer.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
