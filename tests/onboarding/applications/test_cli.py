"""`billfold applications`: operators see who applies, and decide."""

from uuid import UUID

import pytest
from tests.support.applications import OWNER, Applicant, run_jobs

from billfold.cli.context import CliError
from billfold.identity.operators import Operator
from billfold.onboarding import review_queue
from billfold.onboarding.applications import cli
from billfold.onboarding.applications.types import ApplicationStatus
from billfold.onboarding.review_queue import ReviewDecision
from billfold.platform.errors import Refused

OPERATOR = Operator.of_command_line("olga")


@pytest.fixture
async def application_in_review(world):
    """An applicant, and the id of an application in review."""
    applicant = Applicant(world)
    made = await applicant.simple(name="Review Co")
    await applicant.decided(made)
    return applicant, UUID(made)


async def test_an_operator_shows_an_application_and_sends_it_back(application_in_review, other_partner, capsys):
    applicant, made = application_in_review
    bank = applicant.desk.bank
    (row,) = await cli.list_applications(bank, status=ApplicationStatus.MANUAL_REVIEW)
    assert (row[0], row[1]) == (made, "Review Co")
    await cli.show(bank, made)
    shown = capsys.readouterr().out
    assert "Review Co (business) is MANUAL_REVIEW" in shown
    assert "Ada Marsh" in shown
    assert OWNER["identification_number"]["identification_number"] not in shown
    for wrong in ({"status": "REJECTED"}, {"status": "DOCUMENTS_NEEDED", "reason": ["More."], "document": ["BYLAW"]}):
        with pytest.raises(CliError):
            await cli.decide(bank, made, **wrong)
    await cli.decide(bank, made, status="DOCUMENTS_NEEDED", reason=["Bylaws, please"], document=["BYLAWS"])
    await Applicant(other_partner).simple(id=str(made), name="Namesake of its id")
    with pytest.raises(CliError) as ambiguous:
        await cli.show(bank, made)
    assert "--partner acme" in ambiguous.value.next_step
    await cli.show(bank, made, partner="globex")
    assert "Namesake of its id" in capsys.readouterr().out
    (wanted,) = await applicant.documents(made)
    assert (wanted["type"], wanted["status"]) == ("BYLAWS", "PENDING_UPLOAD")
    await applicant.upload_all(made)
    assert (await applicant.get(made))["status"] == "MANUAL_REVIEW"


async def test_an_application_is_approved_in_the_review_queue(application_in_review):
    applicant, made = application_in_review
    bank = applicant.desk.bank
    (item,) = await review_queue.list_waiting(bank, 10, "application")
    assert "Review Co" in item.what
    assert await review_queue.decide(bank, item.object_id, ReviewDecision(approved=True, reason=None, by=OPERATOR))
    with pytest.raises(Refused) as refused:
        await review_queue.decide(bank, item.object_id, ReviewDecision(approved=False, reason="Late.", by=OPERATOR))
    assert refused.value.code == "application-not-in-review"
    await run_jobs(bank)
    assert (await applicant.get(made))["status"] == "APPROVED"
    actions = "SELECT action, actor FROM audit_entry WHERE resource_type = 'application' ORDER BY entry_no"
    found = [tuple(each) for each in await bank.pool.fetch(actions)]
    assert found[0] == ("application.created", "PARTNER")
    assert ("application.reviewed", "OPERATOR") in found
    assert found[-1] == ("application.approved", "SYSTEM")
