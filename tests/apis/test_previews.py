"""Requests that move money are previewed, and carried out as shown or not at all."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from tests.accounts.holds.test_routes import linked
from tests.payments.on_us.test_reversals import paid
from tests.payments.on_us.test_routes import PATH, reallocation
from tests.support import payees
from tests.support.world import _ADD_USER as ADD_USER
from tests.support.world import UNKNOWN, PartnerApi, new_partner

from billfold.apis.customer_api import customer_document
from billfold.apis.partner_api import partner_document, partner_operations
from billfold.identity.partners.credentials import issue_token
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.settings.settings import Settings

PREVIEW = {"prefer": 'respond-async, Preview; wait="1"'}
LEFT = ("cash", "total_value", "liquidation_value_t0", "liquidation_value_t1")


async def previewed(world, path, body=b"{}", method="POST", **options):
    """Return the preview of a request, which writes nothing."""
    before = await world.counts()
    answer = await world.ask(method, path, body, status=200, headers=PREVIEW, **options)
    assert await world.counts() == before
    assert answer.headers["preference-applied"] == "preview"
    return answer.json()


def confirming(preview):
    return {"preview-id": preview["preview_id"]}


async def used(world, path, body, preview, method="POST", **options):
    """Check that a preview is not carried out again under another key, however its id is spelled."""
    text = preview["preview_id"]
    for spelled in (text, f"{text[:8]}****{text[8:]}"):
        refusal = {"status": 409, "code": "preview-used", "headers": {"preview-id": spelled}}
        await world.refused(method, path, body, **refusal, **options)


async def left_in(world, pocket):
    portfolio = (await world.get(f"/api/v2/pockets/{pocket.id}/"))["portfolio"]
    return {name: portfolio[name] for name in LEFT}


async def test_a_transfer_does_what_its_preview_showed_under_the_same_key(world):
    pocket = await world.funded(10_000_00)
    other = await world.pocket(pocket.customer)
    body, key = reallocation(pocket, other, 2_500_00), uuid4()
    shown = await previewed(world, PATH, body, key=key)
    own, its = shown["pockets"]
    assert shown["rejection_reason"] is None
    assert {(own["pocket_id"]), (its["pocket_id"])} == {pocket.id, other.id}
    assert [each["direction"] for each in own["transactions"]] == ["DEBIT"]
    assert len(own["sales"]) == 1
    made = await world.post(PATH, body, key=key, headers=confirming(shown))
    assert made["status"] == "COMPLETED"
    assert await left_in(world, pocket) == own["remaining"]
    again = await world.post(PATH, body, key=key, headers=confirming(shown))
    assert again == made
    await used(world, PATH, body, shown)
    assert await left_in(world, pocket) == own["remaining"]


async def test_every_operation_that_moves_money_shows_what_it_then_does(partner_desks):
    world = await partner_desks("acme", features=("wires",))
    pocket = await world.funded(50_000_00)
    account = f"/api/v1/service-accounts/{pocket.id}"
    wire = {"counterparty_id": await linked(world, pocket, payees.wire()), "amount_usdc": 1_000_00}
    credit = {"counterparty_id": await linked(world, pocket, payees.ach()), "amount_usdc": 700_00}
    hold = {"amount_usdc": 500_00, "reason": "Deposit"}
    made = {}
    for path, body in (
        (f"{account}/wires/", wire),
        (f"{account}/ach-originating/", {**credit, "direction": "CREDIT"}),
        (f"/api/v2/pockets/{pocket.id}/holds/", hold),
    ):
        shown = await previewed(world, path, body)
        answer = await world.send("POST", path, body, headers=confirming(shown))
        assert answer.is_success, answer.text
        made[path] = answer.json()["id"]
        await used(world, path, body, shown)
        assert await left_in(world, pocket) == shown["pockets"][0]["remaining"]
    wire_id, _, hold_id = made.values()
    for path in (f"/api/v1/wires/{wire_id}/cancel/", f"/api/v2/pockets/{pocket.id}/holds/{hold_id}/release/"):
        shown = await previewed(world, path)
        await world.ask("POST", path, b"{}", status=200, headers=confirming(shown))
        await used(world, path, b"{}", shown)
        assert shown["rejection_reason"] is None
        if shown["pockets"]:
            assert await left_in(world, pocket) == shown["pockets"][0]["remaining"]


async def test_reversals_and_the_close_of_a_pocket_do_what_their_previews_showed(world):
    pocket = await world.funded(10_000_00)
    other = await world.pocket(pocket.customer)
    made = await world.post(PATH, reallocation(pocket, other, 100_00))
    path, body = f"{PATH}{made['id']}/reverse/", {"amount_usdc": 60_00}
    shown = await previewed(world, path, body)
    assert {each["pocket_id"] for each in shown["pockets"]} == {pocket.id, other.id}
    back = await world.post(path, body, headers=confirming(shown))
    assert back["reverses_id"] == made["id"]
    await used(world, path, body, shown)
    close = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}
    full, empty = (f"/api/v2/customers/{pocket.customer}/pockets/{each.id}/" for each in (pocket, other))
    refusal = {"status": 422, "code": "pocket-not-empty", "headers": PREVIEW}
    await world.refused("PATCH", full, close, **refusal)
    await world.post(PATH, reallocation(other, pocket, 39_00))
    await world.days(3)
    shown = await previewed(world, empty, close, method="PATCH")
    paid = {each["pocket_id"]: each["transactions"] for each in shown["pockets"]}
    assert [each["direction"] for each in paid[other.id] if each["type"] == "GENERIC"] == ["DEBIT"]
    assert [each["direction"] for each in paid[pocket.id]] == ["CREDIT"]
    assert (await world.patch(empty, close, headers=confirming(shown)))["status"] == "CLOSED"
    await used(world, empty, close, shown, method="PATCH")


async def test_accepting_a_reversal_shows_the_payee_its_own_pocket_and_does_no_more(world, other_partner):
    pocket, target = await world.funded(10_000_00), await other_partner.pocket()
    made = await paid(world, pocket, target, 1_000_00, of=other_partner)
    asked = await world.post(f"{PATH}{made}/reversal-requests/", {"amount_usdc": 400_00})
    path = f"/api/v1/reversal-requests/{asked['id']}/accept/"
    await world.refused("POST", path, b"{}", status=404, code="not-found", headers=PREVIEW)
    early = await previewed(other_partner, path)
    (own,) = early["pockets"]
    assert (own["pocket_id"], early["rejection_reason"]) == (target.id, None)
    assert [(each["direction"], each["amount"]["value"]) for each in own["transactions"]] == [("DEBIT", 400_00)]
    assert pocket.id not in str(early)
    assert pocket.customer not in str(early)
    there = await other_partner.pocket(target.customer)
    await other_partner.post(PATH, reallocation(target, there, 700_00))
    refusal = {"status": 409, "code": "preview-outdated", "headers": confirming(early)}
    await other_partner.refused("POST", path, b"{}", **refusal)
    await used(other_partner, path, b"{}", early)
    short = await previewed(other_partner, path)
    assert (short["rejection_reason"], short["pockets"][0]["transactions"]) == ("INSUFFICIENT_FUNDS", [])
    await other_partner.post(PATH, reallocation(there, target, 200_00))
    await other_partner.refused("POST", path, b"{}", **refusal | {"headers": confirming(short)})
    await used(other_partner, path, b"{}", short)
    shown = await previewed(other_partner, path)
    back = await other_partner.post(path, b"{}", key=(key := uuid4()), headers=confirming(shown))
    assert (back["status"], back["reverses_id"]) == ("COMPLETED", made)
    assert await left_in(other_partner, target) == shown["pockets"][0]["remaining"]
    assert await other_partner.post(path, b"{}", key=key, headers=confirming(shown)) == back
    gone = {"status": 409, "code": "reversal-not-open", "headers": PREVIEW}
    await other_partner.refused("POST", path, b"{}", **gone)


async def test_a_preview_is_carried_out_once_by_requests_that_come_together(world):
    pocket = await world.funded(10_000_00)
    body = reallocation(pocket, await world.pocket(pocket.customer), 10_00)
    before = (await world.counts())["transfer"]
    for keys, others in ([uuid4() for _ in range(6)], {"preview-used"}), ([uuid4()] * 6, {"idempotency-in-progress"}):
        headers = confirming(await previewed(world, PATH, body))
        sent = (world.send("POST", PATH, body, key=key, headers=headers) for key in keys)
        answers = await asyncio.gather(*sent)
        made = {answer.json()["id"] for answer in answers if answer.is_success}
        assert len(made) == 1
        assert {answer.json()["code"] for answer in answers if not answer.is_success} <= others
        for key, answer in zip(keys, answers, strict=True):
            again = await world.send("POST", PATH, body, key=key, headers=headers)
            assert again.is_success or (again.status_code, again.json()) == (answer.status_code, answer.json())
    assert (await world.counts())["transfer"] == before + 2


async def test_a_preview_that_does_not_hold_any_more_moves_nothing(world, monkeypatch):
    pocket = await world.funded(10_000_00)
    other = await world.pocket(pocket.customer)
    body = reallocation(pocket, other, 9_000_00)
    shown = await previewed(world, PATH, body)
    await world.transfer(pocket, other, 5_000_00)
    before = await left_in(world, pocket)
    refusal = {"status": 409, "code": "preview-outdated", "headers": confirming(shown)}
    await world.refused("POST", PATH, body, **refusal)
    small = reallocation(pocket, other, 10_00)
    refusal["headers"] = confirming(await previewed(world, PATH, small))
    monkeypatch.setattr("billfold.http.api.wall_now", lambda: wall_now() + timedelta(seconds=61))
    await world.refused("POST", PATH, small, **refusal)
    monkeypatch.undo()
    assert await left_in(world, pocket) == before


async def test_an_answer_that_was_lost_is_given_again_after_the_preview_has_expired(world, bank, monkeypatch):
    pocket = await world.funded(10_000_00)
    body, key = reallocation(pocket, await world.pocket(pocket.customer), 10_00), uuid4()
    sent = {"key": key, "headers": confirming(await previewed(world, PATH, body))}
    made = await world.post(PATH, body, **sent)
    await bank.pool.execute("DELETE FROM idempotency_key")
    monkeypatch.setattr("billfold.http.api.wall_now", lambda: wall_now() + timedelta(seconds=61))
    assert (await world.post(PATH, body, **sent))["id"] == made["id"]


async def test_a_preview_is_of_one_request_of_one_caller(world, bank):
    pocket = await world.funded(10_000_00)
    other = await world.pocket(pocket.customer)
    body = reallocation(pocket, other, 100_00)
    shown = await previewed(world, PATH, body)
    loc = "header.preview-id"
    await world.invalid("POST", PATH, reallocation(pocket, other, 100_01), loc=loc, headers=confirming(shown))
    for forged in ("", "x", "\x00", shown["preview_id"][:-2] + "AA", "A" * 600, "~~~"):
        await world.invalid("POST", PATH, body, loc=loc, headers={"preview-id": forged})
    portals = f"{pocket.path}portals/"
    await world.invalid("POST", portals, {"portal_name": "B"}, loc=loc, headers=confirming(shown))
    await world.invalid("POST", portals, {"portal_name": "B"}, loc="header.prefer", headers=PREVIEW)
    stranger = PartnerApi(bank, world.app, await new_partner(bank, "globex"))
    await stranger.refused("POST", PATH, body, status=404, code="not-found", headers=PREVIEW)
    await stranger.invalid("POST", PATH, body, loc=loc, headers=confirming(shown))
    await stranger.close()


async def test_what_would_be_refused_is_refused_and_what_would_be_rejected_is_shown(world):
    pocket = await world.funded(100_00)
    other = await world.pocket(pocket.customer)
    shown = await previewed(world, PATH, reallocation(pocket, other, 500_00))
    assert shown["rejection_reason"] == "INSUFFICIENT_FUNDS"
    assert [(each["sales"], each["transactions"]) for each in shown["pockets"]] == [([], [])]
    await world.invalid(
        "POST", PATH, reallocation(pocket, other, async_mode=True), loc="body.async_mode", headers=PREVIEW
    )
    unknown = reallocation(pocket, other) | {"to_account": {"id": UNKNOWN, "type": "SERVICE_ACCOUNT"}}
    await world.refused("POST", PATH, unknown, status=404, code="not-found", headers=PREVIEW)
    order = {"transfer_id": str(ids.new())}
    await world.post(PATH, reallocation(pocket, other, 10_00, **order))
    await world.refused(
        "POST", PATH, reallocation(pocket, other, 10_00, **order), status=409, code="duplicate-id", headers=PREVIEW
    )


async def test_a_payee_that_has_changed_since_its_preview_is_not_paid(partner_desks, bank):
    world = await partner_desks("acme", features=("wires",))
    pocket = await world.funded(50_000_00)
    account = f"/api/v1/service-accounts/{pocket.id}"
    rename = "UPDATE counterparty SET counterparty_name = $1 WHERE counterparty_id = $2"
    other = '{"type": "business", "business_name": "Mallory"}'
    for kind, path, fields in (
        (payees.wire(), f"{account}/wires/", {}),
        (payees.ach(), f"{account}/ach-originating/", {"direction": "CREDIT"}),
    ):
        payee = await linked(world, pocket, kind)
        body = {"counterparty_id": payee, "amount_usdc": 1_000_00, **fields}
        shown, same = await previewed(world, path, body), await previewed(world, path, body)
        own = await bank.pool.fetchval("SELECT counterparty_name FROM counterparty WHERE counterparty_id = $1", payee)
        await bank.pool.execute(rename, other, payee)
        for each in (shown, same):
            await world.refused("POST", path, body, status=409, code="preview-outdated", headers=confirming(each))
        await bank.pool.execute(rename, own, payee)
        answer = await world.send("POST", path, body, headers=confirming(await previewed(world, path, body)))
        assert answer.is_success, answer.text


async def test_a_preview_of_one_user_is_not_carried_out_by_a_colleague(*, customer_desk, manager, funded, world, bank):
    path, body = f"{funded.path}holds/", {"amount_usdc": 1_00, "reason": "Deposit"}
    shown = (await customer_desk.ask("POST", path, body, status=200, headers=PREVIEW)).json()
    await manager.invalid("POST", path, body, loc="header.preview-id", headers=confirming(shown))
    await customer_desk.ask("POST", path, body, status=201, headers=confirming(shown))
    shown = await previewed(world, path, body)
    async with bank.pool.acquire() as conn:
        await conn.execute(ADD_USER, user := ids.new(), world.partner.partner_id, "acme-other", "x", wall_now())
        token, _ = await issue_token(conn, partner_id=world.partner.partner_id, user_id=user, now=wall_now())
    colleague = PartnerApi(bank, world.app, replace(world.partner, user_id=user, token=token))
    await colleague.invalid("POST", path, body, loc="header.preview-id", headers=confirming(shown))
    await colleague.close()


WITHOUT_MONEY = {
    *("applications", "approvals", "authentication", "customers", "documents", "notifications", "portals", "reports"),
    *("subscriptions", "team"),
}
"""Tags of operations that move no money."""
UNCHANGED = "changes what is known of an object, and no money"
ASKED = "asks or answers, or ends what waits: nothing has moved"
SHOWN_BEFORE = "decides what was requested, whose preview shows the effect, by the hash of its content"
NOT_PREVIEWED = {
    **dict.fromkeys(("annotate_ach_origination", "annotate_card", "annotate_card_order"), UNCHANGED),
    **dict.fromkeys(
        ("annotate_on_us_transfer", "annotate_wire", "update_counterparty", "create_link_token"), UNCHANGED
    ),
    **dict.fromkeys(("verify_linked_account", "verify_micro_deposits", "link_accounts"), UNCHANGED),
    **dict.fromkeys(("cancel_batch", "cancel_transfer_request", "update_schedule_state"), ASKED),
    **dict.fromkeys(("create_reversal_request", "cancel_reversal_request", "decline_reversal_request"), ASKED),
    **dict.fromkeys(("create_card_dispute", "withdraw_card_dispute"), ASKED + "; an operator advances money"),
    **dict.fromkeys(("decide_batch", "decide_transfer_request"), SHOWN_BEFORE),
    **dict.fromkeys(("create_card_order", "create_virtual_card", "get_physical_card", "get_virtual_card"), UNCHANGED),
    **dict.fromkeys(("close_card", "close_virtual_card", "set_card_pin", "set_card_status"), UNCHANGED),
    "add_card_dispute_documents": UNCHANGED,
    "create_counterparty": "a batch of one row is previewed",
    "create_pocket": "opens it without money; a batch of one row is previewed",
    "update_transfer_request": "has the body of a request, which is previewed",
}


def test_every_operation_on_money_is_previewed_or_says_why_not():
    listed = set()
    for document in (customer_document(Settings()), partner_document(Settings(), partner_operations())):
        paths = document["paths"]
        for path, methods in paths.items():
            for method, operation in methods.items():
                is_previewed = "x-preview" in operation or f"{path}preview/" in paths or path.endswith("/preview/")
                if method != "get" and not is_previewed and operation["tags"][0] not in WITHOUT_MONEY:
                    listed.add(operation["operationId"])
    assert listed == NOT_PREVIEWED.keys()
