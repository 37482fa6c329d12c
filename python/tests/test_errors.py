"""What goes wrong reaches Python under a type that Python knows, with Penstock's sentence."""

import errno
import json
import os
import pickle
import signal
import threading

import h5py
import numpy as np
import pytest

import penstock as ps
from penstock import _core


def test_a_missing_file_is_an_os_error_that_names_it(tmp_path):
    with pytest.raises(OSError, match="nothing.h5") as caught:
        ps.Loader(ps.Source(x=f"{tmp_path}/nothing.h5:/x"), device="host")
    assert isinstance(caught.value, ps.DataError) and isinstance(caught.value, ps.PenstockError)
    sent = pickle.loads(pickle.dumps(caught.value))
    assert caught.value.errno == sent.errno == errno.ENOENT
    assert (str(sent), sent.file, sent.hdf5) == (str(caught.value), caught.value.file, caught.value.hdf5)
    with pytest.raises(ps.DataError, match="nothing.h5"):
        ps.inspect(tmp_path / "nothing.h5")


def test_a_missing_dataset_is_named_with_its_file(small):
    with pytest.raises(ps.DataError, match="small.h5:/imag: there is no such dataset") as caught:
        ps.Loader(ps.Source(x=f"{small}:/imag"), device="host")
    assert (caught.value.file, caught.value.dataset) == (str(small), "/imag")


def test_patterns_that_match_nothing_say_why(tmp_path, small):
    def refused(place):
        with pytest.raises(ps.DataError) as caught:
            ps.Loader(ps.Source(x=place), device="host")
        return str(caught.value), caught.value.errno

    none = f"{tmp_path}/none"
    sentence = f"there is no folder '{none}'; check the pattern '{none}/*.h5'"
    assert refused(f"{none}/*.h5:/x") == (sentence, errno.ENOENT)
    (tmp_path / "loop").symlink_to("loop")
    sentence = f"the folder '{tmp_path}/loop' of '{tmp_path}/loop/*.h5' cannot be listed: Too many levels of symbolic links"
    assert refused(f"{tmp_path}/loop/*.h5:/x") == (sentence, errno.ELOOP)
    sentence = f"no file matches '{tmp_path}/*.h6'; check the pattern and the folder"
    assert refused(f"{tmp_path}/*.h6:/x") == (sentence, None)


def test_what_is_no_hdf5_file_is_said(tmp_path):
    path = tmp_path / "text.h5"
    path.write_text("hello")
    with pytest.raises(ps.DataError, match="text.h5"):
        ps.inspect(path)


def test_a_broken_chunk_names_its_rows_and_stage(tmp_path):
    path = tmp_path / "broken.h5"
    with h5py.File(path, "w") as f:
        v = f.create_dataset("v", data=np.arange(1000), chunks=(100,), compression="gzip")
        broken = v.id.get_chunk_info(5)
    with open(path, "r+b") as raw:
        raw.seek(broken.byte_offset)
        raw.write(bytes(broken.size))
    with ps.Loader(ps.Source(v=f"{path}:/v"), 50, device="host") as loader:
        with pytest.raises(ps.DataError, match="broken.h5") as caught:
            for batch in loader.epoch(0):
                np.testing.assert_array_equal(batch.numpy("v"), batch.row_ids())
        assert caught.value.stage == "read" and "rows" in str(caught.value)
        assert caught.value.epoch == 0  # the file is one block, which is read for the next epoch, too
        with pytest.raises(ps.DataError):  # again, and no hang
            list(loader.epoch(0))


def test_a_row_that_only_the_next_epoch_has_ends_that_alone(make, tmp_path):
    path = tmp_path / "later.h5"
    with h5py.File(path, "w") as f:
        v = f.create_dataset("v", data=np.arange(1000), chunks=(1,), compression="gzip")
        chunks = [v.id.get_chunk_info(row) for row in range(1000)]
    how = {"of": ps.Source(v=f"{path}:/v"), "order": ps.Weighted(np.ones(1000), seed=1, rows=100)}
    first, second = ([int(row) for batch in make(10, **how).epoch(epoch) for row in batch.row_ids()] for epoch in (0, 1))
    broken = chunks[next(row for row in second if row not in first)]
    with open(path, "r+b") as raw:
        raw.seek(broken.byte_offset)
        raw.write(bytes(broken.size))
    for _ in range(10):  # it is read while the first epoch goes on, before or after its last batch
        with make(10, **how) as loader:
            assert [int(row) for batch in loader.epoch(0) for row in batch.numpy("v")] == first
            with pytest.raises(ps.DataError, match="of epoch 1: .*later.h5:/v") as caught:
                list(loader.epoch(1))
            assert caught.value.epoch == 1
            assert len(list(loader.epoch(0))) == 10


def test_a_loop_that_cannot_begin_names_its_epoch(make):
    loader = make()
    kept = next(loader.epoch(0)).numpy("label")
    with pytest.raises(ps.PipelineError, match="still held") as caught:
        next(loader.epoch(5))
    assert (caught.value.stage, caught.value.epoch) == ("consumer", 5)
    del kept


def test_an_error_names_the_epoch_that_was_asked_for(make, tmp_path):
    path = tmp_path / "later.h5"
    with h5py.File(path, "w") as f:
        v = f.create_dataset("v", data=np.arange(2048 * 1024).reshape(2048, 1024), chunks=(64, 1024), compression="gzip")
        last = v.id.get_chunk_info(31)
    loader = make(of=ps.Source(v=f"{path}:/v"), device_memory="2MiB", pinned_memory="2MiB")  # of 16 MiB
    for _ in range(2):
        assert sum(batch.rows for batch in loader.epoch(5)) == 2048
    with open(path, "r+b") as raw:  # not read yet by the run that is ahead
        raw.seek(last.byte_offset)
        raw.write(bytes(last.size))
    with pytest.raises(ps.DataError, match=r"^read failed at rows .* of epoch 5: .*later\.h5") as caught:
        list(loader.epoch(5))
    assert (caught.value.epoch, caught.value.stage) == (5, "read")


def test_a_budget_that_is_too_small_says_what_would_do(make, source):
    with pytest.raises(MemoryError, match="pipeline: ring of") as caught:
        make(512, device_memory="16KiB")
    assert isinstance(caught.value, ps.BudgetError)
    assert caught.value.limits["device_memory"] == 16384
    assert "of 3.00 MiB" in str(make(pinned_memory="3MiB").plan())  # the host pins nothing; what it may is in the ledger
    smallest = caught.value.smallest
    make(512, **smallest)
    with pytest.raises(ps.BudgetError):
        make(512, **{**smallest, "device_memory": smallest["device_memory"] - 1})


def test_fields_of_different_length_are_refused_with_both_counts(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["a"], f["b"] = np.arange(10), np.arange(11)
    with pytest.raises(ps.DataError, match="'a' has 10 rows.*'b' has 11"):
        ps.Loader(ps.Source(a=f"{tmp_path}/a.h5:/a", b=f"{tmp_path}/a.h5:/b"), device="host")


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"last": "some"}, "'keep', 'drop' or 'pad', not 'some'"),
        ({"batch_size": 0}, "batch_size is at least 1, not 0"),
        ({"device_memory": "lots"}, "lots"),
        ({"device_memory": -1}, "device_memory is at least 0"),
        ({"device": "tpu"}, "tpu"),
        ({"order": ps.Shuffled(run_rows=64, pool_rows=8)}, "pool"),
    ],
)
def test_wrong_arguments_are_value_errors(make, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**options)


@pytest.mark.parametrize(
    "use, error, sentence",
    [
        (lambda s: s.split(0.1, seed=-1), ValueError, "seed is at least 0, not -1"),
        (lambda s: s.split(0.1, seed=1.5), TypeError, "seed is a whole number, not 1.5"),
        (lambda s: s.split("x"), TypeError, "validation is a number, not 'x'"),
        (lambda s: s.where("label", 3), TypeError, "a function of a value, not 3"),
        (lambda s: s.select(slice(0, 2**65)), ValueError, "rows are selected"),
        (lambda s: s.select(slice(0.5, 2)), ValueError, "rows are selected"),
        (lambda s: s.scaled(x="a"), TypeError, "scale of 'x' is a number, not 'a'"),
        (lambda s: s.scaled(x=(1, float("nan"))), ValueError, "shift of 'x' is a finite number"),
        (lambda s: s.region(x={-1: slice(3)}), ValueError, "an axis of 'x' is at least 0"),
        (lambda s: s.region(x=[slice(3)]), TypeError, "a region of 'x'"),
        (lambda s: s.region(x={1: slice(-2, None)}), ValueError, "a part of an axis of 'x' goes from a first one"),
        (lambda s: s.rows_along(x=2**70), ValueError, "at most"),
        (lambda s: s.map(len, outputs={"y": "float32"}), TypeError, "the output 'y' is declared as"),
        (lambda s: s.map(len, outputs={"y": ("float32", [-1])}), ValueError, "an extent of 'y'"),
        (lambda s: ps.Loader(s, 2**70, device="host"), ValueError, "batch_size is at most"),
        (lambda s: ps.Loader(s, device_memory=1.5e9, device="host"), TypeError, "device_memory is a whole number"),
        (lambda s: ps.Loader(s, device="host").epoch(2**63), ValueError, "epoch is at most"),
        (lambda s: ps.Loader(s, device="host", stream=-1), ValueError, "stream is at least 0, not -1"),
        (lambda s: s.scaled(x=np.ones(5)), TypeError, "scale of 'x' is a number"),
        (lambda s: s.astype(x=bool), ValueError, "those of a file come as uint8"),
        (lambda s: ps.Loader(s, device="host").place_of("x", -1), ValueError, "row is at least 0"),
        (lambda s: ps.Loader(s, device="host").load_state_dict("abc"), ValueError, "what state_dict"),
        (lambda s: ps.Shuffled(seed=True), TypeError, "seed of Shuffled is a whole number"),
        (lambda s: ps.Balanced(3), TypeError, "field of Balanced"),
        (lambda s: ps.mixed([(s, "a")]), ValueError, "the ratio a"),
        (lambda s: ps.Source(x="a\0b:/x"), ValueError, "the file of field 'x' holds a zero byte"),
        (lambda s: ps.Source(x="a:/x\0y"), ValueError, "the dataset of field 'x' holds a zero byte"),
        (lambda s: ps.Source(x=("a\0b", "/x")), ValueError, "the file of field 'x' holds a zero byte"),
        (lambda s: ps.Source(x=(b"a\0b", "/x")), ValueError, "the file of field 'x' holds a zero byte"),
        (lambda s: ps.Source(x=[("a", "/x\0y")]), ValueError, "the dataset of field 'x' holds a zero byte"),
        (lambda s: ps.inspect("a\0b"), ValueError, "the file holds a zero byte"),
        (lambda s: ps.inspect(3), TypeError, "the file is a path, not 3"),
        (lambda s: ps.Loader(s, device="host").write_trace("a\0b"), ValueError, "the trace's file holds a zero byte"),
        (lambda s: ps.Source(x="a\ud800:/x"), ValueError, "characters that no file's name has"),
        (lambda s: ps.Source(**{"a\udce9": "a:/x"}), ValueError, "a field's name is a text of Unicode"),
        (lambda s: ps.Source(**{"a\0b": "a:/x"}), ValueError, "a field's name holds a zero byte"),
        (lambda s: s.map(len, name="\udce9"), ValueError, "name of map.* is a text of Unicode"),
        (lambda s: s.skip_damaged(mask="\udce9"), ValueError, "mask is a text of Unicode"),
        (lambda s: s.skip_damaged(mask=3), TypeError, "mask is a text, not 3"),
        (lambda s: s.astype(x="\udce9"), ValueError, "a type's name is a text of Unicode"),
        (lambda s: ps.Loader(s, device="\udce9"), ValueError, "device is a text of Unicode"),
        (lambda s: ps.Loader(s, device="host", last="\udce9"), ValueError, "last is a text of Unicode"),
        (lambda s: ps.Loader(s, device="host", last=3), TypeError, "last is a text, not 3"),
        (lambda s: ps.Loader(s, device="host", device_memory="\udce9"), ValueError, "device_memory is a text of Unicode"),
        (lambda s: ps.Loader(s, device="host").place_of(3, 0), TypeError, "field is a text, not 3"),
        (lambda s: next(ps.Loader(s, device="host").epoch(0)).row_identities(3), TypeError, "name is a text, not 3"),
        (lambda s: next(ps.Loader(s, device="host").epoch(0))["x"].__dlpack__(max_version=()), TypeError, "max_version is"),
        (lambda s: ps.price(s, ps.Sequential(), classes="\udce9"), ValueError, "classes is a text of Unicode"),
        (lambda s: ps.Balanced("\udce9"), ValueError, "field of Balanced is a text of Unicode"),
        (lambda s: ps.Loader(s, device="host", order=ps.Weighted("\udce9")), ValueError, "weights of Weighted is a text"),
        (lambda s: s.scaled(x=10**400), ValueError, "scale of 'x' is a number that float64 holds"),
        (lambda s: s.scaled(x=(1, -(10**400))), ValueError, "shift of 'x' is a number that float64 holds"),
        (lambda s: s.split(10**400), ValueError, "validation is a number that float64 holds"),
        (lambda s: s.netcdf("x", masked=10**400), ValueError, "masked is a number that float64 holds"),
        (lambda s: s.netcdf("x", masked="a"), TypeError, "masked is a number, not 'a'"),
        (lambda s: ps.mixed([(s, 10**400)]), ValueError, "the ratio of source 1 of a mix is a number that float64 holds"),
        (lambda s: ps.Loader(s, device="host", calibrate=10**400), ValueError, "calibrate is a number that float64 holds"),
        (lambda s: ps.Loader(s, device="host", order=ps.Weighted([10**400])), ValueError, "a weight of Weighted"),
        (lambda s: ps.Loader(s, device="host").report(link_bytes_per_second=10**400), ValueError, "link_bytes_per_second is a n"),
        (lambda s: ps.Loader(s, 10**5000, device="host"), ValueError, "batch_size is at most .* more than 40 digits"),
    ],
)
def test_arguments_that_cannot_be_are_refused_by_name(source, use, error, sentence):
    with pytest.raises(error, match=sentence):
        use(source)


def test_numpy_s_numbers_are_numbers(make, source):
    loader = make(np.int64(50), of=source.select(slice(np.int64(0), np.int64(100))), order=ps.Shuffled(seed=np.uint8(3)))
    assert len(loader) == 2 and "seed 3" in str(loader.plan())
    assert loader.place_of("x", np.int32(7)).row == 7


def test_a_device_that_is_not_there_is_a_device_error(make):
    with pytest.raises(ps.DeviceError, match="cuda:99") as raised:
        make(device="cuda:99")
    assert ps.has_cuda != ("holds no CUDA backend" in str(raised.value))  # else it is the driver or a device that is missing


@pytest.mark.parametrize("place", ["file.h5", "/x", ":/x", ""])
def test_a_field_without_file_or_dataset_is_refused(place):
    with pytest.raises(ValueError, match="FILE:/DATASET"):
        ps.Source(x=place)


def test_sources_are_described_by_their_fields():
    source = ps.Source(x="a.h5:/x", y=[("b.h5", "y")]).astype(x="float16")
    assert source.fields == ("x", "y")
    assert repr(source) == "Source(x=a.h5:/x as float16, y=b.h5:y)"
    with pytest.raises(ValueError, match="no field 'z'; it has x, y"):
        source.astype(z="int8")
    with pytest.raises(ValueError, match="at least one field"):
        ps.Source()
    with pytest.raises(TypeError, match="'x'"):
        ps.Source(x=3)


def test_an_unknown_type_is_refused_with_those_that_are_known(make, source):
    with pytest.raises(ValueError, match="float32"):
        make(of=source.astype(x="float31"))


def test_wrong_types_are_type_errors(source):
    with pytest.raises(TypeError, match="penstock.Source"):
        ps.Loader("file.h5:/x")
    with pytest.raises(TypeError, match="an order"):
        ps.Loader(source, order="shuffled")
    with pytest.raises(TypeError, match="batch_size is a whole number"):
        ps.Loader(source, 2.5)
    with pytest.raises(ValueError, match="seed"):
        ps.Shuffled(seed=-1)


def test_a_closed_loader_says_so(make):
    loader = make()
    loop = loader.epoch(0)
    next(loop)
    loader.close()
    loader.close()
    for use in (lambda: next(loop), lambda: next(loader.epoch(0)), loader.state_dict):
        with pytest.raises(ps.ClosedError, match="^the loader was closed; make another one$"):
            use()
    assert len(loader) == 16


def test_a_loop_that_waits_while_its_loader_is_closed_says_so(make, source):
    at_work, go, said = threading.Event(), threading.Event(), []

    def wait(block):
        at_work.set()
        go.wait(60)

    loader = make(of=source.map(wait))

    def loop():
        try:
            next(loader.epoch(0))
        except ps.ClosedError as e:
            said.append(str(e))
        go.set()  # close() waits for the function

    looping = threading.Thread(target=loop)
    looping.start()
    assert at_work.wait(60)
    loader.close()
    looping.join(60)
    assert said == ["the loader was closed; make another one"]


def test_a_handler_that_cannot_close_the_loader_changes_nothing(make, source, labels_of):
    at_work, go, said = threading.Event(), threading.Event(), []

    def wait(block):
        if block.row_ids[0] > 0:
            at_work.set()
            go.wait(60)

    loader = make(of=source.map(wait, fields=[]), block_bytes=4096, threads=1)

    def close(number, frame):
        try:
            loader.report()
        except ps.PenstockError:  # the main thread is in its wait
            try:
                loader.close()
            except ps.PenstockError as e:
                said.append(str(e))
            go.set()

    def send():
        at_work.wait(60)
        while not go.wait(0.01):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, close)
    sending = threading.Thread(target=send)
    sending.start()
    try:
        np.testing.assert_array_equal(labels_of(loader.epoch(0)), np.arange(1000))
    finally:
        go.set()
        sending.join(60)
        signal.signal(signal.SIGALRM, before)
    assert said == ["the loader waits for a batch on this thread; a signal handler can raise an exception, and use it later"]
    loader.close()
    with pytest.raises(ps.ClosedError):
        next(loader.epoch(0))


def test_plan_and_report_are_there_after_the_end(make):
    with make(order=ps.Shuffled(seed=1)) as loader:
        for _ in loader.epoch(0):
            pass
        plan, report = loader.plan(), loader.report()
    assert loader.plan().as_dict() == plan.as_dict() and str(loader.plan()) == str(plan)
    assert loader.report().as_dict() == report.as_dict() and str(loader.report()) == str(report)
    assert report.as_dict()["rows"] == 1000
    report.as_dict()["stages"].clear(), plan.as_dict()["ledger"][0].clear()  # copies, to the last list
    assert report.as_dict()["stages"] and plan.as_dict()["ledger"][0]
    share = loader.report(storage_bytes_per_second=1e9).as_dict()["storage_share"]
    assert share == pytest.approx(report.as_dict()["reading"]["stored_bytes"] / report.as_dict()["seconds"] / 1e9)


def test_a_loader_is_not_sent_to_other_processes(make):
    loader = make()
    for what in (loader, loader.epoch(0)):
        with pytest.raises(TypeError, match="Worker processes are not needed"):
            pickle.dumps(what)
    batch = next(loader.epoch(0))
    for what in (batch, batch["x"]):
        with pytest.raises(TypeError, match="lent in this process.*send a copy"):
            pickle.dumps(what)


def test_a_source_and_an_order_are_sent_to_other_processes(make, source, labels_of):
    of, order = pickle.loads(pickle.dumps((source.astype(x="float16").select(slice(0, 100)), ps.Shuffled(seed=1))))
    assert repr(of) == repr(source.astype(x="float16").select(slice(0, 100)))
    assert sorted(labels_of(make(of=of, order=order).epoch(0))) == list(range(100))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_a_forked_child_is_refused_by_name(make):
    loader = make()
    loop = loader.epoch(0)
    array = next(loop).numpy("x")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for use in (lambda: next(loop), lambda: next(loader.epoch(1)), loader.report, loader.plan):
            try:
                use()
            except ps.ForkError as e:
                said.append(str(e))
        del array, loop
        os.write(write, "\n".join(said).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read().splitlines()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(said) == 4
    assert all(f"belongs to process {os.getpid()}" in sentence for sentence in said)
    del array
    assert sum(1 for _ in loop) == 15


def test_plans_and_reports_are_text_and_dicts(make):
    loader = make(order=ps.Shuffled(seed=42))
    for _ in loader.epoch(0):
        pass
    report, plan = loader.report(), loader.plan()
    assert "bottleneck" in str(report) and "ledger" not in report.as_dict()
    assert report.as_dict()["rows"] == 1000 and report.as_dict()["seconds"] > 0
    assert "seed 42" in str(plan) and "pipeline: ring of x" in str(plan)
    assert plan.as_dict()["batch_rows"] == 64
    assert sum(item["bytes"] for item in plan.as_dict()["ledger"] if item["kind"] == "device") <= 8 << 20
    assert loader.fields == {"x": ("float32", (5,)), "image": ("uint8", (3, 4)), "label": ("int64", ())}


def test_blocks_and_slots_can_be_chosen_by_trying(make, labels_of):
    assert make().plan().as_dict()["calibration"] is None
    order = ps.Shuffled(seed=1)
    loader = make(order=order, calibrate=0.1)
    found = loader.plan().as_dict()["calibration"]
    assert set(found) == {"blocks", "slots", "block_reason", "slots_reason"} and found["block_reason"]
    assert all(tried["bytes_per_second"] > 0 and tried["block_bytes"] > 0 for tried in found["blocks"])
    assert labels_of(loader.epoch(0)).tolist() == labels_of(make(order=order).epoch(0)).tolist()
    with pytest.raises(ValueError, match="for how many seconds"):
        make(calibrate=-1)
    with pytest.raises(TypeError, match="calibrate is a number"):
        make(calibrate="yes")


def test_a_trace_is_written_where_one_was_asked_for(make, tmp_path):
    with pytest.raises(ValueError, match="there is no trace to write"):
        make().write_trace(tmp_path / "none.json")
    loader = make(trace="1MiB")
    for _ in loader.epoch(0):
        pass
    assert loader.write_trace(tmp_path / "trace.json") == 0
    spans = [event["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if event["ph"] == "X"]
    assert any("read" in name for name in spans)
    assert any("trace" in item["name"] and item["bytes"] >= 1 << 20 for item in loader.plan().as_dict()["ledger"])
    with pytest.raises(ps.PipelineError, match="could not be written"):
        loader.write_trace(tmp_path / "no folder" / "trace.json")


def test_what_the_extension_does_not_take_is_a_type_error():
    with pytest.raises(TypeError, match="an argument has a type"):  # and no RuntimeError: std::bad_cast
        _core.StreamLoader((3, 3, 3, 3), [], ("sequential",), {})


def test_a_pair_is_a_file_and_a_dataset_whatever_the_dataset_s_name(make, tmp_path):
    with h5py.File(tmp_path / "w.h5", "w") as f:
        f["p:/q"], f["x"] = np.arange(3), np.arange(5)
    path = str(tmp_path / "w.h5")
    for file in (path, path.encode(), tmp_path / "w.h5"):
        assert make(of=ps.Source(x=(file, "/p:/q"))).rows == 3
    assert make(of=ps.Source(x=(f"{path}:/x", f"{path}:/x"))).rows == 10  # two places
    with pytest.raises(TypeError, match="'x' is 'FILE:/DATASET'"):
        ps.Source(x=(3, "/x"))
