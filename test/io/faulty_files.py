#!/usr/bin/python3
"""Datasets of which a part cannot be read, for faults.cpp and damage.cpp. Usage: faulty_files.py FOLDER

Writes faulty.h5, outside.h5 with a source of it, and places.txt: dataset, number of a chunk, and where it lies in the file.
"""
import os
import sys
import zlib

import h5py
import numpy as np

folder = sys.argv[1]
array = np.arange(64 * 8, dtype="<u4").reshape(64, 8)
shape, chunks = array.shape, (8, 8)
path = os.path.join(folder, "faulty.h5")


def filtered(f, name, number, pieces):
    """A dataset of that filter, whatever its chunks hold."""
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk(chunks)
    creation.set_filter(number, h5py.h5z.FLAG_OPTIONAL, ())
    d = h5py.h5d.create(f.id, name, h5py.h5t.STD_U32LE, h5py.h5s.create_simple(shape), creation)
    for n, piece in enumerate(pieces):
        d.write_direct_chunk((8 * n, 0), piece, 0)


with h5py.File(path, "w") as f:
    apart = f.create_dataset("apart", shape, "<u4", chunks=chunks)
    for n in reversed(range(8)):  # none follows its neighbour in the file
        apart.id.write_direct_chunk((8 * n, 0), array[8 * n : 8 * n + 8].tobytes())
    f.create_dataset("together", data=array, chunks=chunks)
    f.create_dataset("gzip", data=array, chunks=chunks, compression="gzip")
    f.create_dataset("locked", data=array, chunks=chunks, scaleoffset=0)
    f.create_dataset("locked_gzip", data=array, chunks=chunks, scaleoffset=0, compression="gzip")
    longer = f.create_dataset("longer", data=array, chunks=chunks, compression="gzip")  # the fourth stream, than its chunk
    longer.id.write_direct_chunk((24, 0), zlib.compress(array[24:32].tobytes() + bytes(300)))
    layout = h5py.VirtualLayout(shape, "<i4")  # converted, and so read by libhdf5
    layout[:] = h5py.VirtualSource(f["gzip"])
    f.create_virtual_dataset("locked_behind", layout)
    with h5py.File(os.path.join(folder, "outside.h5"), "w") as other:
        other.create_dataset("gzip", data=array, chunks=chunks, compression="gzip")
    layout = h5py.VirtualLayout(shape, "<i4")
    layout[:] = h5py.VirtualSource("outside.h5", "gzip", shape)
    f.create_virtual_dataset("locked_outside", layout)
    source = h5py.VirtualSource(f["gzip"])
    layout = h5py.VirtualLayout((12, 8), "<i4")  # rows that no source shows lie between those of one chunk
    layout[0:4] = source[24:28]
    layout[8:12] = source[28:32]
    f.create_virtual_dataset("locked_apart", layout)
    layout = h5py.VirtualLayout((8, 16), "<i4")
    layout[:, :8] = source[24:32]
    layout[:, 8:] = h5py.VirtualSource(f["apart"])[24:32]
    f.create_virtual_dataset("locked_beside", layout)
    layout = h5py.VirtualLayout((16, 8), "<u4")
    layout[0:8] = source[40:48]
    layout[8:16] = source[8:16]
    f.create_virtual_dataset("swapped", layout)
    layout = h5py.VirtualLayout((16, 8), "<u4")
    layout[0:16:2] = source[12:20]
    layout[1:16:2] = source[32:40]
    f.create_virtual_dataset("in_turns", layout)
    layout = h5py.VirtualLayout((10, 8), "<u4")
    layout[:] = h5py.VirtualSource(f["in_turns"])[4:14]
    f.create_virtual_dataset("of_turns", layout)
    layout = h5py.VirtualLayout((8, 8), "<u4")
    layout[2:8] = source[9:27:3]
    f.create_virtual_dataset("every_third", layout)
    layout = h5py.VirtualLayout((8, 8, 8), "<u4")
    for n in range(8):
        layout[n] = source[8 * n : 8 * n + 8]
    f.create_virtual_dataset("stacked", layout)
    filtered(f, b"no_plugin", 305, [b"whatever it is"] * 8)
    layout = h5py.VirtualLayout(shape, "<i8")  # converted, and so read by libhdf5
    layout[:] = h5py.VirtualSource(f["no_plugin"])
    f.create_virtual_dataset("no_plugin_behind", layout)
    raw = b"".join([(256).to_bytes(8, "big"), (256).to_bytes(4, "big"), (256).to_bytes(4, "big")])
    filtered(f, b"lz4", 32004, [raw + array[8 * n : 8 * n + 8].tobytes() if n != 3 else b"\xff" * 64 for n in range(8)])
    many = f.create_dataset("large_chunk", (64 << 20,), "u1", chunks=(64 << 20,), scaleoffset=0)
    many[0] = 1

with h5py.File(path) as f, open(os.path.join(folder, "places.txt"), "w") as out:
    for name in ["apart", "together", "gzip", "locked"]:
        for n in range(8):
            print(f"/{name}", n, f[name].id.get_chunk_info_by_coord((8 * n, 0)).byte_offset, file=out)
