"""Text of users appears in e-mails as plain words without links."""

import re

import pytest

from billfold.platform.text import has_web_address, is_name, plain_text, without_links

ADDRESSES = [
    "https://evil.example/x",
    "evil.com",
    "Win at EVIL.COM now",
    "www.evil",
    "evil\u3002com",
    "\uff45\uff56\uff49\uff4c\uff0e\uff43\uff4f\uff4d",
    "evil\u2024com",
    "x@evil.com",
    "<b>",
    "evil.\ufe0fcom",
    "evil\ufe0f.com",
    "evil.\u034fcom",
    "evil\u0330.com",
    "evil.\u200bcom",
    "evil\u200b.com",
    "xn--e1afmkfd.xn--p1ai",
    "203.0.113.7/login",
]


@pytest.mark.parametrize("text", ADDRESSES)
def test_a_web_address_in_any_spelling_is_detected_and_removed(text):
    assert has_web_address(text)
    assert not is_name(text)
    assert not has_web_address(plain_text(text))
    assert "\n" not in plain_text(f"{text}\r\n\nPay now")


@pytest.mark.parametrize(
    "text",
    [
        "evil.com/@ann",
        "evil.com@",
        "@evil.com",
        "evil\uff0ecom",
        "evil\uff61com",
        "evil.\ufe0fcom",
        "evil\u200b.com",
        "ann@x.example/evil.com",
    ],
)
def test_a_word_with_a_link_is_not_treated_as_an_email_address(text):
    assert not re.search(r"\S[.\uff0e\uff61]\S", without_links(text))


@pytest.mark.parametrize(
    "name", ["Ada", "O'Neil", "Jos\u00e9-Mar\u00eda", "J. R.", "Nguy\u1ec5n", "\u738b\u5c0f\u660e", "St. John"]
)
def test_a_plausible_name_is_accepted(name):
    assert is_name(name)
    assert plain_text(name) == name


@pytest.mark.parametrize("text", ["$1000 for you", "Call 18005551234", "", "!", "Ada\u202e"])
def test_text_that_is_not_a_name_is_refused(text):
    assert not is_name(text)


def test_a_company_name_with_a_domain_is_kept_without_a_link():
    assert plain_text("Booking.com (US), Inc. & Sons") == "Booking. com (US), Inc. & Sons"
    assert len(plain_text("x" * 500)) == 100


def test_amounts_and_email_addresses_are_kept_when_links_are_removed():
    text = "Contoso paid $1,000.00 to ann@x.example: see https://evil.com"
    assert without_links(text) == "Contoso paid $1,000.00 to ann@x.example: see https evil. com"
    assert without_links("Ada (ada.b+c@x-y.example).") == "Ada (ada.b+c@x-y.example)."
