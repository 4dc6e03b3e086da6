"""The public keys that documents are checked with, on the hosts of both APIs."""

from typing import Final

from billfold.http.operations import OPEN, get, with_scope
from billfold.http.responses import HttpResponse, json_response
from billfold.ledger.bank import Bank
from billfold.reports.proofs import document_keys
from billfold.reports.proofs.signatures import jwks_document

KEYS_PATH: Final = "/.well-known/document-keys.json"
_CACHED: Final = (b"cache-control", b"public, max-age=600")


@get(KEYS_PATH, OPEN, hidden=True, any_query=True)
@get(KEYS_PATH, OPEN, with_scope("pockets.read", "pockets"), hidden=True, any_query=True)
async def show_document_keys(bank: Bank) -> HttpResponse:
    """Return the public keys of the bank's documents, earlier ones too, as a JWKS. `billfold verify FILE` takes it."""
    keys = await document_keys.list_public_keys(bank.pool)
    if not keys:
        keys = [(await document_keys.get_document_key(bank.pool, bank.vault, await bank.now())).public]
    return json_response(jwks_document(keys), 200, _CACHED)
