"""The master key in AWS KMS: it wraps data keys and never leaves KMS. Needs the extra `billfold[aws]`.

Credentials and region are found as the AWS SDK finds them. Source: the KMS API, `Encrypt` and `Decrypt` with an
encryption context.
"""

import asyncio
from typing import Any
from uuid import UUID

from billfold.data_keys.ports import WrappedKey
from billfold.platform.errors import InvariantError, Unavailable

_DAMAGED = frozenset({"InvalidCiphertextException", "IncorrectKeyException", "InvalidKeyUsageException"})


class AwsKmsMasterKey:
    """Wraps data keys with one symmetric key of KMS, named by its id, ARN or alias."""

    __slots__ = ("_client", "_errors", "_key", "name")

    def __init__(self, key: str, *, endpoint_url: str | None = None) -> None:
        # Only a bank that uses KMS has the SDK installed.
        import boto3  # noqa: PLC0415
        import botocore.exceptions  # noqa: PLC0415

        self.name = f"aws-kms:{key}"
        self._key = key
        self._client: Any = boto3.client("kms", endpoint_url=endpoint_url)
        self._errors = (botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError)

    async def wrap(self, subject_id: UUID, key: bytes) -> WrappedKey:
        """Return the key encrypted, bound to its subject. Raises Unavailable."""
        answer = await self._call("encrypt", Plaintext=key, EncryptionContext=_context(subject_id))
        return WrappedKey(answer["CiphertextBlob"], self.name)

    async def unwrap(self, subject_id: UUID, stored: WrappedKey) -> bytes:
        """Return the key. Raises InvariantError, Unavailable."""
        answer = await self._call("decrypt", CiphertextBlob=stored.wrapped, EncryptionContext=_context(subject_id))
        plain: bytes = answer["Plaintext"]
        return plain

    async def _call(self, operation: str, **arguments: object) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = await asyncio.to_thread(
                getattr(self._client, operation), KeyId=self._key, **arguments
            )
        except self._errors as error:
            code = getattr(error, "response", {}).get("Error", {}).get("Code", type(error).__name__)
            if code in _DAMAGED:
                raise InvariantError("KMS refuses a data key: it is damaged, or of another key or subject.") from None
            raise Unavailable(f"KMS answers {code} to {operation}.") from None
        return answer


def _context(subject_id: UUID) -> dict[str, str]:
    return {"billfold:subject": str(subject_id)}
