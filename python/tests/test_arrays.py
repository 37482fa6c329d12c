"""Batches in JAX and CuPy, where they are installed."""

import sys
import types

import numpy as np
import pytest

import penstock as ps
from penstock._batch import _stream_lookup, torch_stream


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


def test_jax_takes_batches(make):
    pytest.importorskip("jax", reason="jax is not installed")
    for batch in make().epoch(0):
        x = batch.jax("x")
        np.testing.assert_array_equal(np.asarray(x), batch.numpy("x"))
        del x


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
