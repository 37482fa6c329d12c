#!/usr/bin/python3
"""Writes the HDF5 files that the tests of io read, and beside each dataset the bytes that reading must give.

Usage: make_files.py FOLDER. FOLDER/list.txt has one line per dataset, with tabs:
  file, dataset, access (direct, staged or locked), rows, bytes of a row, file of the expected bytes
FOLDER/values.txt has one line per conversion: file, dataset, conversion (native, float32, float64, netcdf), expected bytes
The bytes come from the array that was written, never from a reader.
"""
import ctypes
import os
import struct
import subprocess
import sys
import zlib

# A plugin that is installed would change the parameters of the filters whose chunks are made by hand here.
os.environ["HDF5_PLUGIN_PATH"] = "/nonexistent"

import h5py
import numpy as np

import filter_files
import source_files
import type_files
from encoders import bitshuffle_chunk, blosc_buffer, fletcher32, library, lz4_block, lz4_chunk, shuffled, zstd_frame

folder = sys.argv[1]
lines = []
conversions = []
rng = np.random.default_rng(7)


def expect(file, dataset, access, array, rows=None):
    """`array` holds the values as reading must give them, rows first."""
    name = f"{len(lines):03}.bin"
    array = np.ascontiguousarray(array)
    with open(os.path.join(folder, name), "wb") as out:
        out.write(array.tobytes())
    rows = (array.shape[0] if array.ndim else 1) if rows is None else rows
    row_bytes = array.nbytes // rows if rows else array.itemsize * int(np.prod(array.shape[1:]))
    lines.append((file, dataset, access, str(rows), str(row_bytes), name))


def expect_values(file, dataset, conversion, array):
    """`array` holds the values as numpy converts them."""
    name = f"value{len(conversions):03}.bin"
    with open(os.path.join(folder, name), "wb") as out:
        out.write(np.ascontiguousarray(array).tobytes())
    conversions.append((file, dataset, conversion, name))


def converted_values():
    """Every type in other byte order and as floats; halves of every pattern; pieces longer than what is converted at once."""
    file = "values.h5"
    with h5py.File(os.path.join(folder, file), "w") as f:
        def add(name, array, **options):
            f.create_dataset(name, data=array, **options)
            native = array.astype(array.dtype.newbyteorder("="))
            expect_values(file, name, "native", native)
            expect_values(file, name, "float32", native.astype("f4"))
            expect_values(file, name, "float64", native.astype("f8"))

        for code in ["i1", "u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]:
            name = code.strip("<>") + ("be" if code[0] == ">" else "")
            array = rng.integers(0, 256, 611 * 8, "u1").view(code)[:611 * 8 // np.dtype(code).itemsize]
            if code[-2] == "f":
                array = (rng.standard_normal(array.size) * 100).astype(code)
            add(f"/{name}", array[: array.size // 13 * 13].reshape(-1, 13))
        add("/halves", np.arange(65536, dtype="<u2").view("<f2").reshape(256, 256), chunks=(100, 256), compression="gzip")
        add("/halves_be", np.arange(65536, dtype=">u2").view(">f2").reshape(256, 256), chunks=(256, 30))
        add("/bool", np.arange(30).reshape(10, 3) % 2 == 0)
        for code in ["<f8", ">f4", "<f2", ">i2"]:
            array = values((3000, 100), code)
            for kind, options in {"plain": {}, "chunked": {"chunks": (70, 100)}, "gzip": {"chunks": (70, 33), "compression": "gzip", "shuffle": True}}.items():
                add(f"/long_{code.strip('<>')}_{kind}", array, **options)
        complex_values = (values((20, 5), "f4") + 3j).astype("c8")
        f.create_dataset("/complex", data=complex_values)
        expect_values(file, "/complex", "float64", complex_values.astype("c16"))


def netcdf():
    """Packed as the CF conventions say: fill values are masked, all others are value * scale_factor + add_offset."""
    file = "netcdf.h5"
    with h5py.File(os.path.join(folder, file), "w") as f:
        def add(name, array, result, fill=None, scale=None, offset=None, **options):
            d = f.create_dataset(name, data=array, **options)
            if fill is not None:
                d.attrs["_FillValue"] = np.array([fill], array.dtype)  # netCDF writes one-element arrays
            if scale is not None:
                d.attrs["scale_factor"] = scale
            if offset is not None:
                d.attrs["add_offset"] = np.array([offset])
            masked = np.zeros(array.shape, bool) if fill is None else np.isnan(array) if fill != fill else array == fill
            plain = array.astype("f8") * (1.0 if scale is None else float(scale)) + (0.0 if offset is None else offset)
            expect_values(file, name, "netcdf", np.where(masked, np.nan, plain).astype(result))

        packed = rng.integers(-300, 300, (500, 300)).astype("<i2")
        packed[rng.random(packed.shape) < 0.2] = -32767
        add("/temperature", packed, "f4", -32767, 0.01, 273.15, chunks=(64, 300), compression="gzip", shuffle=True)
        add("/big_endian", packed.astype(">i2"), "f4", -32767, np.float32(0.1), chunks=(64, 100))
        add("/bytes", packed.astype("i1"), "f4", offset=-5.0)
        add("/wide", packed.astype("<i4") * 1000, "f8", -32767000, 1e-3, -7.0)
        add("/doubles", packed.astype("<f8"), "f8", -32767.0)
        holes = packed.astype("<f4")
        holes[packed == -32767] = np.nan
        add("/floats", holes, "f4", np.nan, 2.0)
        add("/nothing", packed, "f4")
        add("/scale_alone", packed.astype(">u2"), "f4", scale=np.int32(3))
        add("/offset_alone", packed.astype("<u4"), "f8", offset=2)
        add("/fill_alone", packed.astype(">f8"), "f8", -32767.0)
        # Attributes of other types than the values. No integer is NaN, 1e20 or 0.5; libhdf5 would make such ones of them.
        for name, fill, result in [("nan", np.nan, None), ("large", 1e20, None), ("fraction", 32767.5, None), ("integral", np.float32(-32767), -32767), ("wider", np.int64(-32767), -32767), ("too_wide", np.int64(1 << 40), None)]:
            other = np.where(packed == -32767, 32767, packed) if name in ("large", "fraction", "too_wide") else packed.copy()
            other[0, :5] = 0
            d = f.create_dataset("/other_fill_" + name, data=other.astype("<i2"))
            d.attrs["_FillValue"] = fill
            d.attrs["scale_factor"] = 0.5
            plain = other.astype("f8") * 0.5
            expect_values(file, "/other_fill_" + name, "netcdf", (plain if result is None else np.where(other == result, np.nan, plain)).astype("f4"))
        odd = f.create_dataset("/text_attribute", data=packed)
        odd.attrs["scale_factor"] = "0.01"
        several = f.create_dataset("/several", data=packed)
        several.attrs["_FillValue"] = np.array([1, 2], "<i2")
        f.create_dataset("/string", data=np.array([b"a", b"bc"], "S2"))
        f.create_dataset("/table", data=np.zeros(3, [("a", "<i4")]))

def write(file, dataset, array, access, **options):
    with h5py.File(os.path.join(folder, file), "a") as f:
        f.create_dataset(dataset, data=array, **options)
    expect(file, dataset, access, array)


def values(shape, code):
    """Compressible, but no two rows alike."""
    count = int(np.prod(shape))
    if code.endswith("f2"):
        return (np.arange(count) % 2048).astype(code).reshape(shape)
    return (np.arange(count) // 3).astype(code).reshape(shape)


def plain_types():
    for code in ["i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]:
        name = code.strip("<>") + ("be" if code[0] == ">" else "")
        write("types.h5", f"/contiguous/{name}", values((37, 5), code), "direct")
        write("types.h5", f"/chunked/{name}", values((37, 5), code), "direct", chunks=(8, 5), compression="gzip", shuffle=True)
    write("types.h5", "/bool", rng.integers(0, 2, (19, 3)).astype(bool), "direct")
    write("types.h5", "/complex64", (values((11, 4), "f4") + 1j).astype("c8"), "direct")
    write("types.h5", "/string", np.array([b"a", b"bcde", b""] * 5, "S5"), "direct")
    write("types.h5", "/void", rng.integers(0, 256, (9, 6), "u1").view("V6").reshape(9), "direct")
    with h5py.File(os.path.join(folder, "types.h5"), "a") as f:
        enum = h5py.enum_dtype({"RED": 0, "GREEN": 300}, basetype="<i2")
        f.create_dataset("/enum", data=np.array([0, 300, 0, 300], "<i2"), dtype=enum)
        inner = np.dtype(("<i4", (2, 3)))
        d = f.create_dataset("/array_type", (4,), dtype=inner)
        d[...] = np.arange(24, dtype="<i4").reshape(4, 2, 3)
        adc = h5py.h5t.STD_I16LE.copy()
        adc.set_precision(12)
        adc.set_offset(2)
        array = np.arange(-40, 40, dtype="<i2").reshape(20, 4)
        space = h5py.h5s.create_simple(array.shape)
        h5py.h5d.create(f.id, b"/adc", adc, space).write(h5py.h5s.ALL, h5py.h5s.ALL, array)
    expect("types.h5", "/enum", "direct", np.array([0, 300, 0, 300], "<i2"))
    expect("types.h5", "/array_type", "direct", np.arange(24, dtype="<i4").reshape(4, 2, 3))
    expect("types.h5", "/adc", "locked", array)


def layouts():
    a = values((101, 7, 9), "<i4")
    for name, chunks in {"rows": (10, 7, 9), "one": (1, 7, 9), "split": (10, 3, 4), "columns": (101, 1, 2), "large": (200, 7, 9)}.items():
        big = {"maxshape": (None, 7, 9)} if name == "large" else {}
        write("layouts.h5", f"/plain/{name}", a, "direct", chunks=chunks, **big)
        write("layouts.h5", f"/gzip/{name}", a, "direct", chunks=chunks, compression="gzip", **big)
        write("layouts.h5", f"/all/{name}", a, "direct", chunks=chunks, compression="gzip", shuffle=True, fletcher32=True, **big)
        write("layouts.h5", f"/shuffle/{name}", a, "direct", chunks=chunks, shuffle=True, **big)
        write("layouts.h5", f"/fletcher/{name}", a, "direct", chunks=chunks, fletcher32=True, **big)
    write("layouts.h5", "/vector", values((1000,), "<f4"), "direct", chunks=(64,), compression="gzip")
    write("layouts.h5", "/scalar", np.float64(3.5), "direct")
    write("layouts.h5", "/odd", rng.integers(0, 256, (33, 5), "u1"), "direct", chunks=(7, 3), fletcher32=True)
    write("layouts.h5", "/random", rng.integers(0, 2**32, (64, 33), "<u4"), "direct", chunks=(5, 33), compression="gzip", shuffle=True)
    with h5py.File(os.path.join(folder, "layouts.h5"), "a") as f:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.COMPACT)
        small = values((6, 5), ">i4")
        space = h5py.h5s.create_simple(small.shape)
        h5py.h5d.create(f.id, b"/compact", h5py.h5t.STD_I32BE, space, creation).write(h5py.h5s.ALL, h5py.h5s.ALL, small)
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_chunk((4, 5))
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        h5py.h5d.create(f.id, b"/early", h5py.h5t.STD_I32BE, space, early).write(h5py.h5s.ALL, h5py.h5s.ALL, small)
        scale = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        scale.set_chunk((4, 5))
        scale.set_scaleoffset(h5py.h5z.SO_INT, 0)
        h5py.h5d.create(f.id, b"/scaleoffset", h5py.h5t.STD_I32BE, space, scale).write(h5py.h5s.ALL, h5py.h5s.ALL, small)
    expect("layouts.h5", "/compact", "staged", small)
    expect("layouts.h5", "/early", "direct", small)
    expect("layouts.h5", "/scaleoffset", "locked", small)


def indexes():
    """The six chunk indexes: B-tree 1, and with the newest format single, implicit, fixed array, extensible array, B-tree 2."""
    a = values((50, 6), "<f4")
    cases = {"single": ((50, 6), None), "fixed": ((7, 6), None), "extensible": ((7, 6), (None, 6)), "btree2": ((7, 4), (None, None)), "second_axis": ((7, 4), (50, None))}
    for version in ["earliest", "latest"]:
        file = f"{version}.h5"
        with h5py.File(os.path.join(folder, file), "w", libver=version) as f:
            for name, (chunks, most) in cases.items():
                for kind, options in {"plain": {}, "gzip": {"compression": "gzip", "shuffle": True}}.items():
                    f.create_dataset(f"/{name}/{kind}", data=a, chunks=chunks, maxshape=most, **options)
                    expect(file, f"/{name}/{kind}", "direct", a)
            early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            early.set_chunk((7, 6))
            early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            space = h5py.h5s.create_simple(a.shape)
            h5py.h5d.create(f.id, b"/implicit", h5py.h5t.IEEE_F32LE, space, early).write(h5py.h5s.ALL, h5py.h5s.ALL, a)
            expect(file, "/implicit", "direct", a)


def missing_chunks():
    whole = np.full((60, 8), 7, "<i4")
    whole[20:35, 2:6] = values((15, 4), "<i4")
    with h5py.File(os.path.join(folder, "missing.h5"), "w", userblock_size=1024) as f:
        for kind, options in {"plain": {}, "gzip": {"compression": "gzip"}, "split": {}}.items():
            d = f.create_dataset(f"/{kind}", whole.shape, "<i4", chunks=(8, 3 if kind == "split" else 8), fillvalue=7, **options)
            d[20:35, 2:6] = whole[20:35, 2:6]
        f.create_dataset("/never", (10, 3), ">i2", chunks=(4, 3), fillvalue=258)
        f.create_dataset("/contiguous", (10, 3), ">i2", fillvalue=258)
        f.create_dataset("/empty", (0, 5), "<f4", maxshape=(None, 5), chunks=(16, 5))
        f.create_dataset("/no_columns", (5, 0), "<f4")
        shrunk = f.create_dataset("/shrunk", data=values((40, 3), "<u2"), chunks=(6, 3), maxshape=(None, 3))
        shrunk.resize((13, 3))
    for kind in ["plain", "gzip", "split"]:
        expect("missing.h5", f"/{kind}", "direct", whole)
    expect("missing.h5", "/never", "direct", np.full((10, 3), 258, ">i2"))
    expect("missing.h5", "/contiguous", "direct", np.full((10, 3), 258, ">i2"))
    expect("missing.h5", "/empty", "direct", np.zeros((0, 5), "<f4"))
    expect("missing.h5", "/no_columns", "direct", np.zeros((5, 0), "<f4"))
    expect("missing.h5", "/shrunk", "direct", values((40, 3), "<u2")[:13])


def large():
    """Some megabytes, in chunks and pieces that no page boundary suits."""
    array = rng.integers(0, 2**32, (3001, 501), "<u4")
    with h5py.File(os.path.join(folder, "large.h5"), "w") as f:
        f.create_dataset("/x", data=array, chunks=(100, 501))
        f.create_dataset("/contiguous", data=array)
    with open(os.path.join(folder, "large.bin"), "wb") as out:
        out.write(array.tobytes())
    # One chunk each, of rows of 1 MiB. Values count.
    with h5py.File(os.path.join(folder, "large_chunks.h5"), "w") as f:
        for name, rows, options in [("deflate", 17, dict(compression=1)), ("shuffled", 17, dict(compression=1, shuffle=True, fletcher32=True)), ("smaller", 16, dict(compression=1)), ("lzf", 17, dict(compression="lzf")), ("plain", 17, {})]:
            f.create_dataset(name, data=np.arange(rows << 18, dtype="<u4").reshape(rows, -1), chunks=(rows, 1 << 18), **options)
        creation, block = h5py.h5p.create(h5py.h5p.DATASET_CREATE), 1 << 18
        creation.set_chunk((17, block))
        creation.set_filter(32008, h5py.h5z.FLAG_OPTIONAL, (0, 4, 4, block, 0))
        creation.set_filter(h5py.h5z.FILTER_DEFLATE, h5py.h5z.FLAG_OPTIONAL, (1,))
        space = h5py.h5s.create_simple((17, block))
        d = h5py.h5d.create(f.id, b"bitshuffled", h5py.h5t.STD_U32LE, space, creation)
        d.write_direct_chunk((0, 0), zlib.compress(bitshuffle_chunk(np.arange(17 * block, dtype="<u4").tobytes(), 4, block), 1))


def hostile_values():
    """Values and fill values of any length, and one source that many mappings show: nothing of them is stored, or once."""
    from h5py import h5d, h5p, h5s, h5t
    names = []

    def add(name, kind, shape, sources, mapped, options=lambda create: None, links=0):
        """/x has a mapping to each of `mapped`; without any it is as the sources."""
        with h5py.File(os.path.join(folder, f"hostile_{name}.h5"), "w") as f:
            for source in sources:
                create = h5p.create(h5p.DATASET_CREATE)
                options(create)
                h5d.create(f.id, source.encode(), kind, h5s.create_simple(shape), create)
            for n in range(links):
                f[f"/link{n}"] = f[sources[0]]
            if mapped:
                create = h5p.create(h5p.DATASET_CREATE)
                for n, source in enumerate(mapped):
                    space = h5s.create_simple((len(mapped),) + shape[1:])
                    space.select_hyperslab((n,) + (0,) * (len(shape) - 1), (1,) + shape[1:])
                    of = h5s.create_simple(shape)
                    of.select_hyperslab((0,) * len(shape), (1,) + shape[1:])
                    create.set_virtual(space, b".", source.encode(), of)
                h5d.create(f.id, b"/x", kind, h5s.create_simple((len(mapped),) + shape[1:]), create)
        names.append(f"hostile_{name}.h5")

    text = h5t.C_S1.copy()
    text.set_size(2**31 - 1)
    add("long_texts", text, (4,), ["/x"], [])
    array = h5t.array_create(h5t.IEEE_F32LE, (1 << 27,))
    add("long_arrays", array, (1,), ["/s"], ["/s"] * 8)
    add("long_arrays_apart", array, (1,), [f"/s{n}" for n in range(5)], [f"/s{n}" for n in range(5)])
    add("one_index", h5t.STD_I32LE, (20000, 4), ["/s"], ["/s"] * 2000, lambda create: create.set_chunk((1, 4)))
    opaque = np.array(b"7" * 30000).view("V30000")
    add("one_fill", h5t.py_create(opaque.dtype), (1,), ["/s"], [f"/link{n}" for n in range(300)],
        lambda create: create.set_fill_value(opaque), links=300)
    return names


def hostile():
    """Headers that claim more than there is. hostile.txt: the files; each holds /x."""
    names = []

    def patched(name, replacements, **options):
        path = os.path.join(folder, f"hostile_{name}.h5")
        with h5py.File(path, "w") as f:
            f.create_dataset("/x", **options)
        data = open(path, "rb").read()
        for old, new in replacements(path):
            if old not in data:
                raise RuntimeError(f"{name}: the header is not as it was expected to be")
            data = data.replace(old, new)
        open(path, "wb").write(data)
        names.append(f"hostile_{name}.h5")

    def first_chunk(path):
        with h5py.File(path) as f:
            return f["/x"].id.get_chunk_info(0).size

    two = lambda *extents: struct.pack("<QQ", *extents)
    array = values((1235, 67), "<u4")
    packed = {"data": array, "chunks": (100, 67), "compression": "gzip"}
    patched("shape_overflows", lambda p: [(two(1235, 67), two(1 << 62, 67))], **packed)
    patched("shape_is_long", lambda p: [(two(1235, 67), two(1 << 40, 67))], **packed)
    patched("shape_is_long_contiguous", lambda p: [(two(1235, 67), two(1 << 40, 67))], data=array)
    patched("chunk_overflows", lambda p: [(struct.pack("<III", 100, 67, 4), struct.pack("<III", 0xFFFFFFFF, 0xFFFFFFFF, 4))], **packed)
    whole = {"data": array, "chunks": (1235, 67), "compression": "gzip"}
    patched("chunk_is_large", lambda p: [(struct.pack("<III", 1235, 67, 4), struct.pack("<III", 4000000, 67, 4))], **whole)
    patched("chunk_has_4_GiB", lambda p: [(struct.pack("<III", 1235, 67, 4), struct.pack("<III", 16000000, 67, 4))], **whole)
    patched("stored_chunk_is_large", lambda p: [(struct.pack("<IIQQQ", first_chunk(p), 0, 0, 0, 0), struct.pack("<IIQQQ", 0xFFFFFFF0, 0, 0, 0, 0))], **packed)
    with h5py.File(os.path.join(folder, "hostile_compact.h5"), "w") as f:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((1235, 3))
        h5py.h5d.create(f.id, b"/x", h5py.h5t.STD_U8LE, space, creation)
    path = os.path.join(folder, "hostile_compact.h5")
    data = open(path, "rb").read()
    open(path, "wb").write(data.replace(two(1235, 3), two(1 << 40, 3)))
    names.append("hostile_compact.h5")
    with h5py.File(os.path.join(folder, "hostile_texts.h5"), "w") as f:
        f.create_dataset("/x", (1 << 40,), h5py.string_dtype(), chunks=(1024,))
    names.append("hostile_texts.h5")
    names += hostile_values()
    with open(os.path.join(folder, "hostile.txt"), "w") as out:
        out.writelines(name + "\n" for name in names)
    with h5py.File(os.path.join(folder, "sparse.h5"), "w") as f:
        f.create_dataset("/nothing", (1 << 50, 3), "<u2", chunks=(1, 3), fillvalue=7, maxshape=(None, 3))
        d = f.create_dataset("/a_little", (1 << 50, 3), "<u2", chunks=(1, 3), fillvalue=7, maxshape=(None, 3))
        d[(1 << 50) - 1] = [1, 2, 3]


def parts():
    """One field over several files and groups: part1, part2, part10."""
    for n, rows in {1: 5, 2: 0, 10: 12}.items():
        with h5py.File(os.path.join(folder, f"part{n}.h5"), "w") as f:
            a = (values((rows, 4), "<f4") + 100 * n).astype("<f4")
            f.create_dataset("/a/x", data=a, chunks=(3, 4) if rows else None, compression="gzip" if rows else None)
            f.create_dataset("/b/x", data=a + 1)
            f.create_dataset("/b/y", data=a.astype(">f4"))
    for n, rows in {1: 5, 2: 0, 10: 12}.items():
        with open(os.path.join(folder, f"part{n}.bin"), "wb") as out:
            out.write((values((rows, 4), "<f4") + 100 * n).astype("<f4").tobytes())


def refused():
    with h5py.File(os.path.join(folder, "refused.h5"), "w") as f:
        f.create_dataset("/text", data=["variable", "length"], dtype=h5py.string_dtype())
        f.create_dataset("/more_text", data=["a class", "variable", "", "a class"], dtype=h5py.string_dtype())
        f.create_dataset("/texts", data=np.array([[f"{r}{c}" for c in range(4)] for r in range(5)], object), dtype=h5py.string_dtype(), chunks=(2, 3), compression="gzip")
        f.create_dataset("/ragged", (3,), dtype=h5py.vlen_dtype("<i4"))
        f.create_dataset("/compound", data=np.zeros(3, [("a", "<i4"), ("b", "<f8")]))
        f.create_dataset("/reference", data=np.array([f.ref], dtype=h5py.ref_dtype))
        f.create_dataset("/null", data=h5py.Empty("<f4"))
        f.create_dataset("/fine", data=np.arange(6))
        f["/hard"] = f["/fine"]
        f["/soft"] = h5py.SoftLink("/fine")
        f["/dangling"] = h5py.SoftLink("/nowhere")
        f["/outside"] = h5py.ExternalLink("part1.h5", "/a/x")
        f.create_group("/group/within")
        f["/group/circle"] = f["/group"]


def damaged():
    a = rng.integers(0, 255, (64, 64), "u1")
    path = os.path.join(folder, "damaged.h5")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("/gzip", data=a, chunks=(8, 64), compression="gzip")
        info = d.id.get_chunk_info(5)
        s = f.create_dataset("/fletcher", data=a, chunks=(8, 64), fletcher32=True)
        other = s.id.get_chunk_info(3)
    with open(path, "r+b") as f:
        f.seek(info.byte_offset + info.size // 2)
        f.write(b"\x00\xff\x00\xff")
        f.seek(other.byte_offset + 17)
        byte = f.read(1)
        f.seek(other.byte_offset + 17)
        f.write(bytes([byte[0] ^ 1]))
    path = os.path.join(folder, "cut.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset("/x", data=a)
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) - 100)


def write_chunks(file, dataset, array, chunks, filters, encode, masks=None):
    """Writes each chunk as encode(its bytes) gives it; `masks` maps numbers of chunks to (mask, encode)."""
    with h5py.File(os.path.join(folder, file), "a") as f:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk(chunks)
        for number, values in filters:
            creation.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
        f.require_group(os.path.dirname(dataset))
        space = h5py.h5s.create_simple(array.shape)
        d = h5py.h5d.create(f.id, dataset.encode(), h5py.h5t.py_create(array.dtype), space, creation)
        n = 0
        for r in range(0, array.shape[0], chunks[0]):
            for c in range(0, array.shape[1], chunks[1]):
                part = np.zeros(chunks, array.dtype)
                inside = array[r : r + chunks[0], c : c + chunks[1]]
                part[: inside.shape[0], : inside.shape[1]] = inside
                mask, how = (masks or {}).get(n, (0, encode))
                d.write_direct_chunk((r, c), how(part.tobytes()), mask)
                n += 1
    expect(file, dataset, "direct", array)


def filters():
    """Filters that h5py has no encoder for, on data that compress and on data that do not, with chunks made by hand."""
    for kind, array in {"smooth": values((61, 37), "<f4"), "random": rng.integers(0, 2**32, (61, 37), "<u4")}.items():
        raw = lambda data: data
        chunks = (16, 10)
        size = array.dtype.itemsize
        write("filters.h5", f"/lzf/{kind}", array, "direct", chunks=chunks, compression="lzf", shuffle=kind == "smooth")
        write("filters.h5", f"/szip/{kind}", array, "direct", chunks=chunks, compression="szip", compression_opts=("nn", 8))
        for code in ["<i2", "u1", "<f8", ">f4"]:
            other = (array % 251).astype(code)
            write("filters.h5", f"/szip/{kind}_{code.strip('<>')}{'be' if code[0] == '>' else ''}", other, "direct", chunks=chunks, compression="szip", compression_opts=("ec", 16))
        if library("liblz4.so.1"):
            write_chunks("filters.h5", f"/lz4/{kind}", array, chunks, [(32004, (100,))], lambda b: lz4_chunk(b, 100))
            write_chunks("filters.h5", f"/lz4/{kind}_whole", array, chunks, [(2, (size,)), (32004, ())], lambda b: lz4_chunk(shuffled(b, size), 1 << 30))
            for block in [0, 16]:
                write_chunks("filters.h5", f"/bitshuffle_lz4/{kind}{block}", array, chunks, [(32008, (0, 4, size, block, 2))], lambda b: bitshuffle_chunk(b, size, block, lz4_block))
        if library("libzstd.so.1"):
            write_chunks("filters.h5", f"/zstd/{kind}", array, chunks, [(32015, (3,))], zstd_frame)
            write_chunks("filters.h5", f"/bitshuffle_zstd/{kind}", array, chunks, [(32008, (0, 4, size, 0, 3, 3))], lambda b: bitshuffle_chunk(b, size, 0, zstd_frame))
            # Of bytes, plugins that know no Zstandard give wrong values without an error.
            bytes_ = (array % 251).astype("u1")
            write_chunks("filters.h5", f"/bitshuffle_zstd/{kind}_u1", bytes_, (37, 11), [(32008, (0, 4, 1, 0, 3, 3))], lambda b: bitshuffle_chunk(b, 1, 0, zstd_frame))
        for code in ["u1", "<i2", "<f8", "<c16"]:
            other = (array % 251).astype(code)
            width = other.dtype.itemsize
            write_chunks("filters.h5", f"/bitshuffle/{kind}_{code.strip('<')}", other, (37, 11), [(32008, (0, 4, width, 64, 0))], lambda b: bitshuffle_chunk(b, width, 64))
            write_chunks("filters.h5", f"/bitshuffle/{kind}_{code.strip('<')}_default", other, (61, 37), [(32008, (0, 4, width))], lambda b: bitshuffle_chunk(b, width, 0))
        if library("libblosc.so.1"):
            for codec in [b"blosclz", b"lz4", b"zlib", b"zstd"]:
                for shuffle in [0, 1, 2]:
                    write_chunks("filters.h5", f"/blosc/{kind}_{codec.decode()}{shuffle}", array, chunks, [(32001, (2, 2, size, 640, 5, shuffle, 0))], lambda b: blosc_buffer(b, size, codec, shuffle))
        skipped = {0: (0, lambda b: zlib.compress(shuffled(b, size))), 1: (1, zlib.compress), 2: (2, lambda b: shuffled(b, size)), 3: (3, raw)}
        write_chunks("filters.h5", f"/masks/{kind}", array, chunks, [(2, (size,)), (1, (4,))], skipped[0][1], {n: skipped[n % 4] for n in range(16)})
        write_chunks("filters.h5", f"/longer_stream/{kind}", array, chunks, [(1, (4,))], lambda b: zlib.compress(b + b"more than the chunk holds"))
        write_chunks("filters.h5", f"/bytes_after/{kind}", array, chunks, [(1, (4,))], lambda b: zlib.compress(b) + b"junk")
        write_chunks("filters.h5", f"/deflate_then_shuffle/{kind}", array, chunks, [(1, (4,)), (2, (size,))], lambda b: shuffled(zlib.compress(b), size))


def partial_chunks_unfiltered():
    """H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS is not in h5py: libhdf5 is called as it is."""
    array = values((45, 11), "<i4")
    with h5py.File(os.path.join(folder, "unfiltered_edges.h5"), "w", libver="latest") as f:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((8, 4))
        creation.set_shuffle()
        creation.set_deflate(4)
        hdf5 = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "libhdf5" in line and "_hl" not in line))
        hdf5.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
        if hdf5.H5Pset_chunk_opts(creation.id, 2) < 0:
            raise RuntimeError("H5Pset_chunk_opts failed")
        space = h5py.h5s.create_simple(array.shape)
        h5py.h5d.create(f.id, b"/x", h5py.h5t.STD_I32LE, space, creation).write(h5py.h5s.ALL, h5py.h5s.ALL, array)
    expect("unfiltered_edges.h5", "/x", "direct", array)


def members():
    """Members of compounds as fields; a dataset's own name wins, whatever it looks like."""
    nested = np.dtype([("x", ">i2"), ("y", "<f8")])
    kind = np.dtype({"names": ["id", "value", "inner", "vector", "label"], "formats": ["<i4", ">f4", nested, "(3,)<f4", "S5"], "offsets": [0, 8, 16, 32, 44], "itemsize": 56})
    table = np.zeros(53, kind)
    for name in ["id", "value"]:
        table[name] = values((53,), "<f4")
    table["inner"]["x"] = np.arange(53)
    table["inner"]["y"] = np.arange(53) / 7
    table["vector"] = values((53, 3), "<f4")
    table["label"] = [f"n{n}".encode() for n in range(53)]
    with h5py.File(os.path.join(folder, "members.h5"), "w") as f:
        f.create_dataset("/contiguous", data=table)
        f.create_dataset("/plain", data=table, chunks=(10,))
        f.create_dataset("/gzip", data=table, chunks=(10,), compression="gzip", shuffle=True)
        d = f.create_dataset("/partly", (40,), kind, chunks=(8,), fillvalue=table[5])
        d[10:20] = table[10:20]
        f.create_dataset("/wide", data=table[:48].reshape(12, 4), chunks=(5, 3), compression="gzip")
        f.create_dataset("/gzip[id]x", data=np.arange(4))
        f.create_dataset("/both", data=table)
        f.create_dataset("/both[id]", data=np.arange(7, dtype="<i2"))
        f.create_dataset("/names", data=np.zeros(2, [("a.b", "<i4"), ("c", "<i4")]))
        f.create_dataset("/odd[name]", data=np.arange(5, dtype="<i2"))
    partly = np.full(40, table[5], kind)
    partly[10:20] = table[10:20]
    for name, array in {"/contiguous": table, "/plain": table, "/gzip": table, "/partly": partly, "/wide": table[:48].reshape(12, 4)}.items():
        for member in ["id", "value", "vector", "label"]:
            expect("members.h5", f"{name}[{member}]", "direct", array[member])
        expect("members.h5", f"{name}[inner.x]", "direct", array["inner"]["x"])
        expect("members.h5", f"{name}[inner.y]", "direct", array["inner"]["y"])
    expect("members.h5", "/names[a.b]", "direct", np.zeros(2, "<i4"))
    expect("members.h5", "/odd[name]", "direct", np.arange(5, dtype="<i2"))
    expect("members.h5", "/both[id]", "direct", np.arange(7, dtype="<i2"))
    expect("members.h5", "/both[value]", "direct", table["value"])


def external_files():
    array = values((30, 6), ">i4")
    data = array.tobytes()
    names = [os.path.join(folder, f"external{n}.raw") for n in range(2)]
    with open(names[0], "wb") as out:
        out.write(b"header" + data[:100])
    with open(names[1], "wb") as out:
        out.write(data[100:-50])  # the rest reads as zeros
    with h5py.File(os.path.join(folder, "external.h5"), "w") as f:
        f.create_dataset("/x", array.shape, ">i4", external=[(names[0], 6, 100), (names[1], 0, h5py.h5f.UNLIMITED)])
        for name, element in {"/behind": ">i4", "/locked_behind": "<i8"}.items():  # the other type is libhdf5's to make
            layout = h5py.VirtualLayout(array.shape, element)
            layout[:] = h5py.VirtualSource(f["x"])
            f.create_virtual_dataset(name, layout)
        layout = h5py.VirtualLayout((10, 6), ">i4")
        layout[:] = h5py.VirtualSource(f["behind"])[5:15]
        f.create_virtual_dataset("/far_behind", layout)
    there = np.frombuffer(data[:-50] + bytes(50), ">i4").reshape(array.shape)
    expect("external.h5", "/x", "direct", there)
    expect("external.h5", "/behind", "direct", there)
    expect("external.h5", "/locked_behind", "locked", there.astype("<i8"))
    expect("external.h5", "/far_behind", "direct", there[5:15])


def virtual_datasets():
    whole = values((64, 6), "<f4")
    for n in range(16):
        with h5py.File(os.path.join(folder, f"source{n}.h5"), "w") as f:
            options = {"chunks": (3, 6), "compression": "gzip"} if n % 2 else {}
            f.create_dataset("/x", data=whole[4 * n : 4 * n + 4], **options)
            f.create_dataset("/every", data=whole[n::16])
            f.create_dataset("/image", data=whole[n].reshape(2, 3))
            f.create_dataset("/doubles", data=whole[4 * n : 4 * n + 4].astype("<f8"))
    with h5py.File(os.path.join(folder, "virtual.h5"), "w", libver="latest") as f:
        def make(name, shape, place, source="/x", count=16, fill=None):
            made = h5py.VirtualLayout(shape, "<f4")
            for n in range(count):
                with h5py.File(os.path.join(folder, f"source{n}.h5"), "r") as g:
                    from_shape = g[source].shape
                made[place(n)] = h5py.VirtualSource(f"source{n}.h5", source, from_shape)
            f.create_virtual_dataset(name, made, fillvalue=fill)

        make("/stacked", (64, 6), lambda n: slice(4 * n, 4 * n + 4))
        make("/interleaved", (64, 6), lambda n: slice(n, 64, 16), "/every")
        make("/images", (16, 2, 3), lambda n: n, "/image")
        make("/gaps", (70, 8), lambda n: (slice(4 * n, 4 * n + 4), slice(1, 7)), count=15, fill=9)
        make("/side_by_side", (4, 96), lambda n: (slice(None), slice(6 * n, 6 * n + 6)))
        make("/converted", (64, 6), lambda n: slice(4 * n, 4 * n + 4), "/doubles")
        part = h5py.VirtualLayout((6, 2), "<f4")
        part[:3] = h5py.VirtualSource("source1.h5", "/x", (4, 6))[1:4, 2:4]
        part[3:] = h5py.VirtualSource(".", "/stacked", (64, 6))[10:13, 4:6]
        f.create_virtual_dataset("/parts", part)
        absent = h5py.VirtualLayout((8, 6), "<f4")
        absent[:4] = h5py.VirtualSource("source0.h5", "/x", (4, 6))
        absent[4:] = h5py.VirtualSource("nowhere.h5", "/x", (4, 6))
        f.create_virtual_dataset("/absent", absent)
        # A source of another shape than its mapping says: libhdf5 reads this one.
        absent[:4] = h5py.VirtualSource("source0.h5", "/x", (40, 60))[:4, :6]
        f.create_virtual_dataset("/absent_locked", absent)
    gaps = np.full((70, 8), 9, "<f4")
    gaps[:60, 1:7] = whole[:60]
    expect("virtual.h5", "/stacked", "direct", whole)
    expect("virtual.h5", "/interleaved", "direct", whole)
    expect("virtual.h5", "/images", "direct", whole[:16].reshape(16, 2, 3))
    expect("virtual.h5", "/gaps", "direct", gaps)
    expect("virtual.h5", "/side_by_side", "direct", np.concatenate(np.split(whole, 16), axis=1))
    expect("virtual.h5", "/converted", "locked", whole)
    expect("virtual.h5", "/parts", "direct", np.concatenate([whole[5:8, 2:4], whole[10:13, 4:6]]))


def plugins():
    """What the filters' own plugins write. One that is installed may be broken, and spoils the search for others: each is
    linked by name. The program that reads finds only what it must not decode itself."""
    installed = "/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins"
    for place, names in {"plugins": ["libh5bz2.so"], "writers": ["libh5bz2.so", "libh5lz4.so", "libH5Zblosc.so", "libh5bshuf.so"]}.items():
        os.makedirs(os.path.join(folder, place), exist_ok=True)
        for name in names:
            if os.path.exists(os.path.join(installed, name)):
                os.symlink(os.path.join(installed, name), os.path.join(folder, place, name))
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "make_plugin_files.py")
    made = subprocess.run([sys.executable, script, folder], env=dict(os.environ, HDF5_PLUGIN_PATH=os.path.join(folder, "writers")), stdout=subprocess.PIPE, text=True, check=True)
    for line in made.stdout.splitlines():
        name, access = line.split("\t")
        lines.append(("plugins.h5", name, access, "600", str(40 * 4), "plugin" + name.replace("/", "_") + ".bin"))
    with h5py.File(os.path.join(folder, "no_plugin.h5"), "w") as f:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((4,))
        creation.set_filter(305, h5py.h5z.FLAG_OPTIONAL, ())
        d = h5py.h5d.create(f.id, b"/lzo", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((4,)), creation)
        d.write_direct_chunk((0,), b"whatever it is", 0)


def traps():
    """What the other makers lack: odd names, old checksums, chunks that are longer than their values, the oldest szip."""
    names = [b"/a[b]", b"/[", b"/per%cent", b"/sp ace", b"/caf\xc3\xa9", b"/not\xffutf8", b"/new\nline", b"/*?", b"/a]"]
    array = values((20, 3), "<i4")
    with h5py.File(os.path.join(folder, "names.h5"), "w") as f:
        space = h5py.h5s.create_simple(array.shape)
        for name in names:
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk((6, 3))
            h5py.h5d.create(f.id, name, h5py.h5t.STD_I32LE, space, creation).write(h5py.h5s.ALL, h5py.h5s.ALL, array)
    with open(os.path.join(folder, "names.bin"), "wb") as out:
        out.write(array.tobytes())
    with open(os.path.join(folder, "names.txt"), "wb") as out:
        out.write(b"\0".join(names))

    for kind, source in {"smooth": values((61, 37), "<f4"), "random": rng.integers(0, 2**32, (61, 37), "<u4"), "zeros": np.zeros((61, 37), "<u4")}.items():
        for age, old in {"new": False, "old": True}.items():
            write_chunks("traps.h5", f"/fletcher_{age}/{kind}", source, (16, 10), [(3, ())], lambda b: fletcher32(b, old))
            write_chunks("traps.h5", f"/fletcher_{age}_inside/{kind}", source, (16, 10), [(3, ()), (2, (4,)), (1, (4,))], lambda b: zlib.compress(shuffled(fletcher32(b, old), 4)))
            write_chunks("traps.h5", f"/fletcher_{age}_odd/{kind}", (source % 251).astype("u1"), (7, 5), [(3, ())], lambda b: fletcher32(b, old))
        stored_longer = lambda b: zlib.compress(b, 0)
        write_chunks("traps.h5", f"/longer_than_raw/{kind}", source, (16, 10), [(1, (0,))], stored_longer)
        for code in ["<i4", "<i8", ">i4", ">f8", "<f4"]:
            other = (source.astype("f8") % 1000003).astype(code)
            for method in ["nn", "ec"]:
                write("traps.h5", f"/szip_{method}/{kind}_{code.strip('<>')}{'be' if code[0] == '>' else ''}", other, "direct", chunks=(16, 16), compression="szip", compression_opts=(method, 32))
    # bfloat16 has the size of a half, and other fields; a float of 24 bits is no machine's.
    bits = rng.integers(0, 65536, (40, 9)).astype("<u2")
    bits[(bits & 0x7F80) == 0x7F80] &= 0xFF7F  # no NaN: every bit pattern is a number of its own
    with h5py.File(os.path.join(folder, "floats.h5"), "w") as f:
        def typed(name, start, fields, size, bias, data, **layout):
            kind = start.copy()
            kind.set_fields(*fields)
            kind.set_size(size)
            kind.set_ebias(bias)
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            if "chunks" in layout:
                creation.set_chunk(layout["chunks"])
                creation.set_deflate(4)
            space = h5py.h5s.create_simple(data.shape)
            h5py.h5d.create(f.id, name, kind, space, creation).write(h5py.h5s.ALL, h5py.h5s.ALL, data, layout.get("memory", kind))

        bfloat = ((15, 7, 8, 0, 7), 2, 127)
        typed(b"/bfloat16", h5py.h5t.IEEE_F32LE, *bfloat, bits)
        typed(b"/bfloat16_gzip", h5py.h5t.IEEE_F32LE, *bfloat, bits, chunks=(7, 9))
        typed(b"/bfloat16be", h5py.h5t.IEEE_F32BE, *bfloat, bits.byteswap())
        small = values((40, 9), "<f4")
        typed(b"/float24", h5py.h5t.IEEE_F32LE, (23, 16, 7, 0, 16), 3, 63, small, memory=h5py.h5t.IEEE_F32LE)
    wide = (bits.astype("<u4") << 16).view("<f4")
    expect("floats.h5", "/bfloat16", "direct", bits)
    expect("floats.h5", "/bfloat16_gzip", "direct", bits)
    expect("floats.h5", "/bfloat16be", "direct", bits.byteswap())
    expect("floats.h5", "/float24", "locked", small)
    for name in ["/bfloat16", "/bfloat16_gzip", "/bfloat16be"]:
        expect_values("floats.h5", name, "native", bits)
        expect_values("floats.h5", name, "float32", wide)
        expect_values("floats.h5", name, "float64", wide.astype("<f8"))
    with h5py.File(os.path.join(folder, "user_block.h5"), "w", userblock_size=2048) as f:
        whole = values((50, 6), "<f4")
        f.create_dataset("/contiguous", data=whole)
        f.create_dataset("/chunked", data=whole, chunks=(7, 6), compression="gzip")
        f.create_dataset("/external", whole.shape, "<f4", external=[(os.path.join(folder, "user_block.raw"), 0, whole.nbytes)])
    with open(os.path.join(folder, "user_block.raw"), "wb") as out:
        out.write(whole.tobytes())
    for name in ["/contiguous", "/chunked", "/external"]:
        expect("user_block.h5", name, "direct", whole)


for make in [plugins, traps, converted_values, netcdf, large, hostile, members, external_files, virtual_datasets, filters, partial_chunks_unfiltered, plain_types, layouts, indexes, missing_chunks, parts, refused, damaged]:
    make()
type_files.make(folder, expect, expect_values)
source_files.make(folder, expect)
filter_files.make(folder, expect, write_chunks)
with open(os.path.join(folder, "list.txt"), "w") as out:
    out.writelines("\t".join(line) + "\n" for line in lines)
with open(os.path.join(folder, "values.txt"), "w") as out:
    out.writelines("\t".join(line) + "\n" for line in conversions)
