from billfold.accounts.addresses import COUNTRIES, US_STATES


def test_the_numbers_of_countries_and_states_match_the_standards():
    assert len(COUNTRIES) == 249
    assert len(US_STATES) == 50 + 1 + 8 + 3


def test_reserved_and_invented_codes_are_not_countries():
    assert {"US", "GB", "XK", "EU", "UK", "XX", "ZZ"} & COUNTRIES == {"US", "GB"}
