"""Files are written and read as a whole; a processed file is stored next to its report."""

import os

import pytest

from billfold.payments.files.exchange import ExchangeFolders


async def test_a_file_transmitted_by_one_side_arrives_at_the_other(tmp_path):
    ours = ExchangeFolders(tmp_path)
    theirs = ours.network_side()
    assert await theirs.list_inbound() == []
    await ours.transmit("b.ach", b"two")
    await ours.transmit("a.ach", b"one")
    await ours.transmit("a.ach", b"one")
    (tmp_path / "outbox" / ".half").write_bytes(b"not yet")
    assert await ours.list_inbound() == []
    assert await theirs.list_inbound() == ["a.ach", "b.ach"]
    assert [await theirs.read(f"{name}.ach") for name in "abc"] == [b"one", b"two", None]
    await theirs.archive("a.ach", report=b"{}")
    assert await theirs.list_inbound() == ["b.ach"]
    assert (tmp_path / "sent" / "a.ach").read_bytes() == b"one"


async def test_a_processed_inbound_file_is_archived_with_its_report(tmp_path):
    ours = ExchangeFolders(tmp_path)
    for name in ("good.xml", "bad.xml"):
        await ours.network_side().transmit(name, b"x")
    await ours.archive("good.xml", report=b'{"ok": 1}')
    await ours.archive("bad.xml", report=b'{"line": 1}', refused=True)
    await ours.archive("bad.xml", report=b'{"line": 1}', refused=True)
    assert await ours.list_inbound() == []
    assert (tmp_path / "done" / "good.xml.report.json").read_bytes() == b'{"ok": 1}'
    assert (tmp_path / "refused" / "bad.xml").read_bytes() == b"x"
    assert (tmp_path / "refused" / "bad.xml.report.json").read_bytes() == b'{"line": 1}'


async def test_invalid_file_names_are_replaced_and_symbolic_links_ignored(tmp_path):
    ours, inbox = ExchangeFolders(tmp_path), tmp_path / "inbox"
    (inbox / "a folder").mkdir(parents=True)
    for raw in (b"bad\xff\xfe.xml", b"bad\xff\xfd.xml", b"a\nb.xml", b"l" * 251 + b".xml"):
        (inbox / os.fsdecode(raw)).write_bytes(raw)
    (inbox / "one two \u00fc.xml").write_bytes(b"kept")
    (inbox / "link.xml").symlink_to("/etc/passwd")
    (inbox / "dangling.xml").symlink_to("/nowhere")

    names = await ours.list_inbound()
    assert len(names) == 5
    assert "one two \u00fc.xml" in names
    assert all(name.isprintable() and len(name.encode()) <= 200 for name in names)
    assert await ours.list_inbound() == names
    arrived = {await ours.read(name) for name in names}
    assert {b"bad\xff\xfe.xml", b"bad\xff\xfd.xml", b"kept"} <= arrived
    for name in names:
        await ours.archive(name, report=b"{}", refused=True)
    assert await ours.list_inbound() == []
    assert len(list((tmp_path / "refused").iterdir())) == 10


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", ""])
async def test_a_path_is_not_accepted_as_a_file_name(tmp_path, name):
    with pytest.raises(ValueError, match="not the name of a file"):
        await ExchangeFolders(tmp_path).transmit(name, b"x")
