#!/usr/bin/python3
"""Writes what penstock-benchmark-io reads. Usage: make_files.py FOLDER

chunks.h5: /KIND/FILTER, 4 chunks of 1 MiB each; KIND is smooth (compressible) or random (not).
rows.h5: 64 MiB of float32 as rows of 4 KiB, stored in several ways.
"""
import os
import sys

os.environ["HDF5_PLUGIN_PATH"] = "/nonexistent"

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.dont_write_bytecode = True
from encoders import bitshuffle_chunk, blosc_buffer, library, lz4_block, lz4_chunk, shuffled, zstd_frame

folder = sys.argv[1]
rng = np.random.default_rng(1)
rows, columns, chunk_rows = 1024, 1024, 256


def write_chunks(f, name, array, filters, encode):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk((chunk_rows, columns))
    for number, values in filters:
        creation.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
    f.require_group(os.path.dirname(name))
    d = h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(array.dtype), h5py.h5s.create_simple(array.shape), creation)
    for first in range(0, rows, chunk_rows):
        d.write_direct_chunk((first, 0), encode(array[first : first + chunk_rows].tobytes()), 0)


def chunks():
    steps = np.cumsum(rng.integers(-3, 4, (rows, columns)), axis=1)
    with h5py.File(os.path.join(folder, "chunks.h5"), "w") as f:
        for kind, array in {"smooth": (steps / 8).astype("<f4"), "random": rng.integers(0, 2**32, (rows, columns), "<u4").view("<f4")}.items():
            chunk = {"chunks": (chunk_rows, columns)}
            f.create_dataset(f"/{kind}/shuffle", data=array, shuffle=True, **chunk)
            f.create_dataset(f"/{kind}/fletcher32", data=array, fletcher32=True, **chunk)
            f.create_dataset(f"/{kind}/gzip4", data=array, compression=4, **chunk)
            f.create_dataset(f"/{kind}/shuffle_gzip4", data=array, compression=4, shuffle=True, **chunk)
            if kind == "smooth":  # h5py stores what lzf does not shorten without it
                f.create_dataset(f"/{kind}/shuffle_lzf", data=array, compression="lzf", shuffle=True, **chunk)
            f.create_dataset(f"/{kind}/szip", data=array, compression="szip", compression_opts=("nn", 32), **chunk)
            write_chunks(f, f"/{kind}/bitshuffle", array, [(32008, (0, 4, 4, 0, 0))], lambda b: bitshuffle_chunk(b, 4, 0))
            if library("liblz4.so.1"):
                write_chunks(f, f"/{kind}/shuffle_lz4", array, [(2, (4,)), (32004, ())], lambda b: lz4_chunk(shuffled(b, 4), 1 << 30))
                write_chunks(f, f"/{kind}/bitshuffle_lz4", array, [(32008, (0, 4, 4, 0, 2))], lambda b: bitshuffle_chunk(b, 4, 0, lz4_block))
            if library("libzstd.so.1"):
                write_chunks(f, f"/{kind}/shuffle_zstd", array, [(2, (4,)), (32015, (3,))], lambda b: zstd_frame(shuffled(b, 4)))
            if library("libblosc.so.1"):
                write_chunks(f, f"/{kind}/blosc_lz4", array, [(32001, (2, 2, 4, 1 << 20, 5, 1, 1))], lambda b: blosc_buffer(b, 4, b"lz4", 1))


def stored_rows():
    array = rng.standard_normal((16384, columns)).astype("<f4")
    with h5py.File(os.path.join(folder, "rows.h5"), "w") as f:
        f.create_dataset("/contiguous", data=array)
        f.create_dataset("/chunked", data=array, chunks=(256, columns))
        f.create_dataset("/split", data=array, chunks=(64, 256))
        f.create_dataset("/big_endian", data=array.astype(">f4"), chunks=(256, columns))
        f.create_dataset("/float16", data=array.astype("<f2"), chunks=(256, columns))
        f.create_dataset("/gzip4", data=array, chunks=(256, columns), compression=4, shuffle=True)
        f.create_dataset("/gzip4_split", data=array, chunks=(64, 256), compression=4, shuffle=True)


chunks()
stored_rows()
