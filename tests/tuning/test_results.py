"""The picture of a search, by what its panels hold."""

from keras_attn.tuning.results import TrialResult, _figure


def test_trials_are_in_the_order_of_their_numbers():
    values = {"10": 1.0, "9": 2.0, "11": 3.0}
    results = [TrialResult(n, "COMPLETED", v, {"a": n}) for n, v in values.items()]
    panel = _figure(results, "per").axes[1]
    assert panel.get_xlabel() == "trial"
    (line,) = panel.lines
    assert [float(x) for x in line.get_xdata()] == [10.0, 9.0, 11.0]
    left, right = panel.get_xlim()
    assert left < 9 < 11 < right
