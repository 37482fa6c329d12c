"""Batches in JAX and CuPy, where they are installed."""

import gc
import sys
import types
import weakref

import numpy as np
import pytest

import penstock as ps
from penstock._batch import _cut, _Flat, _stream_lookup, torch_stream


def test_a_torch_without_cuda_has_no_stream_of_a_gpu(monkeypatch):
    def current_stream(device):
        raise AssertionError("Torch not compiled with CUDA enabled")

    cuda = types.SimpleNamespace(is_available=lambda: False, current_stream=current_stream)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda, _C=None))
    _stream_lookup.cache_clear()
    try:
        assert torch_stream((2, 0)) is None  # DLPack's number of CUDA's devices
    finally:
        _stream_lookup.cache_clear()


def test_a_loader_keeps_the_stream_that_its_batches_are_for(make):
    class Stream:  # as CuPy's
        ptr = 0

    stream = Stream()
    alive = weakref.ref(stream)
    loader = make(stream=stream)
    del stream
    for batch in loader.epoch(0):
        batch.release()
    gc.collect()
    assert alive() is not None
    with pytest.raises(TypeError, match="a stream is a number or a stream of torch or CuPy"):
        make(stream=object())


def test_jax_takes_batches(make):
    pytest.importorskip("jax", reason="jax is not installed")
    for batch in make().epoch(0):
        x = batch.jax("x")
        np.testing.assert_array_equal(np.asarray(x), batch.numpy("x"))
        del x


#: Batches of 30 rows of int32, or of 12 bytes, begin at multiples of 8 bytes; the mask of a last one of 10 rows at 20 ones.
SIZES = {"batch_size": 30, "last": "pad"}


@pytest.fixture
def small_rows(make, source):
    return make(of=source.astype(label="int32"), **SIZES)


def test_rows_for_programs_of_xla_begin_at_a_multiple_of_16_bytes(small_rows):
    moved = {}
    for batch in small_rows.epoch(0):
        for field in (batch["label"], batch["image"], batch.mask):
            rows, flat = field.numpy(), np.from_dlpack(_Flat(field))
            before = field._handle.elements_before(field._key)
            moved.setdefault(field.name, set()).add(before * rows.itemsize)
            assert flat.ctypes.data % 16 == 0 and rows.ctypes.data - flat.ctypes.data == before * rows.itemsize
            assert flat.shape == (before + rows.size,) and 0 <= before * rows.itemsize < 16
            np.testing.assert_array_equal(flat[before:].reshape(rows.shape), rows)
            del rows, flat
        batch.release()
    assert moved == {"label": {0, 8}, "image": {0, 8}, "mask": {0, 4}}
    for use in (lambda: field._handle.elements_before(field._key), lambda: np.from_dlpack(_Flat(field))):
        with pytest.raises(ps.GivenBackError, match="^the mask of batch 33 of epoch 0"):
            use()


def test_jax_copies_rows_that_begin_elsewhere(small_rows, monkeypatch):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    copies, cut = [], _cut
    for batch in small_rows.epoch(0):
        for field in (batch["label"], batch["image"], batch.mask):
            expected = field.numpy().copy()
            with monkeypatch.context() as as_on_a_gpu:
                as_on_a_gpu.setattr("penstock._batch._CPU", None)
                as_on_a_gpu.setattr("penstock._batch._cut", lambda *flat: copies.append(field.name) or cut(*flat))
                taken = field.jax()
            assert taken.shape == expected.shape and taken.dtype == expected.dtype
            np.testing.assert_array_equal(jax.jit(lambda rows: rows + 1)(taken), expected + 1)
            del taken
    assert [copies.count(name) for name in ("label", "image", "mask")] == [17, 17, 1]


def cuda_is_there(cupy):
    try:
        return cupy.cuda.runtime.getDeviceCount() > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def test_cupy_takes_batches(make):
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    if not (ps.has_cuda and cuda_is_there(cupy)):
        pytest.skip("needs a CUDA device and Penstock with CUDA")
    for batch in make(device="cuda:0").epoch(0):
        label = batch.cupy("label")
        assert cupy.asnumpy(label).tolist() == list(range(64 * batch.index, 64 * batch.index + batch.rows))
