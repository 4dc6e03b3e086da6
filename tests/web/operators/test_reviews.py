"""Operators decide pending reviews: by role, after a recent sign-in, and audited."""

import asyncio
from contextlib import suppress
from uuid import UUID

import pytest
from tests.support.applications import Applicant, run_jobs
from tests.support.browser import first_match

from billfold.ledger.scheduler import bank_customer_id
from billfold.onboarding import review_queue
from billfold.onboarding.review_queue import list_waiting


@pytest.fixture
async def application_in_review(bank, partner_desk):
    """The page of an application that waits."""
    applicant = Applicant(partner_desk)
    made = await applicant.filled(name="Review Co")
    await applicant.decided(made)
    (item,) = await list_waiting(bank, 10, "application")
    return applicant, made, f"/bank/reviews/application/{item.object_id}"


async def test_an_application_review_is_decided_once_and_audited_with_its_operator(
    bank, operators, application_in_review
):
    applicant, made, path = application_in_review
    olga, otto, viewer = [await operators(role) for role in ("MANAGER", "APPROVER", "VIEWER")]
    for each in (olga, otto, viewer):
        await each.go("/bank/reviews")
        assert path in each.page.text
        await each.go(path)
        assert "Review Co (business) Application, manual review" in " ".join(each.text.split())
    assert "/bank/documents/" not in viewer.page.text
    form = {"csrf": olga.csrf, "decision": "reject", "reason": ""}
    assert (await olga.post(path, form)).status_code == 422
    assert (await otto.post(path, form)).status_code == 403, "the form of another browser"
    assert (await viewer.post(path, {"csrf": viewer.csrf, "decision": "approve"})).status_code in {403, 409}
    assert (await applicant.get(made))["status"] == "MANUAL_REVIEW"
    for other in ("counterparty", "sanctions", "nothing"):
        assert (await olga.go(path.replace("application", other))).status_code == 404
    await olga.go(path)
    file = await olga.go(first_match(r'href="(/bank/documents/[^"]+)"', olga.page.text))
    assert file.headers["content-disposition"].startswith("attachment;")
    assert file.headers["content-type"] == "application/octet-stream"
    await olga.go(path)
    await olga.send(path, decision="approve", reason="All there.")
    await otto.go(path)
    assert "does not wait" in otto.text
    assert (await otto.post(path, {"csrf": otto.csrf, "decision": "reject", "reason": "Late."})).status_code == 409
    await run_jobs(bank)
    assert (await applicant.get(made))["status"] == "APPROVED"
    log = await bank.pool.fetch(
        "SELECT actor_name, member_id, action, outcome, details::jsonb ->> 'user_id' AS user_id FROM audit_entry"
        " WHERE customer_id = $1 AND action LIKE 'review.%' ORDER BY entry_no",
        bank_customer_id(bank.seed),
    )
    said = [
        ("review.approve", "FAILURE", str(viewer.user_id)),
        ("review.download", "SUCCESS", str(olga.user_id)),
        ("review.approve", "SUCCESS", str(olga.user_id)),
        ("review.reject", "FAILURE", str(otto.user_id)),
    ]
    begun = [(f"{action}_begun", "SUCCESS", who) for action, _, who in said]
    both = [each for pair in zip(begun, said, strict=True) for each in pair]
    assert [(row["action"], row["outcome"], row["user_id"]) for row in log] == both
    assert all(row["actor_name"] == "Anna Lind" and row["member_id"] for row in log)


async def test_an_interrupted_review_decision_is_audited_with_its_operator(
    bank, operators, application_in_review, monkeypatch
):
    applicant, made, path = application_in_review
    olga, decide = await operators(), review_queue.decide

    async def cut_off(*args):
        await decide(*args)
        raise asyncio.CancelledError

    monkeypatch.setattr(review_queue, "decide", cut_off)
    await olga.go(path)
    with suppress(asyncio.CancelledError):
        await olga.send(path, decision="approve", reason="All there.")
    await run_jobs(bank)
    assert (await applicant.get(made))["status"] == "APPROVED"
    (entry,) = await bank.pool.fetch("SELECT * FROM audit_entry WHERE action LIKE 'review.%'")
    assert (entry["action"], entry["details"].count(str(olga.user_id))) == ("review.approve_begun", 1)


async def test_a_review_decision_requires_a_recent_sign_in(bank, operators, application_in_review):
    _, _, path = application_in_review
    olga = await operators()
    await bank.pool.execute("UPDATE session SET authenticated_at = authenticated_at - interval '10 minutes'")
    await olga.go(path)
    assert "Confirm your identity" in olga.text
    answer = await olga.post(path, {"csrf": olga.csrf, "decision": "approve"})
    assert answer.headers["location"].startswith("/confirm")
    (item,) = await list_waiting(bank, 10, "application")
    assert UUID(path.rpartition("/")[2]) == item.object_id
