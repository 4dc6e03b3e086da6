"""Sources of market data lead only where the operator said, and are bounded in size."""

import ssl
from ipaddress import ip_network

import pytest
from tests.support.events import always, answer, receiving

from billfold.bills.ports import SourceUnavailable
from billfold.cli.tls import ensure_certificates
from billfold.platform.clock import wall_now
from billfold.treasury import price_sources
from billfold.treasury.price_sources import AddressSource, FolderSource

HERE = (ip_network("127.0.0.0/8"),)


async def resolve(_host, _port):
    return ["127.0.0.1"]


@pytest.fixture
def files(tmp_path):
    return ensure_certificates(tmp_path, wall_now(), domain="prices.localhost", partners=())


@pytest.fixture
def fetched(files):
    """Fetch from a server with a script; return the content, or why there is none."""

    async def call(script, *, allowed=HERE, trusted_ca=files.authority, host="prices.localhost"):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(files.certificate, files.key)
        async with receiving(script, ssl=tls) as receiver:
            port = receiver.url.split(":")[2].split("/")[0]
            source = AddressSource(
                f"https://{host}:{port}/rates.csv?key=1", allowed=allowed, trusted_ca=trusted_ca, resolve=resolve
            )
            try:
                (file,) = await source.read()
            except SourceUnavailable as error:
                return str(error)
            assert file.name.endswith("/rates.csv"), "without the query, which may hold a key"
            return file.content

    return call


def redirecting(location):
    """A script that redirects the first request and answers the next one."""

    async def script(request):
        return answer(body=b"moved") if request.path == "/moved" else answer(302, f"location: {location}")

    return script


async def test_a_file_is_fetched_over_https_and_redirects_within_its_host_are_followed(fetched):
    assert await fetched(always(answer(body=b"Date\n"))) == b"Date\n"
    assert await fetched(redirecting("/moved")) == b"moved"


@pytest.mark.parametrize("location", ["http://prices.localhost/x", "https://other.localhost/x", "file:///etc/passwd"])
async def test_a_redirect_to_another_scheme_or_host_is_not_followed(fetched, location):
    assert await fetched(redirecting(location)) == "it redirects to another host"


async def test_an_address_that_is_not_allowed_not_trusted_or_does_not_answer_is_refused(fetched, monkeypatch):
    assert "not called" in await fetched(always(answer()), allowed=())
    assert "certificate" in (await fetched(always(answer()), trusted_ca=None)).lower()
    assert "status 404" in await fetched(always(answer(404)))
    assert "redirects" in await fetched(redirecting("/rates.csv?key=1"))
    monkeypatch.setattr(price_sources, "FILE_BYTES_MAX", 10)
    assert len(await fetched(always(answer(body=b"x" * 100)))) > 10, "cut, and refused as too large"


async def test_links_and_other_files_of_a_folder_are_not_read(tmp_path):
    outside = tmp_path / "secret"
    outside.write_text("s")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "b.csv").write_text("b")
    (folder / "a.XML").write_text("a")
    (folder / "c.txt").write_text("c")
    (folder / "d.csv").symlink_to(outside)
    assert [(each.name, each.content) for each in await FolderSource(folder).read()] == [
        ("a.XML", b"a"),
        ("b.csv", b"b"),
    ]
    with pytest.raises(SourceUnavailable):
        await FolderSource(tmp_path / "none").read()
