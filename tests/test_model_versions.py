"""Which folders are versions: as TensorFlow Serving reads their names."""

from keras_attn.model_versions import version_folders


def test_names_of_versions(tmp_path):
    largest = 2**63 - 1
    versions = ["0", "1", "007", "12", str(largest)]
    others = [str(largest + 1), "9" * 20, "9" * 200, "+1", "-1", "1.0", "1_0", " 2", "٣", "²", "a"]
    for name in (*versions, *others, "00012", "0000"):
        (tmp_path / name).mkdir()
    (tmp_path / "5").touch()
    found = version_folders(tmp_path)
    assert {number: folder.name for number, folder in found.items()} == {
        0: "0",
        1: "1",
        7: "007",
        12: "12",
        largest: str(largest),
    }
    assert list(found) == sorted(found)
    assert version_folders(tmp_path / "nothing") == {}
