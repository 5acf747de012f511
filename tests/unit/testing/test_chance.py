import pytest

from harbor_async.testing import ScriptedRandom


def test_values_come_in_order():
    """The script is played once, and counted."""
    random = ScriptedRandom([0.5, 0.0])
    assert (0.5, 0.0, 2) == (random(), random(), random.used)


def test_an_unscripted_draw_is_an_error():
    """More draws than scripted are an error, not a repetition."""
    random = ScriptedRandom([])
    with pytest.raises(LookupError, match="0 values"):
        random()


@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan")])
def test_values_out_of_range_are_refused(value):
    """A random source gives at least 0 and less than 1."""
    with pytest.raises(ValueError, match="below 1"):
        ScriptedRandom([value])
