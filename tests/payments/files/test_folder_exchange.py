"""Files go out whole and come in whole; what was taken lies beside its report."""

import os

import pytest

from billfold.payments.files.folder_exchange import ExchangeFolders
from billfold.payments.files.ports import InboundFile


async def test_a_file_transmitted_by_one_side_arrives_at_the_other(tmp_path):
    ours = ExchangeFolders(tmp_path)
    theirs = ours.network_side()
    assert await theirs.arrived() == []
    await ours.transmit("b.ach", b"two")
    await ours.transmit("a.ach", b"one")
    await ours.transmit("a.ach", b"one")
    (tmp_path / "outbox" / ".half").write_bytes(b"not yet")
    assert await theirs.arrived() == [
        InboundFile(name="a.ach", content=b"one"),
        InboundFile(name="b.ach", content=b"two"),
    ]
    assert await ours.arrived() == []
    assert await theirs.waiting() == ["a.ach", "b.ach"]
    assert (await theirs.read("a.ach"), await theirs.read("c.ach")) == (b"one", None)
    await theirs.put_away("a.ach", report=b"{}")
    assert [each.name for each in await theirs.arrived()] == ["b.ach"]
    assert (tmp_path / "sent" / "a.ach").read_bytes() == b"one"


async def test_an_arrived_file_is_put_away_with_its_report(tmp_path):
    ours = ExchangeFolders(tmp_path)
    for name in ("good.xml", "bad.xml"):
        await ours.network_side().transmit(name, b"x")
    await ours.put_away("good.xml", report=b'{"ok": 1}')
    await ours.put_away("bad.xml", report=b'{"line": 1}', refused=True)
    await ours.put_away("bad.xml", report=b'{"line": 1}', refused=True)
    assert await ours.arrived() == []
    assert (tmp_path / "done" / "good.xml.report.json").read_bytes() == b'{"ok": 1}'
    assert (tmp_path / "refused" / "bad.xml").read_bytes() == b"x"
    assert (tmp_path / "refused" / "bad.xml.report.json").read_bytes() == b'{"line": 1}'


async def test_odd_names_are_changed_and_what_leads_elsewhere_is_left_alone(tmp_path):
    ours, inbox = ExchangeFolders(tmp_path), tmp_path / "inbox"
    (inbox / "a folder").mkdir(parents=True)
    for raw in (b"bad\xff\xfe.xml", b"bad\xff\xfd.xml", b"a\nb.xml", b"l" * 251 + b".xml"):
        (inbox / os.fsdecode(raw)).write_bytes(raw)
    (inbox / "one two \u00fc.xml").write_bytes(b"kept")
    (inbox / "link.xml").symlink_to("/etc/passwd")
    (inbox / "dangling.xml").symlink_to("/nowhere")

    names = await ours.waiting()
    assert len(names) == 5
    assert "one two \u00fc.xml" in names
    assert all(name.isprintable() and len(name.encode()) <= 200 for name in names)
    assert await ours.waiting() == names
    arrived = {each.content for each in await ours.arrived()}
    assert {b"bad\xff\xfe.xml", b"bad\xff\xfd.xml", b"kept"} <= arrived
    for name in names:
        await ours.put_away(name, report=b"{}", refused=True)
    assert await ours.waiting() == []
    assert len(list((tmp_path / "refused").iterdir())) == 10


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", ""])
async def test_a_name_that_leads_elsewhere_is_not_taken(tmp_path, name):
    with pytest.raises(ValueError, match="not the name of a file"):
        await ExchangeFolders(tmp_path).transmit(name, b"x")
