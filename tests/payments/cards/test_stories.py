"""Cards through the Partner API: only the client reads their numbers, and their statuses follow contract 2.7."""

import asyncio
from collections import Counter
from itertools import pairwise
from uuid import UUID

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from stdnum import luhn
from tests.journeys.test_nothing_personal_in_a_dump import dumped
from tests.support.applications import run_jobs
from tests.support.cards import PIN, SHIPPING, Holder, client_key, decrypted, pem, processors, unread_key
from tests.support.damage import checks_of, undetected
from tests.support.databases import as_owner, owner_of
from tests.support.events import notified
from tests.support.oauth import member

from billfold.cli.context import CliError
from billfold.events.notifications.payment_notifications import notify_of_payments
from billfold.payments.cards import checks, cli, detail_routes
from billfold.platform.clock import wall_now
from billfold.sandbox import line_process
from billfold.sandbox.card_processor.vault import CardVault
from billfold.verify.fingerprints import check_fingerprints


@pytest.fixture
async def holder(world):
    return Holder(world, await world.pocket())


async def test_a_virtual_card_number_is_readable_only_by_the_client(holder, capfd):
    desk, key = holder.desk, client_key().public_key()
    body = {"public_key": pem(key)}
    made = await desk.post(f"{holder.account}/virtual-cards/", body, key="5b6f2f3e-8a52-4b0e-9d57-0d3c2a1b4c5d")
    pan, cvv, expiration = decrypted(made)
    assert luhn.is_valid(pan)
    assert (len(pan), len(cvv), expiration) == (16, 3, "06/29")

    (listed,) = (await desk.get(f"{holder.account}/cards/"))["items"]
    assert (listed["status"], listed["last_four"], listed["pocket_id"]) == ("ONLINE", pan[-4:], holder.pocket.id)
    assert (await desk.get(f"/api/v1/customers/{holder.pocket.customer}/cards/"))["items"] == [listed]
    path = f"{holder.account}/virtual-cards/{made['card_id']}/"
    spki = pem(key, PublicFormat.SubjectPublicKeyInfo)
    await desk.refused("POST", path, {"public_key": spki}, status=422, code="public-key-reused")
    await as_owner(desk.bank, "DELETE FROM card_detail_key")
    again = await desk.post(path, {"public_key": spki, "padding": "OAEP_SHA256"}, status=200)
    oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
    assert decrypted(again, oaep) == [pan, cvv, expiration]

    everything = b"".join((await dumped(desk.bank)).values()) + "".join(capfd.readouterr()).encode()
    folder = desk.bank.settings.state_dir
    everything += b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert pan.encode() not in everything
    assert pan.encode().hex().encode() not in everything
    assert await holder.events() == ["open"]


async def test_a_physical_card_is_ordered_produced_and_activated(holder):
    desk = holder.desk
    order = await holder.ordered()
    assert (order["status"], order["card_id"], order["shipping_address"]["city"]) == ("INITIAL", None, "Vantorp")
    await run_jobs(desk.bank)
    (listed,) = (await desk.get(f"/api/v1/customers/{holder.pocket.customer}/card-orders/"))["items"]
    assert (listed["status"], listed["object_type"]) == ("ORDERED", "MinimalPhysicalCardOrderResponse")
    card_id = await holder.produced(order)
    again = {"card_order_id": order["card_order_id"]}
    await desk.refused("POST", "/api/v1/sandbox/generate-card/", again, status=409, code="card-order-not-open")

    status, pin = holder.status_path(card_id), f"{holder.account}/cards/{card_id}/pin/"
    assert (await desk.get(status))["status"] == "NOT_ACTIVATED"
    await desk.refused("PATCH", status, {"card_status": "ONLINE"}, status=409, code="card-not-activated")
    for wrong in ("471", "47111", "47a1", ""):
        await desk.invalid("POST", pin, await holder.encrypted(wrong), loc="body.encrypted_pin")
    await desk.invalid("POST", pin, {"encrypted_pin": "NDcxMQ=="}, loc="body.encrypted_pin")
    assert (await desk.post(pin, await holder.encrypted(PIN), status=200))["success"]
    await desk.refused("PATCH", status, {"card_status": "OFFLINE"}, status=409, code="card-not-activated")
    online = await holder.set_status(card_id, "ONLINE", magstripe_status="ON")
    assert (online["status"], online["magstripe_status"]) == ("ONLINE", "ON")
    await desk.refused("POST", pin, await holder.encrypted(PIN), status=409, code="card-already-activated")
    assert (await desk.get(f"{holder.account}/card-orders/{order['card_order_id']}/"))["status"] == "RECEIVED"
    locked = await holder.set_status(card_id, "LOCKED", magstripe_status="ON")
    assert (locked["status"], locked["magstripe_status"]) == ("OFFLINE", "OFF")
    assert (await holder.set_status(card_id, "OPEN"))["status"] == "ONLINE"
    assert await holder.events() == ["open", "locked", "open"]


async def test_a_closed_physical_card_has_a_reason_and_can_never_be_used(holder):
    desk = holder.desk
    card_id = await holder.produced(await holder.ordered())
    status, pin = holder.status_path(card_id), f"{holder.account}/cards/{card_id}/pin/"
    close = f"{holder.account}/cards/{card_id}/close/"
    for body, field in (
        ({}, "closure_reason"),
        ({"closure_reason": "LOST"}, "lost_stolen_date"),
        ({"closure_reason": "DAMAGED", "lost_stolen_date": "2025-06-01"}, "lost_stolen_date"),
        ({"closure_reason": "STOLEN", "lost_stolen_date": "2125-06-03"}, "lost_stolen_date"),
        ({"closure_reason": "BORED"}, "closure_reason"),
    ):
        await desk.invalid("POST", close, body, loc=f"body.{field}")
    lost = {"closure_reason": "STOLEN", "lost_stolen_date": "2025-06-01"}
    await desk.post(close, lost, status=204)
    for method, path, body in (
        ("POST", close, lost),
        ("PATCH", status, {"card_status": "ONLINE"}),
        ("POST", pin, await holder.encrypted(PIN)),
        ("POST", f"{holder.account}/physical-cards/{card_id}/", {"public_key": pem(unread_key())}),
    ):
        await desk.refused(method, path, body, status=412, code="already-closed")
    assert await holder.events() == ["closed"]
    async with owner_of(desk.bank) as conn:
        check_cards = checks_of(checks)
        assert await undetected(conn, "card", check_fingerprints, check_cards) == []
        assert await undetected(conn, "card_order", check_fingerprints, check_cards) == []


async def test_a_frozen_card_is_unfrozen_only_by_the_bank_with_notice_to_processor_and_team(holder):
    desk, customer = holder.desk, UUID(holder.pocket.customer)
    await member(desk.bank.pool, customer)
    card_id = UUID((await holder.virtual_card())["card_id"])
    await cli.freeze(desk.bank, card_id, reason="suspected fraud", alone=True)
    body = {"card_status": "ONLINE"}
    await desk.refused("PATCH", holder.status_path(card_id), body, status=409, code="card-frozen")
    await run_jobs(desk.bank)
    vault = CardVault(desk.bank.settings.state_dir / "card_processor")
    assert vault.is_stopped(str(card_id))
    await cli.unfreeze(desk.bank, card_id, reason="holder confirmed the payments", alone=True)
    assert ("Status", "OFFLINE") in await cli.show(desk.bank, card_id)
    assert (await holder.set_status(card_id, "ONLINE"))["status"] == "ONLINE"
    await run_jobs(desk.bank)
    assert not vault.is_stopped(str(card_id))
    (row,) = await cli.list_cards(desk.bank, pocket=UUID(holder.pocket.id))
    (listed,) = (await desk.get(f"{holder.account}/cards/"))["items"]
    assert row[:4] == (card_id, "VIRTUAL", listed["last_four"], "ONLINE")
    with pytest.raises(CliError, match="There is no card"):
        await cli.freeze(desk.bank, customer, reason="mistyped", alone=True)
    await desk.ask("DELETE", f"{holder.account}/virtual-cards/{card_id}/", status=204)
    assert await holder.events() == ["open", "frozen", "locked", "open", "closed"]
    await notify_of_payments(desk.bank.pool, desk.bank.vault, now=wall_now())
    said = [text for kind, text in await notified(desk.bank, customer) if kind == "CARD_STATUS_CHANGED"]
    assert said == [f"The card {row[2]} of the Pocket Reserve was {what}." for what in ("frozen by the bank", "closed")]


async def test_concurrent_card_updates_return_their_own_result(holder):
    """In any order of execution, a closed card stays closed, and every answer is consistent with that order."""
    desk, order = holder.desk, await holder.ordered()
    card_id = await holder.produced(order)
    status, path = holder.status_path(card_id), f"{holder.account}/cards/{card_id}"
    pin, lost = await holder.encrypted(PIN), {"closure_reason": "DAMAGED"}
    await desk.post(f"{path}/pin/", pin, status=200)
    moves = [("POST", f"{path}/pin/", pin), ("PATCH", status, {"card_status": "ONLINE"})]
    moves += [("PATCH", status, {"card_status": "OFFLINE"}), ("POST", f"{path}/close/", lost)]
    answers = await asyncio.gather(*(desk.send(*move) for _ in range(5) for move in moves))
    codes = Counter(each.json()["code"] if each.status_code >= 400 else each.status_code for each in answers)
    assert codes[204] == 1
    assert set(codes) <= {200, 204, "already-closed", "card-already-activated", "card-not-activated"}
    assert (await desk.get(status))["status"] == "CLOSED"
    moved = await holder.events()
    assert (moved.count("closed"), moved[-1]) == (1, "closed")
    assert all(earlier != later for earlier, later in pairwise(moved))


@pytest.mark.parametrize("what", ["customers", "pockets"])
async def test_cards_of_a_frozen_customer_or_pocket_can_only_be_disabled_or_closed(holder, what):
    desk, box = holder.desk, "/api/v1/sandbox"
    card, order = (await holder.virtual_card())["card_id"], await holder.ordered()
    await holder.set_status(card, "OFFLINE")
    stop, code = {"status": "FROZEN"}, "pocket-frozen"
    if what == "customers":
        stop, code = {**stop, "reason": "Court order"}, "customer-not-open"
    frozen = holder.pocket.customer if what == "customers" else holder.pocket.id
    await desk.post(f"{box}/{what}/{frozen}/", stop, status=200)
    new = {"name_on_card": "Ada Marsh", "shipping_address": SHIPPING}
    key, issued = {"public_key": pem(unread_key())}, holder.numbers()
    for method, path, body in (
        ("PATCH", holder.status_path(card), {"card_status": "ONLINE"}),
        ("POST", f"{holder.account}/virtual-cards/", key),
        ("POST", f"{holder.account}/card-orders/", new),
        ("POST", f"{box}/generate-card/", {"card_order_id": order["card_order_id"]}),
    ):
        await desk.refused(method, path, body, status=409, code=code)
    assert (await holder.set_status(card, "OFFLINE"))["status"] == "OFFLINE"
    await desk.post(f"{holder.account}/virtual-cards/{card}/", key, status=200)  # which is not used up
    assert holder.numbers() == issued
    await desk.post(f"{holder.account}/cards/{card}/close/", {"closure_reason": "CANCELED"}, status=204)


async def test_closing_a_pocket_closes_its_cards(holder):
    desk = holder.desk
    card_id, order = (await holder.virtual_card())["card_id"], await holder.ordered()
    await desk.pocket(holder.pocket.customer, name="Another")
    closing = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}
    await desk.patch(f"/api/v2/customers/{holder.pocket.customer}/pockets/{holder.pocket.id}/", closing)
    (listed,) = (await desk.get(f"{holder.account}/cards/", {"filter[status]": ["CLOSED", "LOCKED"]}))["items"]
    assert listed["card_id"] == card_id
    body = {"card_status": "ONLINE"}
    await desk.refused("PATCH", holder.status_path(card_id), body, status=412, code="already-closed")
    new = {"public_key": pem(unread_key())}
    await desk.refused("POST", f"{holder.account}/virtual-cards/", new, status=409, code="pocket-not-open")
    await run_jobs(desk.bank)
    assert await holder.events() == ["open", "closed"]
    kept = await desk.get(f"{holder.account}/card-orders/{order['card_order_id']}/")
    assert kept["status"] == "INITIAL", "nothing is produced for a closed Pocket"


async def test_a_virtual_card_is_not_found_as_a_physical_card(holder):
    card_id = (await holder.virtual_card())["card_id"]
    physical = f"{holder.account}/physical-cards/{card_id}/"
    await holder.desk.refused("POST", physical, {"public_key": pem(unread_key())}, status=404, code="not-found")


async def test_a_card_public_key_other_than_rsa_4096_is_refused(holder):
    short = rsa.generate_private_key(public_exponent=65_537, key_size=2048).public_key()
    curve = ec.generate_private_key(ec.SECP256R1()).public_key()
    small = rsa.RSAPublicNumbers(3, client_key().public_key().public_numbers().n).public_key()
    private = client_key().private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    spki = PublicFormat.SubjectPublicKeyInfo
    both = pem(unread_key(), spki) + private
    for key in (pem(short), pem(curve, spki), pem(small), private, both, "not a key", pem(short)[:-40]):
        await holder.desk.invalid(
            "POST", f"{holder.account}/virtual-cards/", {"public_key": key}, loc="body.public_key"
        )
    assert (await holder.desk.get(f"{holder.account}/cards/"))["items"] == []


async def test_reading_a_card_number_is_rate_limited_per_ten_minutes(holder, monkeypatch):
    monkeypatch.setattr(detail_routes, "_READS", 2)
    path = f"{holder.account}/virtual-cards/{(await holder.virtual_card())['card_id']}/"
    keys = [{"public_key": pem(unread_key())} for _ in range(3)]
    for key in keys[:2]:
        await holder.desk.post(path, key, status=200)
    await holder.desk.refused("POST", path, keys[2], status=429, code="rate-limited")
    await holder.virtual_card()


async def test_a_repeated_card_request_creates_one_card(holder, monkeypatch):
    desk, body = holder.desk, {"public_key": pem(unread_key())}
    key, path = "7f0c6a0e-2f4e-4f0a-8f6d-2b8f6c1d9e30", f"{holder.account}/virtual-cards/"
    await desk.get("/api/v1/public-keys/")
    (process,) = processors()
    monkeypatch.setattr(line_process, "TIMEOUT_SECONDS", 0.5)
    process.suspend()
    await desk.refused("POST", path, body, status=503, code="unavailable", key=key)
    process.wait(5)
    monkeypatch.undo()
    made = await desk.post(path, body, key=key)
    assert await desk.post(path, body, key=key) == made
    (process,) = processors()
    process.kill()
    await desk.post(f"{path}{made['card_id']}/", {"public_key": pem(unread_key())}, status=200)
    (listed,) = (await desk.get(f"{holder.account}/cards/"))["items"]
    assert listed["card_id"] == made["card_id"]


async def test_a_card_shipping_address_that_is_undeliverable_is_refused(holder):
    for field, value in (("state", None), ("state", "ZZ"), ("country", "XX")):
        body = {"name_on_card": "Ada Marsh", "shipping_address": SHIPPING | {field: value}}
        await holder.desk.invalid("POST", f"{holder.account}/card-orders/", body, loc=f"body.shipping_address.{field}")
