"""Names and wallets that are easily taken for another."""

from uuid import UUID

import pytest

from billfold.web.console.look_alikes import are_wallets_alike, like_names, parts_of


def _shown(parts):
    return "".join(f"[{each.text}]" if each.differs else each.text for each in parts)


@pytest.mark.parametrize(
    ("own", "other", "shown"),
    [
        ("Northwind Trading", "Northwind Tradng", ("Northwind Trad[i]ng", "Northwind Tradng")),
        ("Northwind Trading", "Nickname / Northwind Trading", ("Northwind Trading", "Northwind Trading")),
        (
            "Paypal Inc",
            "P\N{CYRILLIC SMALL LETTER A}ypal Inc",
            ("P[a]ypal Inc", "P[\N{CYRILLIC SMALL LETTER A}]ypal Inc"),
        ),
        ("Northwind Trading", "Contoso Payroll", None),
    ],
)
def test_names_that_are_heard_alike_are_shown_with_what_differs(own, other, shown):
    found = like_names(own, [(UUID(int=1), other)])
    assert [(_shown(each.own), _shown(each.other)) for each in found] == ([shown] if shown else [])


def test_wallets_are_alike_that_differ_only_between_the_ends_that_people_compare():
    own = "0x52908400098527886E0F7030069857D2E4169EE7"
    made = "0x5290aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa9EE7"
    assert are_wallets_alike(own, made)
    assert _shown(parts_of(own, made)[1]).startswith("0x5290[")
    assert not are_wallets_alike(own, own.lower())
    assert not are_wallets_alike(own, made[:-1] + "8")
    assert not are_wallets_alike(own, "")
