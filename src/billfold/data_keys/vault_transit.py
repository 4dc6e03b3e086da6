"""A master key in Vault's transit engine. Source: its API, `encrypt` and `decrypt` with associated data."""

import base64
from typing import Any
from uuid import UUID

import httpx

from billfold.data_keys.kms import TIMEOUT_SECONDS, WrappedKey
from billfold.platform.errors import InvariantError, Unavailable


class VaultTransitMasterKey:
    """Wraps data keys with one key of a transit engine. Vault keeps the key's versions and its own audit log."""

    def __init__(self, key: str, *, url: str, token: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        mount, _, name = key.rpartition("/")
        self._mount, self._key = mount or "transit", name
        self.name = f"vault-transit:{self._mount}/{name}"
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"X-Vault-Token": token, "X-Vault-Request": "true"},
            timeout=TIMEOUT_SECONDS,
            transport=transport,
            trust_env=False,
        )

    async def wrap(self, subject_id: UUID, key: bytes) -> WrappedKey:
        """Return the key encrypted, bound to its subject. Raises Unavailable."""
        answer = await self._call("encrypt", {"plaintext": _base64(key)}, subject_id)
        return WrappedKey(str(answer["ciphertext"]).encode(), self.name)

    async def unwrap(self, subject_id: UUID, stored: WrappedKey) -> bytes:
        """Return the key. Raises InvariantError, Unavailable."""
        answer = await self._call("decrypt", {"ciphertext": stored.wrapped.decode("ascii", "replace")}, subject_id)
        return base64.b64decode(answer["plaintext"])

    async def _call(self, verb: str, body: dict[str, str], subject_id: UUID) -> dict[str, Any]:
        body = body | {"associated_data": _base64(subject_id.bytes)}
        try:
            response = await self._http.post(f"/v1/{self._mount}/{verb}/{self._key}", json=body)
        except httpx.HTTPError as error:
            raise Unavailable(f"Vault does not answer: {type(error).__name__}.") from None
        if response.status_code == httpx.codes.BAD_REQUEST:
            raise InvariantError("Vault refuses a data key: it is damaged, or of another key or subject.")
        if response.status_code != httpx.codes.OK:  # 403: the token; 5xx: sealed, or a standby
            raise Unavailable(f"Vault answers {response.status_code} to {verb}.")
        data: dict[str, Any] = response.json()["data"]
        return data


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
