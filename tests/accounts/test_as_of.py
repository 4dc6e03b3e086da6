"""Reads as of an instant: the answers that were given then, whatever has happened since."""

import random

import asyncpg
import pytest
from tests.accounts.holds.test_routes import linked
from tests.support import payees
from tests.support.answers import comparable, differences
from tests.support.cards import Cardholder
from tests.support.oauth import new_key

from billfold.migrations.runner import read_migrations
from billfold.platform.dates import ET


class Life:
    """A customer whose answers are kept at every step, by both APIs."""

    def __init__(self, world, member, colleague, pocket, *, seed):
        self.world, self.member, self.colleague, self.pocket = world, member, colleague, pocket
        self.random = random.Random(seed)
        self.pockets, self.kept, self.step = [pocket], [], 0
        self.holder, self.payees, self.purchases, self.holds = Cardholder(world, pocket), [], [], []
        self.invited, self.rules = [], []

    async def begin(self):
        self.payees = [
            await linked(self.world, self.pocket, payees.ach()),
            await linked(self.world, self.pocket, payees.wire()),
        ]
        await self.holder.funded(40_000_00)
        self.colleague_id = (await self.colleague.get("/api/v1/user/"))["member_id"]

    # -- reads -------------------------------------------------------------------------

    def reads(self):
        customer = f"/api/v2/customers/{self.pocket.customer}/"
        for desk in (self.world, self.member):
            for each in self.pockets:
                yield desk, each.path, {}
                yield desk, f"{each.path}earnings/", {}
                yield desk, f"{each.path}values/", {}
            yield desk, "/api/v2/pockets/", {}
            yield desk, "/api/v2/pockets/", {"filter[status]": "OPEN"}
            yield desk, "/api/v2/earnings/", {"period": "mtd"}
            yield desk, "/api/v2/transactions/", {"limit": 100}
        yield self.world, f"{customer}pockets/", {"limit": 1}
        yield self.world, f"{customer}portfolio/", {}
        yield self.world, f"{customer}trades/", {"limit": 100}
        yield self.world, f"{customer}transactions/", {"type[]": ["CARD", "ACH"], "include_sweeps": "true"}
        yield self.world, f"{self.pocket.path}transactions/", {"time_settled_from": "2025-01-01", "limit": 50}
        yield self.world, f"/api/v1/service-accounts/{self.pocket.id}/trades/", {"order": "asc"}
        yield self.member, "/api/v2/portfolio/", {}
        for desk, path in ((self.world, f"{customer}counterparties/"), (self.member, "/api/v2/counterparties/")):
            yield desk, path, {}
            yield desk, f"{path}{self.payees[-1]}/", {}
        yield self.world, f"{customer}portals/", {}
        yield self.member, "/api/v2/portals/", {}
        yield self.member, f"{self.pocket.path}holds/", {}
        yield self.member, f"{self.pocket.path}holds/", {"filter[status]": "ACTIVE"}
        yield self.world, "/api/v1/cards/", {"filter[status]": "ONLINE"}
        yield self.world, f"{self.holder.account}/cards/{self.holder.card}/status/", {}
        yield self.world, f"{self.holder.account}/cards/{self.holder.card}/limits/", {}
        yield self.member, "/api/v2/trades/", {}
        yield from self.reads_of_v1(f"/api/v1/customers/{self.pocket.customer}/")
        for path in ("/api/v1/team/", "/api/v1/approval-rules/", "/api/v1/policy/"):
            yield self.member, path, {}
        for each in self.rules:
            yield self.member, f"/api/v1/approval-rules/{each}/", {}
        for each in self.invited[-2:]:
            yield self.member, f"/api/v1/team/{each}/", {}

    def reads_of_v1(self, customer):
        account = f"/api/v1/service-accounts/{self.pocket.id}/"
        for path in (f"{customer}service-accounts/", f"{customer}counterparties/", account):
            yield self.world, path, {}
        yield self.world, f"{customer}counterparties/{self.payees[0]}/", {}
        for path in (f"{customer}transactions/", f"{account}transactions/"):
            yield self.world, path, {"limit": 100}

    async def keep(self):
        """Keep the answers of an instant at which nothing else happens."""
        await self.world.later(seconds=1)
        now = await self.world.bank.now()
        await self.world.bank.pool.execute("DELETE FROM rate_limit_window")
        for desk, path, filters in self.reads():
            answer = await desk.send("GET", path, filters=filters)
            self.kept.append((desk, path, filters, now, comparable(answer)))
        await self.world.later(seconds=1)

    async def replay(self):
        """Return the reads that answer differently now, as of then."""
        wrong = []
        for number, (desk, path, filters, at, then) in enumerate(self.kept):
            if number % 50 == 0:
                await self.world.bank.pool.execute("DELETE FROM rate_limit_window")
            again = await desk.send("GET", path, filters={**filters, "as_of": at.isoformat()})
            if comparable(again) != then:
                wrong.append((path, filters, at.isoformat(), *differences(then, comparable(again))))
        return wrong

    # -- what happens ------------------------------------------------------------------

    async def live(self, steps):
        for self.step in range(steps):
            for act in self.random.sample(self.acts(), 3):
                await act()
            await self.keep()
            await self.pass_time()

    def acts(self):
        return [
            *(self.receive, self.collect, self.move, self.pay_by_ach, self.pay_by_wire, self.purchase, self.clear),
            *(self.rename, self.open, self.hold, self.release, self.empty),
            *(self.rename_portal, self.rename_payee, self.switch_card, self.limit_card),
            *(self.invite, self.end_invitation, self.change_colleague, self.add_service_user, self.rule, self.propose),
        ]

    def cents(self):
        return self.random.randint(100, 900_000)

    def any_pocket(self):
        return self.random.choice(self.pockets)

    async def attempt(self, method, path, body):
        """Do what may be refused: an account without money, a closed Pocket."""
        answer = await self.world.send(method, path, body)
        assert answer.status_code < 500, answer.text
        return answer.json() if answer.status_code < 300 and answer.content else None

    async def receive(self):
        body = {"portal_id": self.any_pocket().portal, "amount_usdc": self.cents(), "sender_name": "Contoso"}
        await self.attempt("POST", "/api/v1/sandbox/wire/", body)

    async def collect(self):
        await self.attempt(
            "POST", "/api/v1/sandbox/fund/", {"account_id": self.any_pocket().id, "amount_usdc": self.cents()}
        )

    async def move(self):
        await self.transfer({"type": "REQUESTED_AMOUNT", "amount_usdc": self.cents()})

    async def empty(self):
        await self.transfer({"type": "FULL_WITHDRAWAL"})
        chosen = self.pockets[-1]
        if len(self.pockets) > 1:
            await self.attempt("PATCH", chosen.path, {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"})

    async def transfer(self, amount):
        body = {
            "type": "INTERNAL_REALLOCATION",
            "from_account": {"id": self.pockets[-1].id, "type": "SERVICE_ACCOUNT"},
            "to_account": {"id": self.pocket.id, "type": "SERVICE_ACCOUNT"},
            "amount": amount,
        }
        if self.random.random() < 0.3:
            body["transfer_type"] = "SECURITY_TRANSFER"
        await self.attempt("POST", "/api/v1/transfers/on-us/", body)

    async def pay_by_ach(self):
        way = self.random.choice(["CREDIT", "DEBIT"])
        body = {"counterparty_id": self.payees[0], "amount_usdc": self.cents() // 5, "direction": way}
        await self.attempt("POST", f"/api/v1/service-accounts/{self.pocket.id}/ach-originating/", body)

    async def pay_by_wire(self):
        body = {"counterparty_id": self.payees[1], "amount_usdc": self.cents() // 5}
        await self.attempt("POST", f"/api/v1/service-accounts/{self.pocket.id}/wires/", body)

    async def purchase(self):
        decided = await self.holder.authorize(self.random.randint(5_00, 400_00))
        if decided["decision"] == "APPROVED":
            self.purchases.append((decided["network_reference"], decided["approved_amount"]))

    async def clear(self):
        if self.purchases:
            reference, cents = self.purchases.pop(0)
            await self.attempt(
                "POST",
                "/api/v1/sandbox/card-settlement/",
                {"card_id": self.holder.card, "network_reference": reference, "amount_usdc": cents},
            )

    async def rename(self):
        body = {"pocket_name": f"Name {self.step}", "reinvestment_strategy_id": self.random.choice([None, "UST-13W"])}
        await self.attempt("PATCH", self.any_pocket().path, body)

    async def open(self):
        if len(self.pockets) < 4:
            self.pockets.append(await self.world.pocket(self.pocket.customer, weeks=13, name=f"Other {self.step}"))

    async def hold(self):
        body = {"amount_usdc": self.cents() // 3, "reason": "Deposit"}
        if made := await self.attempt("POST", f"{self.pocket.path}holds/", body):
            self.holds.append(made["id"])

    async def release(self):
        if self.holds:
            await self.attempt("POST", f"{self.pocket.path}holds/{self.holds.pop()}/release/", b"{}")

    async def rename_portal(self):
        chosen = self.any_pocket()
        body = {"status": "CLOSED"} if self.random.random() < 0.1 else {"name": f"Portal {self.step}"}
        await self.member.send("PATCH", f"{chosen.path}portals/{chosen.portal}/", body)

    async def rename_payee(self):
        path = f"/api/v2/customers/{self.pocket.customer}/counterparties/"
        await self.attempt("PATCH", f"{path}{self.random.choice(self.payees)}/", {"display_name": f"Payee {self.step}"})

    async def switch_card(self):
        body = {"card_status": self.random.choice(["ONLINE", "OFFLINE"])}
        await self.attempt("PATCH", self.holder.status_path(self.holder.card), body)

    async def limit_card(self):
        body = {"daily": self.random.choice([None, 500_00, 900_00]), "categories": {"5411": 300_00}}
        await self.attempt("PUT", f"{self.holder.account}/cards/{self.holder.card}/limits/", body)

    async def by_member(self, method, path, body=None):
        answer = await self.member.send(method, path, body)
        assert answer.status_code < 500, answer.text
        return answer.json() if answer.status_code < 300 and answer.content else None

    async def invite(self):
        person = {"first_name": f"Ben{'x' * self.step}", "last_name": "Ode", "role": "VIEWER"}
        body = {**person, "email": f"ben{self.step}@northwind.example"}
        if made := await self.by_member("POST", "/api/v1/team/invite/", body):
            self.invited.append(made["member_id"])

    async def end_invitation(self):
        if self.invited:
            path = f"/api/v1/team/{self.random.choice(self.invited)}/"
            await self.by_member(*self.random.choice([("DELETE", f"{path}invite/"), ("POST", f"{path}invite/")]))
            await self.by_member("PUT", path, {"role": self.random.choice(["MANAGER", "VIEWER"])})

    async def change_colleague(self):
        role = self.random.choice(["ADMIN", "ADMIN", "MANAGER"])
        await self.by_member("PUT", f"/api/v1/team/{self.colleague_id}/", {"role": role})

    async def add_service_user(self):
        body = {"name": f"Books {self.step}", "scopes": ["pockets.read"], "public_key": new_key().pem}
        if made := await self.by_member("POST", "/api/v1/team/service-users/", body):
            await self.keep()
            status = self.random.choice(["ACTIVE", "DEACTIVATED"])
            await self.by_member("PUT", f"/api/v1/team/{made['member_id']}/", {"status": status})

    async def rule(self):
        """Add, change or remove a rule that a colleague confirms, if they still may."""
        path, body = "/api/v1/approval-rules/", {"name": f"Rule {self.step}", "required_approvals": 1}
        if not self.rules or self.random.random() < 0.4:
            asked = await self.by_member("POST", path, body | {"actions": ["TRANSFER"], "min_amount_usdc": 10**9})
        else:
            change = self.random.choice([("PATCH", body), ("DELETE", None)])
            asked = await self.by_member(change[0], f"{path}{self.random.choice(self.rules)}/", change[1])
        await self.confirm(asked)

    async def propose(self):
        then = {"decision": "REQUIRE", "approvals": 1, "roles": []}
        rule = {"name": f"Rule {self.step}", "when": "payment.amount_cents > 100000000000", "then": then}
        await self.confirm(await self.by_member("PUT", "/api/v1/policy/", {"document": {"rules": [rule]}}))

    async def confirm(self, asked):
        if asked is None:
            return
        path = f"/api/v1/authorization-requests/{asked['id']}/status/"
        answer = await self.colleague.send("PATCH", path, {"status": "APPROVED"})
        assert answer.status_code < 500, answer.text
        if answer.status_code == 200 and asked["action"] == "approval_rule.create":
            self.rules.append(answer.json()["resource_id"])

    async def pass_time(self):
        hours = self.random.choice([0.01, 1, 5, 13, 24, 50, 24 * 9])
        await self.world.later(hours=hours, minutes=self.random.randint(0, 59))


@pytest.fixture
async def world(partner_desks):
    return await partner_desks("acme", features=("wires",))


@pytest.mark.parametrize("seed", [1])
async def test_every_read_as_of_an_instant_is_what_it_answered_then(world, customer_desks, seed):
    pocket = await world.pocket()
    member, colleague = [await customer_desks(pocket.customer) for _ in range(2)]
    await world.bank.pool.execute("UPDATE membership SET created_at = '2025-01-01'")  # its clock is not the wall's
    life = Life(world, member, colleague, pocket, seed=seed)
    await life.begin()
    await life.live(15)
    wrong = await life.replay()
    assert not wrong, wrong[:3]
    days = {at.astimezone(ET).date() for _, _, _, at, _ in life.kept}
    assert len(days) > 8
    assert len({str(then) for *_, then in life.kept}) > 200


async def test_as_of_gives_no_right_that_the_caller_lacks_now_and_nothing_from_before_it_was_there(
    world, other_partner, customer_desks
):
    earlier = (await world.bank.now()).isoformat()
    await world.later(hours=1)
    pocket = await world.funded(5_000_00)
    viewer = await customer_desks(pocket.customer, role="VIEWER")
    limited = await customer_desks(pocket.customer, scopes=("transfers.read",))
    owner = f"/api/v2/customers/{pocket.customer}/"
    await world.later(hours=1)
    then = (await world.bank.now()).isoformat()
    await world.later(hours=1)
    second = await world.pocket(pocket.customer)
    for path in (pocket.path, f"{pocket.path}trades/", f"{owner}pockets/", f"{owner}portfolio/", f"{owner}portals/"):
        await world.refused("GET", path, status=404, code="not-found", filters={"as_of": earlier})
        await other_partner.refused("GET", path, status=404, code="not-found", filters={"as_of": then})
    for path in (second.path, f"{second.path}transactions/", f"{second.path}earnings/"):
        await world.refused("GET", path, status=404, code="not-found", filters={"as_of": then})
    unknown = {"pocket_id[]": second.id, "as_of": then}
    await viewer.refused("GET", "/api/v2/pockets/", status=404, code="not-found", filters=unknown)
    assert (await viewer.get(pocket.path, {"as_of": then}))["portfolio"]["total_value"]["value"] > 4_999_00
    for path in (pocket.path, "/api/v1/team/", "/api/v1/approval-rules/"):
        assert (await limited.send("GET", path, filters={"as_of": then})).status_code == 403
    team = await viewer.bank.pool.execute("UPDATE membership SET status = 'DEACTIVATED' WHERE role = 'VIEWER'")
    assert team == "UPDATE 1"
    assert (await viewer.send("GET", pocket.path, filters={"as_of": then})).status_code in {401, 403}


async def test_an_instant_that_has_not_come_or_has_no_offset_is_refused(world):
    pocket = await world.funded(5_000_00)
    await world.until("2025-06-03T10:00:00-04:00")
    for wrong in ("2031-01-01T00:00:00Z", "2025-06-03", "2025-06-02T10:00:00", "", "yesterday", "2025-02-30"):
        await world.invalid("GET", pocket.path, loc="query.as_of", filters={"as_of": wrong})
    body, changed = {"pocket_name": "Later"}, f"/api/v2/customers/{pocket.customer}/pockets/{pocket.id}/"
    await world.invalid("PATCH", changed, body, loc="query.as_of", filters={"as_of": "2025-06-02"})
    await world.wire(pocket, 7_000_00)
    closed = await world.get(pocket.path, {"as_of": "2025-06-02"})
    assert closed == await world.get(pocket.path, {"as_of": "2025-06-02T17:00:00-04:00"})
    assert closed["portfolio"]["total_value"]["value"] < 6_000_00
    listed = f"/api/v2/customers/{pocket.customer}/pockets/"
    await world.pocket(pocket.customer)
    await world.later(hours=1)
    page = await world.get(listed, {"limit": 1, "as_of": (now := (await world.bank.now()).isoformat())})
    await world.invalid("GET", listed, loc="query.cursor", filters={"limit": 1, "cursor": page["next_page"]})
    assert (await world.get(listed, {"limit": 1, "cursor": page["next_page"], "as_of": now}))["items"]


async def test_earnings_as_of_an_instant_leave_out_due_work_that_was_late_then(world):
    pocket = await world.funded(900_000_00)
    await world.until("2025-07-03T12:00:00-04:00")  # the fee of June is due at the opening of July 1
    reads = [
        (f"{pocket.path}values/", {"date_from": "2025-06-30"}),
        (f"{pocket.path}earnings/", {"period": "range", "date_from": "2025-06-20", "date_to": "2025-07-02"}),
        ("/api/v2/earnings/", {"period": "range", "date_from": "2025-06-20", "date_to": "2025-07-02"}),
    ]
    then = [await world.get(path, filters) for path, filters in reads]
    now = (await world.bank.now()).isoformat()
    await world.later(hours=1)
    await world.wire(pocket, 1_00)
    assert [await world.get(path, filters) for path, filters in reads[:2]] != then[:2]
    assert [await world.get(path, {**filters, "as_of": now}) for path, filters in reads] == then


async def test_a_pocket_that_the_release_before_opened_is_missing_in_lists_and_refused_by_itself(world, bank_dsn):
    pocket = await world.funded(5_000_00)
    other, recent = await world.funded(3_000_00), await world.pocket(pocket.customer)
    now = {"as_of": (await world.bank.now()).isoformat()}
    owner = f"/api/v2/customers/{pocket.customer}/"
    conn = await asyncpg.connect(bank_dsn)
    await conn.execute("DELETE FROM pocket_version WHERE pocket_id = ANY($1)", [other.id, recent.id])
    lists = ("/api/v2/pockets/", "/api/v2/earnings/", f"{owner}pockets/")
    for path in lists[:2]:
        await world.refused("GET", path, status=409, code="history-not-kept", filters=now)
    await conn.execute("UPDATE schema_migration SET applied_at = '2024-01-01' WHERE name = '0018_as_of'")
    await conn.close()
    for path in lists:
        assert [each.get("id") or each["pocket_id"] for each in (await world.get(path, now))["items"]] == [pocket.id]
    assert (await world.get(f"{owner}portfolio/", now))["pockets"] == 1
    assert (await world.get(f"{owner}trades/", now))["items"]
    for path in (other.path, recent.path, f"{other.path}trades/"):
        await world.refused("GET", path, status=409, code="history-not-kept", filters=now)


async def test_a_pocket_from_before_states_were_kept_is_read_as_it_was_when_they_began(world, bank_dsn):
    pocket = await world.pocket()
    opened = (await world.bank.now()).isoformat()
    await world.later(hours=1)
    await world.wire(pocket, 5_000_00)
    kept, now = await world.get(pocket.path), (await world.bank.now()).isoformat()
    step = next(each for each in read_migrations() if each.name.endswith("as_of"))
    owner = await asyncpg.connect(bank_dsn)
    await owner.execute("DELETE FROM pocket_version")
    for _ in range(2):  # it may be run again
        await owner.execute(step.statements[-1])
    await owner.close()
    assert await world.get(pocket.path, {"as_of": now}) == kept
    refused = {"as_of": opened}
    await world.refused("GET", pocket.path, status=409, code="history-not-kept", filters=refused)
