"""A settlement file whose records do not add up to its trailer is refused."""

from datetime import UTC, date, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cards import BANK, chargeback, fee, presentment, refund, representment

from billfold.payments.cards.settlement.file_format import read_file, trailer_of, write_file
from billfold.payments.cards.settlement.records import FORMAT, VERSION, Header
from billfold.payments.files.types import InvalidFile

CARD = UUID(int=1)
HEADER = Header(
    format=FORMAT,
    version=VERSION,
    reference="CYCLE-1",
    bank=BANK,
    settles_on=date(2025, 6, 3),
    created_at=datetime(2025, 6, 3, tzinfo=UTC),
    currency="USD",
)
MAKE = (
    presentment,
    refund,
    lambda card, cents: chargeback(presentment(card, cents)),
    lambda card, cents: representment(presentment(card, cents)),
    lambda _, cents: fee(cents),
)
KINDS = st.lists(st.tuples(st.integers(0, len(MAKE) - 1), st.integers(1, 10_000_00)), max_size=6)


def records_of(kinds):
    return [MAKE[kind](CARD, cents) for kind, cents in kinds]


def net(records):
    return sum(each.paid - each.interchange for each in records)


@given(KINDS)
def test_a_written_card_settlement_file_is_read_back_equal(kinds):
    records = records_of(kinds)
    file = read_file(write_file(HEADER, records))
    assert [each for _, each in file.records] == records
    assert file.trailer == trailer_of(records)
    assert file.trailer.net_settlement == net(records)


@given(KINDS, st.floats(0, 1), st.integers(0, 400), st.binary(max_size=12))
def test_a_damaged_card_settlement_file_matches_its_trailer_or_is_refused(kinds, place, lost, instead):
    content = write_file(HEADER, records_of(kinds))
    start = int(len(content) * place)
    damaged = content[:start] + instead + content[start + lost :]
    try:
        file = read_file(damaged)
    except InvalidFile as invalid:
        assert invalid.mistakes
    else:
        assert net([each for _, each in file.records]) == file.trailer.net_settlement
        assert len(file.records) == file.trailer.records
