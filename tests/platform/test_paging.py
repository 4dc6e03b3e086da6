import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from billfold.platform.database.paging import InvalidCursor, Page, Pager, Position

_PAGER = Pager(b"a key for the tests of cursors!!")
_TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
_PLACES = st.lists(_TEXTS | st.integers(-(2**63), 2**63 - 1), max_size=4).map(tuple)
_FILTERS = st.dictionaries(_TEXTS, _TEXTS | st.integers(-(2**53), 2**53) | st.none() | st.lists(_TEXTS, max_size=3))
_DIRECTIONS = st.sampled_from(["next", "prev"])


@given(_TEXTS, _FILTERS, _DIRECTIONS, _PLACES)
def test_a_sealed_cursor_opens_to_its_position(scope, filters, direction, place):
    token = _PAGER.seal(scope, filters, direction, place=place)

    assert _PAGER.open(scope, filters, token) == Position(direction, place)
    assert _PAGER.seal(scope, dict(reversed(filters.items())), direction, place=place) == token
    assert token.replace("-", "a").replace("_", "a").isalnum()


@given(_FILTERS, _FILTERS, _TEXTS, _TEXTS)
def test_a_cursor_for_a_different_list_or_filter_is_refused(filters, others, scope, other_scope):
    token = _PAGER.seal(scope, filters, "next", place=("a", 1))

    if (scope, filters) != (other_scope, others):
        with pytest.raises(InvalidCursor):
            _PAGER.open(other_scope, others, token)


@given(st.integers(0, 8 * 90), st.integers(1, 63))
def test_a_cursor_with_a_changed_character_is_refused(where, by):
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    token = _PAGER.seal("list", {}, "next", place=("abcdefgh"[: where % 8],))
    where = where // 8 % len(token)
    changed = alphabet[(alphabet.index(token[where]) + by) % 64]

    with pytest.raises(InvalidCursor):
        _PAGER.open("list", {}, token[:where] + changed + token[where + 1 :])


def test_a_cursor_has_only_one_valid_encoding():
    spellings = [_PAGER.seal("list", {}, "next", place=("abcdefgh"[:n],)) for n in range(4)]

    for token in spellings:
        spare = token[:-1] + chr(ord(token[-1]) + 1)
        for other in (spare, token + "=", token + "==", token + "\n", " " + token):
            with pytest.raises(InvalidCursor):
                _PAGER.open("list", {}, other)


@given(st.text(max_size=60))
@example("A" * 22)
@example("A" * 24)
@example("A" * 5000)
def test_text_that_is_not_a_cursor_is_refused(token):
    with pytest.raises(InvalidCursor) as refused:
        _PAGER.open("list", {}, token)

    assert refused.value.errors[0].loc == ("query", "cursor")
    assert refused.value.code == "invalid-input"


def test_a_cursor_of_a_different_bank_is_refused():
    token = Pager(b"the key of another bank.........").seal("list", {}, "next", place=(1,))

    with pytest.raises(InvalidCursor):
        _PAGER.open("list", {}, token)


def test_a_cursor_does_not_reveal_its_position():
    token = _PAGER.seal("list", {}, "next", place=("2025-06-02", "a secret place"))

    assert "secret" not in token
    assert len(token) < 80


def test_a_short_pager_key_is_refused():
    with pytest.raises(ValueError, match="16 bytes"):
        Pager(b"short")


def _read(rows: list[int], limit: int, at: Position | None) -> list[int]:
    """Read up to one row too many, as a query with a keyset does."""
    if at is None:
        return rows[: limit + 1]
    (edge,) = at.place
    assert isinstance(edge, int)
    if at.direction == "next":
        return [row for row in rows if row > edge][: limit + 1]
    return [row for row in reversed(rows) if row < edge][: limit + 1]


def _page(rows: list[int], limit: int, token: str | None) -> Page[int]:
    at = None if token is None else _PAGER.open("rows", {}, token)
    found = _read(rows, limit, at)
    return _PAGER.page("rows", {}, found, limit=limit, start=at, sort_key_of=lambda row: (row,))


@given(st.sets(st.integers(-1000, 1000), max_size=60).map(sorted), st.integers(1, 12))
def test_paging_forward_and_backward_shows_every_row_once(rows, limit):
    down = [_page(rows, limit, None)]
    while down[-1].next_page is not None:
        down.append(_page(rows, limit, down[-1].next_page))
    up = [down[-1]]
    while up[-1].prev_page is not None:
        up.append(_page(rows, limit, up[-1].prev_page))

    assert [row for page in down for row in page.items] == rows
    assert [page.items for page in reversed(up)] == [page.items for page in down]
    assert down[0].prev_page is None
    assert all(len(page.items) == limit for page in down[:-1])


def test_a_page_whose_rows_were_deleted_is_empty_and_links_back():
    there, back = (_PAGER.seal("rows", {}, way, place=(5,)) for way in ("next", "prev"))

    assert _page([1, 2], 3, there) == Page([], prev_page=back)
    assert _page([8, 9], 3, back) == Page([], next_page=there)
    assert _page([], 3, None) == Page([])
