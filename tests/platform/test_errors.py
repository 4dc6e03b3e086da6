import pytest

from billfold.platform import errors


def test_an_error_carries_its_code_its_sentence_and_its_facts():
    error = errors.Refused("pocket-not-empty", "There is still $5.00 in it.", balance_cents=500)

    assert str(error) == "pocket-not-empty: There is still $5.00 in it."
    assert (error.code, error.detail) == ("pocket-not-empty", "There is still $5.00 in it.")
    assert error.facts == {"balance_cents": 500}


def test_invalid_input_holds_every_mistake():
    mistakes = [
        errors.FieldError(("body", "lines", 0), "a text is expected", "string_type"),
        errors.FieldError(("body", "name"), "is missing", "missing"),
    ]

    error = errors.InvalidInput(mistakes)

    assert error.errors == mistakes
    assert error.detail == "body.lines.0: a text is expected"


def test_invalid_input_refuses_when_there_is_no_mistake():
    with pytest.raises(ValueError, match="at least one"):
        errors.InvalidInput([])
