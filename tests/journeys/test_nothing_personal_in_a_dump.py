"""What customers say of themselves comes in through HTTP, and is found in no dump, file, e-mail or log."""

import asyncio
import base64
import re
from itertools import chain

from tests.documents.test_routes import PAGE, sent
from tests.support.applications import MINORITY, Applicant

from billfold.documents.store import get_document

ADDRESS = {"street_address": "7 Quillfeather Lane", "city": "Vantorp", "postal_code": "89507-4821", "country": "US"}
CONTACT = {"email": "treasury@quillfeather.example", "phone_number": "+17755550142", "address": ADDRESS}
TRUSTED = {"first_name": "Ottoline", "last_name": "Brackwater", "email": "ottoline@brackwater.example"}
BUSINESS_NUMBERS = {"identification_number": "47-1923847", "type": "EIN", "issuing_country": "US"}
PERSONAL_NUMBERS = {"identification_number": "536-22-8145", "identification_type": "SSN"}
CALLED = {"phone_number": CONTACT["phone_number"], "email": CONTACT["email"]}
WRITTEN_TO = {"name": {"first_name": "Ada", "last_name": "Marsh"}, **CALLED}
FOUNDER = (
    MINORITY
    | CALLED
    | {
        "address": ADDRESS | {"state": "NV"},
        "date_of_birth": "1971-03-19",
        "identification_number": PERSONAL_NUMBERS,
    }
)
SAID = (
    b"quillfeather",
    b"7755550142",
    b"vantorp",
    b"89507-4821",  # five digits alone are found in any ciphertext in hex, sooner or later
    b"ottoline",
    b"brackwater",
    b"passport of the founder",
    b"47-1923847",
    b"471923847",
    b"536-22-8145",
    b"536228145",
    b"1971-03-19",
)
DOCUMENT = PAGE.replace(b"%%EOF", b"% passport of the founder\n%%EOF")
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}")
_HEX = re.compile(rb"(?:[0-9a-f]{2}){8,}")


def decodings(content):
    """Yield the content, and what stands in it in base64 or hex, as far as these are texts."""
    yield content
    for text in _HEX.findall(content):
        yield bytes.fromhex(text.decode())
    for text in _BASE64.findall(content):
        altchars = b"-_" if set(text) & set(b"-_") else None
        for shift in range(4):  # it may begin anywhere in a longer text
            cut = text[shift:]
            yield base64.b64decode(cut + b"A" * (-len(cut) % 4), altchars=altchars)


def found_in(content):
    return {said for each in decodings(content) for said in SAID if said in each.lower()}


async def dumped(bank):
    """Return every table as COPY writes it, as a text and as bytes."""
    tables = {}
    for row in await bank.pool.fetch(_TABLES):
        parts: list[bytes] = []

        async def collect(data, parts=parts):
            parts.append(bytes(data))

        async with bank.pool.acquire() as conn:
            await conn.execute("RESET ROLE")
            await conn.copy_from_query(f'SELECT * FROM "{row["tablename"]}"', output=collect, format="text")
        tables[row["tablename"]] = b"".join(parts)
    return tables


async def places_of_personal_data(bank, logged):
    """Return where something of what was said is found: tables, files, e-mails, the log."""
    state = bank.settings.files_dir.parent
    files = {str(path): path.read_bytes() for path in state.rglob("*") if path.is_file()}
    everything = chain((await dumped(bank)).items(), files.items(), [("log", logged.encode())])
    return {place: said for place, content in everything if (said := found_in(content))}


async def test_what_a_customer_says_is_found_nowhere(partner_desk, capfd):
    bank = partner_desk.bank
    made = await partner_desk.post("/api/v1/sandbox/customers/", {"name": "Q Holdings LLC"})
    path = f"/api/v1/customers/{made['id']}/"
    shown = await partner_desk.patch(path, CONTACT | {"trusted_contact": TRUSTED})
    upload = f"{path}documents/WIRE_COUNTERPARTY_VERIFICATION/file/"
    answer = await partner_desk.send("POST", upload, DOCUMENT, headers=sent())
    assert answer.status_code == 201, answer.text
    await partner_desk.refused("PATCH", path, CONTACT | {"status": "CLOSED"}, status=403, code="feature-not-enabled")
    assert shown == await partner_desk.get(path)
    applicant = Applicant(partner_desk)
    own = {"identification_number": BUSINESS_NUMBERS, "contact": WRITTEN_TO, "website": None}
    for name, status in (("Approved LLC", "APPROVED"), ("Reject LLC", "REJECTED")):
        application = await applicant.filled(FOUNDER, name=name, **own)
        assert (await applicant.decided(application))["status"] == status
    await applicant.filled(FOUNDER, name="Unfinished LLC", uploaded=False, **own)
    while not await bank.pool.fetchval("SELECT count(*) FROM idempotency_key WHERE length(response_body) > 400"):
        await asyncio.sleep(0)  # responses are kept after they were sent

    captured = capfd.readouterr()
    assert await places_of_personal_data(bank, captured.out + captured.err) == {}
    for encoded in (base64.b64encode(b"x" + SAID[0]), SAID[0].hex().encode()):
        assert found_in(encoded) == {SAID[0]}, "the search sees through encodings"
    plain = '{"email": "treasury@quillfeather.example"}'
    await bank.pool.execute("UPDATE customer SET profile = $2 WHERE customer_id = $1", made["id"], plain)
    assert await places_of_personal_data(bank, "") == {"customer": {SAID[0]}}, "and into every table"
    document = await get_document(bank.pool, answer.json()["document_id"])
    assert document.file_sealed
