"""Exported layers, blocks and models compute in other runtimes what they compute in Keras."""

import pytest

from tests.export import interop

pytestmark = [pytest.mark.interop, pytest.mark.tensorflow]


def cases():
    """Those that a format cannot run are expected to fail: once they run, the list is too long.

    A fixed length is tried where a format cannot run layers of an unknown one. Each is tried in one
    format that runs it, the next in the next; in the others among the slow tests.
    """
    for place, name in enumerate((*interop.LAYERS, *interop.BLOCKS, *interop.MODELS)):
        running = [
            form for form in interop.RUNTIMES if not interop.reason_why_not(name, form, False)
        ]
        for form in interop.RUNTIMES:
            is_slow = form != running[place % len(running)]
            fails = interop.reason_why_not(name, form, length_known=False)
            for known in (True, False) if fails and name not in interop.MODELS else (False,):
                reason = interop.reason_why_not(name, form, known)
                marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
                marks += [pytest.mark.slow] if is_slow else []
                length = "fixed" if known else "unknown"
                yield pytest.param(name, form, known, id=f"{name}-{form}-{length}", marks=marks)


@pytest.mark.filterwarnings("default")  # of the converters
@pytest.mark.parametrize(("name", "form", "length_known"), list(cases()))
def test_the_runtime_gives_what_the_model_gives(name, form, length_known, tmp_path):
    assert interop.difference(name, form, length_known, tmp_path) < interop.TOLERANCE
