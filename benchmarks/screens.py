"""Objects that pages of a sandbox show, one of each kind, and the links that it mailed to people.

They are made as programs and guests make them: by both APIs, and by the forms that a link leads to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from email import message_from_bytes, policy
from html import unescape
from pathlib import Path
from time import sleep
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from benchmarks.onboarding import person
from benchmarks.worker_processes import WorkloadError
from billfold.platform.clock import monotonic
from billfold.sandbox.running_sandbox import FILE_NAME, SandboxFile, partner_http
from billfold_client.sandbox import sandbox_customer

TYPED = ("/sandbox/try/partner/list_pockets",)
"""Addresses to which only the documentation leads."""
_GUESTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "carol@helpers.example": ("COLLABORATOR", {"collaborators": [{"email": "carol@helpers.example"}]}),
    "dan@northwind.example": (
        "AUTHORIZED_PERSON",
        {"email": "dan@northwind.example", "first_name": "Dan", "last_name": "Poe"},
    ),
}
_NEW = "kim@dummy-customer.example"
_SUBSCRIPTION = {
    "url": "https://hooks.northwind.example/billfold",
    "events": ["transfers.wire.in.success"],
    "shared_secret": "whsec_bm90IGEgc2VjcmV0IGJ1dCBhbiBleGFtcGxlIG9mIG9uZQ==",
}
_RULE = {
    "name": "Large wires",
    "approver_roles": ["ADMIN"],
    "min_amount_usdc": 1_000_000_000,
    "required_approvals": 1,
    "transfer_types": ["WIRE"],
}
_PAYEE = {
    "type": "ach",
    "counterparty_name": {"type": "business", "business_name": "Contoso"},
    "routing_number": "021000021",
    "verification": {"type": "incoming_wire"},
    "account_number": "000987654301",
    "account_type": "CHECKING",
}
_BUSINESSES = "/api/v2/business-applications/"
_WAIT_SECONDS = 30.0
"""For an e-mail, which is sent after those of a day with thousands of payments."""
_ADVANCE_SECONDS = 600.0
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


def make_objects(box: SandboxFile, folder: Path) -> list[str]:
    """Make one object of each kind; return the addresses of those that no page links to."""
    with sandbox_customer(folder / FILE_NAME) as api:
        _make_by_customer(_Caller(api.http), box)
    with partner_http(box) as http:
        partner = _Caller(http)
        _make_by_partner(partner, box)
        task = partner.post("/api/v1/sandbox/forks/", {"name": "bench"})["id"]
        while partner.send("GET", f"/api/v1/sandbox/tasks/{task}/")["status"] == "RUNNING":
            sleep(1)
    return [*TYPED, f"/sandbox/tasks/{task}"]


class _Caller:
    """Sends requests of a program: those that come too early again."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self.send("POST", path, json=body)

    def send(self, method: str, path: str, **sent: Any) -> Any:
        answer = self._http.request(method, path, timeout=_ADVANCE_SECONDS, **sent)
        while answer.is_error and "retry-after" in answer.headers:
            sleep(int(answer.headers["retry-after"]))
            answer = self._http.request(method, path, timeout=_ADVANCE_SECONDS, **sent)
        if answer.is_error:
            raise WorkloadError(f"{path}: {answer.text}")
        return answer.json() if answer.content else None


def _make_by_partner(partner: _Caller, box: SandboxFile) -> None:
    made = partner.post(
        "/api/v1/applications/", person(0, None) | {"name": {"first_name": "Grace", "last_name": "REVIEW"}}
    )
    partner.post(
        f"/api/v1/applications/{made['id']}/apply/", {}
    )  # the name lets it stay in the bank's queue of reviews
    partner.post("/api/v1/business-applications/", {"name": "Fabrikam"})
    partner.post("/api/v1/subscriptions/", _SUBSCRIPTION)
    payees = f"/api/v2/customers/{box.customer_id}/counterparties/"
    payee = partner.post(payees, _PAYEE)["id"]
    decided = {"counterparty_id": payee, "status": "APPROVED"}
    partner.post("/api/v1/sandbox/counterparty-verification/", decided)
    entry = {"counterparty_id": payee, "direction": "CREDIT", "amount_usdc": 100_00}
    entry |= {"sec_code": "PPD", "company_entry_description": "PAYROLL"}
    partner.post(f"/api/v1/service-accounts/{box.pocket_ids[0]}/ach-originating/", entry)
    partner.post("/api/v1/sandbox/statements/", {"behavior": "UNKNOWN_LINE"})
    partner.post("/api/v1/sandbox/clock/advance/", {"business_days": 1})


def _make_by_customer(customer: _Caller, box: SandboxFile) -> None:
    customer.post("/api/v1/subscriptions/", _SUBSCRIPTION)
    customer.post("/api/v1/approval-rules/", _RULE)
    days = {"date_from": "2025-06-02", "date_to": "2025-06-02"}
    report = {"type": "TRADE_REPORT", "parameters": days, "output_formats": ["CSV"]}
    customer.post("/api/v1/report-requests/", report)
    origin, to = map(str, box.pocket_ids[:2])
    row = {"type": "INTERNAL_REALLOCATION", "from_pocket_id": origin, "to_pocket_id": to, "amount_usdc": 125_00}
    rows = [row | {"description": "INV-8", "idempotency_key": "INV-8"}]
    customer.post("/api/v1/batches/", {"kind": "TRANSFERS", "mode": "ATOMIC", "rows": rows})
    made = customer.post(_BUSINESSES, {"name": "Fabrikam"})["id"]
    for invitation_type, body in _GUESTS.values():
        customer.post(f"{_BUSINESSES}{made}/invite/", {"invitation_type": invitation_type, **body})


def send_forms(http: httpx.Client, box: SandboxFile) -> None:
    """Let an administrator, who is signed in, register an application and invite a member; let a colleague forget."""
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    books = {"name": "Books", "redirect_uris": "https://books.example/back", "profile": "fapi2", "public_key": pem}
    clients = f"/companies/{box.customer_id}/applications"
    _submit(http, f"{clients}/new", clients, books | {"scope.pockets.read": "yes"})
    path = f"/team/{box.customer_id}"
    invited = {"first_name": "Kim", "last_name": "Osei", "email": _NEW, "role": "VIEWER"}
    _submit(http, f"{path}/invite", f"{path}/invite", invited)
    _submit(http, "/forgot", "/forgot", {"email": box.colleague.email})


def guests(box: SandboxFile, folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield each person to whom a link was mailed: who it is, the link, and whether it begins an application."""
    for email in (*_GUESTS, _NEW, box.colleague.email):
        if link := _link(folder, email):
            yield email, link, email in _GUESTS


def begin_application(http: httpx.Client, link: str) -> list[str]:
    """Open the link of an invite, begin, and add a person; return the addresses of the guest."""
    page = http.get(link)
    base = page.headers["location"] if page.has_redirect_location else link.partition("?")[0]
    _submit(http, base, f"{base}/begin", {})
    added = http.get(f"{base}/people/new")
    if added.is_success:
        _submit(http, f"{base}/people/new", f"{base}/people/new", {"name.first_name": "Bo", "name.last_name": "Reyes"})
    return [link, base, f"{base}/documents", f"{base}/people/new", f"{base}/review"]


def _submit(http: httpx.Client, page: str, action: str, form: Mapping[str, str]) -> None:
    """Send a form as a browser does, with the token of its page."""
    found = _CSRF.search(http.get(page).text)
    if found is None:
        raise WorkloadError(f"{page} has no form")
    headers = {"origin": str(http.base_url).rstrip("/")}
    answer = http.post(action, data={"csrf": unescape(found[1]), **form}, headers=headers)
    if answer.is_error:
        raise WorkloadError(f"{action}: {answer.status_code}")


def _link(folder: Path, email: str) -> str:
    """Return the path of the newest link that was mailed to somebody, or nothing."""
    deadline = monotonic() + _WAIT_SECONDS
    while monotonic() < deadline:
        for file in sorted((folder / "mail").glob("*.eml"), reverse=True, key=lambda each: each.stat().st_mtime_ns):
            content = file.read_bytes()
            if email.encode() not in content:  # to parse thousands of e-mails takes longer than to wait for this one
                continue
            message = message_from_bytes(content, policy=policy.default)
            found = re.search(r"https://[^/\s]+(/\S+\?link=\S+)", message.get_content())
            if message["To"] == email and found:
                return found[1]
        sleep(0.2)
    return ""
