"""The authorization host understands jPOS, a third-party switch, in all four layouts."""

import asyncio
from pathlib import Path

import pytest
from tests.support.card_network import Place, StubBank, pin_block, set_pin
from tests.support.maven import jars_of

SOURCE = Path(__file__).with_name("JposSwitch.java")


@pytest.fixture(scope="module")
def jpos(tmp_path_factory):
    """The folder of the library's jars."""
    return jars_of("org.jpos", "jpos", "2.1.10", tmp_path_factory)


def lines_of(place):
    """Return a purchase and its reversal, an echo and an inquiry, in every layout."""
    common = f"2={place.card.pan} 7=0602130501 32=123456 41=TERM0001 42=MERCHANT0000001 49=840"
    for nth, form in enumerate("AB"):
        times, about = "12=090501 13=0602", "18=5411 22=051 43=Larkmoor_Deli__________Vantorp______NVUS"
        purchase = f"{common} {times} 3=000000 4=000000005000 52={pin_block(place, '4711')} {about}"
        yield f"ISO87{form}Packager 0800 7=0602130501 11=000001 70=301"
        yield f"ISO87{form}Packager 0100 {purchase} 11=00001{nth} 37=60000000001{nth}"
        yield f"ISO87{form}Packager 0420 {purchase} 11=00002{nth} 37=60000000001{nth}"
        times, about = (
            "12=250602090501",
            "24=100 22=51010151134C 26=5411 43=Larkmoor_Deli\\9_Road\\Vantorp\\89507_____NV_USA",
        )
        purchase = f"{common} {times} 4=000000005000 {about}"
        yield f"ISO93{form}Packager 1804 7=0602130501 11=000001 24=831"
        yield f"ISO93{form}Packager 1100 {purchase} 3=000000 11=00003{nth} 37=60000000003{nth}"
        yield f"ISO93{form}Packager 1100 {common} {times} {about} 3=310000 11=00004{nth} 37=60000000004{nth}"


async def test_jpos_can_sign_on_pay_inquire_and_reverse_in_every_layout(jpos, tmp_path):
    bank = StubBank()
    await bank.open()
    place = Place(tmp_path / "processor", bank)
    set_pin(place, "4711")
    async with place.serving():
        words = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jpos}/*", str(SOURCE), str(place.port)]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
        out, _ = await process.communicate("\n".join(lines_of(place)).encode())
    await bank.close()
    answers = [line.split() for line in out.decode().splitlines()]
    read = [(words[0], dict(word.split("=", 1) for word in words[1:])) for words in answers]
    assert [(mti, fields["39"]) for mti, fields in read] == [
        ("0810", "00"), ("0110", "00"), ("0430", "00"), ("1814", "800"), ("1110", "000"), ("1110", "000"),
    ] * 2  # fmt: skip
    assert read[1][1]["2"] == place.card.pan
    assert [each["type"] for each in bank.messages] == [
        "AUTHORIZATION",
        "REVERSAL",
        "AUTHORIZATION",
        "BALANCE_INQUIRY",
    ] * 2
    assert {each["merchant"]["name"] for each in bank.messages} == {"Larkmoor Deli"}
