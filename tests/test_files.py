from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from unskew.errors import InputError
from unskew.files import whole_file, whole_files, write_whole, writing


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as temporary:
        temporary.write_text("half" * (1 // 0))
    assert path.read_text() == "old"
    with whole_file(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["a.txt"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
@pytest.mark.parametrize("name", ["file", "link"])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, name, mode):
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(mode)
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / name, "new")
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "file").stat().st_mode & 0o7777 == mode
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    "name", ["x" * 251, "é" * 125 + "x", "重" * 83 + "xy", "𝔘" * 62 + "xyz"], ids=len
)
def test_names_as_long_as_the_disk_allows(tmp_path, name):
    path = tmp_path / f"{name}.csv"
    assert len(os.fsencode(path.name)) == 255
    for content in ("old", "new"):
        with whole_file(path) as temporary:
            temporary.write_text(content)
            assert name[:20] in temporary.name
        assert path.read_text() == content
    assert names(tmp_path) == [path.name]


def test_several_files_appear_together(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(ZeroDivisionError), whole_files(paths) as temporaries:
        temporaries[temporaries[0].write_text("a")].write_text("b" * (1 // 0))
    assert names(tmp_path) == []
    with whole_files(paths) as temporaries:
        for path, temporary in zip(paths, temporaries, strict=True):
            temporary.write_text(path.name)
    assert [path.read_text() for path in paths] == ["a", "b"]
    # One that cannot be written keeps the others away.
    with pytest.raises(InputError, match="no/c"), whole_files([*paths, tmp_path / "no" / "c"]):
        pytest.fail("it should not come so far")
    assert names(tmp_path) == ["a", "b"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_whole(tmp_path / "link", "näw")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == "näw".encode()


def test_places_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    for path, words in {
        tmp_path: "a folder",
        tmp_path / "pipe": "not a regular file",
        Path("/dev/null"): "not a regular file",
        tmp_path / "nowhere" / "a": "No such file",
        tmp_path / "file" / "a": "Not a directory",
        tmp_path / ("x" * 300): "too long",
    }.items():
        with pytest.raises(InputError, match=words):
            write_whole(path, "")
    assert names(tmp_path) == ["file", "pipe"]


def test_what_the_disk_says_is_passed_on():
    full = "'w.csv' cannot be written: No space left on device.$"
    with pytest.raises(InputError, match=full), writing("w.csv"):
        raise OSError(errno.ENOSPC, "however a library puts it")
    with pytest.raises(InputError, match="'w.csv' cannot be written: odd.$"), writing("w.csv"):
        raise OSError("odd")
    with pytest.raises(InputError, match="^as it was$"), writing("w.csv"):
        raise InputError("as it was")


def test_what_a_killed_process_left_goes_and_what_a_live_one_writes_stays(tmp_path):
    path = tmp_path / "a.txt"
    code = (
        "import sys, time; from pathlib import Path; from unskew.files import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half'); print('ready', flush=True); time.sleep(60)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    try:
        for process in processes:
            process.stdout.readline()
        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        assert len(names(tmp_path)) == 2
        (tmp_path / ".a.txt.mine").write_text("not ours")
        write_whole(tmp_path / "b.txt", "new")
        assert len(names(tmp_path)) == 4  # another place's files are not its business
        write_whole(path, "new")
        assert len(names(tmp_path)) == 4  # a.txt is there, and one of the two is gone
        assert path.read_text() == "new"
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()
    assert (tmp_path / ".a.txt.mine").exists()
