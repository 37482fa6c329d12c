"""Functions of the user's on blocks of rows."""

import ctypes
import gc
import inspect
import os
import sys
import threading
import time
import weakref

import h5py
import numpy as np
import pytest

import penstock as ps
from penstock import _run


def test_a_function_changes_a_field_in_place(make, source, labels_of):
    loader = make(of=source.map(lambda block: {"label": block["label"] * 2 + 1}, fields=["label"]))
    np.testing.assert_array_equal(labels_of(loader.epoch(0)), np.arange(1000) * 2 + 1)


def test_names_of_fields_may_be_any_iterable(make, source):
    seen = []
    loader = make(of=source.map(lambda block: seen.append(block.fields), fields=(name for name in ("label", "x"))))
    next(loader.epoch(0))
    assert set(seen) == {("x", "label")}


def test_a_function_declares_what_it_puts_out(make, source, small):
    def flatten(block):
        return {"image": block["image"].reshape(len(block), 12) / np.float32(255), "ids": block.row_ids.astype(np.int64)}

    mapped = source.map(flatten, fields=["image"], outputs={"image": (np.float32, [12]), "ids": ("int64", [])})
    loader = make(of=mapped, order=ps.Shuffled(seed=4))
    assert loader.fields["image"] == ("float32", (12,)) and loader.fields["ids"] == ("int64", ())
    images = (np.arange(12000) % 251).reshape(1000, 12)
    for batch in loader.epoch(0):
        ids = batch.row_ids()
        np.testing.assert_array_equal(batch.numpy("ids"), ids)
        np.testing.assert_allclose(batch.numpy("image"), images[ids] / 255, rtol=1e-6)
        np.testing.assert_array_equal(batch.numpy("label"), ids)


def test_functions_are_chained_and_then_types_converted(make, source, labels_of):
    mapped = source.astype(label="float32").map(lambda b: {"label": b["label"] + 1}, name="one").map(
        lambda b: {"label": b["label"] * 10}, name="ten"
    )
    found = labels_of(make(of=mapped).epoch(0))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, (np.arange(1000) + 1) * 10)
    assert repr(mapped).endswith("mapped by one, mapped by ten)")


def test_random_numbers_of_row_and_epoch_do_not_depend_on_the_transport(make, source, labels_of):
    def noise(block):
        draws = [np.random.default_rng((block.seed, block.epoch, int(row))).integers(1000) for row in block.row_ids]
        return {"label": np.array(draws)}

    mapped = source.map(noise, fields=["label"])
    order = ps.Shuffled(seed=9)
    one = make(of=mapped, order=order, block_bytes=4096, threads=1)
    two = make(of=mapped, order=order, threads=4)
    for epoch in (0, 1):
        np.testing.assert_array_equal(labels_of(one.epoch(epoch)), labels_of(two.epoch(epoch)))


@pytest.mark.parametrize("order", [ps.Sequential(), ps.Shuffled(seed=9)])
def test_a_function_is_told_the_epoch_of_the_loop(make, source, labels_of, order):
    loader = make(of=source.map(lambda block: {"label": np.full(len(block), block.epoch)}, fields=["label"]), order=order)
    for epoch in (0, 0, 5, 3, 0):
        assert set(labels_of(loader.epoch(epoch))) == {epoch}
    next(loader.epoch(3))
    loader.load_state_dict({**loader.state_dict(), "epoch": 7})
    assert set(labels_of(loader.epoch(7))) == {7}


@pytest.mark.parametrize(
    "use", [lambda l: l.close(), lambda l: next(l.epoch(0)), lambda l: l.report(), lambda l: l.load_state_dict(l.state_dict())]
)
def test_a_function_that_would_wait_for_itself_is_refused(make, source, use):
    loader = make(of=source.map(lambda block: use(loader), name="mine"))
    with pytest.raises(ps.PipelineError, match="mine failed.*used the loader that calls it"):
        next(loader.epoch(0))


def test_a_function_may_ask_its_loader_and_use_others(make, source, labels_of):
    def ask(block):
        assert loader.plan() and loader.state_dict()["epoch"] == 0
        return {"label": block["label"] + next(make(of=source).epoch(0)).numpy("label")[1]}

    loader = make(of=source.map(ask, fields=["label"]))
    np.testing.assert_array_equal(labels_of(loader.epoch(0)), np.arange(1, 1001))


def test_a_loader_may_be_collected_in_its_own_function(source):
    dropped, collected = threading.Event(), threading.Event()

    def collect(block):
        if block.row_ids[0] > 0:  # the first batch is there
            dropped.wait()
            gc.collect()
            collected.set()

    gc.disable()
    try:
        memory = {"device_memory": "8MiB", "pinned_memory": "4MiB"}
        loader = ps.Loader(source.map(collect, fields=[]), 10, device="host", threads=1, block_bytes=4096, **memory)
        loop = loader.epoch(0)
        next(loop)
        loader.cycle, gone = [loader, loop], weakref.ref(loader)
        del loader, loop
        dropped.set()
        assert collected.wait(60)
        assert gone() is None
    finally:
        gc.enable()


def test_a_function_may_look_only(make, source, labels_of):
    seen = []
    loader = make(of=source.map(lambda block: seen.append((block.fields, len(block)))))
    np.testing.assert_array_equal(labels_of(loader.epoch(0)), np.arange(1000))
    assert seen[0][0] == ("x", "image", "label") and sum(rows for _, rows in seen) >= 1000


def test_what_a_function_keeps_stays_as_it_is(make, source):
    kept = []
    with make(of=source.map(lambda block: kept.append((block.row_ids, block["label"])), fields=["label"])) as loader:
        for _ in loader.epoch(0):
            pass
    gc.collect()
    for ids, label in kept:
        np.testing.assert_array_equal(ids, label)


def test_what_a_function_raises_is_the_cause(make, source):
    def fails(block):
        if 500 in block.row_ids:
            raise ZeroDivisionError("at 500")
        return None

    loader = make(of=source.map(fails, name="augment"))
    with pytest.raises(ps.PipelineError, match="ZeroDivisionError: at 500") as caught:
        for _ in loader.epoch(0):
            pass
    assert caught.value.stage == "augment" and isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(ps.PipelineError):  # again, and no hang
        list(loader.epoch(0))


@pytest.mark.parametrize(
    "made, sentence",
    [
        ({"label": np.zeros(3, np.int64)}, "'label' is int64"),
        ({"label": np.zeros(1000, np.float64)}, "float64"),
        ({"other": np.zeros(1000)}, "which is no field"),
        (7, "returns a dict"),
    ],
)
def test_values_that_do_not_fit_are_refused(make, source, made, sentence):
    with pytest.raises(ps.PipelineError, match=sentence):
        list(make(of=source.map(lambda block: made)).epoch(0))


def test_an_output_becomes_bfloat16_as_advised(make, source):
    mapped = source.map(lambda block: {"label": block["label"].astype("f4")}, outputs={"label": ("float32", ())})
    assert make(of=mapped.astype(label="bfloat16")).fields["label"] == ("bfloat16", ())


@pytest.mark.parametrize("stored", ["int8", "uint16", "float64"])
def test_an_output_is_converted_as_its_own_type_whatever_the_stored_one(make, tmp_path, stored):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.arange(100).astype(stored)
    halved = ps.Source(v=f"{tmp_path}/a.h5:/v").map(
        lambda block: {"v": block["v"].astype("f4") / np.float32(2)}, outputs={"v": ("float32", ())}
    )
    np.testing.assert_array_equal(next(make(of=halved.scaled(v=(10, 1))).epoch(0)).numpy("v"), np.arange(64) * 5 + 1)
    counted = ps.Source(v=f"{tmp_path}/a.h5:/v").map(
        lambda block: {"v": block["v"].astype("u1")}, outputs={"v": ("uint8", ())}
    )
    found = next(make(of=counted.astype(v="float64")).epoch(0)).numpy("v")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.arange(64))


def test_an_output_that_is_not_returned_is_named(make, source):
    with pytest.raises(ps.PipelineError, match="declares the output 'y', and returned nothing"):
        list(make(of=source.map(lambda block: {}, outputs={"y": ("int8", ())})).epoch(0))


def test_wrong_arguments_are_refused(make, source):
    with pytest.raises(TypeError, match="a function of a block"):
        source.map(3)
    with pytest.raises(ValueError, match="no field 'y'"):
        source.map(len, fields=["y"])
    with pytest.raises(ValueError, match="threads"):
        source.map(len, threads=0)
    with pytest.raises(TypeError, match=r"fields of map\(\) are a sequence of names, as \['label'\], not 'label'"):
        source.map(len, fields="label")
    with pytest.raises(TypeError, match="one of fields of map"):
        source.map(len, fields=[3])
    for outputs in ("y", {"y"}, ["y"]):
        with pytest.raises(TypeError, match=r"outputs of map\(\) are \{name: \(type, row shape\)\}"):
            source.map(len, outputs=outputs)
    with pytest.raises(TypeError, match="the name of an output is a text, not 3"):
        source.map(len, outputs={3: ("float32", ())})
    with pytest.raises(TypeError, match=r"name of map\(\) is a text, not 3"):
        source.map(len, name=3)
    for name in ("bfloat16", type("Type", (), {"__str__": lambda self: "torch.bfloat16"})()):
        with pytest.raises(ValueError, match="no bfloat16, which the output 'y' is declared as; declare it float32"):
            source.map(len, outputs={"y": (name, ())})
    with pytest.raises(ValueError, match="float31"):
        make(of=source.map(len, outputs={"y": ("float31", ())}))


def test_a_closed_loader_lets_go_of_its_functions(make, source):
    class Function:
        def __call__(self, block):
            return None

    function = Function()
    alive = weakref.ref(function)
    loader = make(of=source.map(function))
    next(loader.epoch(0))
    loader.close()
    del function, loader
    source = make = None
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("order", [ps.Sequential(), ps.Shuffled(seed=9), ps.Random(seed=9)])
@pytest.mark.parametrize("batch_size", [64, 1000])
def test_an_epoch_that_nobody_asked_for_ends_no_loop(make, source, labels_of, order, batch_size):
    factors = [1, 10]

    def scale(block):  # knows two epochs, and blocks of the third are read ahead
        return {"label": block["label"] * factors[block.epoch]}

    loader = make(batch_size, of=source.map(scale, fields=["label"]).map(lambda block: None), order=order)
    for epoch, factor in enumerate(factors):
        assert sorted(labels_of(loader.epoch(epoch))) == list(range(0, 1000 * factor, factor))
    for _ in range(2):
        with pytest.raises(ps.PipelineError, match="scale failed at rows .* of epoch 2.*: IndexError") as caught:
            next(loader.epoch(2))
        assert (caught.value.stage, caught.value.epoch) == ("scale", 2)
        assert isinstance(caught.value.__cause__, IndexError)
    assert sorted(labels_of(loader.epoch(0))) == list(range(1000))
    factors.append(100)
    loader.close()
    assert sorted(labels_of(make(of=source.map(scale, fields=["label"]), order=order).epoch(2))) == list(range(0, 100000, 100))


def test_what_failed_ahead_does_not_spoil_another_run(make, source, labels_of):
    failing = [1]

    def fails(block):
        if block.epoch in failing:
            raise ValueError("not yet")

    loader = make(of=source.map(fails, fields=[]), order=ps.Shuffled(seed=9))
    expected = labels_of(make(order=ps.Shuffled(seed=9)).epoch(1))
    for batch in loader.epoch(0):
        kept = batch.numpy("label")
    with pytest.raises(ps.PipelineError, match="still held"):
        next(loader.epoch(5))  # cannot begin: the run before goes on
    with pytest.raises(ps.PipelineError, match="not yet"):
        next(loader.epoch(1))
    del kept
    failing.clear()
    np.testing.assert_array_equal(labels_of(loader.epoch(1)), expected)


def wait_until_a_run_begins(is_done):
    """Returns while the main thread is in the extension, without the GIL; at once where that was done."""
    code, (text, first) = _run._patiently.__code__, inspect.getsourcelines(_run._patiently)
    calls = [first + i for i, line in enumerate(text) if "return call(" in line]
    while not is_done():
        frame = sys._current_frames()[threading.main_thread().ident]
        if frame.f_code is code and frame.f_lineno in calls:
            return
        del frame
        time.sleep(0)


def refused_until(raised, loader, epoch):
    """Loops that cannot begin, one after another, until a function has raised beside them."""
    gc.freeze()  # each of them collects garbage, for most of its time
    while not raised.is_set():
        with pytest.raises(ps.PipelineError, match="still held"):
            next(loader.epoch(epoch))
    gc.unfreeze()


def test_a_loop_that_cannot_begin_ends_none(make, source, labels_of):
    reached, go, raised = threading.Event(), threading.Event(), threading.Event()

    def fails(block):
        if block.epoch == 1:
            reached.set()
            go.wait()
            wait_until_a_run_begins(raised.is_set)
            raised.set()
            raise ValueError("too early")

    loader = make(of=source.map(fails, fields=[], threads=2))
    loop = loader.epoch(0)
    held = next(loop).numpy("label")
    assert reached.wait(60)
    go.set()
    refused_until(raised, loader, 5)
    del held
    np.testing.assert_array_equal(labels_of(loop), np.arange(64, 1000))
    with pytest.raises(ps.PipelineError, match="of epoch 1: ValueError: too early"):
        next(loader.epoch(1))


def test_what_fails_beside_a_loop_that_cannot_begin_hides_no_earlier_failure(make, source, labels_of):
    reached, go, raised = threading.Event(), threading.Event(), threading.Event()

    def fails(block):
        if block.epoch == 1 and 999 in block.row_ids:
            reached.wait()
            raise ValueError("the first")
        if block.epoch == 2:
            reached.set()
            go.wait()
            wait_until_a_run_begins(raised.is_set)
            raised.set()
            raise ValueError("the second")
        return {"label": block["label"] + 1}

    loader = make(of=source.map(fails, fields=["label"], threads=3))
    loop = loader.epoch(0)
    held = next(loop).numpy("label")
    assert reached.wait(60)
    go.set()
    refused_until(raised, loader, 0)
    del held
    np.testing.assert_array_equal(labels_of(loop), np.arange(65, 1001))
    with pytest.raises(ps.PipelineError, match="of epoch 1.*: ValueError: the first"):  # kept, or of just now
        labels_of(loader.epoch(1))


def test_what_fails_while_a_run_is_replaced_is_not_the_next_one_s(make, source, labels_of):
    reached, go, failures = threading.Event(), threading.Event(), []

    class Early(Exception):
        pass

    def fails_once(block):
        if block.epoch == 1 and not failures:
            reached.set()
            go.wait()
            wait_until_a_run_begins(lambda: failures)
            error = Early()
            failures.append(weakref.ref(error))
            raise error

    loader = make(of=source.map(fails_once, fields=[], threads=2))
    next(loader.epoch(0))
    assert reached.wait(60)
    go.set()
    for epoch in (0, 1):
        np.testing.assert_array_equal(labels_of(loader.epoch(epoch)), np.arange(1000))
    gc.collect()
    assert [alive() for alive in failures] == [None]


def test_values_that_cannot_be_taken_ahead_end_no_loop(make, source, labels_of):
    def shrinks(block):
        values = np.arange(len(block))

        class Late:
            def __array__(self, dtype=None, copy=None):
                if block.epoch == 1:
                    values.resize(1, refcheck=False)  # it was looked at before
                return np.zeros((len(block), 5), np.float32)

        return {"label": values, "x": Late()}

    loader = make(of=source.map(shrinks, fields=[], name="shrinks"))
    assert len(labels_of(loader.epoch(0))) == 1000
    with pytest.raises(ps.PipelineError, match="shrinks failed at .* of epoch 1.*'label' has another size"):
        next(loader.epoch(1))


class Trainer:
    """Has a loader whose function is a method of its own."""

    def __init__(self, source, fails_at=None, **options):
        self.fails_at = fails_at
        memory = {"device_memory": "8MiB", "pinned_memory": "4MiB"}
        self.loader = ps.Loader(source.map(self.augment, fields=["label"]), 64, device="host", **memory, **options)

    def augment(self, block):
        if block.epoch == self.fails_at:
            raise ValueError("now")
        return {"label": block["label"] + 1}


def penstock_s_threads():
    found = set()
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as name:
                found |= {task} if name.read().startswith("penstock-") else set()
        except OSError:  # it has ended
            pass
    return found


def wait_until(is_so):
    end = time.monotonic() + 60
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
    assert is_so()


@pytest.mark.parametrize("fails_at", [None, 0, 1])
def test_a_loader_whose_function_refers_to_it_is_collected(source, fails_at):
    gc.collect()
    gc.disable()
    try:
        before, gone = penstock_s_threads(), []
        for _ in range(3):
            trainer = Trainer(source, fails_at)
            try:
                for batch in trainer.loader.epoch(0):
                    pass
            except ps.PipelineError:
                assert fails_at == 0
            gone += [weakref.ref(trainer), weakref.ref(trainer.loader)]
            batch = None
            del trainer
        assert None not in [alive() for alive in gone]  # rings, which only the collector opens
        assert len(penstock_s_threads() - before) >= 3
        # A function that is called while the collector is at work keeps its loader until the next time.
        wait_until(lambda: gc.collect() is not None and [alive() for alive in gone] == [None] * 6)
        wait_until(lambda: not penstock_s_threads() - before)
    finally:
        gc.enable()


def test_loaders_are_collected_while_their_functions_are_called(source):
    for _ in range(10):
        trainer = Trainer(source, block_bytes=4096, threads=2)
        next(trainer.loader.epoch(0))  # blocks are read ahead meanwhile
        alive = weakref.ref(trainer)
        del trainer
        wait_until(lambda: gc.collect() is not None and alive() is None)  # a function that runs holds it


def test_what_the_collector_has_cleared_gives_no_rows(make, source):
    class Function:
        def __call__(self, block):
            return None

    function = Function()
    alive = weakref.ref(function)
    loader = make(of=source.map(function))
    loop = loader.epoch(0)
    next(loop)
    slot_of = ctypes.pythonapi.PyType_GetSlot
    slot_of.restype, slot_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    core = loader._run.core
    clear = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(slot_of(type(core), 51))  # Py_tp_clear of typeslots.h
    assert clear(core) == 0
    del function, source
    gc.collect()
    assert alive() is None
    for use in (lambda: next(loop), lambda: next(loader.epoch(1)), loader.state_dict):
        with pytest.raises(ps.ClosedError):
            use()


class Unsaid(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Torn(Exception):
    def __str__(self):
        return 7


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ValueError("a file\udce9"), r"ValueError: a file\\udce9$"),
        (ValueError("one\0two"), r"ValueError: one\\x00two$"),
        (ValueError(), ": ValueError$"),
        (Unsaid(), ": Unsaid$"),
        (Torn(), ": Torn$"),
    ],
)
def test_an_exception_that_cannot_be_written_is_the_cause_all_the_same(make, source, error, sentence):
    def fails(block):
        raise error

    with pytest.raises(ps.PipelineError, match=sentence) as caught:
        next(make(of=source.map(fails)).epoch(0))
    assert caught.value.__cause__ is error
