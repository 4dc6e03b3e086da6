"""Companies of the bank's first day: the programs of their members use the Customer API, with DPoP (RFC 9449)."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typing_extensions import override

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.counterparties.store import seal_details
from billfold.accounts.customers.partner_customers import enrol
from billfold.accounts.pockets.commands import OpenPocket
from billfold.data_keys.keys import DataKeys
from billfold.identity.members.store import add_member, create_user
from billfold.ledger.bank import Bank
from billfold.oauth import clients, grants
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.oauth.rules.public_keys import base64url, from_jwk, to_jwk
from billfold.oauth.types import NewClient, TokenSubject
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.sandbox.chain.faucet import CHAIN_NAME
from simulation.counterparties.cards import CardNetwork, public_key
from simulation.counterparties.chain import SimulatedChain
from simulation.customers import BETA, PAUSE_SECONDS, WIRE_PAYEE, Client, Life, Place
from simulation.oracles import UNITS_PER_CENT
from simulation.processes import CUSTOMER_HOST

TEAMS, MEMBERS = 3, 2
PROGRAM = "books"
TOKEN_LASTS = timedelta(days=1)
"""Longer than a simulation: the authorization server is not simulated."""
REQUESTS, REPORTS = "/api/v1/transfer-requests/", "/api/v1/report-requests/"
READS = ("/api/v2/pockets/", "/api/v2/transactions/", "/api/v1/wires/", "/api/v1/notifications/", REQUESTS, REPORTS)
READS_MAX = 30
"""How often a member looks whether a transfer is done: some wait for a day of the bank that may not come."""
POSITIONS = {"type": "POSITION_SUMMARY_REPORT", "parameters": {"date": "2025-06-02"}, "output_formats": ["CSV"]}


class Team(NamedTuple):
    """A company and the users who are its members."""

    customer: UUID
    users: tuple[UUID, ...]
    wallet: UUID
    """The counterparty that it pays in USDC."""
    address: str


async def found_teams(bank: Bank, partner_id: UUID) -> list[Team]:
    """Enrol companies with their members, and register the program of all."""
    teams, now = [], wall_now()
    async with bank.pool.acquire() as conn:
        for number in range(TEAMS):
            company, users = ids.new(), []
            await enrol(bank, company, "customer", partner_id=partner_id, name=f"Team {number} LLC")
            for name in ("Anna", "Ben")[:MEMBERS]:
                email = f"{name}@team{number}.example"
                user = await create_user(conn, bank.vault, email=email, first_name=name, last_name="Lind", now=now)
                await add_member(conn, company, user, role="ADMIN", now=now)
                users.append(user)
            address = f"0x{TEAMS + number:040x}"
            teams.append(Team(company, tuple(users), await _link_wallet(bank, partner_id, company, address), address))
        uris = ("https://books.example/",)
        program = NewClient(name="Books", scopes=tuple(SCOPES), profile="documented", redirect_uris=uris)
        await clients.register_client(conn, program, now=now, client_id=PROGRAM)
    return teams


async def _link_wallet(bank: Bank, partner_id: UUID, company: UUID, address: str) -> UUID:
    """Open the company with its first Pocket, and link the wallet as if its provider had proved it."""
    kind, details = "crypto_wallet_address", {"chain": CHAIN_NAME, "wallet_address": address, "asset": "USDC"}
    data_key = await bank.ports[DataKeys].of(bank.pool, company)
    common: dict[str, Any] = {"caller": "founder", "key": company, "customers": (company,)}
    pocket = OpenPocket(**common, partner_id=partner_id, name="First", deposit_weeks=4, reinvestment_weeks=4)
    await bank.engine.submit(pocket)
    command = AddCounterparty(
        **common | {"caller": "linker"},
        type=kind,
        counterparty_name=BETA,
        details=seal_details(data_key, kind, details),
        verification="linking_provider",
        is_screened=True,
    )
    return UUID((await bank.engine.submit(command)).outcome["counterparty_id"])


class MemberClient(Client):
    """The program of one member. Every request has a new proof by the key to which the token is bound."""

    host = CUSTOMER_HOST

    def __init__(self, partner: Client, origin: str) -> None:
        super().__init__(partner.servers, partner.credentials, partner.faults, partner.random)
        self.acknowledged, self.waiting = partner.acknowledged, partner.waiting
        self._origin = origin
        self._key = Ed25519PrivateKey.from_private_bytes(self.random.randbytes(32))
        self._jwk = to_jwk(self._key.public_key())

    async def sign_in(self, conn: Any, team: Team, user: UUID) -> None:
        """Get a token, as if from the authorization server."""
        now = wall_now()
        subject = TokenSubject(
            client_id=PROGRAM,
            customer_id=team.customer,
            scopes=tuple(SCOPES),
            user_id=user,
            jkt=from_jwk(self._jwk).thumbprint,
            auth_time=now,
        )
        self._token = await grants.insert_token(conn, "access_token", subject, now=now, expires_at=now + TOKEN_LASTS)

    @override
    def headers(self, method: str, path: str, content: bytes, key: str) -> dict[str, str]:
        claims = {
            "jti": self.random.randbytes(16).hex(),
            "htm": method,
            "htu": self._origin + path,
            "iat": int(wall_now().timestamp()),
            "ath": base64url(hashlib.sha256(self._token.encode()).digest()),
        }
        proof = jwt.encode(claims, self._key, algorithm="EdDSA", headers={"typ": "dpop+jwt", "jwk": self._jwk})
        return {"authorization": f"DPoP {self._token}", "dpop": proof, "idempotency-key": key}


class MembersLife(Life):
    """The steps of members and of holders of cards as well, once there are Pockets."""

    members: dict[str, list[MemberClient]]
    new: list[str]
    network: CardNetwork
    chain: SimulatedChain
    cards: dict[str, str]
    wallets: dict[str, str]
    """The address of each Pocket that has one."""

    async def sign_in(self, conn: Any, teams: list[Team], origin: str) -> None:
        """Let every member in."""
        self.members = {str(team.customer): [MemberClient(self.client, origin) for _ in team.users] for team in teams}
        self.new = list(self.members)
        for team in teams:
            self.payees[f"{team.customer} wallet"] = str(team.wallet)
            for client, user in zip(self.members[str(team.customer)], team.users, strict=True):
                await client.sign_in(conn, team, user)

    @override
    async def _new_customer(self) -> str:
        return self.new.pop() if self.new else await super()._new_customer()

    async def join_apart(self) -> UUID:
        """Return a customer with money who does nothing more."""
        teams, self.new = self.new, []
        await self.join()
        self.new = teams
        return UUID(self.places.pop().customer)

    async def _place(self) -> Place | None:
        """Return a Pocket of a company that has members."""
        ours = [each for each in self.places if each.customer in self.members]
        if ours:
            return self.random.choice(ours)
        await asyncio.sleep(PAUSE_SECONDS)
        return None

    async def _member_read(self, _: Place) -> None:
        if (place := await self._place()) is not None:
            path = self.random.choice((*READS, f"/api/v2/pockets/{place.id}/"))
            await self._ask("GET", path, by=self.random.choice(self.members[place.customer]))

    async def _member_report(self, _: Place) -> None:
        if (place := await self._place()) is not None:
            made = await self._ask("POST", REPORTS, POSITIONS, by=self.random.choice(self.members[place.customer]))
            if made is not None:
                self.model.reports.add(made["id"])

    async def _member_pay(self, _: Place) -> None:
        """Ask for a transfer or wire, let the other member approve it, and read what became of it."""
        if (place := await self._place()) is None or (order := await self._order(place)) is None:
            return
        asking, approving = self.random.sample(self.members[place.customer], 2)
        if await self._ask("POST", REQUESTS, {"transfer": order, "reviewers": []}, by=asking) is None:
            self.model.forget(order["id"])
            return
        one = f"{REQUESTS}{order['id']}/"
        await self._ask("PATCH", f"{one}status/", {"status": "APPROVED"}, by=approving)
        reads = 1
        while (shown := await self._ask("GET", one, by=asking))["transfer"]["execution_status"] == "PROCESSING":
            if reads == READS_MAX:
                return
            reads += 1
            await asyncio.sleep(1)
        if shown["transfer"]["execution_status"] == "COMPLETED":
            self.model.unsure.discard(order["id"])
        elif order["type"] == "ON_US" and shown["transfer"]["execution_status"] == "REJECTED":
            self.model.forget(order["id"])  # another may have been sent, and come back

    async def _card_pay(self, place: Place) -> None:
        """Pay with the card of a Pocket, which gets one, with a limit a day or without."""
        card = self.cards.get(place.id)
        if card is None:
            path = f"/api/v1/service-accounts/{place.id}"
            body = {"public_key": public_key(self.random)}
            if (made := await self._ask("POST", f"{path}/virtual-cards/", body)) is None:
                return
            card = self.cards[place.id] = str(made["card_id"])
            limit = self.random.choice((None, self._cents()))
            put = await self._ask("PUT", f"{path}/cards/{card}/limits/", {"daily": limit, "categories": {}})
            if put is not None and limit is not None:
                self.network.limits[card] = limit
        for _ in range(self.random.randint(1, 3)):
            await self.network.go_on(await self.network.authorize(card, place.id, self._cents() // 20 + 1))

    async def _usdc_in(self, place: Place) -> None:
        """Send USDC to the address of a Pocket: dollars, cents, and less."""
        if place.id not in self.wallets:
            body = {"name": "On chain", "type": "CRYPTO_DEPOSIT_ADDRESS_PORTAL", "chain": CHAIN_NAME}
            if (made := await self._ask("POST", f"/api/v2/pockets/{place.id}/portals/", body)) is None:
                return
            self.wallets.setdefault(place.id, made["wallet_address"])  # another client may have made one meanwhile
        for _ in range(self.random.randint(1, 3)):
            units = self.random.choice((self.random.randint(1, 2_000_000), self._cents() * UNITS_PER_CENT))
            self.chain.pay(self.wallets[place.id], units)
            await asyncio.sleep(self.random.random())

    @override
    async def advance(self) -> None:
        await self.network.wait_for_reports()
        await self.network.settle()
        await super().advance()

    async def _order(self, place: Place) -> dict[str, Any] | None:
        """Return a transfer that the model expects if it is executed."""
        there, cents = self.random.choice(self.places), self._cents() // 10 + 1
        id_ = str(UUID(bytes=self.random.randbytes(16), version=4))
        order: dict[str, Any] = {"id": id_, "origin_pocket_id": place.id, "description": "Rent"}
        order["amount"] = {"type": "REQUESTED_AMOUNT", "amount_usdc": cents}
        if self.chance(0.3):
            order |= {"type": "USDC", "counterparty_id": self.payees[f"{place.customer} wallet"]}
            del order["description"]
        elif self.chance(0.4):
            order |= {"type": "WIRE", "counterparty_id": await self._linked(place, "wire", WIRE_PAYEE)}
        elif there.customer == place.customer:
            order |= {"type": "ON_US", "details": {"type": "INTERNAL_REALLOCATION", "destination_pocket_id": there.id}}
        else:
            linked = await self._linked(place, f"peer {there.id}", {"type": "on_us", "account_number": there.number})
            order |= {"type": "ON_US", "details": {"type": "PEER_TO_PEER", "destination_counterparty_id": linked}}
        if None in (order.get("counterparty_id", ""), order.get("details", {}).get("destination_counterparty_id", "")):
            return None
        self.model.unsure.add(id_)
        if order["type"] != "ON_US":
            self.model.wires[id_] = (place.id, cents)
        else:
            self.model.transfers[id_] = (place.id, there.id, cents)
        return order
