"""Whole or not at all: what is written under a temporary name and renamed."""

import fcntl
import os
import pathlib
import shutil
import threading

import pytest

from keras_attn.files import (
    LOCK_FILE,
    remove_unfinished,
    replaced_file,
    replaced_folder,
    wait_for_writer,
    write_text,
)
from keras_attn.validation import UserError
from tests.refusals import refused


class Killed(BaseException):
    """Stands for SIGKILL: nothing may run after it."""


@pytest.mark.parametrize("moment", range(6))
def test_replaced_folder_survives_a_kill_at_any_moment(tmp_path, monkeypatch, moment):
    target = tmp_path / "task"
    with replaced_folder(target) as temporary:
        (temporary / "file").write_text("old")
    alive = [moment]

    def mortal(function):
        """Each of these calls changes the disk; after as many as `moment`, none does any more."""

        def call(*arguments, **options):
            if alive[0] == 0:
                raise Killed
            alive[0] -= 1
            return function(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for owner, name in (
            (pathlib.Path, "rename"),
            (pathlib.Path, "write_text"),
            (shutil, "rmtree"),
        ):
            patch.setattr(owner, name, mortal(getattr(owner, name)))
        with pytest.raises(Killed), replaced_folder(target) as temporary:
            (temporary / "file").write_text("new")
    remove_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["task"]
    assert (target / "file").read_text() == ("new" if moment == 5 else "old")


def test_a_folder_that_cannot_be_renamed_leaves_the_old_one(tmp_path, monkeypatch):
    target = tmp_path / "task"
    with replaced_folder(target) as temporary:
        (temporary / "file").write_text("old")
    rename = pathlib.Path.rename

    def refuse(path, other):
        if (path / "file").read_text() == "new":
            raise OSError(30, "Read-only file system")
        return rename(path, other)

    monkeypatch.setattr(pathlib.Path, "rename", refuse)
    with pytest.raises(OSError, match="Read-only"), replaced_folder(target) as temporary:
        (temporary / "file").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["task"]
    assert (target / "file").read_text() == "old"


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replaced_file(path) as temporary:
        temporary.write_text("né")
        assert path.read_text() == "old"
    assert path.read_text("utf-8") == "né"
    write_text(path, "newer")
    assert path.read_text() == "newer"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_text(path, "old")

    def fill_the_disk():
        with replaced_file(path) as temporary:
            temporary.write_text("ne")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        fill_the_disk()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_half_a_file_of_a_killed_process_is_removed(tmp_path):
    write_text(tmp_path / "metrics.csv", "whole")
    (tmp_path / ".writing-metrics.csv.4711").write_text("ha")
    remove_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.csv"]


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o007, 0o660), (0o077, 0o600)])
def test_files_have_the_modes_of_the_umask(tmp_path, umask, expected):
    def write(path):
        """As libraries do that write to a private file and rename it."""
        path.with_suffix(".own").touch(0o600)
        path.with_suffix(".own").rename(path)

    before = os.umask(umask)
    try:
        with replaced_file(tmp_path / "file") as temporary:
            write(temporary)
        with replaced_folder(tmp_path / "task") as temporary:
            (temporary / "part").mkdir()
            write(temporary / "part" / "file")
    finally:
        os.umask(before)
    for path in (tmp_path / "file", tmp_path / "task" / "part" / "file"):
        assert path.stat().st_mode & 0o777 == expected


def refuse(*_, **__):
    """Stands for a read-only disk, which root cannot write to either."""
    raise PermissionError(13, "Permission denied")


def test_a_file_without_a_folder_is_named_as_it_was_given(tmp_path):
    path = tmp_path / "missing" / "x.png"
    message = f"^The folder of a file must exist. Received: {str(path)!r}.$"
    with pytest.raises(UserError, match=message), replaced_file(path):
        pass
    refused("The output file is an existing folder. Received: path=", write_text, tmp_path, "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("replaced", [replaced_file, replaced_folder])
def test_a_folder_that_cannot_be_written_to_is_told(tmp_path, monkeypatch, replaced):
    path = tmp_path / "x"
    monkeypatch.setattr(pathlib.Path, "touch", refuse)
    monkeypatch.setattr(pathlib.Path, "mkdir", refuse)
    message = f"^The folder of a file must be writable: Permission denied. Received: '{path}'.$"
    with pytest.raises(UserError, match=message), replaced(path):
        pass


def test_waiting_for_the_process_that_writes_a_run(tmp_path):
    said = []
    wait_for_writer(tmp_path / "none", said.append)
    with (tmp_path / LOCK_FILE).open("w") as file:
        file.write("process 7 on here")
        file.flush()
        wait_for_writer(tmp_path, said.append)
        assert said == []
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = threading.Thread(target=wait_for_writer, args=(tmp_path, said.append))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
    waiting.join(10)
    assert not waiting.is_alive()
    assert said == ["process 7 on here"]
