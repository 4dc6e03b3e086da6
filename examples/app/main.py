"""A web application whose users have Pockets: sign up, a Pocket, how to pay in, pay out, webhooks, a statement.

    python examples/app/main.py --port 8000

It is the thing to copy: FastAPI, plain HTML, and the Partner API through its client. Against a sandbox it reads
`.billfold/sandbox.json`. Users and sessions live in memory; yours belong in a database, in the places marked KEEP.
"""

import argparse
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from html import escape
from typing import Annotated, NamedTuple
from uuid import UUID, uuid4

import uvicorn
from fastapi import Cookie, FastAPI, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from billfold_client.errors import ApiError
from billfold_client.partner import PartnerApi
from billfold_client.sandbox import run_with_sandbox, sandbox_partner
from billfold_client.webhooks import InvalidWebhook, verify_webhook

EVENTS_KEPT = 1_000
CENTS = 100
CENTS_MAX = 1_000_000_00


@dataclass
class User:
    """A user of this application, and where the bank keeps their money. KEEP"""

    company: str
    salt: bytes
    password: bytes
    customer_id: UUID
    pocket_id: UUID
    payees: dict[tuple[str, str], UUID] = field(default_factory=dict)


class Payment(NamedTuple):
    """A payment that a user asks for. The form has its id, so that a second click pays nothing twice."""

    id: UUID
    payee: str
    address: str
    cents: int


class Bank:
    """The calls that this application makes. Every method may raise ApiError."""

    def __init__(self, api: PartnerApi) -> None:
        self._api = api

    def enrol(self, company: str) -> tuple[UUID, UUID]:
        """Return a new customer of the bank and their Pocket.

        Only a sandbox enrols at once. Elsewhere a customer applies: `create_business_application` and what follows.
        """
        customer = self._api.sandbox_customer(name=company, type="BUSINESS")
        pocket = self._api.create_pocket(customer.id, pocket_name="Savings", deposit_strategy_id="UST-4W")
        return customer.id, pocket.id

    def value(self, user: User) -> str:
        """Return what a user's Pocket is worth: cash and Treasury bills."""
        portfolio = self._api.get_pocket(user.pocket_id).portfolio
        return portfolio.total_value.formatted if portfolio else "unknown"

    def deposit_account(self, user: User) -> tuple[str, str, str]:
        """Return routing and account number for wires and ACH, and the address for other Pockets of this bank."""
        portal = next(iter(self._api.list_portals(user.pocket_id)))
        return str(portal.routing_number), str(portal.account_number), str(portal.network_address)

    def pay(self, user: User, payment: Payment) -> tuple[str, str]:
        """Return how a payment to a Pocket of this bank ended, and why. The same id pays once."""
        known = user.payees.get((payment.payee, payment.address))
        payee_id = known or self._payee(user, payment)
        done = self._api.create_on_us_transfer(
            type="PEER_TO_PEER",
            from_account={"id": user.pocket_id},
            counterparty_id=payee_id,
            amount={"type": "REQUESTED_AMOUNT", "amount_usdc": payment.cents},
            transfer_id=payment.id,
        )
        return done.status, str(getattr(done, "reason", None) or "")

    def _payee(self, user: User, payment: Payment) -> UUID:
        # Its key makes sure that the payee of one payment is not created twice.
        made = self._api.create_counterparty(
            user.customer_id,
            {
                "type": "on_us",
                "account_number": payment.address,
                "counterparty_name": {"type": "business", "business_name": payment.payee},
            },
            idempotency_key=payment.id,
        )
        user.payees[payment.payee, payment.address] = made.id
        return made.id

    def statement(self, user: User) -> list[tuple[str, str, str]]:
        """Return the user's last transactions: day, text and amount."""
        page = next(iter(self._api.list_pocket_transactions(user.pocket_id, limit=50).by_page()))
        signs = {"CREDIT": "", "DEBIT": "-"}
        return [
            (f"{each.time_booked:%Y-%m-%d}", each.title, signs[each.direction] + each.amount.formatted)
            for each in page.items
        ]


class Application:
    """Users, sessions, and what the bank has told by webhook. KEEP"""

    def __init__(self, bank: Bank, webhook_secret: str) -> None:
        self.bank = bank
        self._webhook_secret = webhook_secret
        self._users: dict[str, User] = {}
        self._sessions: dict[str, str] = {}
        self._enrolling: set[str] = set()
        self._events: dict[UUID, str] = {}

    def sign_up(self, email: str, company: str, password: str) -> None:
        """Make a user, whose customer the bank knows from then on."""
        if email in self._users:
            raise HTTPException(409, "There is a user with this address.")
        if email in self._enrolling:
            raise HTTPException(409, "This address is being signed up.")
        salt = secrets.token_bytes(16)
        self._enrolling.add(email)  # two clicks are one customer
        try:
            customer_id, pocket_id = self.bank.enrol(company)
        finally:
            self._enrolling.discard(email)
        self._users[email] = User(company, salt, _hashed(password, salt), customer_id, pocket_id)

    def sign_in(self, email: str, password: str) -> str:
        """Return a new session."""
        user = self._users.get(email)
        salt, known = (user.salt, user.password) if user else (b"", b"")
        if not hmac.compare_digest(_hashed(password, salt), known):  # takes as long for an unknown user
            raise HTTPException(403, "Address or password is wrong.")
        session = secrets.token_urlsafe(32)
        self._sessions[session] = email
        return session

    def user_of(self, session: str) -> User:
        """Return who is signed in."""
        email = self._sessions.get(session)
        if email is None:
            raise HTTPException(303, headers={"location": "/"})
        return self._users[email]

    def receive(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Keep an event once, however often it is delivered; one that is not signed by the bank is refused."""
        try:
            event = verify_webhook(body, headers, shared_secret=self._webhook_secret)
        except InvalidWebhook as wrong:
            raise HTTPException(400, "The signature is wrong.") from wrong
        self._events.setdefault(event.event_id, event.event_type)
        if len(self._events) > EVENTS_KEPT:
            del self._events[next(iter(self._events))]

    @property
    def news(self) -> list[str]:
        """The types of the last events, the newest last. An event only says when to ask: the bank has the figures."""
        return list(self._events.values())[-5:]


def _hashed(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)


Text = Annotated[str, Form(min_length=1, max_length=100)]
Session = Annotated[str, Cookie()]
_BACK = "<a href='/pocket'>Back</a>"
_FORMS = {
    "/sign-up": ("Sign up", {"email": "email", "company": "text", "password": "password"}),
    "/sign-in": ("Sign in", {"email": "email", "password": "password"}),
}


def make_app(bank: Bank, webhook_secret: str) -> FastAPI:
    """Return the application; forms of other sites are refused by its cookie, which is not sent with them."""
    app, state = FastAPI(openapi_url=None), Application(bank, webhook_secret)

    @app.exception_handler(ApiError)
    def refused(_request: Request, error: ApiError) -> HTMLResponse:
        # 503 if the same request may succeed later; what a user did wrong is the bank's own sentence.
        wrong = [f"{each.loc[-1]} {each.msg}" for each in error.fields] or [error.detail or error.title]
        return _page("Not possible", f"<p>{escape('; '.join(wrong))}</p>{_BACK}", 503 if error.retryable else 422)

    @app.get("/")
    def welcome() -> HTMLResponse:
        return _page("Savings", "".join(_form(path, title, fields) for path, (title, fields) in _FORMS.items()))

    @app.post("/sign-up")
    def sign_up(email: Text, company: Text, password: Text) -> Response:
        state.sign_up(email, company, password)
        return _signed_in(state.sign_in(email, password))

    @app.post("/sign-in")
    def sign_in(email: Text, password: Text) -> Response:
        return _signed_in(state.sign_in(email, password))

    @app.get("/pocket")
    def pocket(session: Session = "") -> HTMLResponse:
        user = state.user_of(session)
        routing, account, address = bank.deposit_account(user)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in each)}</tr>" for each in bank.statement(user))
        pay = _form("/pay", "Pay", {"payee": "text", "address": "text", "dollars": "text"}, id=str(uuid4()))
        told = ", ".join(map(escape, state.news)) or "nothing yet"
        return _page(
            user.company,
            f"<p>Worth {escape(bank.value(user))}. Pay in: routing number {escape(routing)}, account "
            f"{escape(account)}; from another Pocket: {escape(address)}.</p>{pay}"
            f"<h2>Statement</h2><table>{rows}</table><p>The bank told: {told}.</p>",
        )

    @app.post("/pay")
    def pay(id: UUID, payee: Text, address: Text, dollars: Text, session: Session = "") -> HTMLResponse:  # noqa: A002
        status, reason = bank.pay(state.user_of(session), Payment(id, payee, address, _cents(dollars)))
        return _page("Payment", f"<p>{escape(status)} {escape(reason)}</p>{_BACK}")

    @app.post("/webhooks")
    async def webhooks(request: Request) -> Response:
        state.receive(await request.body(), request.headers)
        return Response(status_code=204)

    return app


def _cents(dollars: str) -> int:
    """Return a text as cents, exactly: money is never a float."""
    try:
        cents = Decimal(dollars) * CENTS
    except InvalidOperation:
        raise HTTPException(422, "The amount is not a number.") from None
    if not cents.is_finite() or cents != int(cents) or not 0 < cents <= CENTS_MAX:
        raise HTTPException(422, "The amount is a positive number of dollars and cents.")
    return int(cents)


def _signed_in(session: str) -> Response:
    to = RedirectResponse("/pocket", 303)
    # Behind TLS also secure=True.
    to.set_cookie("session", session, httponly=True, samesite="strict")
    return to


def _form(path: str, title: str, fields: dict[str, str], **hidden: str) -> str:
    query = "&".join(f"{name}={value}" for name, value in hidden.items())
    inputs = "".join(
        f"<p><label>{name} <input name={name} type={kind} required></label>" for name, kind in fields.items()
    )
    return f"<form method=post action='{path}?{query}'>{inputs}<p><button>{title}</button></form>"


def _page(title: str, body: str, status: int = 200) -> HTMLResponse:
    name = escape(title)
    return HTMLResponse(f"<!doctype html><title>{name}</title><h1>{name}</h1>{body}", status)


def main() -> None:
    """Serve on this machine, with the credentials of a sandbox."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=8000)
    options.add_argument("--webhook-secret", default=secrets.token_urlsafe(32))
    given = options.parse_args()
    with sandbox_partner() as api:  # elsewhere PartnerApi(httpx.Client(base_url=url, auth=PartnerAuth(...)))
        uvicorn.run(make_app(Bank(api), given.webhook_secret), host="127.0.0.1", port=given.port, log_level="warning")


if __name__ == "__main__":
    run_with_sandbox(main)
