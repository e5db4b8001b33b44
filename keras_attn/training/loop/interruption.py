"""Handling of Ctrl-C and SIGTERM: finish the update, then stop."""

import signal
import threading
import types


class TrainingInterrupted(SystemExit):
    """Training was stopped by a signal after its checkpoint was written.

    Ends the process, if nothing catches it, with status 128 + the signal's number, as shells
    expect.

    Args:
        signal_number: The signal.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(128 + signal_number)
        self.signal_number = signal_number


class StopValidation(BaseException):
    """A signal was received during a validation, which changes nothing and can be repeated.

    It is no `Exception`, so that metrics that catch those do not catch it.
    """


class SignalWatch:
    """Records the first SIGINT or SIGTERM; a second one acts as usual.

    Use as a context manager. Only the main thread may watch signals; elsewhere it does nothing.

    Attributes:
        received: Number of the signal that was received, or `None`.
    """

    def __init__(self) -> None:
        self.received = None
        self.in_validation = False
        self._before = {}

    def __enter__(self) -> "SignalWatch":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _note(self, number: int, frame: types.FrameType | None) -> None:
        self.received = number
        self.__exit__()
        if self.in_validation:
            raise StopValidation
