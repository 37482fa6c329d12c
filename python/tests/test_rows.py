"""Only some rows of a source: by number, by value, and by chance."""

import threading

import h5py
import numpy as np
import pytest

import reference_order as reference

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
    assert labels_of(make(of=source.split(0.25, seed=4)[1]).epoch(0)).tolist() != parts[1].tolist()


@pytest.mark.parametrize("seed", [0, 3])
def test_a_row_s_part_is_a_hash_of_seed_and_number(make, source, labels_of, seed):
    chosen = [row for row in range(1000) if reference.mix(reference.mix(seed) ^ row) < 2**62]  # a quarter
    training, validation = source.split(0.25, seed=seed)
    assert labels_of(make(of=validation).epoch(0)).tolist() == chosen
    assert labels_of(make(of=training).epoch(0)).tolist() == sorted({*range(1000)} - {*chosen})


def test_rows_of_a_group_stay_together(make, labels_of, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["label"], f["patient"] = np.arange(1000), np.arange(1000) % 50
    source = ps.Source(label=f"{tmp_path}/a.h5:/label", patient=f"{tmp_path}/a.h5:/patient")
    groups = [set(labels_of(make(of=part).epoch(0)) % 50) for part in source.split(0.5, seed=1, group="patient")]
    assert groups[0] | groups[1] == set(range(50)) and not groups[0] & groups[1]
    assert min(map(len, groups)) > 10


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("calibrate", [False, 0.05])
def test_a_condition_is_asked_once_for_each_row_and_on_this_thread(make, source, labels_of, mapped, calibrate):
    asked, threads = [], set()

    def first_ten(value):
        asked.append(value)
        threads.add(threading.get_ident())
        return len(asked) <= 10

    def odd(value):
        also.append(value)
        return value % 2 == 1

    also = []
    of = source.where("label", first_ten)
    of = of.map(lambda block: None) if mapped else of
    assert labels_of(make(of=of, calibrate=calibrate).epoch(0)).tolist() == list(range(10))
    assert asked == list(range(1000)) and threads == {threading.get_ident()}
    mixed = ps.mixed([source.where("label", odd), source.where("label", odd)]).where("label", lambda value: value < 4)
    mixed = mixed.map(lambda block: None) if mapped else mixed
    assert set(labels_of(make(of=mixed, calibrate=calibrate).epoch(0)).tolist()) == {1, 3}
    assert also == [*range(1000), *range(1000)]
