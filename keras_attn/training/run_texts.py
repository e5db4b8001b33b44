"""The texts of a run: what `--data`, `--valid` and `--test` name."""

from keras_attn.data import Pairs, hold_out, load_cmudict, read_pairs
from keras_attn.training.run_settings import DataSettings
from keras_attn.validation import require

CMUDICT = "cmudict"


def read_texts(data: DataSettings, seed: int = 1) -> dict[str, Pairs]:
    """Reads the parts of a run's texts: "train", "validation", and "test" where there is one.

    Args:
        data: Where they come from.
        seed: Decides what is held out where no validation texts are given.

    Returns:
        The parts by name.

    Raises:
        UserError: A file is missing or malformed.
    """
    parts = {}
    if data.train == [CMUDICT]:
        parts = load_cmudict(data.stress)
    else:
        parts["train"] = read_data(data.train, data)
    if data.valid is not None:
        parts["validation"] = read_data(data.valid, data)
    elif "validation" not in parts:
        count = data.hold_out or min(2000, max(1, len(set(parts["train"].sources)) // 20))
        parts["train"], parts["validation"] = hold_out(parts["train"], count, seed)
    if data.test is not None:
        parts["test"] = read_data(data.test, data)
    return parts


def read_data(paths: list[str], data: DataSettings, part: str = "test") -> Pairs:
    """Reads the texts that `--data` names.

    Args:
        paths: `["cmudict"]`, one tab-separated file, or a source and a target file.
        data: How to read them.
        part: Which part of cmudict.

    Returns:
        The pairs.
    """
    if list(paths) == [CMUDICT]:
        return load_cmudict(data.stress)[part]
    require(
        len(paths) in (1, 2),
        "Data must be cmudict, one tab-separated file, or a source and a target file.",
        data=list(paths),
    )
    pairs = read_pairs(paths, skip_bad_lines=data.skip_bad_lines)
    if pairs.skipped:
        print(f"{pairs.name}: {pairs.skipped:,} malformed lines left out.")
    return pairs
