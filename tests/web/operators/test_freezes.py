"""A freeze is proposed by one operator and confirmed by another, on pages and by commands, once."""

import re
from datetime import timedelta
from uuid import UUID

import pytest
from tests.support.browser import first_match

from billfold.accounts.customers import cli as customer_cli
from billfold.accounts.pockets import cli as pocket_cli
from billfold.cli.context import CliError
from billfold.dual_control import cli
from billfold.dual_control.decisions import confirm, propose, withdraw
from billfold.dual_control.store import _FREEZE, PROPOSALS, FreezeSubject, get_proposal
from billfold.identity.operators import Operator
from billfold.ledger.scheduler import bank_customer_id
from billfold.platform import ids
from billfold.platform.errors import Refused, Unavailable
from billfold.web.operators import freezes as operator_freezes


async def test_a_freeze_is_applied_when_a_second_operator_confirms_it(bank, operators, customer_desk):
    own = await customer_desk.pocket(name="Reserve")
    olga, otto, initiator, viewer = [await operators(each) for each in ("MANAGER", "APPROVER", "INITIATOR", "VIEWER")]
    form = {"change": "freeze", "subject": "POCKET", "subject_id": own.id, "reason": "Suspected fraud"}
    await viewer.go("/bank/freezes")
    assert (await viewer.post("/bank/freezes", form | {"csrf": viewer.csrf})).status_code == 409
    for each, status in ((initiator, 303), (olga, 409)):
        await each.go("/bank/freezes")
        assert (await each.post("/bank/freezes", form | {"csrf": each.csrf})).status_code == status
    (row,) = await bank.pool.fetch("SELECT proposal_id, proposed_by FROM freeze_proposal")
    path, sent = f"/bank/freezes/{row['proposal_id']}", {"decision": "confirm"}
    assert str(initiator.user_id) in row["proposed_by"]
    await bank.pool.execute("UPDATE user_account SET last_name = 'Other' WHERE user_id = $1", initiator.user_id)
    await bank.pool.execute("UPDATE membership SET role = 'ADMIN' WHERE user_id = $1", initiator.user_id)
    assert (await initiator.post(path, sent | {"csrf": initiator.csrf})).status_code == 409
    assert (await customer_desk.get(f"/api/v2/pockets/{own.id}/"))["status"] == "OPEN"
    await otto.go(path)
    assert "Suspected fraud" in otto.text
    await otto.send(path, **sent)
    assert otto.page.status_code == 303
    assert (await customer_desk.get(f"/api/v2/pockets/{own.id}/"))["status"] == "FROZEN"
    assert (await olga.post(path, sent | {"csrf": olga.csrf})).status_code == 409, "once"
    with pytest.raises(Refused, match="INITIATOR"):
        await confirm(bank, row["proposal_id"], by=Operator(name="x", origin=OLGA.origin, role="INITIATOR"))


async def test_cli_freeze_commands_require_two_operators(bank, customer_desk):
    customer = customer_desk.team.customer
    with pytest.raises(CliError):
        await customer_cli.freeze(bank, customer, reason="Court order")
    for freezes, status in ((True, "FROZEN"), (False, "PENDING")):
        made = await propose(bank, FreezeSubject.CUSTOMER, customer, freezes=freezes, reason="Court order", by=OLGA)
        with pytest.raises(Refused) as refused:
            await confirm(bank, made.proposal_id, by=Operator.of_command_line("OLGA "))
        assert refused.value.code == "same-operator"
        assert "APPLIED" in await _confirmed_by_otto(bank, made.proposal_id)
        assert (
            await bank.pool.fetchval("SELECT account_status FROM customer WHERE customer_id = $1", customer) == status
        )
    assert len(list(await cli.list_all(bank))) == 2


async def test_a_stale_redundant_or_unauthorized_freeze_proposal_cannot_be_confirmed(bank, operators, customer_desk):
    customer, olga = customer_desk.team.customer, await operators()
    subject = {"subject": "CUSTOMER", "subject_id": customer, "reason": "Suspected fraud"}
    await olga.go("/bank/freezes")
    lift = {"csrf": olga.csrf, "change": "lift", **subject}
    assert (await olga.post("/bank/freezes", lift)).status_code == 409, "it is not frozen"
    assert (await olga.post("/bank/freezes", lift | {"change": "freeze"})).status_code == 303
    newest = (await _listed(bank))[0].proposal_id

    async def refusal():
        with pytest.raises(Refused) as refused:
            await _confirmed_by_otto(bank, newest)
        return refused.value.code

    role = "UPDATE membership SET role = $2 WHERE user_id = $1"
    await bank.pool.execute(role, olga.user_id, "APPROVER")
    assert await refusal() == "proposal-lapsed"
    await bank.pool.execute(role, olga.user_id, "MANAGER")
    await customer_cli.freeze(bank, customer, reason="Theft", alone=True)
    assert await refusal() == "freeze-changes-nothing"
    await customer_cli.unfreeze(bank, customer, reason="Found", alone=True)
    await customer_desk.clock.advance(timedelta(days=7, minutes=1))
    assert await refusal() == "proposal-lapsed"
    await olga.go("/bank/freezes")
    assert "Lapsed" in olga.text
    assert ">Confirm<" not in olga.page.text
    proposer = Operator.of_command_line(f"Anna Berg ({olga.user_id})")
    made = await propose(bank, FreezeSubject.CUSTOMER, customer, freezes=True, reason="Again", by=proposer)
    assert (await get_proposal(bank.pool, newest)).status == "WITHDRAWN", "it does not stand in the way"
    assert "APPLIED" in await _confirmed_by_otto(bank, made.proposal_id)


async def test_an_unfreeze_proposal_ends_only_the_freeze_it_was_made_for(bank, operators, customer_desk, monkeypatch):
    own, olga = await customer_desk.pocket(), await operators()
    of_pocket = (FreezeSubject.POCKET, UUID(own.id))
    for subject in (of_pocket, (FreezeSubject.CUSTOMER, UUID(customer_desk.team.customer))):
        made = await propose(bank, *subject, freezes=True, reason="Theft", by=OLGA)
        await _confirmed_by_otto(bank, made.proposal_id)
        first = await propose(bank, *subject, freezes=False, reason="Found", by=OLGA)
        await olga.go("/bank/freezes")
        assert "by operator" in olga.text
        if subject == of_pocket:
            await pocket_cli.unfreeze(bank, subject[1], alone=True)
            await pocket_cli.freeze(bank, subject[1], alone=True)
        else:
            await customer_cli.unfreeze(bank, subject[1], reason="Found", alone=True)
            await customer_cli.freeze(bank, subject[1], reason="Court order", alone=True)
        with pytest.raises(Refused) as refused:
            await _confirmed_by_otto(bank, first.proposal_id)
        assert refused.value.code == "freeze-changed"
        await olga.go("/bank/freezes")
        assert "It was frozen again since" in olga.text
        await withdraw(bank, first.proposal_id, by=OLGA)
        second = await propose(bank, *subject, freezes=False, reason="Lifted", by=OLGA)
        assert "APPLIED" in await _confirmed_by_otto(bank, second.proposal_id)
    waits = await propose(bank, *of_pocket, freezes=True, reason="Theft", by=OLGA)
    await customer_desk.clock.advance(timedelta(minutes=1))
    later = await propose(bank, *subject, freezes=True, reason="Theft", by=OLGA)
    await withdraw(bank, later.proposal_id, by=OLGA)
    every = [each.proposal_id for each in await _listed(bank)]
    assert (every[0], len(every)) == (waits.proposal_id, 8), "what is open comes first"
    monkeypatch.setattr(operator_freezes, "_PAGE", 3)
    assert await _count_on_pages(olga) == len(every)


@pytest.mark.one_server
async def test_the_freeze_of_an_object_is_found_by_index(conn):
    await conn.execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")
    plan = str(await (await conn.prepare(_FREEZE)).explain(ids.new(), "card", ids.new()))
    assert ("audit_entry_freeze" in plan, "Sort" in plan) == (True, False)


@pytest.mark.parametrize("is_carried_out", [False, True])
async def test_an_interrupted_unfreeze_proposal_does_not_end_a_later_freeze(
    bank, customer_desk, monkeypatch, is_carried_out
):
    pocket = (FreezeSubject.POCKET, UUID((await customer_desk.pocket()).id))
    submit = bank.engine.submit

    async def cut_off(command):
        if is_carried_out:
            await submit(command)
        raise Unavailable("The database is unavailable.")

    await pocket_cli.freeze(bank, pocket[1], alone=True)
    made = await propose(bank, *pocket, freezes=False, reason="Found", by=OLGA)
    with monkeypatch.context() as patch, pytest.raises(Unavailable):
        patch.setattr(bank.engine, "submit", cut_off)
        await _confirmed_by_otto(bank, made.proposal_id)
    if not is_carried_out:
        await pocket_cli.unfreeze(bank, pocket[1], alone=True)
    await pocket_cli.freeze(bank, pocket[1], alone=True)
    if is_carried_out:
        assert "APPLIED" in await _confirmed_by_otto(bank, made.proposal_id)
    else:
        with pytest.raises(Refused, match="frozen again"):
            await _confirmed_by_otto(bank, made.proposal_id)
        assert (await get_proposal(bank.pool, made.proposal_id)).status == "REFUSED"
    assert (await customer_desk.get(f"/api/v2/pockets/{pocket[1]}/"))["status"] == "FROZEN"
    second_proposal = await propose(bank, *pocket, freezes=False, reason="Lifted", by=OLGA)
    assert "APPLIED" in await _confirmed_by_otto(bank, second_proposal.proposal_id)


OLGA = Operator.of_command_line("olga")


async def _count_on_pages(olga):
    seen, cursor = 0, ""
    for there in (True, True, False):
        await olga.go(f"/bank/freezes?cursor={cursor}")
        seen += len(re.findall(">(Unf|F)reeze the [^<]+</a>", olga.page.text))
        assert ("Nothing is proposed" in olga.text, 'rel="next"' in olga.page.text) == (False, there)
        cursor = first_match(r'cursor=([^"&]+)" rel="next"', olga.page.text) if there else ""
    await olga.go("/bank/freezes?cursor=x")
    assert "Begin with its first page" in olga.text
    return seen


async def _listed(bank):
    return await PROPOSALS.rows(bank.pool, bank_customer_id(bank.seed), limit=100)


async def _confirmed_by_otto(bank, proposal_id):
    done = await confirm(bank, proposal_id, by=Operator.of_command_line("otto"))
    return str(done.proposal.status)
