import pytest

from billfold.audit.seals import FileArchive
from billfold.platform.errors import InvariantError


async def test_archive_lines_keep_their_order_and_are_added_once(tmp_path):
    one, other = (FileArchive(tmp_path / "there" / "lines.txt", beginning="") for _ in range(2))
    assert await one.lines() == []
    assert await one.add(["a", "b"], after=0) == 2
    assert await other.add(["b", "c"], after=1) == 3
    assert await other.add([], after=0) == 3
    assert await one.lines() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("left", "line", "after", "whole"), [("a\nhal", "half", 1, "a\nhalf\n"), ("a lo", "a", 0, "a\n")]
)
async def test_a_truncated_archive_line_is_rewritten(tmp_path, left, line, after, whole):
    path = tmp_path / "lines.txt"
    path.write_text(left)
    assert await FileArchive(path, beginning="").add([line], after=after) == after + 1
    assert path.read_text() == whole
    assert path.stat().st_mode & 0o022 == 0


@pytest.mark.parametrize("foreign", ["root:x:0:0\n", "an unfinished line"])
async def test_a_foreign_file_is_refused_and_left_unchanged(tmp_path, foreign):
    path = tmp_path / "lines.txt"
    path.write_text(foreign)
    with pytest.raises(InvariantError, match="is not a seal file"):
        await FileArchive(path).add(['{"seal_no":1}'], after=0)
    assert path.read_text() == foreign
