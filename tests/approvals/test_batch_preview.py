"""Previews of several approvals: their effect in order equals that of the approvals, and what is unusual is known."""

from uuid import UUID

from tests.support.approvals import REQUESTS, counterparty, decide, on_us, refused

from billfold.approvals.batch_preview import preview_batch


async def previewed(customer_desk, requests):
    """Return the preview of approving requests in this order, and their ids."""
    bank, ids = customer_desk.bank, [UUID(each["id"]) for each in requests]
    return await preview_batch(bank, UUID(customer_desk.team.customer), ids, now=await bank.now()), ids


async def test_a_preview_of_several_approvals_equals_them_to_the_cent(
    customer_desk, customer_desks, manager, world, funded, payroll_pocket
):
    payee = await counterparty(world, customer_desk.team.customer, await world.pocket())
    bodies = [
        on_us(funded, 1_234_56, to=payroll_pocket),
        on_us(funded, 8_000_00, to=payroll_pocket),
        on_us(funded, 2_000_00, counterparty=payee),
        on_us(payroll_pocket, 500_00, counterparty=payee),
    ]
    requests = []
    for body in bodies:
        asker = await customer_desks(customer_desk.team.customer)
        requests.append(await asker.post(REQUESTS, body))
    found, (first, second, third, fourth) = await previewed(customer_desk, requests)
    assert ({*found.refused}, found.pays) == ({second}, {first, third, fourth})
    assert found.refused[second].code == "insufficient-funds"
    assert {key: each.payments for key, each in found.pockets.items()} == {
        UUID(funded.id): 2,
        UUID(payroll_pocket.id): 1,
    }
    assert [found.payees[each].largest for each in (third, fourth)] == [None, None]
    assert first not in found.payees
    for request in requests:
        if UUID(request["id"]) == second:
            await refused(manager, request, "insufficient-funds", answers=422)
        else:
            await decide(manager, request)
    for pocket in (funded, payroll_pocket):
        effect = found.pockets[UUID(pocket.id)].preview
        left = (await customer_desk.get(f"/api/v2/pockets/{pocket.id}/"))["portfolio"]
        assert (effect.remaining.cash.value, effect.remaining.total_value.value) == (
            left["cash"]["value"],
            left["total_value"]["value"],
        )
        trades = (await customer_desk.get("/api/v2/trades/", {"pocket_id[]": pocket.id}))["items"]
        sold = sum(each["quantity"] for each in trades if each["activity"] == "SELL")
        assert sum(each.quantity for each in effect.sales) == sold
    asker = await customer_desks(customer_desk.team.customer)
    later = await asker.post(REQUESTS, on_us(funded, 10_00, counterparty=payee))
    found, (key,) = await previewed(customer_desk, [later])
    assert found.payees[key].largest == 2_000_00


async def test_a_request_that_needs_further_approvals_does_not_pay_in_a_preview(
    customer_desk, customer_desks, manager, funded, payroll_pocket
):
    await customer_desks(customer_desk.team.customer)
    rule = {"name": "All", "required_approvals": 2}
    asked = await customer_desk.post("/api/v1/approval-rules/", rule, status=202)
    path = f"/api/v1/authorization-requests/{asked['id']}/status/"
    await manager.ask("PATCH", path, {"status": "APPROVED"}, status=200)
    request = await customer_desk.post(REQUESTS, on_us(funded, 1_00, to=payroll_pocket))
    found, _ = await previewed(customer_desk, [request])
    assert (found.pays, found.pockets, found.refused) == (frozenset(), {}, {})
