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


def make(folder, expect, expect_values):
    for some in [narrow_integers, wide_complex, fills, unfiltered_edges]:
        some(folder, expect, expect_values)
