"""Objects with random names in a bucket of an S3-compatible server, such as Amazon's, MinIO or Ceph.

Source: Amazon Simple Storage Service API Reference, version 2006-03-01: PutObject, GetObject, ListObjectsV2,
DeleteObject, error responses.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import obstore
import structlog
from obstore.exceptions import BaseError
from obstore.store import S3Store

from billfold.documents.ports import (
    FileStoreUnusable,
    check_key,
    check_unaltered,
    file_altered,
    file_missing,
    is_key,
    new_file,
)
from billfold.platform.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from obstore.store import ClientConfig, RetryConfig, S3Credential

    from billfold.documents.ports import StoredFile

log = structlog.get_logger(__name__)
_CONNECT_TIMEOUT = timedelta(seconds=5)
_STALLED_AFTER = timedelta(seconds=15)
_REQUEST_TIMEOUT = timedelta(seconds=60)
_RETRIES: RetryConfig = {
    "max_retries": 8,
    "retry_timeout": timedelta(seconds=20),  # as long as a request waits for an unavailable database
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=3), "base": 2},
}
_CREDENTIALS_KEPT = timedelta(minutes=5)
_OBJECTS_PER_PAGE = 1000
_RETRY_AFTER_SECONDS = 5
_ERROR_CODE = re.compile(r"<Code>(\w+)</Code>")
_WRONG_SETTINGS = {
    "NoSuchBucket": ("files_s3_bucket", "has no such bucket"),
    "InvalidBucketName": ("files_s3_bucket", "has no such bucket"),
    "InvalidAccessKeyId": ("files_s3_access_key", "does not know the access key"),
    "SignatureDoesNotMatch": ("files_s3_secret_key", "refuses the secret key"),
    "ExpiredToken": ("files_s3_credentials", "refuses credentials that have expired"),
    "InvalidToken": ("files_s3_credentials", "does not know the credentials"),
    "AccessDenied": ("files_s3_access_key", "does not allow the access key to list the bucket"),
    "AuthorizationHeaderMalformed": ("files_s3_region", "has the bucket in another region"),
    "PermanentRedirect": ("files_s3_region", "has the bucket in another region"),
}
"""Error codes, each with the wrong setting and a description."""


class S3FileStore:
    """Keeps files in a bucket, each written in one request: an object exists completely or not at all."""

    def __init__(
        self,
        endpoint: str,
        bucket: str,
        *,
        region: str,
        prefix: str,
        credentials: Callable[[], S3Credential],
        trusted_ca: Path | None = None,
    ) -> None:
        self._place = f"{endpoint}/{bucket}/{prefix}".rstrip("/")
        self._endpoint = endpoint
        client: ClientConfig = {
            "allow_http": endpoint.startswith("http:"),
            "connect_timeout": _CONNECT_TIMEOUT,
            "read_timeout": _STALLED_AFTER,
            "timeout": _REQUEST_TIMEOUT,
        }
        if trusted_ca is not None:
            client["root_certificate"] = trusted_ca.read_bytes()

        # Set explicitly everything that environment variables meant for other programs could change.
        self._bucket = S3Store(
            bucket,
            prefix=prefix or None,
            endpoint=endpoint,
            region=region,
            virtual_hosted_style_request=False,
            skip_signature=False,
            unsigned_payload=False,
            checksum_algorithm="SHA256",
            credential_provider=credentials,
            client_options=client,
            retry_config=_RETRIES,
        )

    async def check(self) -> str:
        """Return where the files are kept. Raises FileStoreUnusable with the wrong setting."""
        try:
            await anext(aiter(obstore.list(self._bucket, chunk_size=1)), None)
        except (BaseError, OSError) as error:
            setting, problem = _WRONG_SETTINGS.get(_code_in(error), ("files_s3_endpoint", "does not answer as S3 does"))
            raise FileStoreUnusable(f"The file store {self._endpoint} {problem}.", setting) from None
        return self._place

    async def keep(self, content: bytes) -> StoredFile:
        """Store a file durably; when this returns the server has it with a verified checksum. Raises Unavailable."""
        file = await asyncio.to_thread(new_file, content)
        with _map_s3_errors():
            await obstore.put_async(self._bucket, file.key, content, use_multipart=False)
        return file

    async def fetch(self, file: StoredFile) -> bytes:
        """Return the file as stored. Raises StoredFileMissing, Unavailable."""
        check_key(file.key)
        with _map_s3_errors():
            try:
                found = await obstore.get_async(self._bucket, file.key)
            except FileNotFoundError as error:
                if _code_in(error) == "NoSuchBucket":
                    raise
                raise file_missing(file) from None
            if found.meta["size"] != file.size_bytes:
                raise file_altered(file)
            content = (await found.bytes_async()).to_bytes()
        await asyncio.to_thread(check_unaltered, file, content)
        return content

    async def list_stored(self, before: datetime) -> list[str]:
        """Return the names of files last written before this instant; objects of other programs are left alone."""
        keys: list[str] = []
        with _map_s3_errors():
            async for page in obstore.list(self._bucket, chunk_size=_OBJECTS_PER_PAGE):
                keys += [each["path"] for each in page if each["last_modified"] < before and is_key(each["path"])]
        return sorted(keys)

    async def discard(self, key: str) -> None:
        """Delete a file. A file that no longer exists is not an error."""
        check_key(key)
        with _map_s3_errors():
            await obstore.delete_async(self._bucket, key)


def fixed_credentials(access_key: str, secret_key: str) -> Callable[[], S3Credential]:
    """Return a provider of credentials that do not expire."""
    return lambda: {"access_key_id": access_key, "secret_access_key": secret_key, "token": None, "expires_at": None}


def aws_credentials() -> Callable[[], S3Credential]:
    """Return a provider of the credentials that the AWS SDK finds, refreshed when they may have changed.

    Raises ImportError without the SDK, ValueError if it finds none.
    """
    # Only a bank that uses them has the SDK installed.
    from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415

    # The SDK refreshes them ten minutes before they expire. Only the credentials are from it, not the region.
    provider = Boto3CredentialProvider(ttl=_CREDENTIALS_KEPT)
    return partial(provider)


@contextmanager
def _map_s3_errors() -> Iterator[None]:
    """Raise Unavailable when the server refuses or fails, after all attempts.

    The server's error text may contain the bank's access key, so it is not passed on.
    """
    try:
        yield
    except (BaseError, OSError) as error:
        log.warning("file_store_failed", error=type(error).__name__, code=_code_in(error))
        raise Unavailable("The file store does not answer.", retry_after_seconds=_RETRY_AFTER_SECONDS) from None


def _code_in(error: Exception) -> str:
    """Return the server's error code; empty if there is none."""
    found = _ERROR_CODE.search(str(error))
    return found[1] if found else ""
