"""Sources mixed by ratio, and what an order costs before it runs."""

import math

import h5py
import numpy as np
import pytest

import penstock as ps


@pytest.fixture
def parts(tmp_path):
    """Two sources of 3 and 5 rows, whose labels are 0 to 2 and 100 to 104."""
    for name, first, rows in (("a", 0, 3), ("b", 100, 5)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as f:
            f["x"] = np.full((rows, 2), first, dtype=np.uint8)
            f["label"] = np.arange(first, first + rows)
    return [ps.Source(x=f"{tmp_path}/{name}.h5:/x", label=f"{tmp_path}/{name}.h5:/label") for name in "ab"]


def test_rows_take_turns_by_ratio_and_a_short_source_begins_again(make, labels_of, parts):
    loader = make(4, of=ps.mixed(parts, rows=10))  # by hand: shares of one half each, in turn
    assert labels_of(loader.epoch(0)).tolist() == [0, 100, 1, 101, 2, 102, 0, 103, 1, 104]
    assert loader.rows == 10
    mixed = make(4, of=ps.mixed(parts))
    assert mixed.rows == 8


def test_ratios_may_stand_in_a_dict(make, labels_of, parts):
    a, b = parts
    one, two = make(4, of=ps.mixed({a: 3, b: 1}, rows=40)), make(4, of=ps.mixed([(a, 3), (b, 1)], rows=40))
    assert labels_of(one.epoch(0)).tolist() == labels_of(two.epoch(0)).tolist()
    for wrong in (a, 3, [(a, 3, 1)], [[a, 3]]):
        with pytest.raises(TypeError, match="what is mixed are"):
            ps.mixed(wrong)


def test_every_stretch_holds_the_ratio(make, labels_of, parts):
    a, b = parts
    for order in (ps.Sequential(), ps.Random(seed=1)):
        labels = labels_of(make(8, of=ps.mixed([(a, 3), (b, 1)], rows=400), order=order).epoch(2))
        seen = np.cumsum(labels < 100)
        assert seen[-1] == 300
        assert np.abs(seen - 0.75 * np.arange(1, 401)).max() <= 1


def test_an_epoch_goes_on_where_the_one_before_ended_and_so_does_a_resumed_loop(make, labels_of, parts):
    of = ps.mixed(parts, rows=4)
    loader = make(2, of=of)
    assert labels_of(loader.epoch(0)).tolist() == [0, 100, 1, 101]
    next(loader.epoch(1))
    resumed = make(2, of=of)
    resumed.load_state_dict(loader.state_dict())
    assert labels_of(resumed.epoch(1)).tolist() == [0, 103]
    with pytest.raises(ValueError):
        make(2, of=ps.mixed([(parts[0], 2), parts[1]], rows=4)).load_state_dict(loader.state_dict())


def test_epochs_of_a_mix_may_come_in_any_sequence(make, labels_of, parts):
    of = ps.mixed(parts, rows=4)
    expected = {epoch: labels_of(make(2, of=of).epoch(epoch)).tolist() for epoch in (0, 1, 5)}
    assert expected[0] != expected[1] != expected[5]  # a sequential mix, too, goes on from one epoch to the next
    loader = make(2, of=of)
    for epoch in (0, 0, 5, 1, 5, 0):
        assert labels_of(loader.epoch(epoch)).tolist() == expected[epoch]


def test_rows_are_numbered_from_one_source_to_the_next(make, parts):
    loader = make(10, of=ps.mixed(parts))
    batch = next(loader.epoch(0))
    rows = batch.row_ids().astype(int)
    assert batch.numpy("label").tolist() == [row if row < 3 else 100 + row - 3 for row in rows]
    place = loader.place_of("label", 4)
    assert place.file.endswith("b.h5") and place.row == 1


def test_what_is_said_of_a_mixed_source_holds_for_its_parts(make, parts):
    mixed = ps.mixed(parts, rows=10).astype(x="float32").scaled(x=0.5)
    mixed = mixed.map(lambda block: {"label": -block["label"]}, fields=["label"])
    batch = next(make(10, of=mixed).epoch(0))
    assert batch["x"].dtype == "float32" and set(batch.numpy("x")[:, 0]) == {0, 50}
    assert batch.numpy("label")[:2].tolist() == [0, -100]
    assert mixed.fields == ("x", "label") and "1 of Source(" in repr(mixed)


def test_some_rows_of_a_part_take_part(make, labels_of, parts):
    a, b = parts
    labels = labels_of(make(10, of=ps.mixed([a, b.select(slice(1, 3))], rows=8)).epoch(0))
    assert labels.tolist() == [0, 101, 1, 102, 2, 101, 0, 102]


@pytest.mark.parametrize(
    ("mix", "sentence"),
    [
        (lambda a, b: ps.mixed([]), "at least one source"),
        (lambda a, b: ps.mixed([(a, 0), b]), "source 1 of a mix has the ratio 0; ratios are above 0"),
        (lambda a, b: ps.mixed([a, (b, math.nan)]), "source 2 of a mix has the ratio nan"),
        (lambda a, b: ps.mixed([a], rows=-1), "rows is at least 0"),
        (lambda a, b: ps.mixed([a, b.map(lambda block: None)]), "source 2 of a mix is mapped; say it of the mixed"),
        (lambda a, b: ps.mixed([a.skip_damaged()]), "source 1 of a mix says what becomes of damaged rows"),
        (lambda a, b: ps.mixed([a, ps.mixed([b])]), "source 2 of a mix is mixed itself"),
        (lambda a, b: ps.mixed([a, b.astype(x="float32")]), "field 'x' of source 2 of a mix has other options"),
    ],
)
def test_sources_that_cannot_be_mixed_are_refused(make, parts, mix, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(2, of=mix(*parts))


def test_what_is_no_source_is_not_mixed():
    with pytest.raises(TypeError, match=r"\[\(source, 3\), ...\], not 'x.h5:/x'"):
        ps.mixed(["x.h5:/x"])


@pytest.fixture
def sorted_rows(tmp_path):
    """4096 rows of 4 float32 in chunks of 64; classes 0 to 3, in that order."""
    with h5py.File(tmp_path / "sorted.h5", "w") as f:
        f.create_dataset("x", data=np.zeros((4096, 4), "f4"), chunks=(64, 4), compression="gzip")
        f["label"] = np.repeat(np.arange(4, dtype=np.uint8), 1024)
    return ps.Source(x=f"{tmp_path}/sorted.h5:/x", label=f"{tmp_path}/sorted.h5:/label")


def test_the_price_of_an_order_is_known_before_it_runs(sorted_rows):
    whole = ps.price(sorted_rows, ps.Shuffled(seed=1, run_rows=64, pool_rows=1024))
    assert (whole.pool_bytes, whole.read_amplification, whole.mixing) == (1024 * (16 + 1), 1.0, None)
    sequential = ps.price(sorted_rows, ps.Sequential(), 64, classes="label")
    assert (sequential.pool_bytes, sequential.mixing) == (0, 0.0)  # a batch is of one class
    random = ps.price(sorted_rows, ps.Random(seed=1), 64, classes="label")
    assert random.mixing == pytest.approx(1, abs=0.02) and random.read_amplification > 10  # a chunk for each row
    assert "no pool; each byte is read" in str(random)
    assert set(random.as_dict()) == {"pool_bytes", "table_bytes", "read_amplification", "mixing", "batches_of_one_source"}


def test_the_price_says_how_many_batches_of_a_mix_are_of_one_source(sorted_rows):
    assert ps.price(sorted_rows, ps.Shuffled(seed=1)).batches_of_one_source is None
    mix = ps.mixed([(sorted_rows, 1), (sorted_rows, 1)])
    by_rows, by_runs = (ps.price(mix, order, 64) for order in (ps.Random(seed=1), ps.Shuffled(seed=1, run_rows=256, pool_rows=256)))
    assert by_rows.batches_of_one_source == 0  # of 64 rows, which come in turn
    assert by_runs.batches_of_one_source == 1 and "100.0 % of the batches" in str(by_runs)  # a pool is one run


def test_a_price_that_cannot_be_told_is_refused(sorted_rows):
    with pytest.raises(ValueError, match="'nothing'"):
        ps.price(sorted_rows, ps.Sequential(), classes="nothing")
    with pytest.raises(TypeError, match="an order is one of"):
        ps.price(sorted_rows, "shuffled")
    with pytest.raises(ps.DataError):
        ps.price(ps.Source(x="nowhere.h5:/x"), ps.Sequential())


def test_mixing_is_that_of_batches_of_this_size(sorted_rows):
    assert ps.price(sorted_rows, ps.Sequential(), 4096, classes="label").mixing == pytest.approx(1)  # one, with all classes
