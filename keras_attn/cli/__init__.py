"""The command `keras-attn`, with one module for each subcommand."""

import os
import platform
import sys
from collections.abc import Sequence

from keras_attn.cli import terminal
from keras_attn.cli.parser import parse
from keras_attn.validation import UserError

_USER_MISTAKE = 2
_INTERRUPTED = 130  # 128 + SIGINT, as shells have it
_BROKEN_PIPE = 141  # 128 + SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        arguments: Arguments after `keras-attn`; from `sys.argv` by default.

    Returns:
        The exit status: 0 on success, 1 if a check failed, 2 on a user's mistake (with a message of
        one line on standard error), 130 when interrupted.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if platform.machine() in ("x86_64", "AMD64"):
        # By itself TensorFlow uses oneDNN only with AVX-512, but AVX2 is 1.3 times as fast so.
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    try:
        options = parse(arguments)
        # The commands run on TensorFlow, whichever backend the user's own scripts have, but for
        # those with a choice of backends.
        os.environ["KERAS_BACKEND"] = "tensorflow"
        status = options.run(options) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader of the output has closed it; nothing more may be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except (UserError, OSError) as error:
        terminal.print_error(error)
        return _USER_MISTAKE
    except KeyboardInterrupt:
        terminal.print_error("interrupted")
        return _INTERRUPTED
