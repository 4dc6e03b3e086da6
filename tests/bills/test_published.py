"""Files of market data are recognized by their contents; a bad line takes no other with it."""

from datetime import date

import pytest

from billfold.bills.published import read_published
from billfold.bills.types import Quote
from billfold.platform.errors import InvalidInput

FEED = """<?xml version="1.0" encoding="utf-8" standalone="yes"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
 xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices">
 <entry><content><m:properties><d:INDEX_DATE m:type="Edm.DateTime">2025-06-02T00:00:00</d:INDEX_DATE>
  <d:ROUND_B1_CLOSE_4WK_2 m:type="Edm.Double">4.20</d:ROUND_B1_CLOSE_4WK_2>
  <d:ROUND_B1_YIELD_4WK_2 m:type="Edm.Double">4.28</d:ROUND_B1_YIELD_4WK_2>
  <d:CUSIP_4WK>912797PT8</d:CUSIP_4WK></m:properties></content></entry>
 <entry><content><m:properties><d:INDEX_DATE>2025-06-03T00:00:00</d:INDEX_DATE>
  <d:ROUND_B1_CLOSE_4WK_2>four</d:ROUND_B1_CLOSE_4WK_2><d:ROUND_B1_YIELD_4WK_2>4.28</d:ROUND_B1_YIELD_4WK_2>
 </m:properties></content></entry>
 <entry><content><m:properties><d:INDEX_DATE>2025-06-04T00:00:00</d:INDEX_DATE>
  <d:ROUND_B1_CLOSE_4WK_2>4.21</d:ROUND_B1_CLOSE_4WK_2><d:ROUND_B1_YIELD_4WK_2>4.29</d:ROUND_B1_YIELD_4WK_2>
 </m:properties></content></entry>
</feed>"""
BOMB = '<!DOCTYPE f [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><f>&b;</f>'
QUOTES = """dealer,cusip,quoted_at,bid,ask
citadel,912797PT8,2025-06-02T10:31:00-04:00,99.68,99.69
citadel,912797PT8,2025-06-02T10:31:00,99.68,99.69
citadel,912797PT9,2025-06-02T10:31:00-04:00,99.68,99.69
"""


def test_the_treasurys_feed_is_read_and_an_entry_that_is_no_rate_is_refused_alone():
    read = read_published(FEED.encode())
    assert [row.day for row in read.rates] == [date(2025, 6, 2), date(2025, 6, 4)]
    assert read.rates[0].quotes == (Quote(4, 4200, 4280),)
    assert {each.loc[1] for each in read.refused} == {3}
    assert read.refused[0].loc[2] == "4 WEEKS BANK DISCOUNT"
    assert read.refused[0].msg.startswith("`four` is not a percentage")


def test_quotes_without_an_offset_or_with_a_wrong_cusip_are_refused_alone():
    read = read_published(QUOTES.encode())
    assert [(each.dealer, each.bid_micros, each.ask_micros) for each in read.quotes] == [
        ("citadel", 99_680_000, 99_690_000)
    ]
    assert [each.loc[1:] for each in read.refused] == [(3, "quoted_at"), (4, "cusip")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (BOMB.encode(), "document type declaration"),
        (b"<feed>", "not well-formed"),
        (b"\xff\xfe", "not UTF-8"),
        (b"", "column is missing"),
        (b"Date,1 Mo,2 Mo\n06/02/2025,4.3,4.4\n", "par yields"),
    ],
)
def test_a_file_of_which_nothing_can_be_read_is_refused(content, said):
    with pytest.raises(InvalidInput, match=said):
        read_published(content)
