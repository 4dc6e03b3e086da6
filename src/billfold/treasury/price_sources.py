"""Sources of market data that the operator names: a folder, or an address of https.

An address is resolved once and the call goes to the address that was checked. Only redirects within its own scheme,
host and port are followed, and none leads into a private network that the operator has not named.
"""

import asyncio
import ssl
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from billfold.bills.ports import SourceUnavailable
from billfold.bills.types import PriceFile
from billfold.events.webhooks import ssrf
from billfold.platform.settings.kinds import Network
from billfold.platform.settings.settings import Settings

FILE_BYTES_MAX = 16 * 2**20
FILES_MAX = 100
"""Files of a folder that one fetch reads, the last ones by name."""
FETCH_SECONDS = 30.0
"""For a whole fetch: name look-up, connection, redirects and content."""
_REDIRECTS_MAX = 3
_SUFFIXES = frozenset({".csv", ".xml"})


def price_sources_of(settings: Settings) -> tuple["FolderSource | AddressSource", ...]:
    """Return the sources that the settings name."""
    return tuple(
        FolderSource(Path(each))
        if each.startswith("/")
        else AddressSource(each, allowed=settings.market_allowed_networks, trusted_ca=settings.market_trusted_ca)
        for each in settings.market_sources
    )


class FolderSource:
    """The files of a folder whose names end in .csv or .xml, in the order of their names; links are not followed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        """The path."""
        return str(self._folder)

    async def read(self) -> Sequence[PriceFile]:
        """Return the files. Raises SourceUnavailable if the folder or a file cannot be read."""
        try:
            return await asyncio.to_thread(self._read)
        except OSError as error:
            raise SourceUnavailable(error.strerror or type(error).__name__) from None

    def _read(self) -> list[PriceFile]:
        paths = sorted(each for each in self._folder.iterdir() if each.suffix.lower() in _SUFFIXES)
        found = []
        for path in [each for each in paths if each.is_file() and not each.is_symlink()][-FILES_MAX:]:
            with path.open("rb") as file:
                found.append(PriceFile(path.name, file.read(FILE_BYTES_MAX + 1)))
        return found


class AddressSource:
    """The file at an address of https."""

    def __init__(
        self,
        url: str,
        *,
        allowed: Sequence[Network] = (),
        trusted_ca: Path | None = None,
        resolve: ssrf.Resolver | None = None,
    ) -> None:
        self._url = url
        self._allowed, self._trusted_ca, self._resolve = tuple(allowed), trusted_ca, resolve

    @property
    def name(self) -> str:
        """The address without its query, which may hold a key."""
        return self._url.partition("?")[0]

    async def read(self) -> Sequence[PriceFile]:
        """Return the file. Raises SourceUnavailable."""
        import httpx  # noqa: PLC0415 - most processes fetch nothing

        url = self._url
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                for _ in range(_REDIRECTS_MAX + 1):
                    found = await self._get(url)
                    if isinstance(found, bytes):
                        return [PriceFile(self.name, found)]
                    url = _redirected(url, found)
        except TimeoutError:
            raise SourceUnavailable(f"no answer within {FETCH_SECONDS:.0f} seconds") from None
        except ssrf.ForbiddenAddress as refused:
            raise SourceUnavailable(f"not called: the address {refused}") from None
        except (ssrf.NoSuchHost, httpx.HTTPError) as error:
            raise SourceUnavailable(str(error) or type(error).__name__) from None
        raise SourceUnavailable(f"more than {_REDIRECTS_MAX} redirects")

    async def _get(self, url: str) -> bytes | str:
        """Return the content, or the location of a redirect."""
        import httpx  # noqa: PLC0415 - as above

        target = ssrf.parse_target(url)
        address = (await ssrf.resolve_allowed(target, allowed=self._allowed, resolve=self._resolve))[0]
        place = httpx.URL(f"https://{f'[{address}]' if ':' in address else address}:{target.port}{target.path}")
        headers = {"host": target.authority, "accept-encoding": "identity"}
        tls = ssl.create_default_context()
        if self._trusted_ca is not None:
            tls.load_verify_locations(self._trusted_ca)
        async with httpx.AsyncClient(verify=tls, trust_env=False, timeout=FETCH_SECONDS) as http:
            named = {"sni_hostname": target.host}
            async with http.stream("GET", place, headers=headers, extensions=named) as response:
                if response.has_redirect_location:
                    return response.headers["location"]
                if response.status_code != HTTPStatus.OK or "content-encoding" in response.headers:
                    raise SourceUnavailable(f"status {response.status_code}, or an encoding that was not asked for")
                content = b""
                async for chunk in response.aiter_raw():
                    content += chunk
                    if len(content) > FILE_BYTES_MAX:
                        break
                return content


def _redirected(url: str, location: str) -> str:
    there = urljoin(url, location)
    if urlsplit(there)[:2] != urlsplit(url)[:2]:
        raise SourceUnavailable("it redirects to another host")
    return there
