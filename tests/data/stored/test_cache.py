"""Folders of arrays: made once, shared, checked, made again."""

import errno
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from keras_attn.data.stored.cache import Cache
from keras_attn.validation import UserError
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

DIES = """
import os, signal, sys
import numpy as np
from keras_attn.data.stored.cache import Cache

def dies(writer):
    writer.add("numbers", np.arange(9))
    os.kill(os.getpid(), signal.SIGKILL)

Cache(sys.argv[1]).entry("kind", {}, dies)
"""


def makes(calls, numbers=(3, 1, 4)):
    """A function that writes some numbers, and notes that it was called."""

    def make(writer):
        calls.append(1)
        writer.add("numbers", np.array(numbers))
        writer.add_rows("letters", np.frombuffer(b"abcde", np.uint8), np.array([2, 0, 3]))
        writer.add_rows("letters", np.frombuffer(b"xyz", np.uint8), np.array([3]))
        return {"found": len(numbers)}

    return make


def test_an_entry_is_made_once_for_a_key(tmp_path):
    calls, cache = [], Cache(tmp_path / "new" / "cache")
    for _ in range(2):
        entry = cache.entry("kind", {"of": 1}, makes(calls))
        assert entry.arrays["numbers"].tolist() == [3, 1, 4]
        assert entry.arrays["letters"].tobytes() == b"abcdexyz"
        assert entry.arrays["letters.offsets"].tolist() == [0, 2, 2, 5, 8]
        assert entry.facts == {"found": 3}
    cache.entry("kind", {"of": 2}, makes(calls))
    assert len(calls) == 2
    with pytest.raises(ValueError, match="read-only"):
        entry.arrays["numbers"][0] = 5


def test_any_flipped_byte_is_found(tmp_path):
    calls, lines = [], []
    cache = Cache(tmp_path, lines.append)
    cache.entry("kind", {}, makes(calls))
    (folder,) = tmp_path.glob("kind-*")
    for path in sorted(folder.iterdir()):
        for place in range(0, path.stat().st_size, 7):
            content = bytearray(path.read_bytes())
            content[place] ^= 4
            path.write_bytes(content)
            lines.clear()
            calls.clear()
            assert cache.entry("kind", {}, makes(calls)).arrays["numbers"].tolist() == [3, 1, 4]
            assert calls, path
            assert lines == [f"{folder}: damaged, it is made again."]


@pytest.mark.parametrize("damage", ["cut", "missing", "empty"])
def test_a_damaged_entry_is_made_again(damage, tmp_path):
    calls = []
    cache = Cache(tmp_path, lambda line: None)
    cache.entry("kind", {}, makes(calls))
    (path,) = tmp_path.glob("kind-*/numbers.bin")
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] if damage == "cut" else b"")
    assert cache.entry("kind", {}, makes(calls)).arrays["numbers"].tolist() == [3, 1, 4]
    assert len(calls) == 2


def test_a_killed_process_leaves_nothing_that_counts(tmp_path):
    cache = Cache(tmp_path)
    child = subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], env=os.environ)
    assert child.returncode == -signal.SIGKILL
    assert [path.name[0] for path in tmp_path.iterdir()] == [".", "."]  # the lock, what is begun
    assert cache.entry("kind", {}, makes([])).facts == {"found": 3}
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_leaves_nothing(tmp_path):
    def full(writer):
        writer.add("numbers", np.arange(9))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left on device.*kind-"):
        Cache(tmp_path).entry("kind", {}, full)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_one_of_several_makes_it(tmp_path):
    calls, lines, found = [], [], []
    begun = threading.Event()

    def slow(writer):
        begun.set()
        while not lines:  # until the other one waits
            pass
        return makes(calls)(writer)

    def opens(make):
        found.append(Cache(tmp_path, lines.append).entry("kind", {}, make))

    first = threading.Thread(target=opens, args=[slow])
    first.start()
    begun.wait()
    opens(slow)
    first.join()
    assert len(calls) == 1
    assert lines == [f"Waiting for another process that writes to {tmp_path} …"]
    assert [entry.arrays["numbers"].tolist() for entry in found] == [[3, 1, 4]] * 2


def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file" / "cache")
    message = "The folder of the cache must be writable: Not a directory. Received: .*file/cache"
    refused(message, cache.entry, "kind", {}, makes([]))


def test_what_is_there_needs_no_right_to_write(tmp_path, monkeypatch):
    cache, calls = Cache(tmp_path), []
    cache.entry("kind", {}, makes(calls))
    monkeypatch.setattr(Cache, "_locked", lambda self: pytest.fail("locked"))
    cache.entry("kind", {}, makes(calls))
    assert len(calls) == 1


def test_a_mistake_while_it_is_made_is_raised(tmp_path):
    def fails(writer):
        raise UserError("line 3 is malformed.")

    for _ in range(2):
        with pytest.raises(UserError, match="line 3 is malformed"):
            Cache(tmp_path).entry("kind", {}, fails)
