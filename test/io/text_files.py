"""Writes files with texts of variable length to a folder, and the texts that h5py reads there: texts.json, of
FILE:DATASET[MEMBER] as bytes in hexadecimal, in C order.

    text_files.py FOLDER CORPUS
"""

import json
import os
import struct
import sys
import zlib

import h5py
import numpy as np

folder, corpus = sys.argv[1], sys.argv[2]
expected = {}
rng = np.random.default_rng(7)


def in_c_order(array):
    return [t.hex() if isinstance(t, bytes) else t.encode().hex() for t in np.asarray(array, object).reshape(-1)]


def path(name):
    return os.path.join(folder, name)


def expect(name, dataset, member=None):
    # libhdf5 1.10 reads fill values that are texts where it may write to the file alone.
    with h5py.File(name, "r+" if name.startswith(folder) else "r") as f:
        array = f[dataset][()] if member is None else f[dataset][()][member]
        array = np.array([t.encode() if isinstance(t, str) else t for t in np.asarray(array, object).reshape(-1)], object)
    expected[f"{name}:{dataset}" + (f"[{member}]" if member else "")] = in_c_order(array)


def layouts(name, **how):
    words = np.array(["cat", "", "a dog", "caf\u00e9", "x" * 70000, "cat", "nul\0l"], object)
    many = np.array([f"class {n}" for n in rng.integers(0, 300, 5000)], object)
    utf8, ascii = h5py.string_dtype(), h5py.string_dtype("ascii")
    with h5py.File(path(name), "w", **how) as f:
        f.create_dataset("contiguous", data=words[:6], dtype=utf8)
        f.create_dataset("many", data=many, dtype=utf8)
        f.create_dataset("ascii", data=many[:40], dtype=ascii)
        f.create_dataset("gzip", data=many, dtype=utf8, chunks=(700,), compression="gzip", shuffle=True)
        f.create_dataset("lzf", data=many, dtype=utf8, chunks=(64,), compression="lzf")
        f.create_dataset("grid", data=many[:3000].reshape(60, 50), dtype=utf8, chunks=(7, 11), compression="gzip")
        f.create_dataset("parts", (1000,), dtype=utf8, chunks=(100,), maxshape=(None,))[150:170] = many[:20]
        f.create_dataset("filled", (1000,), dtype=utf8, chunks=(100,), fillvalue="none")[150:170] = many[:20]
        f.create_dataset("never", (1000,), dtype=utf8)
        f.create_dataset("never_filled", (1000,), dtype=utf8, fillvalue="none")
        f.create_dataset("scalar", data="one text", dtype=utf8)
        table = np.zeros(200, [("a", "<i4"), ("t", utf8), ("b", "<f8")])
        table["t"] = many[:200]
        table["a"], table["b"] = np.arange(200), np.arange(200) / 4
        for each, how in ("table", {"chunks": (30,), "compression": "gzip"}), ("table_in_chunks", {"chunks": (30,)}), ("whole_table", {}):
            f.create_dataset(each, data=table, **how)
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.COMPACT)
        compact = h5py.h5d.create(f.id, b"compact", h5py.h5t.py_create(utf8, logical=True), h5py.h5s.create_simple((6,)), creation)
        h5py.Dataset(compact)[:] = words[:6]
        # Objects of the heap are freed, and their places taken again.
        again = f.create_dataset("rewritten", data=many[:400], dtype=utf8)
        f.flush()
        again[::3] = many[400:534]
        again[5:100:7] = ""
        f.flush()
        again[::5] = many[600:680]
        shown = h5py.VirtualLayout((700,), utf8)
        shown[:400] = h5py.VirtualSource(".", "rewritten", (400,))
        shown[400:600] = h5py.VirtualSource("other.h5", "texts", (200,))
        f.create_virtual_dataset("virtual", shown)
        names = list(f)
    for each in names:
        expect(path(name), each, "t" if "table" in each else None)


def number(*values):
    return struct.pack("<" + {4: "I", 16: "IQI"}[4 if len(values) == 1 else 16], *values)


def one_reference(f, text):
    f.create_dataset("one", (1,), h5py.string_dtype(), chunks=(1,))[0] = text
    f.flush()
    return f["one"].id.read_direct_chunk((0,))[1]


def crafted(name, reference_of, rows=64):
    """/x: rows that all refer to one object, compressed."""
    with h5py.File(path(name), "w") as f:
        reference = reference_of(f)
        x = f.create_dataset("x", (rows,), h5py.string_dtype(), chunks=(rows,), compression="gzip")
        x.id.write_direct_chunk((0,), zlib.compress(reference * rows))


with h5py.File(path("other.h5"), "w") as f:
    f.create_dataset("texts", data=[f"other {n % 9}" for n in range(200)], dtype=h5py.string_dtype())
layouts("earliest.h5")
layouts("latest.h5", libver="latest")
layouts("user_block.h5", userblock_size=2048)

# Narrow addresses and lengths, of which references are shorter.
creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
creation.set_sizes(4, 4)
f = h5py.File(h5py.h5f.create(path("narrow.h5").encode(), h5py.h5f.ACC_TRUNC, creation))
f.create_dataset("texts", data=["cat", "", "a longer text", "cat"], dtype=h5py.string_dtype())
f.attrs["text"] = "of an attribute"
f.close()
expect(path("narrow.h5"), "texts")

# Texts of different lengths: whoever takes another one's object gets a wrong length.
with h5py.File(path("bits.h5"), "w") as f:
    f.create_dataset("x", data=["t" * (n + 3) for n in range(24)], dtype=h5py.string_dtype())
    at = f["x"].id.get_offset()
    f.attrs["text"] = "a text " + "b" * 90
with open(path("bits.json"), "w") as out:
    data = open(path("bits.h5"), "rb").read()
    heap = struct.unpack("<Q", data[at + 4 : at + 12])[0]
    attribute = data.index(struct.pack("<IQ", 97, heap))
    objects = [heap + 16]
    while data[objects[-1]]:  # of free space the index is 0
        objects.append(objects[-1] + 16 + (data[objects[-1] + 8] + 7) // 8 * 8)
    json.dump({"references": at, "heap": heap, "objects": objects, "attribute": attribute}, out)

crafted("length_1.h5", lambda f: number(1) + one_reference(f, "a" * 200000)[4:])
crafted("length_2e9.h5", lambda f: number(2000000000) + one_reference(f, "a" * 10)[4:])
crafted("repeated.h5", lambda f: one_reference(f, "a" * 200000), rows=16384)
crafted("heap_of_none.h5", lambda f: number(10, 96, 1))
with h5py.File(path("claimed.h5"), "w") as f:
    f.create_dataset("x", (1 << 28,), h5py.string_dtype())
    one = f.create_dataset("one_chunk", (1 << 28,), h5py.string_dtype(), chunks=(1 << 18,), compression=9)
    one[0] = "a"
    f.create_dataset("few", data=["a", "b"], dtype=h5py.string_dtype())
    shown = h5py.VirtualLayout((1 << 28,), h5py.string_dtype())
    shown[:2] = h5py.VirtualSource(".", "few", (2,))
    f.create_virtual_dataset("shown", shown)

# A damaged chunk; two rows whose references are damaged, in another one.
with h5py.File(path("damaged.h5"), "w") as f:
    f.create_dataset("x", data=["abc"[n % 3] * (n % 3 + 1) for n in range(100)], dtype=h5py.string_dtype(), chunks=(10,))
    g = f.create_dataset("gzip", data=["abc"[n % 3] * (n % 3 + 1) for n in range(100)], dtype=h5py.string_dtype(), chunks=(10,), compression="gzip")
    plain, packed = f["x"].id.get_chunk_info(4), g.id.get_chunk_info(7)
    v = h5py.VirtualLayout((100,), h5py.string_dtype())
    v[:] = h5py.VirtualSource(".", "x", (100,))
    f.create_virtual_dataset("virtual", v)
with open(path("damaged.h5"), "r+b") as out:
    for row, byte in (2, 12), (3, 0), (9, 5):
        out.seek(plain.byte_offset + 16 * row + byte)
        was = out.read(1)[0]
        out.seek(plain.byte_offset + 16 * row + byte)
        out.write(bytes([was ^ 64]))
    out.seek(packed.byte_offset + packed.size - 1)
    was = out.read(1)[0]
    out.seek(packed.byte_offset + packed.size - 1)
    out.write(bytes([was ^ 255]))

manifest = os.path.join(corpus, "manifest.json")
for name, values in json.load(open(manifest)).items() if os.path.exists(manifest) else ():
    for dataset, info in values.get("datasets", {}).items():
        if info.get("other") != "object":
            continue
        file = os.path.realpath(os.path.join(corpus, "files", name))
        with h5py.File(file) as f:
            kind = h5py.check_string_dtype(f[dataset].dtype)
            is_text = kind is not None and kind.length is None
        if is_text:
            expect(file, dataset)

with open(path("texts.json"), "w") as out:
    json.dump(expected, out)
