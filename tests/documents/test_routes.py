"""Documents through both APIs: uploaded, inspected, reviewed, and linked to their objects."""

import asyncio
import errno
import os
from uuid import UUID

import pytest
from tests.documents.test_inspection import a_pdf, a_picture, huge_png, opens_with, pdf_with
from tests.support.payees import CONTOSO, wire
from tests.support.world import EVERYTHING, UNKNOWN, token_for

from billfold.documents.ports import FileInspector
from billfold.http import uploads
from billfold.identity.operators import Operator
from billfold.onboarding import review_queue
from billfold.onboarding.review_queue import ReviewDecision
from billfold.platform import ids
from billfold.platform.errors import NotFound, Refused

PROOF = "WIRE_COUNTERPARTY_VERIFICATION"
NEW = f"/api/v1/documents/{PROOF}/"
PATH = "/api/v2/counterparties/"
OPERATOR = Operator.of_command_line("olga")
APPROVED = ReviewDecision(approved=True, reason=None, by=OPERATOR)
REJECTED = ReviewDecision(approved=False, reason="The name is missing.", by=OPERATOR)
PAGE = a_pdf()


def sent(kind="application/pdf", name=None):
    named = {} if name is None else {"content-disposition": f'attachment; filename="{name}"'}
    return {"content-type": kind} | named


async def upload(customer_desk, path=NEW, content=PAGE, *, kind="application/pdf", name="scan", **options):
    headers = sent(kind, name) | options.pop("headers", {})
    return await customer_desk.send("POST", path, content, headers=headers, **options)


async def proof(customer_desk, **options):
    answer = await upload(customer_desk, **options)
    assert answer.status_code == 201, answer.text
    assert answer.json()["success"]
    return answer.json()["document_id"]


def payee(*documents, **fields):
    kind = {"type": "supporting_documents", "document_ids": list(documents)}
    return wire(verification=kind, **fields)


async def test_slow_uploads_do_not_block_other_uploads(customer_desk, other_customer):
    on = asyncio.Event()

    async def slowly():
        yield PAGE[:100]
        await on.wait()
        yield PAGE[100:]

    slow = []
    for _ in range(4):
        headers = {**customer_desk.headers("POST", NEW, customer_desk.token), **sent()}
        slow.append(asyncio.create_task(customer_desk.http.post(NEW, content=slowly(), headers=headers)))
    await asyncio.sleep(0)
    assert (await upload(other_customer)).status_code == 201
    assert (await upload(customer_desk)).status_code == 201, "nor does the tenant itself"
    assert not any(each.done() for each in slow)
    on.set()
    assert {(await each).status_code for each in slow} == {201}


async def test_an_upload_to_a_full_file_store_is_answered_503_and_may_be_repeated(customer_desk, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    key = ids.new()
    with monkeypatch.context() as disk:
        disk.setattr(os, "fdopen", full)
        refused = await upload(customer_desk, key=key)
        assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
        assert "retry-after" in refused.headers
        assert await customer_desk.bank.pool.fetchval("SELECT count(*) FROM document") == 0
        await customer_desk.get("/api/v2/pockets/")
    assert (await upload(customer_desk, key=key)).status_code == 201


async def test_approving_its_documents_verifies_a_counterparty(customer_desk, customer_world):
    await customer_desk.pocket()
    first, second = await proof(customer_desk, name="statement.pdf"), await proof(customer_desk)
    made = await customer_desk.post(PATH, payee(first, second))
    assert (made["status"], made["verification"]["status"]) == ("PENDING", "PENDING_REVIEW")
    assert made["verification"]["supporting_documents"] == [
        {"document_id": each, "type": PROOF, "status": "PENDING_REVIEW"} for each in (first, second)
    ]
    bank = customer_desk.bank
    (waiting,) = await review_queue.list_waiting(bank, 10)
    assert (waiting.kind, str(waiting.object_id)) == ("counterparty", made["id"])
    assert await review_queue.decide(bank, waiting.object_id, APPROVED)
    done = await customer_desk.get(f"{PATH}{made['id']}/")
    assert (done["status"], done["verification"]["status"]) == ("VERIFIED", "APPROVED")
    shown = await customer_desk.get(f"/api/v2/documents/{first}/")
    assert (shown["status"], shown["name"]) == ("APPROVED", "statement.pdf")
    assert shown == await customer_world.get(f"/api/v1/documents/{first}/")
    again = await upload(customer_desk, f"/api/v2/documents/{first}/")
    assert (again.status_code, again.json()["code"]) == (412, "already-approved")
    with pytest.raises(Refused, match="counterparty-not-pending"):
        await review_queue.decide(bank, waiting.object_id, REJECTED)
    with pytest.raises(NotFound):
        await review_queue.decide(bank, UUID(UNKNOWN), APPROVED)
    told = [each["description"] for each in (await customer_desk.get("/api/v1/notifications/"))["items"]]
    assert "The counterparty Contoso was verified." in told


async def test_an_invalid_document_can_be_uploaded_again(customer_desk):
    await customer_desk.pocket()
    bad = await proof(customer_desk, name="Invalid scan.pdf")
    shown = await customer_desk.get(f"/api/v2/documents/{bad}/")
    assert (shown["status"], shown["exception_reason"]) == ("INVALID", "IMAGE_QUALITY_ERROR_CUTOFF")
    made = await customer_desk.post(PATH, payee(bad))
    assert (made["status"], made["verification"]["status"]) == ("PENDING", "PENDING_UPLOAD")
    assert await review_queue.list_waiting(customer_desk.bank, 10) == []
    answer = await customer_desk.ask(
        "POST", "/api/v2/documents/" + bad + "/", a_picture("PNG"), status=200, headers=sent("image/png", "scan.png")
    )
    assert (answer.json()["status"], answer.json()["name"]) == ("PENDING_REVIEW", "scan.png")
    twice = await upload(customer_desk, f"/api/v2/documents/{bad}/")
    assert (twice.status_code, twice.json()["code"]) == (409, "document-in-review")
    (waiting,) = await review_queue.list_waiting(customer_desk.bank, 10)
    await review_queue.decide(customer_desk.bank, waiting.object_id, REJECTED)
    gone = await customer_desk.get(f"{PATH}{made['id']}/")
    assert (gone["status"], gone["verification"]["status"]) == ("UNLINKED", "REJECTED")
    assert gone["verification"]["description"] == REJECTED.reason
    assert gone["verification"]["supporting_documents"][0]["status"] == "INVALID"


async def test_rejecting_a_single_document_leaves_its_counterparty_pending_upload(customer_desk):
    await customer_desk.pocket()
    document = await proof(customer_desk)
    (alone,) = await review_queue.list_waiting(customer_desk.bank, 10)
    assert (alone.kind, str(alone.object_id)) == ("document", document)
    made = await customer_desk.post(PATH, payee(document))
    await review_queue.decide(customer_desk.bank, alone.object_id, REJECTED)
    shown = await customer_desk.get(f"{PATH}{made['id']}/")
    assert (shown["status"], shown["verification"]["status"]) == ("PENDING", "PENDING_UPLOAD")
    with pytest.raises(Refused, match="document-not-in-review"):
        await review_queue.decide(customer_desk.bank, UUID(made["id"]), APPROVED)


async def test_foreign_documents_and_documents_of_a_wrong_type_are_refused_for_verification(
    customer_desk, other_customer, customer_world
):
    await customer_desk.pocket()
    await other_customer.pocket()
    foreign = await proof(other_customer)
    other = await proof(customer_desk, path="/api/v1/documents/OTHER/")
    answer = await customer_desk.ask("POST", PATH, payee(foreign, other, UNKNOWN), status=422)
    places = [".".join(map(str, each["loc"])) for each in answer.json()["detail"]]
    assert places == [f"body.verification.document_ids.{n}" for n in range(3)]
    await customer_desk.ask("GET", f"/api/v2/documents/{foreign}/", status=404)
    assert (await upload(customer_desk, f"/api/v2/documents/{foreign}/")).status_code == 404
    await customer_world.ask("GET", f"/api/v1/documents/{UNKNOWN}/", status=404)


async def test_a_partner_sends_documents_without_a_signature(customer_world, customer_desk):
    await customer_desk.pocket()
    path = f"/api/v1/customers/{customer_desk.team.customer}/documents/{PROOF}/file/"
    unsigned = {"x-service-signature": None}
    answer = await upload(customer_world.client, path, headers=unsigned)
    assert answer.status_code == 201, answer.text
    document = answer.json()["document_id"]
    customer = f"/api/v2/customers/{customer_desk.team.customer}/counterparties/"
    made = await customer_world.post(customer, payee(document, counterparty_name=CONTOSO))
    assert made["verification"]["supporting_documents"][0]["document_id"] == document
    again = await upload(customer_world.client, f"/api/v1/documents/{document}/", headers=unsigned)
    assert again.status_code == 409
    keyless = await upload(customer_world.client, path, headers={"x-service-idempotency": None})
    assert keyless.status_code == 422
    for headers in ({"authorization": None}, {"authorization": "Bearer x"}):
        assert (await upload(customer_world.client, path, headers=headers)).status_code == 401
    elsewhere = f"/api/v1/customers/{UNKNOWN}/documents/{PROOF}/file/"
    assert (await upload(customer_world.client, elsewhere)).status_code == 404
    # The same request again is the same document.
    key = "5a0f4a52-6d0b-4c8e-9a57-2f3f2f6f1c11"
    ids = {(await upload(customer_world.client, path, key=key)).json()["document_id"] for _ in range(2)}
    assert len(ids) == 1


async def test_the_sandbox_applies_the_requested_verification_decision(customer_world, customer_desk):
    await customer_desk.pocket()
    box = "/api/v1/sandbox/counterparty-verification/"
    for status, stands in (
        ("APPROVED", ("VERIFIED", "APPROVED")),
        ("REJECTED", ("UNLINKED", "REJECTED")),
        ("EXPIRED", ("UNLINKED", "EXPIRED")),
    ):
        made = await customer_desk.post(PATH, wire(identifier=status))
        await customer_world.ask("POST", box, {"counterparty_id": made["id"], "status": status}, status=202)
        shown = await customer_desk.get(f"{PATH}{made['id']}/")
        assert (shown["status"], shown["verification"]["status"]) == stands
        await customer_world.refused(
            "POST", box, {"counterparty_id": made["id"], "status": status}, status=409, code="counterparty-not-pending"
        )


WRONG = [
    (PAGE, "text/plain", None, 415, "unsupported-media-type"),
    (PAGE, "application/pdf", "x.png", 415, "unsupported-media-type"),
    (PAGE[:200], "application/pdf", None, 422, "document-not-readable"),
    (b"", "application/pdf", None, 422, None),
    (huge_png(), "image/png", None, 422, "document-not-readable"),
    (pdf_with(opens_with({"/S": "/JavaScript", "/JS": "x"})), "application/pdf", None, 422, "document-not-readable"),
]


async def test_the_document_type_limits_the_file_size_before_reading(
    customer_desk, customer_world, other_customer, monkeypatch
):
    async def not_read(*_):
        raise AssertionError("the file is inspected")

    passport = await proof(customer_desk, path="/api/v1/documents/PASSPORT/", name="invalid.pdf")
    monkeypatch.setattr(customer_desk.bank.ports[FileInspector], "inspect", not_read)
    owned = f"/api/v1/customers/{customer_desk.team.customer}/documents"
    for kind, document_type, most in (
        ("application/pdf", "OTHER", 52_428_799),
        ("image/png", "OTHER", 10 * 1024 * 1024),
        ("application/pdf", "PASSPORT", 5 * 1024 * 1024),
        ("image/jpeg", "ID_FRONT", 5 * 1024 * 1024),
    ):
        for desk, path in (
            (customer_desk, f"/api/v1/documents/{document_type}/"),
            (customer_world.client, f"{owned}/{document_type}/file/"),
        ):
            taken = await upload(desk, path, bytes(most), kind=kind)
            assert taken.status_code == 415, "it is no such file, but not too large"
            refused = await upload(desk, path, bytes(most + 1), kind=kind)
            assert (refused.status_code, refused.json()["detail"]) == (
                413,
                f"The body may have at most {most:,} bytes.",
            )
    for desk, version, status in ((customer_desk, 2, 413), (customer_world.client, 1, 413), (other_customer, 2, 404)):
        by_id = await upload(desk, f"/api/v{version}/documents/{passport}/", bytes(5 * 1024 * 1024 + 1))
        assert by_id.status_code == status
        assert (by_id.json()["detail"] == "The body may have at most 5,242,880 bytes.") == (status == 413)


async def test_a_file_uploaded_by_document_id_has_a_name(customer_desk):
    document = await proof(customer_desk, name="invalid.pdf")
    for nameless in ({}, {"content-disposition": "attachment"}):
        answer = await upload(customer_desk, f"/api/v2/documents/{document}/", name=None, headers=nameless)
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["header", "content-disposition"])
    assert (await proof(customer_desk, name=None)) != document


async def test_uploads_over_the_concurrency_limit_wait_unread_or_are_refused(customer_desk, monkeypatch):
    monkeypatch.setattr(uploads, "FILES_RECEIVED_MAX", 2)
    on, read = asyncio.Event(), 0

    async def slowly():
        nonlocal read
        read += 1
        yield PAGE[:100]
        await on.wait()
        yield PAGE[100:]

    async def send():
        headers = {**customer_desk.headers("POST", NEW, customer_desk.token), **sent()}
        return (await customer_desk.http.post(NEW, content=slowly(), headers=headers)).status_code

    sending = [asyncio.create_task(send()) for _ in range(3)]
    _, pending = await asyncio.wait(sending, timeout=1)
    assert (read, len(pending)) == (2, 3)
    monkeypatch.setattr(uploads, "FILE_WAIT_SECONDS", 0.05)
    assert await send() == 429, "no request waits forever"
    on.set()
    assert await asyncio.gather(*sending) == [201] * 3


async def test_a_file_that_does_not_match_its_declared_type_is_refused(customer_desk):
    for content, kind, name, status, code in WRONG:
        answer = await upload(customer_desk, content=content, kind=kind, name=name)
        assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert await customer_desk.bank.pool.fetchval("SELECT count(*) FROM document") == 0


def form_with(content=PAGE, *, boundary, kind="application/pdf", name="scan.pdf", field="file"):
    """Return a multipart form with a file, and its headers, as generated clients send them."""
    lines = f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
    typed = f"Content-Type: {kind}\r\n" if kind else ""
    body = f"{lines}{typed}\r\n".encode() + content + f"\r\n--{boundary}--\r\n".encode()
    return body, {"content-type": f"multipart/form-data; boundary={boundary}"}


async def test_a_repeated_form_upload_with_a_different_boundary_is_the_same_request(customer_desk):
    key = {"idempotency-key": "a form that is sent twice"}
    answers = []
    for boundary in ("+++", "xYzzY"):
        body, headers = form_with(boundary=boundary)
        answers.append(await customer_desk.send("POST", NEW, body, headers=headers | key))
    assert [each.status_code for each in answers] == [201, 201], answers[0].text
    assert answers[0].json() == answers[1].json()
    shown = await customer_desk.get(f"{PATH[:8]}documents/{answers[0].json()['document_id']}/")
    assert (shown["name"], shown["status"]) == ("scan.pdf", "PENDING_REVIEW")


@pytest.mark.parametrize("kind", ["application/octet-stream", None])
async def test_a_form_upload_without_a_type_is_detected_by_its_content(customer_desk, kind):
    body, headers = form_with(boundary="b", kind=kind)
    assert (await customer_desk.send("POST", NEW, body, headers=headers)).status_code == 201


async def test_a_form_upload_without_a_file_truncated_or_of_a_wrong_type_is_refused(customer_desk):
    body, headers = form_with(boundary="b")
    empty = b'--b\r\nContent-Disposition: form-data; name="note"\r\n\r\nhello\r\n--b--\r\n'
    answer = await customer_desk.send("POST", NEW, empty, headers=headers)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "file"])
    assert (await customer_desk.send("POST", NEW, body[:-30], headers=headers)).status_code == 400
    other, headers = form_with(boundary="b", kind="text/html")
    assert (await customer_desk.send("POST", NEW, other, headers=headers)).status_code == 415


async def test_a_partner_sends_a_file_in_a_form(customer_world, customer_desk):
    path = f"/api/v1/customers/{customer_desk.team.customer}/documents/OTHER/file/"
    body, headers = form_with(boundary="b")
    unsigned = {"x-service-signature": None}
    answer = await customer_world.client.send("POST", path, body, headers=headers | unsigned)
    assert answer.status_code == 201, answer.text


async def test_an_unknown_document_type_is_refused(customer_desk):
    answer = await upload(customer_desk, "/api/v1/documents/LOVE_LETTER/")
    assert answer.json()["detail"][0]["loc"] == ["path", "document_type"]


async def test_an_initiator_may_upload_only_counterparty_documents(customer_desk, customer_desks):
    await customer_desk.pocket()
    asker = await customer_desks(customer_desk.team.customer, role="INITIATOR")
    document = await proof(asker, name="invalid.pdf")
    path = f"/api/v2/documents/{document}/"
    assert (await asker.get(path))["status"] == "INVALID"
    assert (await upload(asker, path)).status_code == 200
    made = await asker.post(PATH, payee(document))
    assert made["status"] == "PENDING"
    other = "/api/v1/documents/ORG_CHART/"
    assert (await upload(customer_desk, other)).status_code == 201
    kept = (await upload(customer_desk, other)).json()["document_id"]
    for refused in (other, f"/api/v2/documents/{kept}/"):
        assert (await upload(asker, refused)).status_code == 403
    viewer = await customer_desks(customer_desk.team.customer, role="VIEWER")
    assert (await upload(viewer)).status_code == 403


async def test_an_unauthorized_upload_is_refused_before_its_file_is_read(customer_desk, bank):
    others = [each for each in EVERYTHING if each not in {"onboarding.write", "transfers.write"}]
    token = await token_for(bank, customer_desk.team, scopes=others)
    for kind in ("application/pdf", "text/html"):
        assert (await upload(customer_desk, kind=kind, token=token)).status_code == 403
    assert (await upload(customer_desk, kind="text/html")).status_code == 415
    assert (await upload(customer_desk, token=None)).status_code == 401
