import pytest

from billfold.platform import errors


def test_an_error_carries_its_code_message_and_facts():
    error = errors.Refused("pocket-not-empty", "There is still $5.00 in it.", balance_cents=500)

    assert str(error) == "pocket-not-empty: There is still $5.00 in it."
    assert (error.code, error.detail) == ("pocket-not-empty", "There is still $5.00 in it.")
    assert error.facts == {"balance_cents": 500}


def test_invalid_input_carries_every_error():
    mistakes = [
        errors.FieldError(("body", "lines", 0), "a text is expected", "string_type"),
        errors.FieldError(("body", "name"), "is missing", "missing"),
    ]

    error = errors.InvalidInput(mistakes)

    assert error.errors == mistakes
    assert error.detail == "body.lines.0: a text is expected"


def test_invalid_input_without_an_error_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        errors.InvalidInput([])
