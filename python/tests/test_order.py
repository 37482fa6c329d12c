"""The order of rows depends on source, seed, epoch and position alone; a loop goes on where it was left."""

import io
import json

import h5py
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


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("stop_after", [1, 7, 16])
def test_a_resumed_loop_sees_the_rows_that_were_left(make, labels_of, order, stop_after):
    loader = make(order=order)  # 16 batches an epoch
    whole = [labels_of(loader.epoch(epoch)) for epoch in range(3)]
    stopped = make(order=order)
    seen = [labels_of(stopped.epoch(0))]
    for number, batch in enumerate(stopped.epoch(1), 1):
        seen.append(batch.numpy("label").copy())
        if number == stop_after:
            state = json.loads(json.dumps(stopped.state_dict()))
            break
    resumed = make(order=order)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    assert resumed.next_epoch == (2 if stop_after == 16 else 1)
    for epoch in range(resumed.next_epoch, 3):
        seen.append(labels_of(resumed.epoch(epoch)))
    np.testing.assert_array_equal(np.concatenate(seen), np.concatenate(whole))


def test_the_state_says_what_comes_next(make):
    loader = make()
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (0, 0)
    loop = loader.epoch(4)
    next(loop), next(loop)
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (4, 2)
    for _ in loop:
        pass
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (5, 0)


def test_a_state_of_other_rows_is_refused_by_name(make, source):
    state = make(order=ps.Shuffled(seed=1)).state_dict()
    with pytest.raises(ValueError, match="order.*seed 1.*seed 2"):
        make(order=ps.Shuffled(seed=2)).load_state_dict(state)
    with pytest.raises(ValueError, match="batch_rows is 64.*65"):
        make(65, order=ps.Shuffled(seed=1)).load_state_dict(state)
    with pytest.raises(ValueError, match="10 of 1000 rows take part"):
        make(of=source.select(slice(0, 10)), order=ps.Shuffled(seed=1)).load_state_dict(state)
    with pytest.raises(ValueError, match="not the state of a loader"):
        make().load_state_dict({})


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
    for of in (masked, ps.mixed([source, masked])):
        for use in (lambda of: make(of=of), lambda of: ps.price(of, ps.Sequential())):
            with pytest.raises(ValueError, match=f"a mask of {told} rows, and the source has 1000"):
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


def test_a_state_that_is_loaded_ends_the_loop_in_progress(make, labels_of):
    loader = make(order=ps.Shuffled(seed=1))
    whole = labels_of(loader.epoch(0))
    loop = loader.epoch(0)
    next(loop)
    state = loader.state_dict()
    next(loop), next(loop)
    loader.load_state_dict(state)
    with pytest.raises(ps.PipelineError, match="the loop over epoch 0 ended when .* a state was loaded"):
        next(loop)
    np.testing.assert_array_equal(labels_of(loader.epoch(0)), whole[64:])


def test_another_epoch_comes_before_the_saved_one(make, labels_of):
    loader = make(order=ps.Shuffled(seed=1))
    whole = [labels_of(loader.epoch(epoch)) for epoch in range(3)]
    loop = loader.epoch(2)
    next(loop), next(loop)
    loader.load_state_dict(loader.state_dict())
    np.testing.assert_array_equal(labels_of(loader.epoch(1)), whole[1])
    np.testing.assert_array_equal(labels_of(loader.epoch(2)), whole[2][128:])
    np.testing.assert_array_equal(labels_of(loader.epoch(2)), whole[2])


def test_a_state_past_the_end_of_an_epoch_is_refused(make):
    loader = make()
    with pytest.raises(ValueError, match="batch 17 of epoch 0, where no run comes: an epoch has 16 batches"):
        loader.load_state_dict({**loader.state_dict(), "batch": 17})


def test_a_state_at_the_end_of_an_epoch_is_the_beginning_of_the_next_one(make, source, labels_of):
    loader, other = (make(order=ps.Shuffled(seed=1)) for _ in range(2))
    loader.load_state_dict({**loader.state_dict(), "batch": 16})  # as C++ writes it after the last batch
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"], loader.next_epoch) == (1, 0, 1)
    np.testing.assert_array_equal(labels_of(loader), labels_of(other.epoch(1)))
    empty = make(of=source.select([]))
    state = empty.state_dict()
    empty.load_state_dict(state)
    assert empty.state_dict() == state


def test_loops_over_the_loader_itself_are_one_epoch_after_another(make, labels_of):
    loader, other = (make(order=ps.Shuffled(seed=1)) for _ in range(2))
    for epoch in (0, 1):
        np.testing.assert_array_equal(labels_of(loader), labels_of(other.epoch(epoch)))
    assert next(iter(loader)).epoch == 2
    resumed = make(order=ps.Shuffled(seed=1))
    resumed.load_state_dict(loader.state_dict())
    assert [batch.index for batch in resumed] == list(range(1, 16))


def test_a_state_can_be_loaded_while_arrays_live(make, labels_of):
    loader = make(order=ps.Shuffled(seed=1))
    whole = labels_of(loader.epoch(0))
    loop = loader.epoch(0)
    next(loop)
    state = loader.state_dict()
    kept = next(loop).numpy("label")
    loader.load_state_dict(state)
    with pytest.raises(ps.PipelineError, match=r"still held.*delete those \(del x\)"):
        next(loader.epoch(0))
    np.testing.assert_array_equal(kept, whole[64:128])
    del kept
    np.testing.assert_array_equal(labels_of(loader.epoch(0)), whole[64:])


#: What penstock::pipeline::order says of 24 rows, in C++.
IN_CPP = {
    (ps.Shuffled(seed=7, run_rows=4, pool_rows=12), 0): "10 15 11 16 12 19 8 9 13 17 18 14 23 21 2 0 1 4 5 7 22 6 20 3",
    (ps.Shuffled(seed=7, run_rows=4, pool_rows=12), 5): "15 1 13 0 2 12 5 6 7 3 4 14 16 19 22 17 23 21 9 11 20 10 8 18",
    (ps.Random(seed=7), 0): "1 6 14 2 11 23 7 5 13 15 10 18 20 4 19 17 16 22 8 21 3 9 12 0",
    (ps.Random(seed=7), 5): "17 3 6 9 22 16 5 7 23 19 12 10 18 8 2 21 4 20 1 15 13 11 0 14",
}


@pytest.mark.parametrize(("order", "epoch"), list(IN_CPP))
def test_rows_come_as_in_cpp_and_a_resumed_loop_s_too(make, labels_of, tmp_path, order, epoch):
    expected = [int(row) for row in IN_CPP[order, epoch].split()]
    with h5py.File(tmp_path / "rows.h5", "w") as f:
        f["label"] = np.arange(24)
    rows = ps.Source(label=f"{tmp_path}/rows.h5:/label")
    loader = make(5, of=rows, order=order)
    first = next(loader.epoch(epoch)).numpy("label").tolist()
    resumed = make(5, of=rows, order=order)
    resumed.load_state_dict(loader.state_dict())
    assert first + labels_of(resumed.epoch(epoch)).tolist() == expected


#: What penstock::pipeline::pipeline::state() wrote of such a file in C++.
STATE_IN_CPP = (
    '{"batch":1,"batch_rows":5,"epoch":5,"fields":{"label":"57224ae9a65e3bf0"},"last_batch":"keep",'
    '"order":"shuffled: seed 7, runs of 4 rows, pool of 12 rows","penstock_state":1,"rows":24}'
)


def test_a_state_is_that_of_cpp_both_ways(make, labels_of, tmp_path):
    with h5py.File(tmp_path / "rows.h5", "w") as f:
        f["label"] = np.arange(24)
    order = ps.Shuffled(seed=7, run_rows=4, pool_rows=12)
    loader = make(5, of=ps.Source(label=f"{tmp_path}/rows.h5:/label"), order=order)
    next(loader.epoch(5))
    assert loader.state_dict() == json.loads(STATE_IN_CPP)
    loader.load_state_dict(json.loads(STATE_IN_CPP))
    assert labels_of(loader.epoch(5)).tolist() == [int(row) for row in IN_CPP[order, 5].split()[5:]]


def test_a_progress_bar_knows_how_many_batches_come(make):
    tqdm = pytest.importorskip("tqdm", reason="tqdm is not installed")
    shown = io.StringIO()
    bar = tqdm.tqdm(make().epoch(0), file=shown)
    assert bar.total == 16
    assert sum(batch.rows for batch in bar) == 1000
    assert "16/16" in shown.getvalue()
