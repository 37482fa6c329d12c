"""Chunks that nbit, scaleoffset, szip and fletcher32 made and libhdf5 alone undoes, whole and cut.

Usage: packed_files.py FOLDER. FOLDER/packed.h5 has them; FOLDER/packed.txt the path of each dataset to be read, with what it
is cut to, 0 where it is whole. Beside each whole one lies what h5py reads, FOLDER/NUMBER.packed.
"""
import os
import sys

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

folder = sys.argv[1]
rng = np.random.default_rng(3)
shape, chunks = (30, 11), (4, 7)  # chunks of 28 values, cut by both edges


def integer(size, precision, order="L", sign=True):
    t = getattr(h5t, f"STD_{'I' if sign else 'U'}{8 * size}{order}E").copy()
    t.set_precision(precision)
    return t


def whole(f, name, kind, array, filters, bits=None):
    """`bits`: stored of one value, where that follows from the type."""
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_chunk(chunks)
    for add in filters:
        add(create)
    d = h5d.create(f.id, name.encode(), kind, h5s.create_simple(shape), create)
    d.write(h5s.ALL, h5s.ALL, array)
    datasets.append((name, kind, bits))


def nbit(p):
    p.set_filter(h5z.FILTER_NBIT)


def scaleoffset(kind, factor):
    return lambda p: p.set_scaleoffset(kind, factor)


shuffle = lambda p: p.set_shuffle()
fletcher32 = lambda p: p.set_fletcher32()
deflate = lambda p: p.set_deflate(4)
szip = lambda p: p.set_szip(h5z.SZIP_NN_OPTION_MASK, 4)
datasets = []
with h5py.File(os.path.join(folder, "packed.h5"), "w") as f:
    for size, precision in ((1, 3), (2, 9), (4, 16), (4, 17), (4, 31), (8, 40)):
        for order in "LB":
            array = rng.integers(0, 1 << (precision - 1), shape).astype(f"{'<' if order == 'L' else '>'}i{size}")
            kind = integer(size, precision, order)
            for chain, filters in {"": [nbit], "_sum": [nbit, fletcher32], "_mixed": [nbit, shuffle, fletcher32],
                                   "_gzip": [nbit, deflate, fletcher32], "_after": [shuffle, nbit]}.items():
                if chain == "_after" and size > 1:
                    continue  # bits that it mixes would be lost
                whole(f, f"/nbit_{precision}_{order}{chain}", kind, array, filters, precision if filters == [nbit] else None)
            whole(f, f"/sum_{precision}_{order}", kind, array, [fletcher32], 8 * size)
            whole(f, f"/shuffled_{precision}_{order}", kind, array, [shuffle], 8 * size)
            whole(f, f"/shuffled_sum_{precision}_{order}", kind, array, [shuffle, fletcher32], 8 * size)
            whole(f, f"/szip_{precision}_{order}", kind, (np.arange(330).reshape(shape) // 9 % 4).astype(array.dtype), [szip])
    whole(f, "/nbit_full", h5t.STD_I32LE, rng.integers(0, 1 << 30, shape).astype("<i4"), [nbit], 32)
    pairs = np.zeros(shape, {"names": ["a", "b", "text"], "formats": ["<i4", ("<i4", 2), "S3"], "offsets": [0, 8, 17], "itemsize": 24})
    pairs["a"], pairs["b"], pairs["text"] = rng.integers(0, 1 << 16, shape), rng.integers(0, 1 << 16, shape + (2,)), b"abc"
    compound = h5t.create(h5t.COMPOUND, 24)
    for name, offset, kind in ((b"a", 0, integer(4, 17)), (b"b", 8, h5t.array_create(integer(4, 17), (2,))), (b"text", 17, h5t.py_create(np.dtype("S3")))):
        compound.insert(name, offset, kind)
    whole(f, "/compound", compound, pairs, [nbit], 3 * 17 + 24)
    for code in ("i1", "u1", "<i2", ">u4", "<i8", "<f4", "<f8"):
        size = int(code[-1])
        array = rng.integers(0, 100, shape).astype(code)
        for factor in (0, 2, 5) if "f" in code else sorted({0, 3, 7, 8 * size - 1, 8 * size}):
            kind = h5z.SO_FLOAT_DSCALE if "f" in code else h5z.SO_INT
            for chain, more in {"": [], "_sum": [fletcher32], "_mixed": [shuffle, fletcher32], "_gzip": [shuffle, deflate, fletcher32]}.items():
                whole(f, f"/so_{code.strip('<>')}_{factor}{chain}", h5t.py_create(np.dtype(code)), array, [scaleoffset(kind, factor)] + more)
        whole(f, f"/so_{code.strip('<>')}_same", h5t.py_create(np.dtype(code)), np.full(shape, 5, code), [scaleoffset(kind, 0)])
    whole(f, "/so_nothing_to_pack", h5t.STD_I32LE, rng.integers(0, 99, shape).astype("<i4"), [scaleoffset(h5z.SO_INT, 0), nbit])

    lines, whole_ones = [], 0
    for name, kind, bits in datasets:
        d = f[name]
        for member in ("[a]", "[b]", "[text]") if name == "/compound" else ("",):
            values = d[...]
            (values[member[1:-1]] if member else values).tofile(os.path.join(folder, f"{whole_ones}.packed"))
            whole_ones += 1
            lines.append((name + member, 0))
        mask, stored = d.id.read_direct_chunk((4, 0))
        if mask != 0 or (bits and len(stored) not in (28 * bits // 8, 28 * bits // 8 + 1, 28 * bits // 8 + 4)):
            raise RuntimeError(f"{name} is stored in {len(stored)} bytes")
        # Of nbit the last byte may hold nothing, and of scaleoffset's and szip's it does where bits end there.
        for cut in {1, 2, 3, 4, 5, 12, 20, len(stored) // 2, len(stored) - 2}:
            if not 0 < cut < len(stored) - 1:
                continue
            cut_name = f"/cut_{cut}{name.replace('/', '_')}"
            c = h5d.create(f.id, cut_name.encode(), kind, h5s.create_simple(shape), d.id.get_create_plist())
            for at in (0, 4):
                c.write_direct_chunk((at, 0), stored if at == 0 else stored[:cut])
            lines.append((cut_name + ("[a]" if name == "/compound" else ""), cut))
with open(os.path.join(folder, "packed.txt"), "w") as out:
    out.writelines(f"{name} {cut}\n" for name, cut in lines)
