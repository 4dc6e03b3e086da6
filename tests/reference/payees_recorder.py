"""Plays what is about counterparties beside the requests that other recorders play."""

from typing import Any
from uuid import UUID

from tests.documents.inspection.test_sandboxed_process import a_picture
from tests.support.whole_bank import SEED

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.platform import ids

DEPOSITS = {"amounts": [11, 22]}
ACCOUNT: dict[str, Any] = {
    "type": "ach",
    "counterparty_name": {"type": "business", "business_name": "Contoso"},
    "routing_number": "021000021",
    "account_number": "1234567890",
    "account_type": "CHECKING",
    "verification": {"type": "micro_deposits"},
}
PROOF = "WIRE_COUNTERPARTY_VERIFICATION"


async def send_file(r, name, path, file_name):
    """Send a picture under the next key; note its answer under its operation's name, once."""
    key = r.next_key()
    headers = {"content-type": "image/png", "content-disposition": f'attachment; filename="{file_name}"'}
    answer = await r.client.send("POST", path, a_picture("PNG"), key=key, headers=headers)
    assert answer.status_code < 300, (name, answer.text)
    r.notes.setdefault(name, {"response": answer.json()})
    return answer.json()


async def play_documents(r, by_type, by_id, read):
    """Send a file that is found invalid, another in its place, and read what became of it."""
    made = await send_file(r, "upload_document", by_type, file_name="invalid scan.png")
    document = made["document_id"]
    await send_file(r, "upload_document_file", f"{by_id}{document}/", file_name="statement.png")
    await r.play("get_document", "GET", f"{read}{document}/")


async def play_verifications(r, customer):
    """Confirm deposits, link accounts, and read both as v1 tells of them."""
    v1, v2 = f"/api/v1/customers/{customer}/", f"/api/v2/customers/{customer}/counterparties/"
    counterparty = await _waiting(r, customer)
    confirm = f"{v2}{counterparty}/verify-micro-deposits/"
    await r.play("verify_micro_deposits", "POST", confirm, body=DEPOSITS)
    path = f"{v1}counterparties/"
    begun = {"client_name": "Acme", "redirect_uri": "https://acme.example/linked"}
    token = f"{path}linking-provider/link-token/"
    await r.play("create_link_token", "POST", token, body=begun)
    r.notes["create_link_token"]["response"] = {
        "link_token": "link-sandbox-7d0f1c...",
        "expiration": "2025-06-02T17:00:00Z",
    }
    chosen = {"public_token": "public-sandbox-1", "accounts": [{"id": "manual-checking"}]}
    linked = await r.play("link_accounts", "POST", f"{path}linking-provider/", body=chosen)
    account = linked["items"][0]["id"]
    verify = f"{path}{account}/linking-provider/verify/"
    await r.play("verify_linked_account", "POST", verify, body={})
    await r.play("list_v1_counterparties", "GET", path)
    await r.play("get_v1_counterparty", "GET", f"{path}{account}/")
    await play_documents(r, f"{v1}documents/{PROOF}/file/", "/api/v1/documents/", read="/api/v1/documents/")
    wire = {name: ACCOUNT[name] for name in ("counterparty_name", "routing_number")} | {
        "type": "wire",
        "identifier": "1234567890",
        "verification": {"type": "incoming_wire"},
        "address": {
            "street_address": "1 Main Street",
            "city": "New York",
            "state": "NY",
            "postal_code": "10001",
            "country": "US",
        },
    }
    waiting = await r.play("-", "POST", v2, body=wire | {"identifier": "9876543210"})
    decided = {"counterparty_id": waiting["id"], "status": "APPROVED"}
    box = "/api/v1/sandbox/counterparty-verification/"
    await r.play("sandbox_counterparty_verification", "POST", box, body=decided)


async def _waiting(r, customer):
    """Return the id of a counterparty whose deposits wait to be confirmed."""
    added = await r.bank.engine.submit(
        AddCounterparty(
            caller="examples",
            key=ids.derive(SEED, UUID(customer), 0),
            customers=(UUID(customer),),
            type="ach",
            counterparty_name=ACCOUNT["counterparty_name"],
            details={name: ACCOUNT[name] for name in ("routing_number", "account_number")},
            verification="micro_deposits",
        )
    )
    return added.outcome["counterparty_id"]
