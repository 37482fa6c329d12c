#!/usr/bin/python3
"""Files of many chunks and many datasets, for test/io/many.cpp. Usage: make_many.py FOLDER"""
import os
import sys

import h5py
import numpy as np

folder = sys.argv[1]
for version in ["earliest", "latest"]:
    with h5py.File(os.path.join(folder, f"chunks_{version}.h5"), "w", libver=version) as f:
        f.create_dataset("/x", data=np.arange(65536, dtype="<u4"), chunks=(1,))
with h5py.File(os.path.join(folder, "million.h5"), "w", libver="latest") as f:
    f.create_dataset("/x", data=np.arange(2000000, dtype="<u4").reshape(1000000, 2), chunks=(1, 2))
with h5py.File(os.path.join(folder, "datasets.h5"), "w") as f:
    for n in range(2000):
        f.create_dataset(f"/d{n}", data=np.arange(4096, dtype="<u4") + n, chunks=(512,), compression=1)
        f.create_dataset(f"/s{n}", data=np.arange(64, dtype="<u4") + n, chunks=(64,), scaleoffset=16)
