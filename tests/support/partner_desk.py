"""A partner at his desk: every step of a journey is a signed request to the whole Partner API."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote
from uuid import UUID

from tests.support.commands import EngineCommands
from tests.support.partner_client import PartnerClient

from billfold.sandbox.control.clock_stepper import ClockStepper

UNKNOWN = "00000000-0000-4000-8000-000000000000"


@dataclass
class Opened:
    """A Pocket with its customer and its first portal."""

    customer: str
    id: str
    portal: str

    @property
    def path(self):
        """Return where the Pocket is."""
        return f"/api/v2/pockets/{self.id}/"

    @property
    def key(self):
        """Return customer_id and pocket_id as the database knows them."""
        return UUID(self.customer), UUID(self.id)


def query_of(filters):
    """Return the query of these filters; a list repeats its name."""
    pairs = [
        (name, each)
        for name, value in (filters or {}).items()
        for each in (value if isinstance(value, list) else [value])
    ]
    return "&".join(f"{quote(name)}={quote(str(value))}" for name, value in pairs)


class PartnerApi:
    """Calls operations and says how they must answer; moves the clock; lets money arrive."""

    def __init__(self, bank, app, partner):
        self.bank, self.app, self.partner = bank, app, partner
        self.client = PartnerClient(app, partner)
        self.clock = ClockStepper(bank)

    async def close(self):
        await self.client.close()

    # -- calling ---------------------------------------------------------------------

    async def send(self, method, path, body=b"", *, filters=None, key=None, headers=None):
        """Send a signed request; see `PartnerClient.send`."""
        return await self.client.send(method, path, body, key=key, query=query_of(filters), headers=headers)

    async def ask(self, method, path, body=b"", *, status, **options):
        """Return the answer to a request, which must have this status."""
        answer = await self.send(method, path, body, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    async def get(self, path, filters=None, *, status=200):
        """Return the JSON of a resource or a page."""
        return (await self.ask("GET", path, status=status, filters=filters)).json()

    async def post(self, path, body, status=201, **options):
        """Return the JSON of what was made, None where nothing is answered."""
        answer = await self.ask("POST", path, body, status=status, **options)
        return answer.json() if answer.content else None

    async def patch(self, path, body, status=200, **options):
        """Return the JSON of what was changed."""
        return (await self.ask("PATCH", path, body, status=status, **options)).json()

    async def refused(self, method, path, body=b"", *, status, code, **options):
        """Check that the request is refused with a problem of this code; return the problem."""
        problem = (await self.ask(method, path, body, status=status, **options)).json()
        assert problem["code"] == code, problem
        return problem

    async def invalid(self, method, path, body=b"", *, loc, **options):
        """Check that the request is refused for a mistake at this place."""
        answer = (await self.ask(method, path, body, status=422, **options)).json()
        places = [".".join(map(str, each["loc"])) for each in answer["detail"]]
        assert loc in places, answer
        assert all(set(each) >= {"loc", "msg", "type"} for each in answer["detail"])

    async def pages(self, path, filters=None, *, limit=2):
        """Return all items of a list, read page by page, and check the way back."""
        page = await self.get(path, {**(filters or {}), "limit": limit})
        seen, way = [page["items"]], [page]
        assert page["prev_page"] is None
        assert page["object_type"] == "CursorList"
        while page["next_page"] is not None:
            following = {**(filters or {}), "limit": limit, "cursor": page["next_page"]}
            page = await self.get(path, following)
            assert page["items"], "a cursor led to an empty page"
            seen.append(page["items"])
            way.append(page)
        back = page
        for earlier in reversed(way[:-1]):
            before = {**(filters or {}), "limit": limit, "cursor": back["prev_page"]}
            back = await self.get(path, before)
            assert back["items"] == earlier["items"]
        assert back["prev_page"] is None
        assert all(len(items) == limit for items in seen[:-1])
        return [item for items in seen for item in items]

    # -- the world -------------------------------------------------------------------

    async def customer(self, name="Northwind", kind="BUSINESS"):
        """Return the id of a new customer."""
        made = await self.post("/api/v1/sandbox/customers/", {"name": name, "type": kind})
        return made["id"]

    async def pocket(self, customer=None, *, weeks=4, name="Reserve", **fields):
        """Open a Pocket, for a new customer when none is given."""
        customer = customer or await self.customer()
        body = {"pocket_name": name, "deposit_strategy_id": f"UST-{weeks}W", **fields}
        made = await self.post(f"/api/v2/customers/{customer}/pockets/", body)
        portals = await self.get(f"/api/v2/pockets/{made['id']}/portals/")
        return Opened(customer, made["id"], portals["items"][0]["id"])

    async def facilitation(self, cents=0):
        """Open the partner's own Pocket, from which he funds customers."""
        own = self.partner.own_customer_id
        place = await EngineCommands(self.bank).new_pocket(
            own, name="Facilitation", partner_id=self.partner.partner_id, type="FACILITATION"
        )
        opened = Opened(*map(str, place))
        if cents:
            await self.wire(opened, cents)
        return opened

    async def wire(self, pocket, cents, sender="Contoso"):
        """Let a wire arrive at the Pocket's first portal."""
        body = {"portal_id": pocket.portal, "amount_usdc": cents, "sender_name": sender}
        await self.ask("POST", "/api/v1/sandbox/wire/", body, status=202)

    async def ach(self, pocket, cents, count=1):
        """Let ACH credits arrive at the Pocket."""
        body = {"account_id": pocket.id, "amount_usdc": cents, "count": count}
        await self.ask("POST", "/api/v1/sandbox/fund/", body, status=202)

    async def funded(self, cents, customer=None, **fields):
        """Open a Pocket into which a wire has come."""
        opened = await self.pocket(customer, **fields)
        await self.wire(opened, cents)
        return opened

    async def days(self, count):
        """Let business days go by."""
        await self.clock.advance_business_days(count)

    async def until(self, at):
        """Set the clock to an instant or some text of one."""
        await self.clock.set_to(datetime.fromisoformat(at) if isinstance(at, str) else at)

    async def later(self, **duration):
        """Let some time go by."""
        await self.clock.advance(timedelta(**duration))

    async def transfer(self, origin, to, amount, status="COMPLETED", **fields):
        """Move money between two Pockets of one customer, or as `type` says."""
        asked = {"type": "FULL_WITHDRAWAL"} if amount is None else {"type": "REQUESTED_AMOUNT", "amount_usdc": amount}
        body = {
            "type": "INTERNAL_REALLOCATION",
            "from_account": {"id": origin.id, "type": "SERVICE_ACCOUNT"},
            "to_account": {"id": to.id, "type": "SERVICE_ACCOUNT"} if to else None,
            "amount": asked,
            **fields,
        }
        body = {name: value for name, value in body.items() if value is not None}
        made = await self.post("/api/v1/transfers/on-us/", body)
        assert made["status"] == status, made
        return made

    async def value(self, pocket):
        """Return what a Pocket is worth, in cents."""
        shown = await self.get(pocket.path)
        return shown["portfolio"]["total_value"]["value"]

    async def counts(self):
        """Return how many journals, trades, activities and transfers there are."""
        tables = ("journal_entry", "posting", "trade", "transaction", "transfer", "portal", "counterparty")
        return {table: await self.bank.pool.fetchval(f"SELECT count(*) FROM {table}") for table in tables}
