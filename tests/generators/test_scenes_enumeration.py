import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.scenes.propose import permuted


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 17, 63, 1000])
@pytest.mark.parametrize("key", [0, 1, 2**62])
def test_every_number_comes_once(size: int, key: int) -> None:
    assert sorted(permuted(index, size, key) for index in range(size)) == list(range(size))


@given(st.integers(1, 10**9), st.integers(0, 2**63 - 1), st.data())
def test_it_stays_in_range_and_two_indices_never_meet(
    size: int, key: int, data: st.DataObject
) -> None:
    first, second = (data.draw(st.integers(0, size - 1)) for _ in range(2))
    one, other = (permuted(index, size, key) for index in (first, second))
    assert 0 <= one < size
    assert (one == other) == (first == second)


@pytest.mark.parametrize("index", [-1, 5])
def test_an_index_out_of_range_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="expected an index from 0 to 4"):
        permuted(index, 5, 0)
