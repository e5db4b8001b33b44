"""What all tests share: seeds, data from outside, and skips that count as failures on request."""

import collections
import gc
import itertools
import os
import pathlib
import random
import sys
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if "PYTEST_XDIST_WORKER" in os.environ:  # there is one for each core already
    for threads in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(threads, "1")
# XLA's programs are many and tiny here: compiling them is what takes the time.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
# JAX compiles the same ones again for each layer that is made. It does not write a file at once, so
# that each worker has its own.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR",
    str(
        pathlib.Path(__file__).parent.parent
        / ".pytest_cache"
        / "jax"
        / os.environ.get("PYTEST_XDIST_WORKER", "alone")
    ),
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import keras
import numpy as np
import pytest

gc.set_threshold(50_000, 20, 50)  # tracing makes many objects and little garbage

if keras.backend.backend() == "torch":
    import torch

    def to_array(self, dtype=None, copy=None):
        """As on the other backends, where what has a gradient is converted like anything else."""
        is_bfloat16 = self.dtype == torch.bfloat16
        array = keras.ops.convert_to_numpy(self) if is_bfloat16 else self.detach().cpu().numpy()
        return np.array(array, dtype, copy=copy)

    torch.Tensor.__array__ = to_array
    if "PYTEST_XDIST_WORKER" in os.environ:
        torch.set_num_threads(1)

pytest.register_assert_rewrite("tests.harness")

ABSENT_DATA = "shared data absent"
ONE_DNN = "TF_ENABLE_ONEDNN_OPTS"
ONE_DNN_HERE = os.environ.get(ONE_DNN)
PROJECT = pathlib.Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption(
        "--fail-on-skip",
        action="store_true",
        help=f"a skipped test fails, unless its reason begins with {ABSENT_DATA!r}",
    )
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="run one test in N, chosen by its name",
    )


def _asks_for_smoke(config):
    return config.option.markexpr == "smoke"


def _smoke():
    # Not above: `tests` is no package yet while slipcover measures how this file is imported.
    from tests.smoke import SMOKE

    return SMOKE


def pytest_ignore_collect(collection_path, config):
    """Files without smoke tests are not even imported for `-m smoke`."""
    if _asks_for_smoke(config) and collection_path.suffix == ".py":
        return str(collection_path.relative_to(PROJECT)) not in _smoke() or None
    return None


def _mark_smoke(config, items):
    found = set()
    smoke = _smoke()
    for item in items:
        file = str(item.path.relative_to(PROJECT))
        names = smoke.get(file, ())
        if not item.get_closest_marker("slow") and (names is None or item.originalname in names):
            item.add_marker("smoke")
            found.add((file, item.originalname))
    listed = {(file, name) for file, names in smoke.items() for name in names or ()}
    whole = _asks_for_smoke(config) and config.args == config.getini("testpaths")
    if whole and listed - found:
        raise pytest.UsageError(f"tests/smoke.py lists unknown tests: {sorted(listed - found)}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    _mark_smoke(config, items)
    backend, one_in = keras.backend.backend(), config.getoption("--one-in")

    def is_left_out(item):
        is_elsewhere = backend != "tensorflow" and item.get_closest_marker("tensorflow")
        return is_elsewhere or zlib.crc32(item.nodeid.encode()) % one_in

    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Processes of a test compute as this one does, whatever the command line has set in it."""
    os.environ.pop(ONE_DNN, None)
    if ONE_DNN_HERE is not None:
        os.environ[ONE_DNN] = ONE_DNN_HERE


def _fail_if_skipped(config, report):
    if not config.getoption("--fail-on-skip") or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not reason.removeprefix("Skipped: ").startswith(ABSENT_DATA):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, which counts as a failure here: {reason}"


def pytest_terminal_summary(terminalreporter, config):
    """With --durations=N, also the N files that take longest: a default run has 15 minutes."""
    if not config.option.durations:
        return
    seconds = collections.Counter()
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        if hasattr(report, "duration"):  # warnings have none
            seconds[report.nodeid.partition("::")[0]] += report.duration
    terminalreporter.section("slowest files")
    for file, time in seconds.most_common(config.option.durations):
        terminalreporter.line(f"{time:6.1f}s {file}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    _fail_if_skipped(item.config, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    _fail_if_skipped(collector.config, report)
    return report


@pytest.fixture
def exact_integers():
    """Marks a test that the processor's products of 8-bit integers let fail."""
    from keras_attn.ops.integer_product import are_sums_exact

    if not are_sums_exact():
        pytest.xfail("sums of products of 8-bit integers are not exact on this processor")


@pytest.fixture(scope="session")
def shared_data():
    """The folder of the data sets that are not part of the project; skips where it is absent."""
    default = PROJECT.parent / "shared" / "data"
    folder = pathlib.Path(os.environ.get("KERAS_ATTN_SHARED_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"{ABSENT_DATA}: {folder}")
    return folder


@pytest.fixture(autouse=True, scope="module")
def _light_collections():
    """Graphs of files that have run are not looked through again: Keras collects garbage itself."""
    yield
    gc.collect()
    gc.freeze()


def _enable_xla():
    """Takes back what runs SavedModels as TensorFlow Serving does: no XLA in the whole process."""
    c_api = sys.modules.get("keras_attn.export.c_api")
    if c_api is not None:
        c_api.load_tensorflow()._ZN10tensorflow20EnableXlaCompilationEv()


@pytest.fixture(autouse=True)
def _same_numbers():
    """Every test starts from the same seeds and leaves dtype policy, determinism and XLA as before.

    Keras draws the seeds of initializers and dropout from `random`. `keras.utils.set_random_seed`
    would also reset TensorFlow's context, and with it the resources of SentencePiece tokenizers.
    """
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)
    if keras.backend.backend() == "tensorflow":
        # A training leaves it on, and Keras compiles nothing with XLA then.
        from tensorflow.python.framework.config import disable_op_determinism

        disable_op_determinism()
        _enable_xla()


@pytest.fixture(scope="session")
def tiny_export(tmp_path_factory):
    """The task of `tests.tasks.made`, exported; a test that changes it works on a copy."""
    from keras_attn.export import export_saved_model
    from tests.tasks.made import make_task

    return export_saved_model(make_task(), tmp_path_factory.mktemp("exports") / "tiny", n_best=2)
