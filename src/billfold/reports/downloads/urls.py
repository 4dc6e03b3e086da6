"""Temporary URLs: who has one may download one file of one customer for ten minutes, without a token.

`https://{host}/downloads/{file_id}?customer=...&expires=...&signature=...`: the signature is an HMAC over the other
three under the bank's key.
"""

import base64
import re
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from billfold.platform.crypto import Vault
from billfold.platform.errors import BillfoldError
from billfold.reports.downloads.types import URL_LIFETIME, Downloadable, TemporaryUrl

_PURPOSE: Final = "download"
_SIGNATURE = re.compile(r"[A-Za-z0-9_-]{48}")  # 36 bytes: one text for each


def temporary_url(vault: Vault, host: str, file: Downloadable, wall: datetime) -> TemporaryUrl:
    """Return a URL of a file at a host of either API, such as `caller.host`. It is valid from now on."""
    expires_at = (wall + URL_LIFETIME).replace(microsecond=0)
    expires = str(int(expires_at.timestamp()))
    signed = _message(str(file.file_id), str(file.customer_id), expires)
    signature = base64.urlsafe_b64encode(vault.compute_mac(signed, _PURPOSE)).decode()
    query = f"customer={file.customer_id}&expires={expires}&signature={signature}"
    return TemporaryUrl(url=f"https://{host}/downloads/{file.file_id}?{query}", expires_at=expires_at)


def check_url(
    vault: Vault, file_id: str, *, customer: str, expires: str, signature: str, wall: datetime
) -> tuple[UUID, UUID]:
    """Return (customer_id, file_id) of a URL of ours. Raises `download-url-invalid`, `download-url-expired`."""
    if not vault.verify_mac(_mac_of(signature), _message(file_id, customer, expires), _PURPOSE):
        raise BillfoldError("download-url-invalid", "The URL was altered, or is not one of this bank.")
    if datetime.fromtimestamp(int(expires), UTC) <= wall:
        raise BillfoldError("download-url-expired", "The URL was valid for 10 minutes.")
    return UUID(customer), UUID(file_id)


def _mac_of(signature: str) -> bytes:
    """Return the bytes of a signature; nothing unless it is spelled as this module spells it."""
    if not _SIGNATURE.fullmatch(signature):
        return b""
    return base64.urlsafe_b64decode(signature)


def _message(*parts: str) -> bytes:
    return "\n".join(parts).encode(errors="surrogatepass")
