"""Every unauthorized caller tries each operation, just before the recorder calls it.

An operation needs no row anywhere to be tried: that it has an example is enough.
"""

import json
import re
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.reference.documents import DOCUMENTS, alternatives_of
from tests.reference.mistakes import OPERATIONS, ids_in, wrong_requests
from tests.support.whole_bank import EngineCommands
from tests.support.world import EVERYTHING, UNKNOWN, MemberDesk, PartnerApi, join, new_partner, token_for
from typing_extensions import override

from billfold.identity.partners import credentials
from billfold.platform.clock import wall_now

OPEN = {"log_in", "exchange_assertion", "get_public_keys"}
"""What needs no token."""
UNTRIED = OPEN | {"stream_events", "upload_document", "upload_document_file", "upload_application_document"}
"""Operations that are open, never end, or take a file; each is tested with its module."""
UNREPEATED = OPEN | {"-"}
"""What has no key, and what is no operation's example."""
OF_NOBODY = {"sandbox_webhook", "sandbox_task", "sandbox_tasks", "set_notification_audience", "list_event_types"}
OF_NOBODY |= {"get_policy", "get_policy_version"}
"""What names things of nobody: examples, people who may not exist, tasks of a sandbox, own versions."""
BY_ROW = {"create_batch", "preview_batch"}
"""What names the objects of others in rows, each of which says that it does not exist; tested in tests/batches."""
_FILTERED = ("list_ach_debits", "list_card_disputes", "list_on_us_transfers", "list_reversal_requests")
BY_FILTER = {("partner", each) for each in _FILTERED}
"""What is listed of the customer that a filter names; filters are tried, without one that is the mistake."""
CANARY = "canary-5f0c9d71"
MORE = dict.fromkeys(("object_type", "partner_id", "time_created", "password"), CANARY)
_TABLES = (
    "journal_entry transaction pocket portal counterparty transfer customer membership invitation oauth_client"
    " client_key subscription delivery simulated_event transfer_request review approval_rule"
    " authorization_request wire wire_message application application_move related_party_application document"
    " batch batch_row card card_order card_detail_key report_request report_format"
)
_COUNTS = f"SELECT {', '.join(f'(SELECT count(*) FROM {table})' for table in _TABLES.split())}"
_OTHER_POCKET = """
SELECT other.pocket_id FROM pocket one JOIN pocket other ON other.customer_id = one.customer_id
WHERE one.pocket_id = $1 AND other.pocket_id <> $1 LIMIT 1
"""
_OTHERS = {
    "customer_id": """
SELECT other.customer_id FROM customer one JOIN customer other ON other.partner_id = one.partner_id
WHERE one.customer_id = $1 AND other.customer_id <> $1 LIMIT 1
""",
    "pocket_id": _OTHER_POCKET,
    "account_id": _OTHER_POCKET,
}
"""Something else of the same kind and owner, by the name of the id in paths."""
_OWNED = dict.fromkeys(("pocket[]", "pocket_id[]", "pocket_id", "account[]"), "pocket")
_OWNED |= dict.fromkeys(("customer_id", "customer_id[]"), "customer")
_OWN = """
SELECT customer_id, pocket_id FROM pocket JOIN customer USING (customer_id)
WHERE customer.{of} = $1 AND role = 'customer' LIMIT 1
"""
_ALTERNATIVES = alternatives_of(DOCUMENTS["customer"])
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def state_of(bank):
    """Return all that must not change: how many rows there are, and each customer's version."""
    counts = await bank.pool.fetchrow(_COUNTS)
    return counts, await bank.pool.fetch("SELECT customer_id, version FROM ledger_head ORDER BY customer_id")


def expect_careful(answer):
    """Check the security headers of every response."""
    said = answer.headers
    assert said["x-content-type-options"] == "nosniff"
    assert said["referrer-policy"] == "no-referrer"
    assert said["cache-control"] == "no-store"
    assert "max-age" in said["strict-transport-security"]
    assert not [name for name in said if name.startswith("access-control")]
    assert "Traceback" not in answer.text


class Intruders(ABC):
    """Watches a recorder: `tried` are the operations that were refused to all who may not call them."""

    def __init__(self, bank, api):
        self.bank, self.api = bank, api
        self.tried = set()
        self.secrets = {CANARY}

    async def __call__(self, r, name, method, path, body):
        await self.prepare(r, None)
        if name in UNTRIED | self.tried | {"-"}:
            return
        stranger = await self.stranger(r)
        before = await state_of(self.bank)
        call = method, path, b"" if body is None else body
        await self.without_proof(r, name, call)
        await self.from_outside(r, stranger, name=name, call=call)
        await self.with_more_fields(r, call)
        await self.with_mistakes(r, name, call=call)
        await self.with_other_ids(r, name, call=call)
        await self.with_other_filters(r, stranger, name=name, path=path)
        assert await state_of(self.bank) == before, name
        await self.prepare(r, name)
        self.tried.add(name)

    async def repeat(self, r, name, call, *, key, headers, answer):
        """Repeat a request under its key: the response is the same; another request under the key is refused."""
        if name in UNREPEATED or name.startswith("sandbox_"):
            return
        method, path, content = call
        again = await r.desk.send(*call, key=key, headers=headers)
        assert (again.status_code, again.content) == (answer.status_code, answer.content), (name, again.text)
        if isinstance(content, dict):
            other = method, path, content | {"colour": "red"}
            await r.desk.refused(*other, key=key, status=422, code="idempotency-key-reused")

    async def from_outside(self, r, stranger, name, call):
        """Call with the token of another customer, to whom none of the objects is visible."""
        method, path, body = call
        if name in OF_NOBODY | BY_ROW or (self.api, name) in BY_FILTER:
            return
        if _UUID.search(f"{path} {body}"):
            await stranger.refused(*call, status=404, code="not-found")
        elif method == "GET":
            answer = await stranger.ask(method, path, status=200)
            assert not set(_UUID.findall(answer.text)) & set(_UUID.findall(json.dumps(r.notes))), name

    async def with_more_fields(self, r, call):
        """Send fields that only the bank sets: each is refused by name."""
        method, path, body = call
        if isinstance(body, dict) and body:
            answer = await r.desk.ask(method, path, body | MORE, status=422)
            refused = {tuple(each["loc"]) for each in answer.json()["detail"]}
            assert {("body", name) for name in MORE} <= refused, (path, answer.text)

    async def with_mistakes(self, r, name, call):
        """Send everything that the document excludes: each mistake is refused at its location."""
        method, path, body = call

        async def hidden(places, wrong):
            answer = await r.desk.ask(method, status=422, **{"path": path, "body": body} | wrong)
            return set(places) - {tuple(each["loc"]) for each in answer.json()["detail"]}

        for places, wrong, alone in wrong_requests(self.api, name, path, body):
            # Some mistakes are reported before others are looked for.
            missing = await hidden(places, wrong)
            assert not missing or alone or (self.api, name) in BY_FILTER, (name, missing, wrong)
            for place, only in alone:
                assert not missing & set(place) or not await hidden(place, only), (name, place, only)

    async def with_other_ids(self, r, name, call):
        """Call with unknown ids, and with ids of the owner's other objects: all are not found."""
        method, path, body = call
        ids = ids_in(OPERATIONS[self.api][name][0], path)
        for nth, (kind, value) in enumerate(ids):
            others = [UNKNOWN] if _UUID.fullmatch(value) else []
            if kind in _OTHERS and any(_UUID.fullmatch(each) for _, each in ids[nth + 1 :]):
                others += [str(row[0]) for row in await self.bank.pool.fetch(_OTHERS[kind], UUID(value))]
            for other in others:
                await r.desk.refused(method, path.replace(value, other), body, status=404, code="not-found")

    async def with_other_filters(self, r, stranger, name, path):
        """Filter lists by unknown ids and by others' ids: all are not found."""
        own = await self.own_ids(r)
        for each in OPERATIONS[self.api][name][1].get("parameters", ()):
            kind = _OWNED.get(each.get("name"))
            if kind in own and each["in"] == "query" and not _UUID.search(path):
                for desk, value in ((stranger, own[kind]), (r.desk, UNKNOWN)):
                    await desk.refused("GET", path, status=404, code="not-found", filters={each["name"]: value})

    async def own_ids(self, r):
        """Return the ids of a customer and a Pocket of the desk."""
        of, owner = self.owner(r)
        row = await self.bank.pool.fetchrow(_OWN.format(of=of), owner)
        # A member's token says which customer is meant, whatever the query says.
        names = ("customer", "pocket") if of == "partner_id" else ("pocket",)
        return {} if row is None else {each: str(row[f"{each}_id"]) for each in names}

    @abstractmethod
    def owner(self, r):
        """Return the column that says whose a customer is, and what it says of the desk's."""

    async def prepare(self, r, name):
        """Let the desk call with no more than this operation needs, or with everything."""
        del r, name

    @abstractmethod
    async def stranger(self, r):
        """Return the desk of a different partner."""

    @abstractmethod
    async def without_proof(self, r, name, call):
        """Call with nothing, or too little, to prove who calls."""


class PartnerIntruders(Intruders):
    _stranger: Any = None

    @override
    def owner(self, r):
        return "partner_id", r.desk.partner.partner_id

    @override
    async def stranger(self, r):
        self._stranger = self._stranger or PartnerApi(self.bank, r.desk.app, await new_partner(self.bank, "globex"))
        return self._stranger

    @override
    async def without_proof(self, r, name, call):
        partner = r.desk.partner
        self.secrets |= {partner.token, partner.secret}
        async with self.bank.pool.acquire() as conn:
            expired, _ = await credentials.issue_token(
                conn, partner_id=partner.partner_id, user_id=partner.user_id, now=wall_now() - timedelta(seconds=3601)
            )
        tried = [{"authorization": None}, {"authorization": f"Bearer {expired}"}]
        if not name.startswith("sandbox_"):
            tried.append({"x-service-signature": "A" * 43 + "="})
        for headers in tried:
            expect_careful(await r.desk.ask(*call, headers=headers, status=401))

    @override
    async def from_outside(self, r, stranger, name, call):
        # One clock and one list of faults for all partners of a sandbox.
        if not (name.startswith("sandbox_clock_") or "fault" in name):
            await super().from_outside(r, stranger, name=name, call=call)


GRANTS = {
    "create_application_team",
    "invite_team_member",
    "resend_invite",
    "update_team_member",
    "create_service_user",
    "add_service_user_key",
    "rotate_service_user_keys",
}
"""Operations whose tokens carry, besides their scope, all that they give to somebody."""


class MemberIntruders(Intruders):
    """`scopes` are those that the document says of each operation."""

    _stranger: Any = None

    def __init__(self, bank, api, scopes):
        super().__init__(bank, api)
        self.scopes = scopes

    @override
    def owner(self, r):
        return "customer_id", UUID(r.desk.team.customer)

    @override
    async def stranger(self, r):
        if self._stranger is None:
            team = await join(self.bank, str(await EngineCommands(self.bank).new_customer("Stranger")))
            token = await token_for(self.bank, team)
            self._stranger = MemberDesk(self.bank, r.desk.app, team, token=token)
        return self._stranger

    @override
    async def prepare(self, r, name):
        scopes = EVERYTHING if name is None or name in GRANTS else (self.scopes[name],)
        r.desk.token = await token_for(self.bank, r.desk.team, scopes=scopes, key=None)
        self.secrets.add(r.desk.token.text)

    @override
    async def without_proof(self, r, name, call):
        expired = await token_for(self.bank, r.desk.team, age=timedelta(seconds=901))
        for token in (None, expired):
            answer = await r.desk.ask(*call, status=401, token=token)
            assert "www-authenticate" in answer.headers
            expect_careful(answer)
        others = [each for each in EVERYTHING if each not in _ALTERNATIVES[name]]
        token = await token_for(self.bank, r.desk.team, scopes=others)
        answer = await r.desk.ask(*call, status=403, token=token)
        said = answer.headers["www-authenticate"]
        assert f'error="insufficient_scope", scope="{self.scopes[name]}"' in said
