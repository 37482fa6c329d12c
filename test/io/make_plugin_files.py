#!/usr/bin/python3
"""Datasets written by the filters' own plugins (Debian's), for make_files.py. Usage: make_plugin_files.py FOLDER

Filters are mandatory where their encoder takes all data: optional ones silently store raw what they cannot shorten.
Whether chunks really are shorter is checked here. Prints one line per dataset: name, access; with a tab.
HDF5_PLUGIN_PATH names a folder with the plugins that are there.
"""
import os
import sys

import h5py
import numpy as np

folder = sys.argv[1]
rng = np.random.default_rng(11)
mandatory, optional = h5py.h5z.FLAG_MANDATORY, h5py.h5z.FLAG_OPTIONAL
shapes = {"smooth": lambda: (np.arange(600 * 40) // 3).astype("<f4").reshape(600, 40), "random": lambda: rng.integers(0, 2**32, (600, 40), "<u4")}
# name: filters, access, and whether the encoder takes data that it cannot shorten
cases = {
    "gzip": ([(1, (4,))], "direct", True),
    "shuffle_gzip": ([(2, ()), (1, (4,))], "direct", True),
    "lzf": ([(32000, ())], "direct", False),
    "lz4": ([(32004, ())], "direct", True),
    "shuffle_lz4_small_blocks": ([(2, ()), (32004, (512,))], "direct", True),
    "blosc": ([(32001, (0, 0, 0, 0, 5, 1, 0))], "direct", False),
    "blosc_lz4": ([(32001, (0, 0, 0, 0, 5, 2, 1))], "direct", False),
    "bitshuffle": ([(32008, ())], "direct", True),
    "bitshuffle_lz4": ([(32008, (0, 2))], "direct", True),
    "lz4_fletcher32": ([(32004, ()), (3, ())], "direct", True),
    "bzip2": ([(307, (9,))], "locked", True),
}
compressing = {1, 32000, 32004, 32001, 307}

with h5py.File(os.path.join(folder, "plugins.h5"), "w") as f:
    for name, (filters, access, takes_all) in cases.items():
        if not all(h5py.h5z.filter_avail(number) for number, _ in filters):
            print(f"skipped: io/plugins/{name}: its plugin is not installed", file=sys.stderr)
            continue
        for kind, make in shapes.items():
            array = make()
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk((99, 19) if "bitshuffle" in name else (100, 20))  # some elements are left over
            for number, values in filters:
                creation.set_filter(number, mandatory if takes_all or kind == "smooth" else optional, values)
            f.require_group(name)
            space = h5py.h5s.create_simple(array.shape)
            d = h5py.h5d.create(f.id, f"/{name}/{kind}".encode(), h5py.h5t.py_create(array.dtype), space, creation)
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, array)
            stored = d.get_storage_size() / array.nbytes
            packs = any(number in compressing or values == (0, 2) for number, values in filters)
            if packs and not (stored < 0.7 if kind == "smooth" else stored > 0.98):
                raise RuntimeError(f"{name}/{kind} is stored in {stored:.2f} of its bytes")
            array.tofile(os.path.join(folder, f"plugin_{name}_{kind}.bin"))
            print(f"/{name}/{kind}\t{access}")
