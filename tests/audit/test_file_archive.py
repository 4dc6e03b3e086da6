import pytest

from billfold.audit.file_archive import FileArchive


async def test_lines_stay_in_their_order_and_are_added_once(tmp_path):
    one, other = (FileArchive(tmp_path / "there" / "lines.txt") for _ in range(2))
    assert await one.lines() == []
    assert await one.add(["a", "b"], after=0) == 2
    assert await other.add(["b", "c"], after=1) == 3
    assert await other.add([], after=0) == 3
    assert await one.lines() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("left", "line", "after", "whole"), [("a\nhal", "half", 1, "a\nhalf\n"), ("a lo", "a", 0, "a\n")]
)
async def test_a_line_that_was_cut_short_is_written_again(tmp_path, left, line, after, whole):
    path = tmp_path / "lines.txt"
    path.write_text(left)
    assert await FileArchive(path).add([line], after=after) == after + 1
    assert path.read_text() == whole
    assert path.stat().st_mode & 0o022 == 0
