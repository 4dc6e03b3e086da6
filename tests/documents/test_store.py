"""In the file store lies ciphertext only, which opens for its own document."""

import pytest
from tests.data_keys.test_sealed_columns import verified
from tests.documents.test_routes import PAGE, proof
from tests.support.applications import Applicant

from billfold.documents import store
from billfold.documents.store import fetch_opened, open_names
from billfold.platform.errors import InvariantError


async def test_an_uploaded_file_is_encrypted_and_opens_only_for_its_own_document(customer_desk):
    bank, ids = customer_desk.bank, [await proof(customer_desk) for _ in range(2)]
    first, second = [await store.get_document(bank.pool, each) for each in ids]

    assert await fetch_opened(bank, first) == PAGE
    stored = [path.read_bytes() for path in bank.settings.files_dir.rglob("*") if path.is_file()]
    assert len(set(stored)) == 2
    assert not [each for each in stored if PAGE[:8] in each]
    swap = "UPDATE document SET (file_key, size_bytes, sha256) = ($2, $3, $4) WHERE document_id = $1"
    await bank.pool.execute(swap, first.document_id, second.file_key, second.size_bytes, second.sha256)
    with pytest.raises(InvariantError, match="moved"):
        await fetch_opened(bank, await store.get_document(bank.pool, ids[0]))


async def test_the_name_of_a_file_is_sealed_with_the_data_key_of_its_subject(partner_desk):
    bank, applicant = partner_desk.bank, Applicant(partner_desk)
    application = await applicant.filled(uploaded=False)
    await applicant.upload_all(application, name="Ada Marsh 123-45-6789.pdf")
    shown = await applicant.documents(application)
    assert {each["name"] for each in shown} == {"Ada Marsh 123-45-6789.pdf"}
    stored = "SELECT document_id, name FROM document WHERE name IS NOT NULL ORDER BY document_id"
    first, second, *_ = await bank.pool.fetch(stored)
    assert first["name"].startswith("sealed:")

    change = "UPDATE document SET name = $2 WHERE document_id = $1"
    await bank.pool.execute(change, second["document_id"], first["name"])
    assert [each.key["document_id"] for each in (await verified(bank)).findings] == [second["document_id"]]
    with pytest.raises(InvariantError, match="moved"):
        await open_names(bank.pool, bank, [await store.get_document(bank.pool, second["document_id"])])
    await bank.pool.execute(change, second["document_id"], second["name"])
