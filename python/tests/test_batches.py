"""Batches are lent: what keeps them, and what is said when they are kept too long."""

import ctypes
import gc
import subprocess
import sys
import threading

import h5py
import numpy as np
import pytest

import penstock as ps


def test_a_batch_names_its_fields(make):
    batch = next(make().epoch(3))
    assert batch.fields == ("x", "image", "label")
    assert (batch.epoch, batch.index, batch.rows, batch.valid_rows) == (3, 0, 64, 64)
    image = batch["image"]
    assert (image.name, image.dtype, image.shape, image.device) == ("image", "uint8", (64, 3, 4), "cpu")
    assert image.__dlpack_device__() == (1, 0)
    assert set(dict(batch)) == set(batch) == {"x", "image", "label"}
    assert "x" in batch and "y" not in batch
    assert batch.stream is None  # on the host
    with pytest.raises(KeyError, match="'y'; it has x, image, label"):
        batch["y"]


def test_arrays_are_the_rows_themselves(make):
    batch = next(make().epoch(0))
    one, two = batch.numpy("x"), np.from_dlpack(batch["x"])
    assert one.ctypes.data == two.ctypes.data == np.asarray(batch["x"]).ctypes.data
    assert one.flags.c_contiguous
    assert np.array(batch["label"], dtype=np.float64).dtype == np.float64
    copy = batch["x"].__array__(copy=True)
    assert not np.shares_memory(copy, one) and np.shares_memory(batch["x"].__array__(), one)
    np.testing.assert_array_equal(copy, one)
    with pytest.raises(ValueError, match="'x' is float32; another type takes a copy"):
        batch["x"].__array__(np.float64, copy=False)


def test_an_array_outlives_the_loop_and_the_loader(make, small):
    loader = make()
    for batch in loader.epoch(0):
        kept = batch.numpy("label")
    loader.close()
    del batch, loader
    gc.collect()
    np.testing.assert_array_equal(kept, np.arange(960, 1000))


def test_one_array_may_be_held_beside_the_next(make):
    before = None
    for batch in make(held=1).epoch(0):
        label = batch.numpy("label")
        if before is not None:
            assert before[0] == label[0] - 64
        before = label


def test_no_array_may_be_held_where_none_is_planned(make):
    loader = make(held=0)
    assert loader.plan().as_dict()["held"] == 0
    loop = loader.epoch(0)
    kept = next(loop).numpy("x")
    with pytest.raises(ps.PipelineError, match="batch 0 of epoch 0 is still held, 1 batch"):
        next(loop)
    del kept
    assert sum(batch.rows for batch in loader.epoch(0)) == 1000


def test_arrays_that_are_held_too_long_are_an_error_that_says_so(make):
    loader = make(held=2)
    kept = []
    with pytest.raises(ps.PipelineError, match="batch 0 of epoch 0 is still held, 3 batches later") as caught:
        for batch in loader.epoch(0):
            kept.append(batch.numpy("x"))
    assert caught.value.stage == "consumer" and "larger `held`" in str(caught.value)
    assert len(kept) == 3
    del batch
    kept.clear()
    assert sum(batch.rows for batch in loader.epoch(0)) == 1000  # the loader is as good as before


def test_a_batch_that_is_held_too_long_is_named_by_its_own_epoch(make):
    loader = make(held=2)
    for epoch in (5, 0):
        for batch in loader.epoch(epoch):
            kept = batch.numpy("label")
    with pytest.raises(ps.PipelineError, match="batch 15 of epoch 0 is still held, 3 batches later") as caught:
        for batch in loader.epoch(9):
            pass
    assert caught.value.epoch == 0 and kept[-1] == 999


def test_the_last_batch_is_given_back_where_its_loop_ends(make):
    # A stream that read it may end with the loop.
    for batch in make().epoch(0):
        label = batch.numpy("label")
    with pytest.raises(ps.GivenBackError, match="field 'label' of batch 15 of epoch 0"):
        batch.numpy("label")
    assert label[-1] == 999


def test_arrays_in_cycles_are_collected_when_their_rows_are_needed(make):
    gc.disable()
    try:
        rows = 0
        for batch in make(held=1).epoch(0):
            cycle = [batch.numpy("x")]
            cycle.append(cycle)
            rows += batch.rows
        assert rows == 1000
    finally:
        gc.enable()


def test_epochs_follow_each_other_while_the_last_array_is_kept(make):
    loader = make(order=ps.Shuffled(seed=1))
    rows = 0
    for epoch in range(3):
        for batch in loader.epoch(epoch):
            label = batch.numpy("label")
            rows += len(label)
    assert rows == 3000


def test_a_sequential_epoch_can_be_repeated_while_the_last_array_is_kept(make):
    loader = make()
    for _ in range(3):
        for batch in loader.epoch(0):
            label = batch.numpy("label")
        assert batch.epoch == 0 and label[-1] == 999


def test_a_loop_cannot_begin_elsewhere_while_arrays_are_held(make):
    loader = make(order=ps.Shuffled(seed=1))
    kept = next(loader.epoch(0)).numpy("label")
    with pytest.raises(ps.PipelineError, match=r"still held.*deleted \(del x\)"):
        next(loader.epoch(5))
    del kept
    assert next(loader.epoch(5)).epoch == 5


def test_a_batch_is_given_back_when_its_loop_goes_on(make):
    loop = make().epoch(0)
    first = next(loop)
    label = first.numpy("label")
    next(loop)
    assert "given back" in repr(first)
    assert first.rows == 64
    with pytest.raises(ps.GivenBackError, match="^field 'label' of batch 0 of epoch 0 is asked for after the batch was given back, by release"):
        first.numpy("label")
    np.testing.assert_array_equal(label, np.arange(64))


def test_rows_are_poisoned_only_after_they_were_given_back(make):
    rows = 0
    for batch in make(poisoned=True).epoch(0):
        label = batch.numpy("label")
        batch.release()
        assert label[0] == rows  # the array holds them
        rows += len(label)


@pytest.mark.parametrize("poisoned", [False, True])
def test_rows_that_were_given_back_are_bytes_0xff_where_they_are_poisoned(make, poisoned):
    loader = make(poisoned=poisoned)
    for batch in loader.epoch(0):
        label = batch.numpy("label")
        address, size, last = label.ctypes.data, label.nbytes, label.copy()
        del label
    left = np.frombuffer(ctypes.string_at(address, size), last.dtype).copy()
    assert last[-1] == 999
    if poisoned:  # rows of later epochs, read ahead, may have taken the place since
        assert not (left == last).any()
    else:  # they return with those of the next epoch's first block
        np.testing.assert_array_equal(left, last)


def test_a_batch_can_be_given_back_early(make):
    batch = next(make().epoch(0))
    image = batch["image"]
    batch.release()
    for use, what in [
        (batch.row_ids, "the list of row numbers"),
        (lambda: batch.row_identities("x"), "the list of row identities"),
        (lambda: batch.stream, "the stream"),
        (lambda: batch.numpy("x"), "field 'x'"),
        (image.numpy, "field 'image'"),
        (image.__dlpack__, "field 'image'"),
    ]:
        with pytest.raises(ps.GivenBackError, match=f"^{what} of batch 0 of epoch 0 is asked for after the batch was given back"):
            use()
    loader = make(400, last="pad")
    *_, padded = loader.epoch(3)  # other rows' epochs have other numbers in C++
    mask = padded.mask
    padded.release()
    with pytest.raises(ps.GivenBackError, match="^the mask of batch 2 of epoch 3 is asked for"):
        mask.numpy()


@pytest.mark.parametrize("how", ["break", "with", "error", "end"])
def test_close_gives_back_the_batch_of_a_loop_that_was_left(make, how):
    loader = make(order=ps.Shuffled(seed=1))
    loop, taken = loader.epoch(0), []

    def leave():
        for batch in loop:
            taken.append((batch, batch.numpy("label").copy()))
            if how == "end" and batch.index + 1 < len(loader):
                continue
            if how == "error":
                raise RuntimeError
            break

    if how == "with":
        with loader:
            leave()
    else:
        try:
            leave()
        except RuntimeError:
            pass
        assert taken[-1][0].numpy("label").tolist() == taken[-1][1].tolist()
        loader.close()
    with pytest.raises(ps.GivenBackError, match=r"by release\(\) or close\(\)"):
        taken[-1][0].numpy("label")
    if how != "end":
        with pytest.raises(ps.ClosedError):
            next(loop)


LEFT = """
import sys, penstock as ps
def resident_mib():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20
loader = ps.Loader(ps.Source(x=sys.argv[1]), 64, device="host", order=ps.Shuffled(seed=1), device_memory="64MiB", pinned_memory="8MiB")
with loader:
    for batch in loader.epoch(0):
        if batch.index == len(loader) - 1:
            break
    used = resident_mib()
print(used - resident_mib(), batch)
"""


def test_a_loader_whose_loop_was_left_frees_its_memory(tmp_path):
    with h5py.File(tmp_path / "large.h5", "w") as f:
        f["x"] = np.ones((16384, 1024), np.float32)  # 64 MiB
    done = subprocess.run([sys.executable, "-c", LEFT, f"{tmp_path}/large.h5:/x"], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    freed, _, batch = done.stdout.partition(" ")
    assert int(freed) > 16 and "given back" in batch


def test_rows_are_identified_by_dataset_and_row(make, tmp_path):
    for name, rows in (("a", 3), ("b", 4)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as f:
            f["x"] = np.zeros(rows)
    loader = make(5, of=ps.Source(x=f"{tmp_path}/*.h5:/x"), last="pad")
    found = [batch.row_identities("x").tolist() for batch in loader.epoch(0)]
    assert found == [[[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]], [[1, 2], [1, 3]]]
    with pytest.raises(ValueError, match="field 'y', which the source does not have"):
        next(loader.epoch(1)).row_identities("y")


def test_a_stream_that_uses_rows_is_named(make):
    batch = next(make().epoch(0))
    with pytest.raises(TypeError, match="not None"):
        batch.used_on(None)
    batch.used_on(0)  # on the host there is nothing to wait for


def test_an_older_loop_ends_when_another_begins(make):
    loader = make()
    first, second = loader.epoch(0), loader.epoch(1)
    next(first), next(second)
    with pytest.raises(ps.PipelineError, match="the loop over epoch 0 ended"):
        next(first)
    assert next(second).index == 1


def test_capsules_follow_the_array_api(make):
    field = next(make().epoch(0))["x"]
    assert "dltensor_versioned" in repr(field.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(field.__dlpack__())
    with pytest.raises(BufferError, match="without a copy"):
        field.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="on cpu"):
        field.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="no stream"):
        field.__dlpack__(stream=1)


def test_a_capsule_that_nobody_takes_gives_its_rows_back(make):
    loader = make(held=0)
    for batch in loader.epoch(0):
        batch["x"].__dlpack__(), batch["label"].__dlpack__(max_version=(1, 0))
    assert loader.report().as_dict()["rows"] == 1000


def test_threads_that_share_a_loop_get_each_batch_once(make):
    loop, numbers, failures = make(10).epoch(0), [], []

    def work():
        try:
            for batch in loop:
                numbers.append(batch.index)
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(numbers) == list(range(100))


def test_a_loader_may_be_closed_while_another_thread_asks_about_it(make):
    answers = []

    def ask(loader):
        try:
            while True:
                answers.append((loader.state_dict()["batch"], loader.plan().as_dict()["rows"], loader.place_of("x", 7).row))
        except ps.ClosedError:
            answers.append(None)

    for _ in range(5):
        loader = make()
        asking = threading.Thread(target=ask, args=(loader,))
        asking.start()
        next(loader.epoch(0))
        loader.close()
        asking.join()
    assert answers.count(None) == 5 and set(answers) <= {None, (0, 1000, 7), (1, 1000, 7)}


def test_loaders_run_side_by_side(make, labels_of):
    loaders = [make(order=ps.Shuffled(seed=seed)) for seed in (1, 2)]
    expected = [labels_of(loader.epoch(0)) for loader in loaders]
    found = [None, None]

    def work(number):
        found[number] = labels_of(loaders[number].epoch(0))

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in (0, 1):
        np.testing.assert_array_equal(found[number], expected[number])


def test_a_batch_that_ctrl_c_lost_comes_again(make, labels_of):
    class Core:  # the handler runs when the extension has returned
        def __init__(self, of):
            self._of, self.interrupted = of, False

        def __getattr__(self, name):
            return getattr(self._of, name)

        def next(self, *at):
            lost = self._of.next(*at)
            if not self.interrupted:
                self.interrupted = True
                raise KeyboardInterrupt
            return lost

    for batch_size in (64, 1000):  # the second has one batch an epoch, and its number says little
        loader, other = (make(batch_size, order=ps.Shuffled(seed=1)) for _ in range(2))
        loader._run.core = Core(loader._run.core)
        loop = loader.epoch(3)
        with pytest.raises(KeyboardInterrupt):
            next(loop)
        np.testing.assert_array_equal(labels_of(loop), labels_of(other.epoch(3)))


def test_a_loop_that_has_ended_stays_so(make):
    loader = make()
    ended, other = loader.epoch(0), loader.epoch(1)
    assert sum(1 for _ in ended) == 16
    next(other)
    assert next(ended, None) is None and next(other).index == 1  # and ends no other one
    loader.load_state_dict(loader.state_dict())
    assert next(ended, None) is None and list(ended) == []
    with pytest.raises(ps.PipelineError, match="the loop over epoch 1 ended"):
        next(other)


@pytest.mark.parametrize("knows_epochs", [lambda s: s.map(lambda block: None), lambda s: ps.mixed([s])])
def test_epochs_of_sequential_follow_each_other_in_any_order_where_they_are_alike(make, source, knows_epochs):
    alike, told = make(), make(of=knows_epochs(source))
    for epoch in (0, 1, 0):
        for batch in alike.epoch(epoch):
            kept = batch.numpy("label")
    for epoch in (0, 1):
        for batch in told.epoch(epoch):
            kept = batch.numpy("label")
    with pytest.raises(ps.PipelineError, match="still held"):
        next(told.epoch(0))
    np.testing.assert_array_equal(kept, np.arange(960, 1000))
    del kept
    assert next(told.epoch(0)).rows == 64
