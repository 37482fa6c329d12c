"""Batches on a GPU in PyTorch, JAX and CuPy: values, the order of streams, leases. Rows that were given back are overwritten
(poisoned), so that a tensor which is read too late, or rows which are given back too early, show."""

import os
import subprocess
import sys

import numpy as np
import pytest

import penstock as ps

SPIN = 20_000_000  # cycles: about 10 ms, many times what a batch takes

torch = pytest.importorskip("torch", reason="torch is not installed")
if not (ps.has_cuda and torch.cuda.is_available()):
    pytest.skip("needs a CUDA device, torch with CUDA and Penstock with CUDA", allow_module_level=True)


@pytest.fixture
def on_gpu(make, source):
    # JAX has int64 only where it is told to.
    def loader(batch_size=64, of=source.astype(label="int32"), **options):
        return make(batch_size, of=of, **{"device": "cuda:0", "poisoned": True, **options})

    return loader


def taken_by(framework):
    """Takes a field in a framework; a copy on the host of what it holds."""
    if framework == "torch":
        return lambda batch, name: batch.torch(name), lambda array: array.cpu().numpy()
    module = pytest.importorskip(framework, reason=f"{framework} is not installed")
    if framework == "cupy":
        return lambda batch, name: batch.cupy(name), module.asnumpy
    try:
        module.devices("gpu")
    except RuntimeError:
        pytest.skip("this jax has no GPU")
    return lambda batch, name: batch.jax(name), np.asarray


FRAMEWORKS = ["torch", "jax", "cupy"]


@pytest.mark.parametrize("order", [ps.Sequential(), ps.Shuffled(seed=3), ps.Random(seed=3)])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_values_are_those_of_the_host(make, on_gpu, framework, order):
    take, copied = taken_by(framework)
    host, device = make(order=order), on_gpu(order=order)
    for expected, batch in zip(host.epoch(1), device.epoch(1)):
        for name in ("x", "image"):
            array = take(batch, name)
            np.testing.assert_array_equal(copied(array), expected.numpy(name))
            del array
    assert batch.index == len(host) - 1


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_array_is_on_the_device_of_the_batch(on_gpu, framework):
    take, _ = taken_by(framework)
    batch = next(on_gpu().epoch(0))
    x = take(batch, "x")
    assert tuple(x.shape) == (64, 5) and "float32" in str(x.dtype)
    assert batch["x"].device == "cuda:0" and batch["x"].__dlpack_device__() == (2, 0)
    if framework != "jax":
        address = x.data_ptr() if framework == "torch" else x.data.ptr
        assert address == batch.torch("x").data_ptr()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_arrays_that_are_held_too_long_are_an_error(on_gpu, framework):
    take, _ = taken_by(framework)
    loader, kept = on_gpu(held=2), []
    with pytest.raises(ps.PipelineError, match="batch 0 of epoch 0 is still held, 3 batches later"):
        for batch in loader.epoch(0):
            kept.append(take(batch, "x"))
    del batch
    kept.clear()
    assert sum(batch.rows for batch in loader.epoch(0)) == 1000


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_array_outlives_the_loop_and_the_loader(on_gpu, framework):
    take, copied = taken_by(framework)
    loader = on_gpu()
    for batch in loader.epoch(0):
        label = take(batch, "label")
    loader.close()
    del batch, loader
    assert copied(label).tolist() == list(range(960, 1000))


@pytest.mark.parametrize("side", [False, True])
def test_rows_come_back_only_after_the_current_stream_has_read_them(on_gpu, side):
    with torch.cuda.stream(torch.cuda.Stream() if side else torch.cuda.default_stream()):
        found = []
        for batch in on_gpu(held=0).epoch(0):
            label = batch.torch("label")
            torch.cuda._sleep(SPIN)
            found.append(label + 0)  # after the spinning kernel; the tensor is gone long before that ends
            del label
        assert torch.cat(found).tolist() == list(range(1000))


def test_a_batch_names_its_stream(on_gpu):
    side = torch.cuda.Stream()
    assert next(on_gpu().epoch(0)).stream == torch.cuda.current_stream().cuda_stream
    assert next(on_gpu(stream=side).epoch(0)).stream == side.cuda_stream


@pytest.mark.parametrize("which", ["legacy", "per-thread", "side"])
def test_rows_come_back_only_after_the_stream_of_the_capsule_has_read_them(on_gpu, which):
    stream = {
        "legacy": lambda: torch.cuda.default_stream(),
        "per-thread": lambda: torch.cuda.ExternalStream(2),
        "side": lambda: torch.cuda.Stream(),
    }[which]()
    number = {"legacy": 1, "per-thread": 2, "side": stream.cuda_stream}[which]
    loader, found = on_gpu(held=0, stream=torch.cuda.Stream()), []
    for batch in loader.epoch(0):
        label = torch.utils.dlpack.from_dlpack(batch["label"].__dlpack__(stream=number))
        with torch.cuda.stream(stream):
            torch.cuda._sleep(SPIN)
            found.append(label + 0)
        del label
    torch.cuda.synchronize()
    assert torch.cat(found).tolist() == list(range(1000))


@pytest.mark.parametrize("stream", [None, 1, 2, -1])
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_capsules_for_the_array_api_s_streams(on_gpu, stream, version):
    batch = next(on_gpu().epoch(0))
    capsule = batch["label"].__dlpack__(stream=stream, max_version=version)
    assert ("dltensor_versioned" if version else '"dltensor"') in repr(capsule)
    if stream == -1:  # no order: the consumer sees to it, here by waiting for everything
        torch.cuda.synchronize()
    label = torch.utils.dlpack.from_dlpack(capsule)
    with torch.cuda.stream(torch.cuda.ExternalStream(2) if stream == 2 else torch.cuda.default_stream()):
        assert (label + 0).tolist() == list(range(64))


def test_stream_0_and_copies_are_refused(on_gpu):
    field = next(on_gpu().epoch(0))["x"]
    with pytest.raises(ValueError, match="stream 0 is ambiguous"):
        field.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="on cuda:0"):
        field.__dlpack__(dl_device=(1, 0))


def test_a_stream_that_is_announced_keeps_the_rows(on_gpu):
    side, found = torch.cuda.Stream(), []
    for batch in on_gpu(held=0).epoch(0):
        label = batch.torch("label")
        batch.used_on(side)
        del label
        with torch.cuda.stream(side):
            torch.cuda._sleep(SPIN)
            found.append(batch.torch("label") + 0)
    torch.cuda.synchronize()
    assert torch.cat(found).tolist() == list(range(1000))


def test_torch_s_stream_waits_for_rows_that_a_slow_stream_fills(on_gpu):
    # The copy of a batch must wait until the rows before it in the ring were read: by a stream that spins.
    loader, found = on_gpu(held=0), []
    for epoch in range(3):
        for batch in loader.epoch(epoch):
            if batch.index % 5 == 0:
                torch.cuda._sleep(SPIN)
            found.append(batch.torch("label").sum())
    assert torch.stack(found).sum().item() == 3 * 999 * 500


def test_jax_reads_rows_before_they_come_back(on_gpu):
    taken_by("jax")
    import jax

    @jax.jit
    def slow_sum(label):
        turns = jax.lax.fori_loop(0, 2000, lambda _, m: m @ m * 1e-3 + 1e-3, jax.numpy.ones((512, 512)))
        return label.sum() + (turns.sum() * 0).astype(label.dtype)

    sums = []
    for batch in on_gpu(held=0).epoch(0):
        label = batch.jax("label")
        sums.append(slow_sum(label))
        del label
    assert int(sum(int(s) for s in sums)) == 999 * 500


def test_jax_takes_rows_wherever_they_begin(on_gpu):
    # XLA's programs refuse what begins at no multiple of 16 bytes: every other batch of 30 rows of int32, the last mask.
    taken_by("jax")
    import jax

    twice = jax.jit(lambda rows: rows * 2)
    for epoch in range(3):
        first = 0
        for batch in on_gpu(30, last="pad", held=0).epoch(epoch):
            labels, mask = twice(batch.jax("label")), twice(batch.mask.jax())
            expected = np.zeros(30, np.int32)
            expected[: batch.valid_rows] = np.arange(first, first + batch.valid_rows)
            np.testing.assert_array_equal(np.asarray(labels), 2 * expected)
            np.testing.assert_array_equal(np.asarray(mask), 2 * (np.arange(30) < batch.valid_rows))
            first += batch.valid_rows


def test_cupy_uses_its_current_stream(on_gpu):
    taken_by("cupy")
    import cupy

    stream, found = cupy.cuda.Stream(non_blocking=True), []
    with stream:
        for batch in on_gpu(held=0).epoch(0):
            label = batch.cupy("label")
            found.append(label + 0)
            del label
        assert cupy.asnumpy(cupy.concatenate(found)).tolist() == list(range(1000))


def test_a_mapped_field_reaches_the_gpu(on_gpu, source):
    twice = source.map(lambda block: {"label": block["label"] * 2}, fields=["label"])
    found = [batch.torch("label").clone() for batch in on_gpu(of=twice).epoch(0)]
    assert torch.cat(found).tolist() == list(range(0, 2000, 2))


def test_a_gpu_that_is_left_open_is_torch_s_current_one(make):
    for ordinal in range(torch.cuda.device_count()):
        with torch.cuda.device(ordinal):
            for device in ("cuda", "auto", torch.device("cuda")):
                batch = next(make(device=device).epoch(0))
                assert batch.torch("x").device == torch.ones(1, device="cuda").device


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_a_loader_that_is_made_in_a_forked_child_is_refused_by_name(on_gpu):
    next(on_gpu().epoch(0)).torch("x").sum().item()  # CUDA is in use
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            on_gpu()
            said = "nothing"
        except ps.ForkError as e:
            said = str(e)
        except BaseException as e:
            said = repr(e)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert f"forked from process {os.getpid()}, which had made a loader" in said


def test_a_loader_in_a_child_whose_parent_has_used_cuda_alone_is_refused_by_name(small):
    code = f"""
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import torch
import penstock as ps
torch.ones(1, device="cuda").sum().item()
child = os.fork()
if child == 0:
    try:
        ps.Loader(ps.Source(label={f"{small}:/label"!r}), 10, device="cuda:0", device_memory="8MiB", pinned_memory="4MiB")
    except ps.ForkError as e:
        print(str(e).replace(str(os.getppid()), "PARENT"), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "forked from process PARENT, which had used CUDA" in said.stdout, said
