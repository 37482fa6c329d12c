"""Types, fill values and edge chunks that are easily read wrongly, for make_files.py: make(folder, expect, expect_values)."""
import ctypes
import os

import h5py
import numpy as np

rng = np.random.default_rng(3)


def loaded_hdf5():
    """libhdf5 as h5py has it loaded, for what h5py does not wrap."""
    return ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "libhdf5" in line and "_hl" not in line))


def narrow_integers(folder, expect, expect_values):
    """Integers that do not fill their bytes. Between two byte orders of one size, libhdf5 1.10.8 forgets their sign."""
    file = "narrow.h5"
    with h5py.File(os.path.join(folder, file), "w") as f:
        for base in [h5py.h5t.STD_I16LE, h5py.h5t.STD_U16LE, h5py.h5t.STD_I16BE, h5py.h5t.STD_U32BE, h5py.h5t.STD_I32BE, h5py.h5t.STD_I64LE]:
            for bits, offset in [(12, 0), (12, 2), (9, 4)]:
                for layout in ["plain", "gzip", "nbit"]:
                    kind = base.copy()
                    kind.set_precision(bits)
                    kind.set_offset(offset)
                    signed, big = kind.get_sign() == h5py.h5t.SGN_2, kind.get_order() == h5py.h5t.ORDER_BE
                    least = -(1 << (bits - 1)) if signed else 0
                    array = rng.integers(least, least + (1 << bits), (40, 4)).astype((">" if big else "<") + ("i" if signed else "u") + str(kind.get_size()))
                    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                    if layout != "plain":
                        creation.set_chunk((7, 4))
                    if layout == "gzip":
                        creation.set_shuffle()
                        creation.set_deflate(3)
                    if layout == "nbit":
                        creation.set_filter(5, h5py.h5z.FLAG_MANDATORY, ())
                    creation.set_fill_value(np.array(least, array.dtype.newbyteorder("=")))
                    name = f"/{array.dtype.str.strip('<>')}{'be' if big else ''}_{bits}_{offset}_{layout}"
                    d = h5py.h5d.create(f.id, name.encode(), kind, h5py.h5s.create_simple((60, 4)), creation)
                    part = d.get_space()
                    part.select_hyperslab((0, 0), (40, 4))
                    d.write(h5py.h5s.create_simple((40, 4)), part, array)
                    whole = np.full((60, 4), least, array.dtype)
                    whole[:40] = array
                    expect(file, name, "locked", whole)
                    expect_values(file, name, "float64", whole.astype("f8"))
                    expect_values(file, name, "native", whole.astype(whole.dtype.newbyteorder("=")))


def wide_complex(folder, expect, expect_values):
    file = "wide.h5"
    with h5py.File(os.path.join(folder, file), "w") as f:
        for code in [">c8", "<c16", ">c16"]:
            array = (rng.standard_normal((9, 3)) + 1j * rng.standard_normal((9, 3))).astype(code)
            name = "/" + code.strip("<>") + ("be" if code[0] == ">" else "")
            f.create_dataset(name, data=array, chunks=(4, 3), compression="gzip")
            expect(file, name, "direct", array)
            expect_values(file, name, "float32" if code == ">c8" else "float64", array.astype("c8" if code == ">c8" else "c16"))
        # Ten bytes of value in sixteen, the rest of which is the compiler's.
        bare = np.zeros((9, 3), "clongdouble")
        f.create_dataset("/clongdouble", data=bare)
        expect(file, "/clongdouble", "direct", bare)


def fills(folder, expect, _):
    """Fill values of every kind of type, where nothing or some chunks are stored."""
    file = "fills.h5"
    with h5py.File(os.path.join(folder, file), "w") as f:
        for code in ["<f2", ">f2", "<f4", ">f4", ">f8", ">i8", ">u2", "<c8", ">c16", "S5", "V3", "?"]:
            for layout, options in {"chunked": {"chunks": (4, 3)}, "gzip": {"chunks": (4, 3), "compression": "gzip", "shuffle": True}, "contiguous": {}}.items():
                name = f"/{code.strip('<>').replace('?', 'bool')}{'be' if code[0] == '>' else ''}_{layout}"
                fill = b"ab" if code == "S5" else np.void(b"xyz") if code == "V3" else np.array(code == "?" or 258, code)
                d = f.create_dataset(name, (13, 5), code, fillvalue=fill, **options)
                array = np.full((13, 5), fill, code)
                if layout != "contiguous" and code not in ("S5", "V3"):
                    d[4:6, 0:3] = array[4:6, 0:3] = np.zeros((), code)
                expect(file, name, "direct", array)
        hdf5 = loaded_hdf5()
        hdf5.H5Pset_fill_value.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
        for start, order in {h5py.h5t.IEEE_F32LE: "<", h5py.h5t.IEEE_F32BE: ">"}.items():
            kind = start.copy()
            kind.set_fields(15, 7, 8, 0, 7)
            kind.set_size(2)
            kind.set_ebias(127)
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk((4, 3))
            if hdf5.H5Pset_fill_value(creation.id, h5py.h5t.NATIVE_FLOAT.id, ctypes.byref(ctypes.c_float(-2.5))) < 0:
                raise RuntimeError("H5Pset_fill_value failed")
            name = "/bfloat16" + ("be" if order == ">" else "")
            h5py.h5d.create(f.id, name.encode(), kind, h5py.h5s.create_simple((13, 5)), creation)
            expect(file, name, "direct", np.full((13, 5), 0xC020, order + "u2"))  # the upper half of -2.5f


def unfiltered_edges(folder, expect, _):
    """H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS under the indexes of datasets that grow: an edge moves when they do."""
    hdf5 = loaded_hdf5()
    hdf5.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    array = (np.arange(45 * 11) // 3).astype("<i4").reshape(45, 11)
    unlimited = h5py.h5s.UNLIMITED
    file = "moving_edges.h5"
    with h5py.File(os.path.join(folder, file), "w", libver="latest") as f:
        for index, most in {"extensible": (unlimited, 11), "btree2": (unlimited, unlimited)}.items():
            for filters in [["deflate"], ["fletcher32"], ["shuffle", "deflate", "fletcher32"]]:
                for rows in [45, 61, 35, 40]:
                    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                    creation.set_chunk((8, 4))
                    for name in filters:
                        getattr(creation, "set_" + name)()
                    if hdf5.H5Pset_chunk_opts(creation.id, 2) < 0:
                        raise RuntimeError("H5Pset_chunk_opts failed")
                    name = f"/{index}_{'_'.join(filters)}_{rows}"
                    d = h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple(array.shape, most), creation)
                    d.write(h5py.h5s.ALL, h5py.h5s.ALL, array)
                    f.flush()
                    f[name].resize((rows, 11))
                    whole = np.zeros((rows, 11), "<i4")
                    whole[: min(rows, 45)] = array[:rows]
                    expect(file, name, "direct", whole)


def written_raw(file, name, kind, stored, **layout):
    """A dataset of any datatype; `stored` has the bytes as they lie in the file, one row for each value."""
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if layout:
        creation.set_chunk((7,))
        creation.set_deflate(4)
    d = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((len(stored),)), creation)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, stored, kind)


def nested_types(folder, expect, expect_values):
    """Arrays of padded strings, enums over integers that do not fill their bytes, members of compounds in arrays. Expected is what h5py reads."""
    file = "nested.h5"
    with h5py.File(os.path.join(folder, file), "w") as f:
        for padding, name in {h5py.h5t.STR_NULLTERM: "terminated", h5py.h5t.STR_SPACEPAD: "spaces", h5py.h5t.STR_NULLPAD: "zeros"}.items():
            text = h5py.h5t.C_S1.copy()
            text.set_size(5)
            text.set_strpad(padding)
            words = np.array([[b"ab\0cd", b"abcd\0", b"  a  "], [b"\0junk", b"a b  ", b"     "]] * 10, "S5").reshape(20, 3)
            raw = np.frombuffer(b"".join(w.ljust(5, b"\0") for w in words.ravel()), "u1").reshape(20, 15)
            for layout in ["", "_gzip"]:
                written_raw(f, f"/{name}{layout}", h5py.h5t.array_create(text, (3,)), raw, **({"gzip": 1} if layout else {}))
        for start, size in [(h5py.h5t.STD_I16LE, 2), (h5py.h5t.STD_I16BE, 2), (h5py.h5t.STD_U32LE, 3), (h5py.h5t.STD_U32LE, 4), (h5py.h5t.STD_I64BE, 8)]:
            base = start.copy()
            base.set_precision(12)
            base.set_size(size)
            kind = h5py.h5t.enum_create(base)
            signed, big = base.get_sign() == h5py.h5t.SGN_2, base.get_order() == h5py.h5t.ORDER_BE
            codes = {"none": 0, "one": 1, "most": 2047, "least": -2048 if signed else 4095}
            for word, code in codes.items():
                kind.enum_insert(word.encode(), code)
            unnamed = 1234
            stored = (np.array([*codes.values(), unnamed] * 4, "i8") & 4095).astype((">" if big else "<") + "u8").view("u1").reshape(20, 8)
            written_raw(f, f"/enum{size}{'be' if big else ''}", kind, np.ascontiguousarray(stored[:, 8 - size :] if big else stored[:, :size]))
        point = np.dtype([("x", "<f4"), ("y", ">i2"), ("name", "S3")])
        table = np.zeros(30, [("id", "<i4"), ("arr", point, (3,)), ("deep", [("inner", point, (2, 2))])])
        for part, shape in {"arr": (30, 3), "deep": (30, 2, 2)}.items():
            points = table[part] if part == "arr" else table[part]["inner"]
            points["x"], points["y"], points["name"] = rng.standard_normal(shape), rng.integers(-300, 300, shape), b"p\0q"
        f.create_dataset("/table", data=table)
        f.create_dataset("/packed", data=table, chunks=(7,), compression="gzip")
        written_raw(f, "/points", h5py.h5t.array_create(h5py.h5t.py_create(point), (3,)), np.ascontiguousarray(table["arr"]))
        text = h5py.string_dtype()
        labelled = np.zeros(20, [("w", "<f4"), ("v", text), ("in", [("t", text), ("n", "<i2")])])
        labelled["v"] = [["b", "a", "", "a longer one"][n % 4] for n in range(20)]
        labelled["in"]["t"] = [["x", "y"][n // 10] for n in range(20)]
        f.create_dataset("/labelled", data=labelled)
        words = h5py.h5t.array_create(h5py.h5t.py_create(text, logical=True), (2,))
        h5py.h5d.create(f.id, b"/words", words, h5py.h5s.create_simple((3,)))
    with h5py.File(os.path.join(folder, file)) as f:
        for name in ["terminated", "spaces", "zeros"]:
            for layout in ["", "_gzip"]:
                expect(file, f"/{name}{layout}", "direct", f[name + layout][:])
        for name in ["enum2", "enum2be", "enum4", "enum8be"]:
            expect(file, f"/{name}", "locked", f[name][:])
            expect_values(file, f"/{name}", "native", f[name][:].astype(f[name].dtype.newbyteorder("=")))
        expect(file, "/enum3", "locked", np.array([0, 1, 2047, 4095, 1234] * 4, "<u4"))  # numpy has no such integer
        for name in ["/table", "/packed"]:
            for member in ["x", "y", "name"]:
                expect(file, f"{name}[arr.{member}]", "locked", f[name]["arr"][member])
                expect(file, f"{name}[deep.inner.{member}]", "locked", f[name]["deep"]["inner"][member])
        for member in ["x", "y"]:
            expect(file, f"/points[{member}]", "locked", f["points"][:][member])


def make(folder, expect, expect_values):
    for some in [nested_types, narrow_integers, wide_complex, fills, unfiltered_edges]:
        some(folder, expect, expect_values)
