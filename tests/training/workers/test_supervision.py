"""What is started again, and what is not; the trainings are one-line scripts."""

import os
import signal
import subprocess
import sys
import time

import pytest

from keras_attn.training.workers.supervision import supervise

COUNT = """
import os, signal, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
tries = len(list(folder.glob("try-*"))) + 1
(folder / f"try-{tries}").touch()
"""


def run(folder, script):
    status = supervise([sys.executable, "-c", COUNT + script, str(folder)], folder, pause=0.01)
    return status, len(list(folder.glob("try-*")))


@pytest.mark.parametrize(
    ("ending", "status", "tries"),
    [
        ("sys.exit(0)", 0, 1),
        ("sys.exit(2)", 2, 1),
        ("raise ValueError", 1, 1),
        ("sys.exit(75 if tries < 3 else 0)", 0, 3),
        ("tries < 3 and os.kill(os.getpid(), signal.SIGKILL)", 0, 3),
        ("tries < 3 and os.kill(os.getpid(), signal.SIGALRM)", 0, 3),
        ("sys.exit(75)", 75, 5),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, 5),
        ("os.kill(os.getpid(), signal.SIGTERM)", 143, 1),
    ],
)
def test_endings(tmp_path, ending, status, tries):
    assert run(tmp_path, ending) == (status, tries)


def test_progress_gives_new_tries(tmp_path, capfd):
    script = "(folder / f'step-{tries // 3:08d}').mkdir(exist_ok=True); sys.exit(75 * (tries < 12))"
    assert run(tmp_path, script) == (0, 12)
    assert "ended with status 75: starting it again in 0.01 s." in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on_and_end_it(tmp_path, number):
    supervisor = f"""
import sys
from pathlib import Path
from keras_attn.training.workers.supervision import supervise
child = '''{COUNT}
signal.signal({number:d}, lambda *_: (folder / "told").touch() or sys.exit(75))
(folder / "ready").touch()
time.sleep(60)'''
sys.exit(supervise([sys.executable, "-c", child, sys.argv[1]], Path(sys.argv[1])))
"""
    process = subprocess.Popen([sys.executable, "-c", supervisor, str(tmp_path)])
    while not (tmp_path / "ready").exists():
        time.sleep(0.05)
    os.kill(process.pid, number)
    assert process.wait(30) == 75
    assert (tmp_path / "told").exists()
    assert len(list(tmp_path.glob("try-*"))) == 1
