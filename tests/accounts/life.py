"""A customer whose answers are kept at every step, by both APIs, to be compared with those as of then."""

import random
import re
from uuid import UUID

from tests.accounts.holds.test_routes import linked
from tests.payments.on_us.test_routes import payee
from tests.support import payees
from tests.support.answers import comparable, differences
from tests.support.cards import Cardholder
from tests.support.oauth import new_key

from billfold.http.operations import Proof, operations_of_parts
from billfold.reports.statements.store import Month
from billfold.reports.statements.worker import make_statements

OPERATIONS = [each for each in operations_of_parts() if each.method == "GET" and each.as_of]
_NEED_A_CUSTOMER = ("transfers/on-us/", "ach-debits/", "reversal-requests/", "card-disputes/", "wires/")
_READS_A_STEP = 45


class Life:
    """A customer whose answers are kept at every step, by both APIs."""

    def __init__(self, world, member, colleague, pocket, *, seed):
        self.world, self.member, self.colleague, self.pocket = world, member, colleague, pocket
        self.random = random.Random(seed)
        self.pockets, self.kept, self.step = [pocket], [], 0
        self.holder, self.payees, self.purchases, self.holds = Cardholder(world, pocket), [], [], []
        self.invited, self.rules, self.read = [], [], set()
        self.placed, self.paid = [], []
        self.wires, self.debits, self.transfers, self.sent = [], [], [], []
        self.asked, self.disputes, self.orders = [], [], []
        self.moved: dict[str, list[tuple[str, str]]] = {"trade_id": [], "transaction_id": []}

    async def begin(self):
        self.payees = [
            await linked(self.world, self.pocket, payees.ach()),
            await linked(self.world, self.pocket, payees.wire()),
        ]
        await self.holder.funded(40_000_00)
        self.colleague_id = (await self.colleague.get("/api/v1/user/"))["member_id"]
        self.other = await self.world.pocket()
        self.peer = await payee(self.world, self.pocket, self.other)
        for act in (self.rule, self.order_card, self.hold, self.be_debited, self.pay_a_peer, self.ask_back):
            await act()
        for act in (self.pay_by_ach, self.pay_by_wire, self.move, self.dispute, self.propose):
            await act()

    # -- reads -------------------------------------------------------------------------

    def reads(self):
        """Return each operation by each API, as far as there is something to read, and reads with filters."""
        for operation in OPERATIONS:
            for access in operation.access:
                desk = self.member if access.proof == Proof.OAUTH else self.world
                needs = desk is self.world and operation.path.endswith(_NEED_A_CUSTOMER)
                for path in self.filled(operation.path):
                    filters = {"customer_id": self.pocket.customer} if needs else {}
                    yield (operation.path, access.proof), desk, path, filters
        for each in self.filtered():
            yield ("filtered", each[1]), *each

    def filtered(self):
        customer, member = f"/api/v2/customers/{self.pocket.customer}/", self.member
        return (
            (self.world, "/api/v2/pockets/", {"filter[status]": "OPEN"}),
            (member, "/api/v2/earnings/", {"period": "mtd"}),
            (self.world, f"{customer}pockets/", {"limit": 1}),
            (self.world, f"{customer}transactions/", {"type[]": ["CARD", "ACH"], "include_sweeps": "true"}),
            (self.world, f"{self.pocket.path}transactions/", {"time_settled_from": "2025-01-01", "limit": 50}),
            (member, f"{self.pocket.path}holds/", {"filter[status]": "ACTIVE"}),
            (self.world, "/api/v1/cards/", {"filter[status]": "ONLINE"}),
            (self.world, "/api/v1/wires/", {"status[]": ["PENDING", "PROCESSING"]}),
            (self.world, "/api/v1/wires/", {"status[]": "COMPLETED", "amount_from": 1}),
            (self.world, "/api/v1/ach-originating/", {"filter[status]": ["APPROVED", "IN_TRANSIT"]}),
            (self.world, "/api/v1/ach-originating/", {"returned": "false"}),
            (member, "/api/v1/ach-debits/", {"returned": "true"}),
            (member, "/api/v1/transfers/on-us/", {"status[]": "COMPLETED", "limit": 2}),
            (member, "/api/v1/reversal-requests/", {"status[]": "REQUESTED"}),
            (member, "/api/v1/card-disputes/", {"status[]": "OPENED"}),
        )

    def filled(self, template):
        """Return a path with ids of what is there, or nothing."""
        pocket = self.any_pocket()
        if any(name in template for name in ("{card", "hold_id", "{transfer_id}", "{wire_id}")):
            pocket = self.pocket
        names = {"customer_id": [pocket.customer], "version": ["1"], "member_id": [self.colleague_id, *self.invited]}
        names |= {"pocket_id": [pocket.id], "account_id": [pocket.id], "portal_id": [pocket.portal]}
        names |= {"counterparty_id": [*self.payees, self.peer], "card_id": [self.holder.card], "wire_id": self.wires}
        names |= {"transfer_id": self.sent if "ach-originating" in template else self.transfers}
        names |= {"ach_id": self.debits, "reversal_id": self.asked, "dispute_id": self.disputes}
        names |= {"card_order_id": self.orders, "hold_id": self.placed, "rule_id": self.rules}
        for kind, moved in self.moved.items():
            if kind in template and moved:
                owner, each = self.random.choice(moved)
                names |= {kind: [each], "pocket_id": [owner], "account_id": [owner]}
        wanted = re.findall(r"{(\w+)}", template)
        if all(names.get(name) for name in wanted):
            yield template.format_map({name: self.random.choice(names[name]) for name in wanted})

    async def keep(self):
        """Keep the answers of an instant at which nothing else happens."""
        await self.world.later(seconds=1)
        now = await self.world.bank.now()
        await self.world.bank.pool.execute("DELETE FROM rate_limit_window")
        for kind, path in (("trade_id", "/api/v2/trades/"), ("transaction_id", "/api/v2/transactions/")):
            found = (await self.member.get(path, {"limit": 100}))["items"]
            self.moved[kind] = [(each["pocket_id"], each["id"]) for each in found]
        reads = list(self.reads())
        self.random.shuffle(reads)
        reads.sort(key=lambda each: each[0] in self.read)  # first those that have not been read yet
        for operation, desk, path, filters in reads[:_READS_A_STEP]:
            self.read.add(operation)
            answer = await desk.send("GET", path, filters=filters)
            assert answer.status_code in {200, 404}, answer.text
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
            for act in self.random.sample(self.acts(), 4):
                await act()
            await self.keep()
            await self.pass_time()
        await self.world.until("2025-08-02T12:00:00-04:00")
        await self.end_month()
        await self.keep()

    def acts(self):
        return [
            *(self.receive, self.collect, self.move, self.pay_by_ach, self.pay_by_wire, self.purchase, self.clear),
            *(self.rename, self.open, self.hold, self.release, self.empty),
            *(self.rename_portal, self.rename_payee, self.switch_card, self.limit_card, self.order_card),
            *(
                self.be_debited,
                self.pay_a_peer,
                self.ask_back,
                self.answer,
                self.dispute,
                self.withdraw,
                self.end_month,
            ),
            *(self.invite, self.end_invitation, self.change_colleague, self.add_service_user),
            *(self.rule, self.propose),
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
        if made := await self.attempt("POST", "/api/v1/transfers/on-us/", body):
            self.transfers.append(made["id"])

    async def pay_by_ach(self):
        way = self.random.choice(["CREDIT", "DEBIT"])
        body = {"counterparty_id": self.payees[0], "amount_usdc": self.cents() // 5, "direction": way}
        path = f"/api/v1/service-accounts/{self.pocket.id}/ach-originating/"
        if made := await self.attempt("POST", path, body):
            self.sent.append(made["id"])

    async def pay_by_wire(self):
        body = {"counterparty_id": self.payees[1], "amount_usdc": self.cents() // 5}
        if made := await self.attempt("POST", f"/api/v1/service-accounts/{self.pocket.id}/wires/", body):
            self.wires.append(made["id"])
            if self.random.random() < 0.3:
                await self.keep()
                await self.attempt("POST", f"/api/v1/wires/{made['id']}/cancel/", b"{}")

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
            self.placed.append(made["id"])

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

    async def order_card(self):
        if made := await self.attempt("POST", *self.holder.order()):
            self.orders.append(made["card_order_id"])

    async def be_debited(self):
        body = {"portal_id": self.pocket.portal, "direction": "DEBIT", "amount_usdc": self.cents() // 9}
        await self.attempt("POST", "/api/v1/sandbox/ach/entries/", body)
        found = await self.member.get("/api/v1/ach-debits/")
        self.debits = [each["id"] for each in found["items"]]
        if self.debits and self.random.random() < 0.5:
            await self.keep()
            await self.attempt("POST", f"/api/v1/ach-debits/{self.debits[0]}/return/", {"code": "R29"})

    async def pay_a_peer(self):
        body = {
            "type": "PEER_TO_PEER",
            "from_account": {"id": self.pocket.id, "type": "SERVICE_ACCOUNT"},
            "counterparty_id": self.peer,
            "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": self.cents() // 9},
            "async_mode": self.random.random() < 0.5,
        }
        if made := await self.attempt("POST", "/api/v1/transfers/on-us/", body):
            self.transfers.append(made["id"])
            self.paid.append(made["id"])

    async def ask_back(self):
        if self.paid:
            path = f"/api/v1/transfers/on-us/{self.random.choice(self.paid)}/reversal-requests/"
            if made := await self.attempt("POST", path, {"amount_usdc": 1_00, "reason": "Twice"}):
                self.asked.append(made["id"])

    async def answer(self):
        if self.asked:
            verb = self.random.choice(["accept", "decline", "cancel"])
            await self.attempt("POST", f"/api/v1/reversal-requests/{self.asked[-1]}/{verb}/", {})

    async def dispute(self):
        body = {"card_id": self.holder.card, "amount_usdc": self.random.randint(5_00, 90_00)}
        paid = await self.attempt("POST", "/api/v1/sandbox/card-clearing/", body)
        if paid and paid.get("transaction_id"):
            about = {"pocket_id": self.pocket.id, "transaction_id": paid["transaction_id"], "reason": "NOT_RECEIVED"}
            if made := await self.attempt("POST", "/api/v1/card-disputes/", about):
                self.disputes.append(made["id"])

    async def withdraw(self):
        if self.disputes:
            await self.attempt("POST", f"/api/v1/card-disputes/{self.disputes[-1]}/withdraw/", {})

    async def end_month(self):
        month = Month.before(await self.world.bank.now())
        await make_statements(self.world.bank, UUID(self.pocket.customer), month)

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
