from billfold.audit.file_archive import FileArchive


async def test_lines_stay_in_their_order_and_are_added_once(tmp_path):
    one, other = (FileArchive(tmp_path / "there" / "lines.txt") for _ in range(2))
    assert await one.lines() == []
    assert await one.add(["a", "b"], after=0) == 2
    assert await other.add(["b", "c"], after=1) == 3
    assert await other.add([], after=0) == 3
    assert await one.lines() == ["a", "b", "c"]


async def test_a_line_that_was_cut_short_is_written_again(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a\nhal")
    assert await FileArchive(path).add(["half"], after=1) == 2
    assert path.read_text() == "a\nhalf\n"
    assert path.stat().st_mode & 0o077 == 0o044 or path.stat().st_mode & 0o077 == 0


async def test_a_first_line_that_was_cut_short_is_written_again(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a long fir")
    assert await FileArchive(path).add(["a"], after=0) == 1
    assert path.read_text() == "a\n"
