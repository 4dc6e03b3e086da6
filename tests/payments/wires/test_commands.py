"""Commands on wires through the engine."""

import pytest
from tests.support.fedwire import link, send

from billfold.platform import ids
from billfold.platform.errors import Refused


async def test_a_duplicate_wire_id_is_refused(bank, holder):
    holder.counterparty_id = await link(bank, holder.customer_id)
    wire_id = ids.new()
    await send(holder, 1_000_00, wire_id)
    with pytest.raises(Refused, match="duplicate-id"):
        await send(holder, 2_000_00, wire_id)
