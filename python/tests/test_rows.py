"""Only some rows of a source: by number, by value, and by chance."""

import numpy as np
import pytest

import penstock as ps


@pytest.mark.parametrize(
    "rows, expected",
    [
        (slice(10, 20), range(10, 20)),
        (slice(7), range(7)),
        ([range(0, 5), slice(990, 1000)], [*range(5), *range(990, 1000)]),
        ([5, 3, 900], [3, 5, 900]),
        (np.arange(1000) % 100 == 0, range(0, 1000, 100)),
        ([], []),
    ],
)
def test_some_rows_can_be_selected(make, source, labels_of, rows, expected):
    loader = make(of=source.select(rows))
    assert loader.rows == len(expected)
    assert labels_of(loader.epoch(0)).tolist() == list(expected)


@pytest.mark.parametrize("rows", [slice(None, None, 2), slice(5, None), slice(-5, 10), [[1]], [-1], [0.5], "abc"])
def test_rows_that_cannot_be_selected_are_refused(source, rows):
    with pytest.raises(ValueError, match="rows are selected"):
        source.select(rows)


@pytest.mark.parametrize("told", [0, 999, 1001])
def test_a_mask_of_other_rows_is_refused(make, source, told):
    masked = source.select(np.arange(told) < 5)
    for of, where in ((masked, ""), (ps.mixed([source, masked]), "source 2 of a mix: ")):
        for use in (lambda of: make(of=of), lambda of: ps.price(of, ps.Sequential())):
            with pytest.raises(ValueError, match=f"^{where}rows .* a mask of {told} rows, and the source has 1000"):
                use(of)
    mixed = ps.mixed([source, source]).select(np.ones(2000, bool))
    assert make(of=mixed).rows == 2000
    assert make(of=source.where("label", bool).select(np.ones(1000, bool))).rows == 999


def test_rows_can_be_selected_by_a_value(make, source, labels_of):
    loader = make(of=source.where("label", lambda label: label % 3 == 0).select(slice(0, 100)))
    assert labels_of(loader.epoch(0)).tolist() == list(range(0, 100, 3))
    with pytest.raises(ZeroDivisionError):
        make(of=source.where("label", lambda label: 1 / label))
    with pytest.raises(ValueError, match="no field 'y'"):
        source.where("y", bool)


def test_a_split_divides_the_rows(make, source, labels_of):
    parts = [labels_of(make(of=part).epoch(0)) for part in source.split(0.25, seed=3)]
    assert 150 < len(parts[1]) < 350
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(1000))
