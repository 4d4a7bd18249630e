from __future__ import annotations

import os

import pytest

from unskew.errors import InputError
from unskew.files import whole_file, write_whole


def test_a_file_is_written_and_nothing_else(tmp_path):
    path = tmp_path / "out.txt"
    write_whole(path, "größer\n")
    write_whole(str(path), "anew\r\n")
    assert path.read_bytes() == b"anew\r\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_text_that_cannot_be_encoded_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    write_whole(path, "old")

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="out.txt' cannot be written: No space left"):
            write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "problem"), [("", "it is a folder"), ("no/such/file", "No such file")]
)
def test_a_place_that_cannot_be_written_is_named(tmp_path, name, problem):
    with pytest.raises(InputError, match=f"cannot be written: {problem}"):
        write_whole(tmp_path / name, "text")


def test_an_interrupted_block_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    write_whole(path, "old")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as temporary:  # noqa: PT012
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
