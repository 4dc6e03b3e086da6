"""Names fit the registered one, nearly, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billfold.accounts.counterparties.names import NameMatch, mask_name, match_names, match_payee


@pytest.mark.parametrize(
    ("name", "registered"),
    [
        ("Northwind", "Northwind"),
        ("NORTHWIND traders", "Traders, Northwind"),
        ("Northwind", "Northwind LLC"),
        ("Northwind L.L.C.", "Northwind, LLC"),
        ("Northwind Inc", "NORTHWIND INCORPORATED"),
        ("Northwind Corp.", "Northwind Corporation"),
        ("Smith John", "John Smith"),
        ("Jose Nunez", "José Núñez"),
        ("Jose\u0301 Nuñez", "José Núñez"),
        ("Müller & Söhne", "Muller and Sohne"),
        ("AT&T", "A.T. and T."),
        ("The Acme Intl Mfg Co", "Acme International Manufacturing Company"),
        ("ACME", "\uff21\uff23\uff2d\uff25"),
        ("Ac\u200bme", "Acme"),
        ("O'Brien", "O\u2019Brien"),
        ("Company Inc", "Company, Inc."),
        ("東京商事", "東京商事"),
        ("Soren Lodz", "Søren Łódź"),
        ("Contoso", "Contoso GmbH & Co. KG"),
        ("Contoso Pty. Ltd.", "Contoso"),
    ],
)
def test_a_name_matches_in_every_spelling_variant(name, registered):
    assert match_names(name, registered) == match_names(registered, name) == NameMatch.MATCH


@pytest.mark.parametrize(
    ("name", "registered"),
    [
        ("Jon Smith", "John Smith"),
        ("J Smith", "John Smith"),
        ("Northwnd Traders", "Northwind Traders"),
        ("Acme Inc", "Acme LLC"),
        ("Jonh Smith", "John Smith"),
        ("Juergen Mueller", "Jürgen Müller"),
        ("Intrenational Assocition of Machinists", "International Association of Machinists"),
    ],
)
def test_a_mistyped_name_is_a_close_match(name, registered):
    assert match_names(name, registered) == match_names(registered, name) == NameMatch.CLOSE_MATCH


@pytest.mark.parametrize(
    ("name", "registered"),
    [
        ("Contoso", "Northwind"),
        ("Acme Fund 1 LLC", "Acme Fund 2 LLC"),
        ("\u0410cme", "Acme"),  # a Cyrillic letter
        ("Inc", "Acme Inc"),
        ("...", "..."),
        ("\u2764", "\u2764"),
        ("", ""),
        ("LLC", "Inc"),
        ("John Smith", "Jane Smith"),
        ("North", "Northwind"),
        ("A", "Acme"),
        ("International Association of Machinists of Dallas", "International Association of Machinists of Austin"),
        ("Southwind Trading Company", "Northwind Trading Company"),
        ("Blue River Capital Management Fund A", "Blue River Capital Management Fund B"),
        ("Blue River Capital Management Fund II", "Blue River Capital Management Fund III"),
        ("Blue River Capital Management Europe", "Blue River Capital Management"),
    ],
)
def test_a_different_name_does_not_match(name, registered):
    assert match_names(name, registered) == match_names(registered, name) == NameMatch.NO_MATCH


@pytest.mark.parametrize(
    ("first", "last", "registered", "outcome"),
    [
        ("Mary", "Smith", "Mary Elizabeth Smith", NameMatch.CLOSE_MATCH),
        ("Mary Elizabeth", "Smith", "Mary Elizabeth Smith", NameMatch.MATCH),
        ("Mary", "Elizabeth", "Mary Elizabeth Smith", NameMatch.NO_MATCH),
        ("Ann", "Smith", "Mary Ann Smith", NameMatch.NO_MATCH),
        ("Mary Ann", "Smith", "Mary Smith", NameMatch.NO_MATCH),
        ("Acme", "LLC", "Acme Europe Trading LLC", NameMatch.NO_MATCH),
    ],
)
def test_a_person_matches_without_middle_names(first, last, registered, outcome):
    name = {"type": "individual", "first_name": first, "last_name": last}
    assert match_payee(name, registered) == outcome
    assert match_payee({"type": "business", "business_name": "Mary Smith"}, registered) != NameMatch.CLOSE_MATCH


@given(st.text(max_size=250), st.text(max_size=250))
def test_name_matching_is_symmetric_for_any_texts(one, payroll_pocket):
    assert match_names(one, payroll_pocket) == match_names(payroll_pocket, one)


@given(st.text(alphabet=st.characters(categories=["L"]), min_size=2, max_size=20))
def test_a_masked_name_shows_only_initials(word):
    assert mask_name(f"{word} {word} Ltd").split() == [f"{word[0]}***"] * 2 + ["L***"]
