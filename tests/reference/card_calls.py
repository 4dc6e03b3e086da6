"""One request per operation of the Partner API about cards."""

from tests.reference.return_calls import play_disputes
from tests.reference.shared_calls import play_both
from tests.support.cards import SHIPPING, encrypted_pin, pem, unread_key

BOX, V1 = "/api/v1/sandbox", "/api/v1"


async def play_cards(r, customer, pocket):
    """A virtual card, and a physical one from its order to its end."""
    account = f"{V1}/service-accounts/{pocket}"
    keys = [{"public_key": pem(unread_key(seed))} for seed in (1, 2, 3)]
    virtual = (await r.post("create_virtual_card", f"{account}/virtual-cards/", keys[0]))["card_id"]
    await r.post("get_virtual_card", f"{account}/virtual-cards/{virtual}/", keys[1])
    ordered = {"name_on_card": "Ada Stone", "shipping_address": SHIPPING}
    order = (await r.post("create_card_order", f"{account}/card-orders/", ordered))["card_order_id"]
    await r.post("sandbox_generate_card", f"{BOX}/generate-card/", {"card_order_id": order})
    card = (await r.get("get_card_order", f"{account}/card-orders/{order}/"))["card_id"]
    await r.patch("annotate_card_order", f"{account}/card-orders/{order}/", {"external_id": "employee-12"})
    await r.get("list_account_card_orders", f"{account}/card-orders/")
    await r.get("list_customer_card_orders", f"{V1}/customers/{customer}/card-orders/")
    await r.post("get_physical_card", f"{account}/physical-cards/{card}/", keys[2])
    key = (await r.get("get_public_keys", f"{V1}/public-keys/"))["set_pin"]
    path = f"{account}/cards/{card}"
    await r.post("set_card_pin", f"{path}/pin/", encrypted_pin(key))
    r.notes["set_card_pin"]["request"] = {"encrypted_pin": "T3k1"}
    await r.patch("set_card_status", f"{path}/status/", {"card_status": "ONLINE", "magstripe_status": "ON"})
    await r.get("get_card_status", f"{path}/status/")
    await r.get("explain_card", f"{path}/explain/")
    await r.patch("annotate_card", f"{path}/", {"external_id": "employee-12"})
    await r.get("list_account_cards", f"{account}/cards/")
    await play_both(r, "list_customer_cards", f"/customers/{customer}", "/cards/")
    await _play_card_payments(r, f"{account}/cards/{virtual}", {"card_id": virtual})
    await _play_dispute(r, customer, pocket)
    lost = {"closure_reason": "LOST", "lost_stolen_date": "2025-06-01"}
    await r.post("close_card", f"{path}/close/", lost)
    await r.delete("close_virtual_card", f"{account}/virtual-cards/{virtual}/")


async def _play_dispute(r, customer, pocket):
    disputed = await play_disputes(r, r, pocket, customer_id=customer)
    one = await r.post("-", f"{V1}/card-disputes/", disputed)
    decision = {"dispute_id": one["id"], "outcome": "WON"}
    await r.post("sandbox_card_dispute_decision", f"{BOX}/card-dispute-decision/", decision)


async def _play_card_payments(r, path, card):
    """The steps of a merchant and the network with a card, in order."""
    limits = {"daily": 50_000, "categories": {"5813": 10_000, "7995": 0}}
    await r.play("set_card_limits", "PUT", f"{path}/limits/", limits)
    await r.get("get_card_limits", f"{path}/limits/")
    await r.post("sandbox_card_swipe", f"{BOX}/card-swipe/", {**card, "amount_usdc": 1_250})
    meal = {**card, "network_reference": "514721000001"}
    await r.post("sandbox_card_authorization", f"{BOX}/card-authorization/", {**meal, "amount_usdc": 8_000})
    await r.post("sandbox_card_increment", f"{BOX}/card-increment/", {**meal, "amount_usdc": 2_000})
    await r.post("sandbox_card_reversal", f"{BOX}/card-reversal/", {**meal, "amount_usdc": 1_000})
    cleared = await r.post("sandbox_card_clearing", f"{BOX}/card-clearing/", {**meal, "amount_usdc": 9_600})
    record = {**card, "record_id": cleared["record_id"]}
    await r.post("sandbox_card_chargeback", f"{BOX}/card-chargeback/", record)
    await r.post("sandbox_card_representment", f"{BOX}/card-representment/", record)
    await r.post("sandbox_card_refund", f"{BOX}/card-refund/", {**card, "amount_usdc": 500})
    shoes = {**card, "network_reference": "514721000002"}
    await r.play("-", "POST", f"{BOX}/card-authorization/", {**shoes, "amount_usdc": 4_000})
    await r.post("sandbox_card_hold_expiry", f"{BOX}/card-hold-expiry/", shoes)
