"""Batches in JAX and CuPy, where they are installed."""

import numpy as np
import pytest

import penstock as ps


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
