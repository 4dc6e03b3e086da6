"""Sanctions lists are read as they are published, and imported whole or not at all."""

from datetime import date
from pathlib import Path

import pytest

from billfold import sandbox
from billfold.cli.context import CliError
from billfold.screening import cli, store
from billfold.screening.rules import listed_wallets
from billfold.screening.store import read_list
from billfold.screening.types import Birth, EntryKind, InvalidList

XML = (Path(sandbox.__file__).parent / "scenarios" / "sanctions.xml").read_text()
SDN = (
    '900001,"VARKASHIN, Zoltan Ardeshir","individual","SANDBOX] [OTHER","Owner",-0- ,-0- ,-0- ,-0- ,-0- ,-0- ,'
    "\"DOB 07 Oct 1962; alt. DOB circa 1964; POB Tartus, Syria; nationality Syria; a.k.a. 'X';"
    " Digital Currency Address - XBT 12QtD5BFwRsdNsAZY76UVE1xyCGNTojH9h;"
    ' alt. Digital Currency Address - ETH 0x5abC000000000000000000000000000000000BaD."\r\n'
    '900002,"QUELLMAR SHIPPING COMPANY",-0- ,"SANDBOX",-0- ,-0- ,-0- ,-0- ,-0- ,-0- ,-0- ,-0- \r\n\x1a'
)
WALLET = "0x5abc000000000000000000000000000000000bad"
ALT = '900001,1,"aka","WARKASCHIN, Soltan",-0- \r\n900002,2,"fka","QUELLMAR MARITIME AGENCIES LTD",-0- \r\n'
ADD = '900002,1,"12 Harbour Road","Latakia","Syria",-0- \r\n900001,2,-0- ,-0- ,-0- ,-0- \r\n'


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a file."""

    def write(content, name="SDN.XML"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    return write


def test_a_sanctions_list_in_xml_is_read_with_names_birth_dates_and_countries(file):
    read = read_list(file(XML))
    person, company, *_, vessel = read.entries
    assert (read.published_on, len(read.entries), vessel.kind) == (date(2025, 1, 2), 5, EntryKind.VESSEL)
    assert [(each.text, each.kind, each.is_weak) for each in person.names] == [
        ("Zoltan Ardeshir VARKASHIN", "", False),
        ("Soltan WARKASCHIN", "a.k.a.", False),
        ("THE FERRYMAN OF TARTUS", "a.k.a.", True),
    ]
    assert person.births == (Birth(1962, 1962, date(1962, 10, 7)), Birth(1962, 1966))
    assert (person.countries, person.ids) == (("Syria",), ("Passport Z0000001 Syria",))
    assert (company.kind, company.names[1].kind) == (EntryKind.ENTITY, "f.k.a.")
    assert listed_wallets(read.entries) == {WALLET}


def test_the_three_ofac_csv_files_are_read_as_one_list(file):
    file(ALT, "alt.csv")
    file(ADD, "add.csv")
    person, company = read_list(file(SDN, "sdn.csv"), date(2025, 1, 2)).entries
    assert [each.text for each in person.names] == ["VARKASHIN, Zoltan Ardeshir", "WARKASCHIN, Soltan"]
    assert person.births == (Birth(1962, 1962, date(1962, 10, 7)), Birth(1962, 1966))
    assert (person.countries, person.programs) == (("Syria",), ("SANDBOX", "OTHER"))
    assert (company.kind, company.names[1].kind, company.countries) == (EntryKind.ENTITY, "f.k.a.", ("Syria",))
    assert listed_wallets([person]) == {WALLET, "12QtD5BFwRsdNsAZY76UVE1xyCGNTojH9h"}


LAUGHS = '<!DOCTYPE sdnList [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (XML[:-40], "line 1"),
        (XML.replace("<uid>900003</uid>", "<uid>900002</uid>"), "entry 900002: is there twice"),
        (XML.replace("<uid>900003</uid>", "<uid>x</uid>"), "'x' is not a number"),
        (XML.replace("<sdnType>Vessel", "<sdnType>Planet"), "entry 900005: its sdnType 'Planet' is unknown"),
        (XML.replace("<lastName>QUELLMAR STAR</lastName>", ""), "entry 900005: it has no name"),
        (XML.replace("<Record_Count>5", "<Record_Count>6"), "has 5 entries; its Record_Count is 6"),
        (XML.replace("01/02/2025", "2025-01-02"), "is not MM/DD/YYYY"),
        (XML.replace("sdnList", "Sanctions"), "begins with Sanctions"),
        (XML.replace("<sdnList", f"{LAUGHS}<sdnList", 1).replace("QUELLMAR STAR", "&b;"), "document type"),
        (XML.replace("QUELLMAR STAR", "Q" * 2_001), "longer than 2,000"),
        (b"\x00\xff", "not well-formed XML"),
    ],
)
def test_an_invalid_sanctions_list_file_is_refused_with_its_location(file, content, words):
    with pytest.raises(InvalidList, match=words):
        read_list(file(content))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("sdn.csv", SDN.replace(",-0- ,-0- \r\n", ",-0- \r\n"), "sdn.csv, line 2: has 11 columns instead of 12"),
        ("sdn.csv", SDN.replace("individual", "planet"), "line 1, entry 900001"),
        ("alt.csv", ALT.replace("900002,2", "900009,2"), "alt.csv, entry 900009: does not belong to an entry"),
        ("add.csv", "x" + ADD, "add.csv, line 1: does not begin with a number"),
        ("add.csv", b"\xff" + ADD.encode(), "is not UTF-8"),
        ("alt.csv", None, "alt.csv: is missing"),
    ],
)
def test_invalid_sanctions_csv_files_are_refused_with_the_location(file, name, content, words):
    for each, own in (("alt.csv", ALT), ("add.csv", ADD), ("sdn.csv", SDN)):
        if each != name or content is not None:
            file(own if each != name else content, each)
    with pytest.raises(InvalidList, match=words):
        read_list(file(SDN if name != "sdn.csv" else content, "sdn.csv"), date(2025, 1, 2))


async def test_a_sanctions_list_is_imported_once_as_a_whole_and_never_replaced_by_an_older_one(bank, file):
    async with bank.pool.acquire() as conn, conn.transaction():
        before = await store.find_current(conn)
        assert before is not None
        assert (before.entry_count, before.name_count) == (5, 8)
        assert "nothing was changed" in await cli.import_list(conn, file(XML))
        for wrong in (XML.replace("01/02/2025", "01/01/2025"), XML[:-40]):
            with pytest.raises(CliError):
                await cli.import_list(conn, file(wrong))
        assert await store.find_current(conn) == before
        later = XML.replace("01/02/2025", "02/02/2025").replace("BRACHMOND", "BRACHMONT")
        assert "5 entries with 8 names" in await cli.import_list(conn, file(later))
        after = await store.find_current(conn)
        assert after is not None
        names = [each.names[0].text for each in await store.load_entries(conn, after.list_id)]
        assert (after.published_on, names[2]) == (date(2025, 2, 2), "BRACHMONT INDUSTRIAL GROUP")
        assert await store.load_entries(conn, before.list_id) == []
        assert [row[-1] for row in await cli.status(conn)] == ["yes", ""]
