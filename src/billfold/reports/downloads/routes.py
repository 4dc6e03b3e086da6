"""The route behind temporary URLs, at the hosts of both APIs."""

from billfold.http.operations import OPEN, get, with_scope
from billfold.http.responses import StreamedResponse
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.reports.downloads import store
from billfold.reports.downloads.files import open_file
from billfold.reports.downloads.urls import check_url

READS = with_scope("reports.read", "reports")
_PATH = "/downloads/{file_id}"
_REFUSES = ("download-url-invalid", "download-url-expired", "not-found")


@get(_PATH, OPEN, hidden=True, any_query=True, refuses=_REFUSES)
@get(_PATH, OPEN, READS, hidden=True, any_query=True, refuses=_REFUSES)
async def download_file(
    bank: Bank, file_id: str, customer: str = "", expires: str = "", signature: str = ""
) -> StreamedResponse:
    """Download a file by a temporary URL."""
    ids = check_url(bank.vault, file_id, customer=customer, expires=expires, signature=signature, wall=wall_now())
    file = await store.get_file(bank.pool, *ids)
    headers = [
        (b"content-disposition", f'attachment; filename="{file.name}"'.encode()),
        (b"content-length", str(file.size_bytes).encode()),
    ]
    return StreamedResponse(file.media_type, await open_file(bank, file), headers)
