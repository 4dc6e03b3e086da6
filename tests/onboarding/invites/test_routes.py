"""Invites to applications at the Customer API: who is invited, how often, and when no longer."""

import asyncio

import pytest
from tests.journeys.test_nothing_personal_in_a_dump import places_of_personal_data
from tests.support.applications import V2, Applicant, run_jobs
from tests.support.browser import invite_path, link_in, mailed
from tests.support.damage import undetected
from tests.support.databases import owner_of
from tests.support.world import UNKNOWN

from billfold.verify.fingerprints import check_fingerprints

CAROL = "carol@helpers.example"
HELPERS = {"invitation_type": "COLLABORATOR", "collaborators": [{"email": CAROL}]}
PERSON = {"email": "dan@northwind.example", "first_name": "Dan", "last_name": "Poe"}
SIGNER = {"invitation_type": "AUTHORIZED_PERSON", **PERSON}
PARTY = {"invitation_type": "RELATED_PARTY"}


@pytest.fixture
async def application_id(customer_desk):
    """The id of an incomplete application."""
    return (await customer_desk.post(V2, {"name": "Fabrikam Ltd"}))["id"]


async def test_every_invite_type_is_emailed_its_own_link_and_listed(customer_desk, other_customer, application_id):
    invite, invites = invite_path(application_id, "invite"), invite_path(application_id, "invites")
    two = {
        "invitation_type": "COLLABORATOR",
        "collaborators": [{"email": "Carol@Helpers.example"}, {"email": "e@x.org"}],
    }
    sent = [*(await customer_desk.post(invite, two, status=200))["invites"]]
    sent += (await customer_desk.post(invite, SIGNER, status=200))["invites"]
    asked = {"requested_fields": ["address", "address", "date_of_birth"]}
    sent += (await customer_desk.post(invite, PARTY | PERSON | asked, status=200))["invites"]
    assert [each["email"] for each in sent] == [CAROL, "e@x.org", PERSON["email"], PERSON["email"]]
    assert {each["status"] for each in sent} == {"PENDING"}
    assert (await customer_desk.get(invites))["invites"] == sent
    (party,) = await customer_desk.get(Applicant(customer_desk, V2).parties(application_id))
    assert (sent[3]["related_party_id"], party["name"]["last_name"]) == (party["id"], "Poe")
    emails = await mailed(customer_desk.bank)
    assert emails[CAROL][0] == "Fill in the application of Fabrikam Ltd"
    assert "Hello Dan,\n" in emails[PERSON["email"]][1]
    assert len({link_in(each) for each in emails.values()}) == 3
    secrets = [b"helpers.example", b"dan@northwind", link_in(emails[CAROL])[-43:].lower().encode()]
    assert await places_of_personal_data(customer_desk.bank, "", secrets) == {}
    await customer_desk.later(days=7)
    assert {each["status"] for each in (await customer_desk.get(invites))["invites"]} == {"EXPIRED"}
    async with owner_of(customer_desk.bank) as conn:
        assert await undetected(conn, "application_invite", check_fingerprints) == []
    for method, path, body in (
        ("POST", invite, HELPERS),
        ("GET", invites, b""),
        ("DELETE", invite_path(application_id, "invites", sent[0]["id"]), b""),
    ):
        await other_customer.refused(method, path, body, status=404, code="not-found")


async def test_a_repeated_invite_is_sent_once_and_a_party_invite_follows_its_new_address(customer_desk, application_id):
    invite = invite_path(application_id, "invite")
    first, again = [(await customer_desk.post(invite, HELPERS, status=200))["invites"] for _ in range(2)]
    assert (first, len(await mailed(customer_desk.bank))) == (again, 1)
    party = (await customer_desk.post(invite, PARTY | PERSON, status=200))["invites"][0]
    moved = PARTY | {"related_party_id": party["related_party_id"], "email": "other@northwind.example"}
    renewed = (await customer_desk.post(invite, moved, status=200))["invites"][0]
    assert (renewed["id"], renewed["email"]) == (party["id"], "other@northwind.example")
    parties = Applicant(customer_desk, V2).parties
    assert len(await customer_desk.get(parties(application_id))) == 1
    await customer_desk.ask("DELETE", parties(application_id, party["related_party_id"]), status=204)
    back = (await customer_desk.post(invite, PARTY | PERSON | {"email": "other@northwind.example"}, status=200))[
        "invites"
    ][0]
    assert [each["id"] for each in await customer_desk.get(parties(application_id))] == [back["related_party_id"]]
    await customer_desk.ask("DELETE", invite_path(application_id, "invites", first[0]["id"]), status=204)
    path = invite_path(application_id, "invites", first[0]["id"])
    await customer_desk.refused("DELETE", path, status=404, code="not-found")
    listed = (await customer_desk.get(invite_path(application_id, "invites")))["invites"]
    assert [(each["id"], each["status"]) for each in listed] == [(party["id"], "EXPIRED"), (back["id"], "PENDING")]


async def test_invites_are_limited_per_application_and_per_recipient_each_day(customer_desk, application_id):
    crowds = [[{"email": f"{n}nobody{m}@x.example"} for m in range(20)] for n in range(3)]
    bodies = [{"invitation_type": "COLLABORATOR", "collaborators": each} for each in crowds]
    sent = [await customer_desk.send("POST", invite_path(application_id, "invite"), each) for each in bodies]
    assert [each.status_code for each in sent] == [200, 200, 429]
    assert sent[2].json()["code"] == "invite-limit-reached"
    ids = [(await customer_desk.post(V2, {"name": f"Company {n}"}))["id"] for n in range(6)]
    answers = await asyncio.gather(*(customer_desk.send("POST", invite_path(each, "invite"), HELPERS) for each in ids))
    assert sorted(each.status_code for each in answers) == [200] * 3 + [429] * 3
    assert len((await customer_desk.get(invite_path(application_id, "invites")))["invites"]) == 40


async def test_a_frozen_customer_cannot_apply_or_invite(customer_desk, world, application_id):
    frozen = {"status": "FROZEN", "reason": "Court order"}
    await world.post(f"/api/v1/sandbox/customers/{customer_desk.team.customer}/", frozen, 200)
    applying = Applicant(customer_desk, V2).path(application_id, "apply")
    for where, body in ((V2, {"name": "Second Ltd"}), (applying, {}), (invite_path(application_id, "invite"), HELPERS)):
        await customer_desk.refused("POST", where, body, status=409, code="customer-not-open")


async def test_an_invalid_invite_is_refused_at_its_field(customer_desk, application_id):
    for body, loc in (
        ({}, "body.invitation_type"),
        ({"invitation_type": "FRIEND"}, "body.invitation_type"),
        ({"invitation_type": "COLLABORATOR"}, "body.collaborators"),
        ({"invitation_type": "COLLABORATOR", "collaborators": []}, "body.collaborators"),
        (HELPERS | {"collaborators": [{"email": CAROL}, {"email": CAROL.upper()}]}, "body.collaborators.1.email"),
        (HELPERS | {"collaborators": [{"email": "a@b.example\r\nBcc: c@d.example"}]}, "body.collaborators.0.email"),
        (SIGNER | {"first_name": "Dan\nBcc: c@d.example"}, "body.first_name"),
        (SIGNER | {"last_name": "P\u202eoe"}, "body.last_name"),
        (SIGNER | {"last_name": "Visit https://evil.example"}, "body.last_name"),
        (SIGNER | {"first_name": "Call 18005551234"}, "body.first_name"),
        (SIGNER | {"last_name": "x" * 51}, "body.last_name"),
        (SIGNER | {"requested_fields": ["name"]}, "body.requested_fields"),
        (PARTY, "body.email"),
        (PARTY | PERSON | {"requested_fields": ["name", "ssn"]}, "body.requested_fields.1"),
    ):
        await customer_desk.invalid("POST", invite_path(application_id, "invite"), body, loc=loc)
    assert (await customer_desk.get(invite_path(application_id, "invites")))["invites"] == []


async def test_invites_by_a_viewer_or_to_a_decided_application_are_refused(customer_desk, customer_desks):
    applicant = Applicant(customer_desk, V2)
    made = await applicant.simple(name="Review Co")
    await customer_desk.refused(
        "POST", invite_path(made, "invite"), PARTY | {"related_party_id": UNKNOWN}, status=404, code="not-found"
    )
    nameless = await customer_desk.post(applicant.parties(made), {"title": "Clerk"})
    await customer_desk.invalid(
        "POST", invite_path(made, "invite"), PARTY | {"related_party_id": nameless["id"]}, loc="body.email"
    )
    await customer_desk.ask("DELETE", applicant.parties(made, nameless["id"]), status=204)
    await applicant.decided(made)
    for body in (HELPERS, SIGNER, PARTY | PERSON):
        await customer_desk.refused(
            "POST", invite_path(made, "invite"), body, status=409, code="application-not-editable"
        )
    viewer = await customer_desks(customer_desk.team.customer, role="VIEWER")
    await viewer.ask("POST", invite_path(made, "invite"), HELPERS, status=403)
    await viewer.get(invite_path(made, "invites"))


async def test_withdrawing_closes_an_open_application_and_is_refused_for_a_submitted_one(customer_desk, application_id):
    applicant = Applicant(customer_desk, V2)
    closed = await customer_desk.post(applicant.path(application_id, "withdraw"), {}, status=200)
    assert closed["status"] == "CLOSED"
    submitted = await applicant.simple()
    await applicant.apply(submitted)
    for each in (application_id, submitted):
        path = applicant.path(each, "withdraw")
        await customer_desk.refused("POST", path, {}, status=409, code="application-not-editable")


async def test_the_team_of_a_submitted_application_is_invited_on_approval(customer_desk, customer_desks):
    applicant = Applicant(customer_desk, V2)
    clerks = [
        {"first_name": "Dee", "last_name": "Fox", "email": f"dee{n}@northwind.example", "role": "VIEWER"}
        for n in range(3)
    ]
    made, rejected = [await applicant.simple(name=name) for name in ("Fabrikam", "Reject Co")]
    team = applicant.path(made, "team")
    await customer_desk.refused("POST", team, clerks[:1], status=409, code="application-not-approved")
    for each in (made, rejected):
        await applicant.apply(each)
        planned = await customer_desk.post(applicant.path(each, "team"), clerks[:2])
    planned = await customer_desk.post(team, clerks[2:])
    (pending,) = [group["members"] for group in planned["groups"] if group["members"]]
    assert [(each["email"], each["status"]) for each in pending] == [(each["email"], "PENDING") for each in clerks]
    await customer_desk.refused("POST", team, clerks[:1], status=409, code="member-already-invited")
    colleague = await customer_desks(customer_desk.team.customer)
    await colleague.refused("POST", team, [clerks[0] | {"email": "x@y.example"}], status=403, code="forbidden")
    bank = customer_desk.bank
    assert await mailed(bank) == {}
    async with owner_of(bank) as conn:
        assert await undetected(conn, "awaited_team_member", check_fingerprints) == []
    await run_jobs(bank)
    assert set(await mailed(bank)) >= {each["email"] for each in clerks}
    approved = (await applicant.get(made))["customer_id"]
    assert approved == planned["customer_id"]
    invited = await bank.pool.fetch("SELECT member_id::text FROM invitation WHERE customer_id = $1", approved)
    assert {each["member_id"] for each in invited} == {each["member_id"] for each in pending}
    assert await bank.pool.fetchval("SELECT count(*) FROM awaited_team_member") == 0
    assert (await applicant.get(rejected))["status"] == "REJECTED"


async def test_a_service_user_that_submitted_an_application_may_set_its_team(customer_desk, service_users):
    program, _ = await service_users(customer_desk, "onboarding.read", "onboarding.write")
    applicant = Applicant(program, V2)
    made = await applicant.simple(name="Fabrikam")
    await applicant.apply(made)
    clerk = {"first_name": "Dee", "last_name": "Fox", "email": "dee@northwind.example", "role": "VIEWER"}
    await program.post(applicant.path(made, "team"), [clerk])
    await run_jobs(program.bank)
    assert "Fabrikam invites you into the team of Fabrikam" in (await mailed(program.bank))[clerk["email"]][1]
