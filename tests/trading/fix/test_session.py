"""Messages and sessions against a dealer whose every byte a test chooses."""

import asyncio
import ssl
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.support.whole_bank import expect_clean
from tests.trading.fix.scripted_desk import fill_of, scripted_desk
from tests.trading.fix.simulated_desk import until
from tests.trading.memory_desk import MARKET

from billfold.bills.rules.yields import investment_rate, price_from_investment_rate
from billfold.cli.tls import ensure_certificates
from billfold.identity.operators import Operator
from billfold.platform.clock import wall_now
from billfold.platform.errors import NotFound
from billfold.platform.settings.trading_desk import SESSION, PriceType
from billfold.trading.decisions import reset_session
from billfold.trading.fix.codec import Garbled, NotFix, decode, encode, read_frame
from billfold.trading.fix.messages import price_text
from billfold.trading.fix.store import DatabaseJournal, list_of_order, list_sessions
from billfold.trading.types import Side

HEADER = [(49, "DEALER"), (56, "BANK"), (34, 7), (52, "20250602-13:00:00.000")]


def test_a_message_is_read_as_it_was_written_and_a_damaged_one_is_not():
    frame = encode("0", HEADER, [(112, "a=b"), (58, None)])
    message = decode(frame)
    assert (message.type, message.seq, message.fields[112], 58 in message.fields) == ("0", 7, "a=b", False)
    with pytest.raises(Garbled):
        decode(frame.replace(b"a=b", b"a=c"))
    assert decode(encode("0", HEADER, [(112, "")])).fault == "'112=' is no field"


@pytest.mark.parametrize("content", [b"GET / HTTP/1.1\x01\x01", b"8=FIX.4.2\x019=5\x01", b"8=FIX.4.4\x019=999999\x01"])
async def test_bytes_that_are_no_message_end_the_connection(content):
    reader = asyncio.StreamReader()
    reader.feed_data(content)
    with pytest.raises(NotFix):
        await read_frame(reader)


@pytest.mark.parametrize("kind", PriceType)
@pytest.mark.parametrize("side", Side)
def test_a_limit_in_the_dealers_price_type_is_never_worse_than_ours(kind, side):
    bill, settles_on = MARKET.on_the_run(26, date(2025, 6, 2)), date(2025, 6, 3)
    sign = 1 if side == Side.BUY else -1
    for micros in range(97_900_000, 97_910_000, 731):
        raw = price_text(micros, kind, bill, settles_on, side)
        if kind == PriceType.PRICE:
            assert Decimal(raw) * 1_000_000 == micros
            continue
        days = (bill.maturity - settles_on).days
        back = (
            round(100_000_000 - Decimal(raw) * 1_000_000 * days / 360)
            if kind == PriceType.DISCOUNT
            else price_from_investment_rate(Decimal(raw), settles_on, bill.maturity)
        )
        assert 0 <= sign * (micros - back) <= 12 * days


def test_a_price_is_that_of_its_own_yield():
    for days in (date(2025, 7, 1), date(2025, 12, 2), date(2025, 12, 30), date(2026, 5, 28)):
        rate = investment_rate(97_000_000, date(2025, 6, 3), days)
        assert investment_rate(price_from_investment_rate(rate, date(2025, 6, 3), days), date(2025, 6, 3), days) == rate


def test_a_session_is_written_as_it_is_read():
    text = "citadel=fixs://BANKUS33:CITADEL@fix.citadel.example:9876/discount"
    session = SESSION.read(text)
    assert str(session) == text
    assert (session.price_type, session.is_plain, session.sender) == (PriceType.DISCOUNT, False, "BANKUS33")


async def test_the_next_message_goes_on_after_those_that_make_no_sense(scripted, order):
    desk, dealer = scripted
    await dealer.send("8", [(11, uuid4()), *fill_of(order)[1:]])
    await dealer.send("8", fill_of(order, t150="H", t19="T-404", t17="B-1"))
    await dealer.send("8", [(11, "12"), (150, "F")])
    await dealer.send("UZZ", [(58, "a type of their own")])
    await desk.bank.pool.execute(SENT_YESTERDAY)
    await dealer.send("j", [(45, 4711), (372, "D"), (380, 0)])
    await dealer.send("8", fill_of(order))
    await desk.reaches(order, "FILLED")
    found = await desk.seen(5)
    assert [(each.type, each.status) for each in found] == [
        *[("8", "REFUSED")] * 3,
        ("UZZ", "REFUSED"),
        ("j", "REFUSED"),
    ]
    assert "no such order" in found[0].reason
    assert "T-404" in found[1].reason
    rejected = [(each.fields[372], each.fields[380]) for each in dealer.of_type("j")]
    assert rejected == [("8", "0"), ("8", "0"), ("8", "0"), ("UZZ", "3")]
    await expect_clean(desk.bank)


SENT_YESTERDAY = """
INSERT INTO dealer_message
  (message_id, dealer, session_day, is_inbound, seq, type, order_id, content, received_at, status)
SELECT gen_random_uuid(), dealer, session_day - 1, false, 4711, 'D', order_id, '', now(), 'SENT'
  FROM dealer_message WHERE type = 'D'
"""


@pytest.mark.parametrize(
    "changes",
    [
        {"t118": "1.00", "t381": "1.00"},
        {"t381": "1.00"},
        {"t118": "NaN"},
        {"t32": "250050"},
        {"t48": "912797XX1"},
        {"t54": "2"},
        {"t64": "20250607"},
        {"t60": "20250602-14:00:00"},
        {"t32": "-100"},
        {"t32": "1e999999999"},
        {"t15": "EUR"},
        {"t120": "EUR"},
        {"t64": "soon"},
        {"t150": "2"},
        {"t17": None},
    ],
)
async def test_a_fill_that_contradicts_its_order_is_held_and_the_order_unknown(scripted, order, changes):
    desk, dealer = scripted
    await dealer.send("8", fill_of(order, **changes))
    [held] = await desk.seen(1)
    assert held.status == "HELD"
    await desk.reaches(order, "UNKNOWN")
    await dealer.send("8", fill_of(order, reference="T-2"))
    await desk.reaches(order, "FILLED")
    assert [each.message_id for each in await desk.open_messages()] == [held.message_id]
    await expect_clean(desk.bank)


async def test_the_same_reference_with_other_values_is_held(scripted, order):
    desk, dealer = scripted
    await dealer.send("8", fill_of(order, units=100, t39="1"))
    await dealer.send("8", fill_of(order, units=200, t39="1"))
    [held] = await desk.seen(1)
    assert (held.status, "other values" in held.reason) == ("HELD", True)
    assert (await desk.order(order.order_id)).filled_units == 100


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"t150": "H", "t17": "T-1"}, "other values"),
        ({"t150": "G", "t17": "T-1"}, "other values"),
        ({"t150": "G", "t17": "C-1", "t54": "2"}, "corrects BUY"),
        ({"t150": "I", "t14": "0"}, "0 units, 100 are booked"),
    ],
)
async def test_what_contradicts_a_booked_fill_is_held(scripted, order, changes, reason):
    desk, dealer = scripted
    await dealer.send("8", fill_of(order, units=100, t39="1"))
    await desk.reaches(order, "PARTIALLY_FILLED")
    await dealer.send("8", fill_of(order, units=100, t19="T-1", **changes))
    [held] = await desk.seen(1)
    assert (held.status, reason in held.reason) == ("HELD", True)
    await desk.reaches(order, "UNKNOWN")
    assert len(await desk.executions()) == 1


async def test_missing_messages_are_requested_and_a_possible_duplicate_changes_nothing(scripted, order):
    desk, dealer = scripted
    first = dealer.next_out
    dealer.next_out += 1
    await dealer.send("0", [])  # the fill before it was lost

    async def resend_requests():
        return dealer.of_type("2")

    [request] = await until(resend_requests)
    assert (request.fields[7], request.fields[16]) == (str(first), "0")
    again = [(43, "Y"), (122, "20250602-13:00:00.000")]
    for _ in range(2):
        await dealer.send("8", fill_of(order), seq=first, extra=again)
    await dealer.send("4", [(123, "Y"), (36, first + 2)], seq=first + 1, extra=again)
    await dealer.send("1", [(112, "ALIVE")])
    await desk.reaches(order, "FILLED")

    async def beaten():
        return [each for each in dealer.of_type("0") if each.fields.get(112) == "ALIVE"]

    await until(beaten)
    assert len(await desk.executions()) == 1
    assert len(dealer.of_type("2")) == 1


async def test_an_order_is_never_sent_again_when_the_dealer_asks_for_a_resend(scripted, order):
    desk, dealer = scripted
    sent = dealer.of_type("D")[0]
    await dealer.send("2", [(7, 1), (16, 0)])

    async def filled():
        return dealer.of_type("4") and dealer.of_type("H")

    await until(filled)
    [gap] = dealer.of_type("4")
    assert (gap.seq, gap.fields[123], gap.fields[43], int(gap.fields[36]) > sent.seq) == (1, "Y", "Y", True)
    status = [(11, order.order_id), (17, "0"), (150, "I"), (39, "8"), (14, 0), (58, "unknown order")]
    await dealer.send("8", status)
    await desk.reaches(order, "REJECTED")
    [again] = await desk.place()

    async def second():
        return len(dealer.of_type("D")) == 2

    await until(second)
    assert dealer.of_type("D")[1].fields[11] == str(again.order_id) != sent.fields[11]


async def test_status_of_orders_is_requested_after_a_new_logon(scripted, order):
    desk, dealer = scripted
    await dealer.send("5", [(58, "back in a minute")])

    async def status_requests():
        return dealer.of_type("H")

    [request] = await until(status_requests)
    assert request.fields[11] == str(order.order_id)
    assert len(dealer.of_type("D")) == 1
    await dealer.send("8", [(11, order.order_id), (17, "0"), (150, "I"), (39, "2"), (14, order.units * 100)])
    [held] = await desk.seen(1)
    assert f"the dealer has filled {order.units} units, 0 are booked" in held.reason


async def test_a_session_over_tls_is_on_only_with_a_dealer_whose_certificate_is_trusted(bank_dsn, tmp_path):
    files = ensure_certificates(tmp_path, wall_now(), partners=[])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files.certificate, files.key)
    async with scripted_desk(bank_dsn, tls=tls, dealer_trusted_ca=files.authority) as (_, dealer):
        assert dealer.of_type("A")
    with pytest.raises(TimeoutError):
        async with scripted_desk(bank_dsn, tls=tls, logon_seconds=2):
            pytest.fail("it is not trusted")


async def test_a_dealer_that_asks_for_a_certificate_sees_that_of_the_bank(bank_dsn, tmp_path):
    files, own = ensure_certificates(tmp_path, wall_now()), tmp_path / "own.pem"
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "BANK")])
    span = wall_now() - timedelta(days=1), wall_now() + timedelta(days=1)
    certificate = x509.CertificateBuilder(name, name, key.public_key(), 1, *span).sign(key, hashes.SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    own.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files.certificate, files.key)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(own)
    named = {"dealer_trusted_ca": files.authority, "dealer_client_certificate": own}
    async with scripted_desk(bank_dsn, tls=tls, **named) as (_, dealer):
        assert dealer.of_type("A")


async def test_a_session_begins_at_one_after_an_operator_has_reset_it_while_it_was_off(scripted, order):
    desk, dealer = scripted
    by = Operator.of_command_line("alice")
    with pytest.raises(NotFound, match="citadel is off"):
        await reset_session(desk.bank, "citadel", reason="They begin at 1.", by=by)
    await desk.bank.pool.execute("UPDATE dealer_session SET is_on = false")
    await reset_session(desk.bank, "citadel", reason="They begin at 1.", by=by)
    dealer.writer.transport.abort()

    async def logged_on_again():
        return len(dealer.of_type("A")) >= 2

    await until(logged_on_again)
    again = dealer.of_type("A")[-1]
    assert (again.seq, again.fields[141]) == (1, "Y")
    await dealer.send("8", fill_of(order))
    await desk.reaches(order, "FILLED")
    action = "SELECT count(*) FROM audit_entry WHERE action = 'dealer_session.reset'"
    assert await desk.bank.pool.fetchval(action) == 2, "the attempt that was refused too"
    await expect_clean(desk.bank)


async def test_one_worker_has_the_sessions_and_the_next_takes_them_when_it_lets_them_go(scripted, order):
    desk, dealer = scripted
    journal = await DatabaseJournal.take(desk.bank.pool, "citadel", date(2025, 6, 2), uuid4())
    await dealer.send("1", [(112, "WHO")])  # the process that had it before may not even answer

    async def logged_on_again():
        return len(dealer.of_type("A")) >= 2

    before = journal.next_out
    with pytest.raises(TimeoutError):
        await until(logged_on_again, 1)
    assert not [each for each in dealer.of_type("0") if each.fields.get(112) == "WHO"]
    assert journal.next_out == before


@pytest.mark.parametrize("damage", ["number", "name", "bytes"])
async def test_a_session_that_cannot_go_on_is_seen_by_people(scripted, order, damage):
    desk, dealer = scripted
    if damage == "number":
        await dealer.send("0", [], seq=1)
    elif damage == "name":
        await dealer.send("0", [], sender="SOMEBODY")
    else:
        dealer.writer.write(b"HTTP/1.1 400 Bad Request\x01\x01")

    async def noted():
        return [each.problem for each in await list_sessions(desk.bank.pool) if each.problem]

    [problem] = await until(noted)
    assert {"number": "MsgSeqNum too low", "name": "from SOMEBODY", "bytes": "HTTP/1.1"}[damage] in problem

    async def on_again():
        return all(each.is_on for each in await list_sessions(desk.bank.pool))

    if damage == "bytes":
        await until(on_again)


async def test_an_order_is_on_the_wire_within_a_second_of_its_round(scripted, order):
    desk, dealer = scripted
    messages = await list_of_order(desk.bank.pool, order.order_id, 9)
    sent = dealer.of_type("D")[0]
    assert [each.type for each in messages] == ["D"]
    assert (sent.fields[40], sent.fields[38], sent.fields[460]) == ("2", str(order.units * 100), "6")
    assert (sent.fields[64], sent.fields[59]) == (order.settles_on.strftime("%Y%m%d"), "0")
    assert datetime.strptime(sent.fields[60], "%Y%m%d-%H:%M:%S.%f").replace(tzinfo=UTC) == order.decided_at
