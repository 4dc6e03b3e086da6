"""A program of a partner that awaits: it opens a Pocket, simulates a deposit, and hears of it by the event stream.

    python examples/awaiting.py

It reads `.billfold/sandbox.json`, which `make sandbox` writes, or that of `BILLFOLD_STATE_DIR`.
"""

import asyncio
from uuid import UUID

from billfold_client.partner import AsyncPartnerApi
from billfold_client.sandbox import async_sandbox_partner, read_sandbox, run_with_sandbox


async def main() -> None:
    """Do it as the sandbox's partner."""
    async with async_sandbox_partner() as api:
        customer_id = read_sandbox()["customer_id"]
        pocket = await api.create_pocket(customer_id, pocket_name="Awaited", deposit_strategy_id="UST-4W")
        portal = await anext(aiter(api.list_portals(pocket.id)))
        await api.sandbox_wire(portal_id=portal.id, amount_usdc=10_000_00, sender_name="Contoso")
        wire = await api.get_wire(await first_wire(api, pocket.id))
        print(f"A wire arrived: {wire.amount.formatted}")


async def first_wire(api: AsyncPartnerApi, pocket_id: UUID) -> str:
    """Return the id of the first wire that arrived in a Pocket. A program in use begins after the last it has seen."""
    async for message in api.stream_events(after_sequence="0", event_type=["transfers.wire.in.success"]):
        if not message.event and message.envelope.payload["service_account_id"] == str(pocket_id):
            return str(message.envelope.payload["wire_id"])
    raise AssertionError("a stream has no end")


if __name__ == "__main__":
    run_with_sandbox(lambda: asyncio.run(main()))
