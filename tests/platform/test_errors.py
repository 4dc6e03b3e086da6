import pytest

from billfold.platform import errors


def test_an_error_carries_its_code_its_sentence_and_its_facts():
    error = errors.Refused("pocket-not-empty", "There is still $5.00 in it.", balance_cents=500)

    assert str(error) == "pocket-not-empty: There is still $5.00 in it."
    assert (error.code, error.detail) == ("pocket-not-empty", "There is still $5.00 in it.")
    assert error.facts == {"balance_cents": 500}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotFound(), "not-found"),
        (errors.NotFound("No such pocket.", pocket_id=1), "not-found"),
        (errors.Unavailable("The database does not answer."), "unavailable"),
        (errors.InvariantError("Debits and credits differ.", journal=7), "internal-error"),
        (errors.InvalidInput.at("query", "limit", msg="at most 100"), "invalid-input"),
    ],
)
def test_each_kind_has_its_code(error, code):
    assert error.code == code
    assert isinstance(error, errors.BillfoldError)


def test_unavailable_says_when_to_come_back():
    assert errors.Unavailable("Busy.", retry_after_seconds=3).retry_after_seconds == 3
    assert errors.Unavailable("Busy.").retry_after_seconds is None


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
