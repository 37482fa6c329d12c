"""The order of rows depends on source, seed, epoch and position alone."""

import io

import numpy as np
import pytest

import penstock as ps

ORDERS = [ps.Sequential(), ps.Shuffled(seed=7), ps.Shuffled(seed=7, run_rows=16, pool_rows=128), ps.Random(seed=7)]


@pytest.mark.parametrize("order", ORDERS)
def test_every_row_comes_once_an_epoch(make, labels_of, order):
    loader = make(order=order)
    for epoch in range(3):
        labels = labels_of(loader.epoch(epoch))
        np.testing.assert_array_equal(np.sort(labels), np.arange(1000))
        assert (np.array_equal(labels, np.arange(1000))) == isinstance(order, ps.Sequential)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "other", [{"threads": 1}, {"threads": 4}, {"device_memory": "64MiB"}, {"block_bytes": 4096}, {"held": 5}]
)
def test_the_order_is_the_same_whatever_the_transport(make, labels_of, order, other):
    one, two = make(order=order), make(order=order, **other)
    for epoch in (0, 1):
        np.testing.assert_array_equal(labels_of(one.epoch(epoch)), labels_of(two.epoch(epoch)))


def test_the_order_does_not_depend_on_the_batch_size(make, labels_of):
    order = ps.Shuffled(seed=3)
    np.testing.assert_array_equal(labels_of(make(17, order=order).epoch(2)), labels_of(make(500, order=order).epoch(2)))


def test_seeds_and_epochs_have_orders_of_their_own(make, labels_of):
    loader = make(order=ps.Shuffled(seed=1))
    zero, one = labels_of(loader.epoch(0)), labels_of(loader.epoch(1))
    other = labels_of(make(order=ps.Shuffled(seed=2)).epoch(0))
    assert not np.array_equal(zero, one)
    assert not np.array_equal(zero, other)
    np.testing.assert_array_equal(labels_of(loader.epoch(0)), zero)


@pytest.mark.parametrize("order", ORDERS)
def test_epochs_may_come_in_any_sequence(make, labels_of, order):
    expected = [labels_of(make(order=order).epoch(epoch)) for epoch in range(3)]
    loader = make(order=order)
    for epoch in (2, 0, 1, 2, 2, 0):
        np.testing.assert_array_equal(labels_of(loader.epoch(epoch)), expected[epoch])


@pytest.mark.parametrize("last, sizes", [("keep", [400, 400, 200]), ("drop", [400, 400]), ("pad", [400] * 3)])
def test_the_last_batch(make, last, sizes):
    loader = make(400, last=last)
    assert len(loader) == len(loader.epoch(0)) == len(sizes)
    masks = []
    for batch, size in zip(loader.epoch(0), sizes):
        assert batch.rows == len(batch) == len(batch.numpy("label")) == size
        assert len(batch.row_ids()) == batch.valid_rows
        masks.append(None if batch.mask is None else batch.mask.numpy().sum())
    assert masks == ([400, 400, 200] if last == "pad" else [None] * len(sizes))


@pytest.mark.parametrize("order", ORDERS)
def test_ranks_share_an_epoch(make, labels_of, order):
    loaders = [make(order=order, last="pad", rank=rank, world_size=3) for rank in range(3)]
    assert len({len(loader) for loader in loaders}) == 1
    seen = [batch.row_ids() for loader in loaders for batch in loader.epoch(1)]
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(1000))


def test_ranks_need_batches_of_the_same_number(make):
    with pytest.raises(ValueError, match="padded or dropped"):
        make(rank=0, world_size=2)
    with pytest.raises(TypeError, match="together"):
        make(rank=0)


def test_weights_decide_how_often_a_row_comes(make, source, labels_of):
    weights = np.zeros(1000)
    weights[[7, 900]] = 1, 3
    found = labels_of(make(of=source, order=ps.Weighted(weights, seed=1, rows=4000)).epoch(0))
    assert len(found) == 4000 and set(found) == {7, 900}
    assert 2800 < (found == 900).sum() < 3200  # 3000, give or take 27 (one standard deviation)
    by_field = labels_of(make(of=source, order=ps.Weighted("label", seed=1)).epoch(0))
    assert len(by_field) == 1000 and 0 not in by_field
    with pytest.raises(ValueError, match="one number for each row"):
        make(order=ps.Weighted([[1.0]]))
    with pytest.raises(ValueError):
        make(order=ps.Weighted([1.0, 2.0]))


def test_balanced_classes_come_equally_often(make, tmp_path, source):
    import h5py

    labels = np.zeros(1000, np.int64)
    labels[:10], labels[10:13] = 1, 2
    with h5py.File(tmp_path / "classes.h5", "w") as f:
        f["v"] = labels
    loader = make(100, of=ps.Source(label=f"{tmp_path}/classes.h5:/v"), order=ps.Balanced(seed=2, rows=3000))
    found = np.concatenate([batch.numpy("label").copy() for batch in loader.epoch(0)])
    assert np.bincount(found).tolist() == [1000] * 3


@pytest.mark.parametrize("order", [ps.Sequential(), ps.Shuffled(seed=7), ps.Random(seed=7)])
def test_steps_are_the_same_for_every_number_of_ranks(make, order):
    def steps(world_size):
        size = 48 // world_size
        ranks = [make(size, order=order, last="pad", rank=r, world_size=world_size, shards=4) for r in range(world_size)]
        return [sorted(row for batch in step for row in batch.row_ids()) for step in zip(*(l.epoch(1) for l in ranks))]

    assert steps(1) == steps(2) == steps(4)
    with pytest.raises(ValueError, match="shards|divide"):
        make(last="pad", rank=0, world_size=3, shards=4)


def test_a_progress_bar_knows_how_many_batches_come(make):
    tqdm = pytest.importorskip("tqdm", reason="tqdm is not installed")
    shown = io.StringIO()
    bar = tqdm.tqdm(make().epoch(0), file=shown)
    assert bar.total == 16
    assert sum(batch.rows for batch in bar) == 1000
    assert "16/16" in shown.getvalue()
