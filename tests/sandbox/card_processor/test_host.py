"""The authorization host over TCP, with an independent encoder and a simulated bank."""

import json

import pytest
from tests.support.card_network import Place, connected, pack, pin_block, set_pin, unpack

from billfold.platform.telemetry.logs import configure_logging
from billfold.sandbox.card_processor.host.messages import MacAlgorithm

APPROVED = {"0": "00", "1": "000"}
WORDS = {
    "0": {"part": "10", "reversed": "00", "funds": "51", "unknown": "25", "closed": "62"},
    "1": {"part": "002", "reversed": "400", "funds": "116", "unknown": "914", "closed": "104"},
}


def reversals(switch, version, first, more):
    """Return the elements that reverse an increment of 700 whole, and those that reverse 1,000 of 5,000."""
    if version == "0":
        original = f"0100{more[11]}{more[7]}{'123456':0>11}{0:011}"
        left = f"{4000:012}".ljust(42, "0")
        return switch.purchase(700, de90=original), switch.purchase(5000, de37=first[37], de95=left)
    original = f"1100{more[11]}{more[12]}06123456"
    about = {"version": "1", "de30": f"{5000:012}{0:012}", "de37": first[37]}
    return switch.purchase(0, version="1", de24="400", de56=original), switch.purchase(4000, de24="401", **about)


@pytest.mark.parametrize("version", ["0", "1"])
async def test_the_messages_of_a_purchase_reach_the_bank_under_one_reference(place, version):
    word, bank = WORDS[version], place.bank
    async with place.serving() as switch:
        first = switch.purchase(5000, version=version)
        mti, reply = await switch.ask(f"{version}100", first)
        assert (mti, reply[39], len(reply[38])) == (f"{version}110", APPROVED[version], 6)
        assert all(reply[number] == first[number] for number in (2, 3, 4, 7, 11, 12, 32, 37, 41, 42, 49))

        more = switch.purchase(700, version=version, de37=first[37])
        assert await switch.code(f"{version}100", more) == APPROVED[version]
        assert await switch.ask(f"{version}101", first) == (mti, reply)  # sent again, it is the same message
        other = first | {4: "000000009900"}
        assert await switch.code(f"{version}100", other) == {"0": "94", "1": "913"}[version]

        undo, less = reversals(switch, version, first, more)
        assert await switch.code(f"{version}400", undo) == word["reversed"]
        assert (await switch.ask(f"{version}420", less))[0] == f"{version}430"
        completion = switch.purchase(4000, version=version, de37=first[37])
        assert await switch.code(f"{version}220", completion) == APPROVED[version]

        above = switch.purchase(90_00, version=version, de37=first[37])
        assert await switch.code(f"{version}200", above) == APPROVED[version]
        kinds = [(each["type"], each["amount"]) for each in bank.messages]
        assert kinds[:4] == [("AUTHORIZATION", 5000), ("INCREMENT", 700), ("REVERSAL", 700), ("REVERSAL", 1000)]
        assert kinds[4:] == [
            ("ADVICE", 4000),
            ("INCREMENT", 9000),
        ]  # a request above what is held is the bank's to decide
        assert {each["network_reference"] for each in bank.messages} == {f"123456-{first[37]}"}
        assert {each["card_id"] for each in bank.messages} == {place.card_id}
        assert place.card.pan not in json.dumps(bank.messages)
        authorization = bank.messages[0]
        assert (authorization["entry_mode"], authorization["merchant"]["category_code"]) == ("CHIP", "5411")
        assert (authorization["merchant"]["name"], authorization["merchant"]["city"]) == ("Larkmoor Deli", "Vantorp")


@pytest.mark.parametrize("version", ["0", "1"])
async def test_bank_decisions_are_mapped_to_iso8583_response_codes(place, version):
    word, bank = WORDS[version], place.bank
    async with place.serving() as switch:
        bank.decide = lambda _: {"decision": "PARTIALLY_APPROVED", "approved_amount": 1200}
        fields = switch.purchase(5000, version=version, de48="61011")
        _, reply = await switch.ask(f"{version}100", fields)
        assert (reply[39], reply[4], reply[54]) == (word["part"], f"{1200:012}", "0057840C000000005000")
        assert bank.messages[-1]["is_partial_allowed"]

        bank.decide = lambda _: {"decision": "APPROVED", "approved_amount": 123_45}
        fields = switch.purchase(0, version=version, de3="313000")
        _, reply = await switch.ask(f"{version}100", fields)
        assert (reply[39], reply[54], bank.messages[-1]["type"]) == (
            APPROVED[version],
            "0002840C000000012345",
            "BALANCE_INQUIRY",
        )

        for reason, code in (
            ("INSUFFICIENT_FUNDS", "funds"),
            ("CARD_CLOSED", "closed"),
            ("NO_AUTHORIZATION", "unknown"),
        ):
            bank.decide = lambda _, reason=reason: {"decision": "DECLINED", "reason": reason}
            assert await switch.code(f"{version}100", switch.purchase(100, version=version)) == word[code]
        bank.decide = lambda message: {"decision": "APPROVED", "approved_amount": message["amount"]}
        cases = [
            ("200", "200000", "REFUND", "CHIP"),
            ("200", "010000", "AUTHORIZATION", "ATM"),
            ("120", "000000", "ADVICE", "CHIP"),
        ]
        for mti, processing, kind, entry in cases:
            fields = switch.purchase(2500, version=version, de3=processing)
            assert await switch.code(version + mti, fields) == APPROVED[version]
            assert (bank.messages[-1]["type"], bank.messages[-1]["entry_mode"]) == (kind, entry)
        count = len(bank.messages)
        declined = switch.purchase(2500, version=version, de39={"0": "05", "1": "100"}[version])
        assert await switch.code(f"{version}120", declined) == APPROVED[version]
        assert len(bank.messages) == count  # the network declined it: there is nothing to post


def cash(cents):
    return f"0040840D{cents:012}"


@pytest.mark.parametrize("version", ["0", "1"])
async def test_a_partial_approval_covers_purchases_and_never_cash(place, version):
    word, bank = WORDS[version], place.bank
    without_cash = {"0": "87", "1": "002"}[version]
    async with place.serving() as switch:

        async def asked(processing="090000", **fields):
            await switch.ask(f"{version}100", switch.purchase(50_00, version=version, de3=processing, **fields))
            told = bank.messages[-1]
            return told["cash"], told["is_partial_allowed"], told["is_purchase_only_allowed"]

        assert await asked("000000", de48="610211") == (0, True, True)
        assert await asked("010000", de48="610210") == (50_00, True, False)
        assert await asked(de48="610201", de54=cash(20_00)) == (20_00, False, True)
        assert await asked(de48="610211", de54="0002840C000000000001" + cash(20_00)) == (20_00, True, True)
        assert await asked(de48="610211") == (50_00, True, True)  # nobody says how much of it is cash
        assert await asked(de54=cash(20_00)) == (20_00, False, False)
        assert await asked(de54=cash(90_00)) == (50_00, False, False)

        def approve(cents):
            bank.decide = lambda _: {"decision": "PARTIALLY_APPROVED", "approved_amount": cents}

        fields, first = {"version": version, "de3": "090000", "de54": cash(20_00)}, {}
        for cents, terminal, code in (
            (30_00, "610211", without_cash),
            (30_00, "610201", without_cash),
            (30_00, "610210", word["part"]),
            (12_00, "610211", word["part"]),
        ):
            approve(cents)
            first = switch.purchase(50_00, de48=terminal, **fields)
            _, reply = await switch.ask(f"{version}100", first)
            assert (reply[39], reply[4], reply[54]) == (code, f"{cents:012}", "0057840C000000005000")
            assert (await switch.ask(f"{version}101", first))[1] == reply
        bank.decide = lambda message: {"decision": "APPROVED", "approved_amount": message["amount"]}
        assert (
            await switch.code(f"{version}100", switch.purchase(7_00, version=version, de37=first[37]))
            == (APPROVED[version])
        )
        assert (bank.messages[-1]["type"], bank.messages[-1]["cash"]) == ("INCREMENT", 0)
        advised = switch.purchase(30_00, de39=without_cash, **fields)
        assert await switch.code(f"{version}120", advised) == APPROVED[version]
        assert (bank.messages[-1]["type"], bank.messages[-1]["amount"]) == ("ADVICE", 30_00)


async def test_a_connection_signs_on_and_off_and_echoes(place):
    async with place.serving() as switch:
        for version, mti, element, codes in (
            ("0", "0800", 70, ("301", "002", "001")),
            ("1", "1804", 24, ("831", "802", "801")),
        ):
            echo, off, on = ({7: "0602130501", 11: "000001", element: code} for code in codes)
            accepted = {"0": "00", "1": "800"}[version]
            answered, fields = await switch.ask(mti, echo)
            assert (answered, fields[39], fields[11]) == ({"0": "0810", "1": "1814"}[version], accepted, "000001")
            assert await switch.code(mti, off) == accepted
            assert (
                await switch.code(f"{version}100", switch.purchase(100, version=version))
                == {"0": "12", "1": "902"}[version]
            )
            assert await switch.code(mti, on) == accepted
            assert await switch.code(f"{version}100", switch.purchase(100, version=version)) == APPROVED[version]


async def test_pin_cvv_and_expiry_are_verified_before_asking_the_bank(place):
    set_pin(place, "4711")
    cvv, expiry = place.vault.cvv(place.card), place.card.expires_on.strftime("%y%m")
    wrong_cvv = f"{(int(cvv) + 1) % 1000:03}"
    async with place.serving() as switch:

        async def code(**fields):
            return await switch.code("0100", switch.purchase(100, **fields))

        assert await code(de14=expiry, de48=f"9203{cvv}", de52=pin_block(place, "4711")) == "00"
        track = switch.purchase(100, de35=f"{place.card.pan}D{expiry}2010000000000")
        del track[2]
        assert await switch.code("0100", track) == "00"
        assert await code(de35=f"4000001234567899D{expiry}201") == "30"  # another card's track
        assert await code(de2="4000001234567899") == "14"
        assert await code(de14="2512") == "54"
        known = switch.purchase(100, de52=pin_block(place, "4712"))
        assert [await switch.code("0100", known) for _ in range(3)] == ["55"] * 3  # the same message is one try
        assert [await code(de52=block) for block in (pin_block(place, "0000"), "00" * 8)] == ["55"] * 2
        assert await code(de52=pin_block(place, "4711")) == "75"
        assert [await code(de48=f"9203{wrong_cvv}") for _ in range(5)] == ["63"] * 5
        assert await code(de48=f"9203{cvv}") == "63"
        assert await code() == "00"
    assert [each["amount"] for each in place.bank.messages] == [100] * 3


def test_iso8583_mac_codes_match_the_standards():
    data = b"Now is the time for all "
    key = bytes.fromhex("0123456789ABCDEFFEDCBA9876543210")
    assert MacAlgorithm.RETAIL.code(key, data).hex().upper() == "A1C72E74EA3FA9B6"
    key, data = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"), bytes.fromhex("6bc1bee22e409f96e93d7e117393172a")
    assert MacAlgorithm.CMAC.code(key, data).hex() == "070a16b46b4d4144"  # RFC 4493
    assert MacAlgorithm.HMAC.code(b"Jefe", b"what do ya want for nothing?").hex() == "5bdcc146bf60754e"  # RFC 4231


@pytest.mark.parametrize("algorithm", list(MacAlgorithm))
async def test_an_iso8583_message_with_a_wrong_mac_is_refused(tmp_path, bank, algorithm):
    place = Place(tmp_path / "processor", bank, mac_algorithm=algorithm, mac_required="true")
    key = bytes.fromhex(place.settings.options.mac_key or "")

    def sealed(mti, fields, field):
        raw = pack(mti, fields | {field: "0" * 16})[:-16]
        return raw + algorithm.code(key, raw).hex().upper().encode()

    async with place.serving() as switch:
        for mti, field, fields in (
            ("0100", 64, switch.purchase(100)),
            ("0800", 128, {7: "0602130501", 11: "000001", 70: "301"}),
        ):
            raw = sealed(mti, fields, field)
            await switch.send_raw(raw)
            reply = await switch.receive_raw()
            assert unpack(reply)[1][39] == "00"
            assert reply[-16:] == algorithm.code(key, reply[:-16]).hex().upper().encode()
            for bad in (
                raw[:-1] + b"0" if raw[-1:] != b"0" else raw[:-1] + b"1",
                raw.replace(b"0602130501", b"0602130502"),
            ):
                await switch.send_raw(bad)
                assert unpack(await switch.receive_raw())[1][39] == "63"
        assert await switch.code("1100", switch.purchase(100, version="1")) == "916"  # none at all
    assert len(bank.messages) == 1


async def test_a_malformed_iso8583_message_is_refused_and_the_next_one_served(place, capfd):
    configure_logging()
    async with place.serving() as switch:
        good = pack("0100", switch.purchase(100))
        pan = place.card.pan.encode()
        cut = [good[:size] for size in range(1, len(good), 7)]
        bad = [
            *cut,
            b"\x00" * 40,
            good + b"extra",
            good.replace(b"16" + pan, b"99" + pan),
            good.replace(pan, pan[:-1] + b"A"),
        ]
        bad += [b"0100" + b"F" * 32 + b"9" * 900, b"0100" + b"8" + b"0" * 15 + b"8" + b"0" * 15, b"2100" + good[4:]]
        bad += [
            good.replace(b"0000000001000602", b"00000000x1000602"),
            b"0110" + good[4:],
            bytes([0x01, 0x10]) + b"\xff" * 30,
        ]
        for raw in bad:
            async with connected(place.port, place.card.pan) as other:
                await other.send_raw(raw)
                assert await other.code("0100", other.purchase(100, de37="7" * 12)) in {"00", "30", "94"}
        for first in (b"\x10\x01" + b"0" * 10, b"\xff\xff"):  # longer than any message is
            async with connected(place.port) as other:
                other.writer.write(first)
                assert await other.reader.read() == b""
        async with connected(place.port) as other:
            for _ in range(10):
                await other.send_raw(b"garbage")
            assert await other.reader.read() == b""
    assert {each["amount"] for each in place.bank.messages} == {100}
    logged = "".join(capfd.readouterr())
    assert "network_message_unreadable" in logged
    assert place.card.pan not in logged
    assert "Traceback" not in logged


async def test_a_missing_or_invalid_iso8583_element_is_refused_with_its_code(place):
    async with place.serving() as switch:
        missing = {4: "30", 7: "30", 18: "30", 32: "30", 37: "30"}
        for field, code in missing.items():
            fields = switch.purchase(100)
            del fields[field]
            assert await switch.code("0100", fields) == code
        assert await switch.code("0120", switch.purchase(0)) == "13"
        assert await switch.code("0120", switch.purchase(100, de43="\x00Caf\x7f".ljust(40))) == "00"
        assert place.bank.messages[-1]["merchant"]["name"] == "Caf"
        refused = {
            "de37": ("60 000000001", "30"),
            "de49": ("978", "12"),
            "de3": ("400000", "12"),
            "de7": ("1399999999", "30"),
            "de48": ("61", "30"),
        }
        for element, (value, code) in refused.items():
            assert await switch.code("0100", switch.purchase(100, **{element: value})) == code
