#!/usr/bin/env python3
"""Writes the files that bars.py reads: the same float32 rows of 1024, stored in several ways, as dataset /x.

Usage: make_rows.py FOLDER GIB KIND[,KIND...]   KINDs: whole, split, gzip, lzf, lz4 (with its plugin in HDF5_PLUGIN_PATH)
Files are of the format of HDF5 1.10, whichever h5py has. Rows are sums of normal steps, rounded to 1/64: gzip-4 after
shuffle shortens them to 38 %. FOLDER/KIND.json says the number of rows, the stored bytes, and the sum of all 32-bit words
modulo 2^64, which is penstock-throughput's checksum.
"""
import json
import multiprocessing
import os
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np

columns, chunk_rows, block_rows = 1024, 256, 4096
options = {
    "whole": {},
    "split": {"chunks": (64, 256)},
    "gzip": {"compression": "gzip", "compression_opts": 4, "shuffle": True},
    "lzf": {"compression": "lzf", "shuffle": True},
    "lz4": {"compression": 32004, "compression_opts": (0,), "shuffle": True},
}


def blocks(rows):
    steps = np.random.default_rng(1).standard_normal((block_rows, columns))
    first = (np.round(np.cumsum(steps, 1) * 64) / 64).astype("f4")
    for row in range(0, rows, block_rows):
        yield row, first[: min(block_rows, rows - row)] + np.float32(row % 97)


def gzip_chunk(rows):
    return zlib.compress(np.ascontiguousarray(rows.view("u1").reshape(-1, 4).T).tobytes(), 4)


def write(folder, kind, gib):
    path = os.path.join(folder, kind + ".h5")
    rows = max(1, int(gib * 2**30 / (4 * columns * chunk_rows))) * chunk_rows
    checksum = 0
    with h5py.File(path, "w", libver=("v110", "v110")) as f, ThreadPoolExecutor(os.cpu_count()) as pool:
        d = f.create_dataset("x", (rows, columns), "<f4", **{"chunks": (chunk_rows, columns), **options[kind]})
        for row, block in blocks(rows):
            checksum += int(block.view("<u4").sum(dtype="u8"))
            if kind == "gzip":  # what h5py's own filter would write, on all processors
                starts = range(0, len(block), chunk_rows)
                for start, chunk in zip(starts, pool.map(lambda s: gzip_chunk(block[s : s + chunk_rows]), starts)):
                    d.id.write_direct_chunk((row + start, 0), chunk)
            else:
                d[row : row + len(block)] = block
        stored = d.id.get_storage_size()
    with open(path, "rb") as f:
        os.fsync(f.fileno())
    with open(os.path.join(folder, kind + ".json"), "w") as f:
        json.dump({"gib": gib, "rows": rows, "stored_bytes": stored, "checksum": f"{checksum % 2**64:016x}"}, f)


if __name__ == "__main__":
    folder, gib, kinds = sys.argv[1], float(sys.argv[2]), sys.argv[3].split(",")
    writers = [multiprocessing.Process(target=write, args=(folder, kind, gib)) for kind in kinds]
    for w in writers:
        w.start()
    for w in writers:
        w.join()
    sys.exit(any(w.exitcode for w in writers))
