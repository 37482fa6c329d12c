#!/usr/bin/python3
"""Writes the inputs that fuzzing begins with: seeds.py FOLDER makes FOLDER/<target>/*, from the codecs' own libraries and
h5py. A decoder's input is six bytes that choose its parameters and the chunk's size (decoder.cpp), then a stored chunk."""

import json
import os
import pathlib
import struct
import sys
import zlib

os.environ["HDF5_PLUGIN_PATH"] = "/nonexistent"  # chunks made by hand are written as they are

import h5py
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "io"))
from encoders import bitshuffle_chunk, blosc_buffer, lz4_block, lz4_chunk, shuffled, zstd_frame  # noqa: E402


def smooth(size):
    return (np.arange(size) // 3 % 251).astype("u1").tobytes()


def noise(size):
    return np.random.default_rng(size).integers(0, 256, size, "u1").tobytes()


def fletcher32(data):
    """HDF5's: sums of big-endian words, folded; the last odd byte is the upper half of a word."""
    first = second = 0
    for at in range(0, len(data), 2):
        first += int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big")
        second += first
    fold = lambda sum: sum if sum < 1 << 16 else fold((sum & 0xFFFF) + (sum >> 16))
    return data + struct.pack("<I", fold(second) << 16 | fold(first))


def lzf_stream(data):
    """What the format has: literals, the last byte repeated 29 times, the last three repeated three times."""
    out = b"".join(bytes([len(data[at : at + 32]) - 1]) + data[at : at + 32] for at in range(0, len(data), 32))
    return out + bytes([7 << 5, 20, 0]) + bytes([7 << 5, 0, 2])


def stored_by_hdf5(data, filter_number, options, size):
    """A chunk as libhdf5 itself stores it: szip, for which there is no encoder here."""
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        values = np.frombuffer(data, f"u{size}")
        create.set_chunk(values.shape)
        create.set_filter(filter_number, h5py.h5z.FLAG_MANDATORY, options)
        space = h5py.h5s.create_simple(values.shape)
        dataset = h5py.h5d.create(file.id, b"x", h5py.h5t.py_create(values.dtype), space, create)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
        file.flush()
        return dataset.read_direct_chunk((0,))[1], dataset.get_create_plist().get_filter(0)[2]


class seeds:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def put(self, target, data, name=None):
        into = self.folder / target
        into.mkdir(parents=True, exist_ok=True)
        (into / (name or f"seed{len(list(into.iterdir())):02}")).write_bytes(data)

    def chunk(self, target, stored, chunk_bytes, a=0, b=0, c=0, d=0, name=None):
        header = bytes([a & 255, b & 255, c & 255, d & 255]) + struct.pack(">H", chunk_bytes - 1)
        self.put(target, header + stored, name)

    def decoders(self):
        for data in (smooth(64), smooth(1000), noise(200), smooth(12000)):
            size = len(data)
            self.chunk("deflate", zlib.compress(data, 4), size)
            self.chunk("deflate", zlib.compress(data, 0), size)
            for element in (1, 2, 4, 8, 16, 3):
                self.chunk("shuffle", shuffled(data, element), size, element)
            self.chunk("fletcher32", fletcher32(data), size)
            self.chunk("fletcher32", fletcher32(data[:-1]), size - 1)
            self.chunk("lzf", lzf_stream(data), size + 29 + 9)
            for codec in (b"blosclz", b"lz4", b"zlib", b"zstd"):
                self.chunk("blosc", blosc_buffer(data, 4, codec, 1), size)
                self.chunk("blosc", blosc_buffer(data, 1, codec, 2), size)
            for block in (size, 128, 1000):
                self.chunk("lz4", lz4_chunk(data, block), size)
            for element in (1, 2, 4, 8):
                self.chunk("bitshuffle", bitshuffle_chunk(data, element, 0), size, element)
                self.chunk("bitshuffle", bitshuffle_chunk(data, element, 0, lz4_block), size, element, 0, 2)
                self.chunk("bitshuffle", bitshuffle_chunk(data, element, 64, zstd_frame), size, element, 8, 3)
            self.chunk("zstd", zstd_frame(data), size)
        for element in (1, 2, 4):
            for block in (8, 16, 32):
                stored, values = stored_by_hdf5(smooth(960), 4, (0x20 | 4, block), element)
                options, block, bits, line = values
                self.chunk("szip", stored, 960, options, block, bits, line - 1)

    def files(self):
        rows = np.arange(48 * 6, dtype="<i4").reshape(48, 6)
        for version in ("earliest", "latest"):
            for number, options in enumerate([
                {"chunks": (8, 6)},
                {"chunks": (8, 4), "compression": "gzip", "shuffle": True},
                {"chunks": (8, 6), "compression": "lzf", "fletcher32": True},
                {"chunks": (8, 6), "maxshape": (None, 6)},
                {"chunks": (8, 6), "maxshape": (None, None), "compression": "gzip"},
                {"chunks": (48, 6), "compression": "szip"},
                {},
            ]):  # fmt: skip
                path = self.folder / "file" / f"{version}{number}.h5"
                path.parent.mkdir(parents=True, exist_ok=True)
                with h5py.File(path, "w", libver=version) as file:
                    file.create_dataset("x", data=rows, **options)
            self.odd_file(version)

    def odd_file(self, version):
        path = self.folder / "file" / f"{version}-odd.h5"
        with h5py.File(path, "w", libver=version) as file:
            file.create_dataset("compound", data=np.zeros(9, [("a", "<f4"), ("b", ">i2", (2,))]), chunks=(4,))
            file.create_dataset("text", data=["one", "two", "one"], dtype=h5py.string_dtype())
            file.create_dataset("fixed", data=np.array([b"a", b"bcd"]))
            packed = file.create_dataset("packed", data=np.arange(10, dtype="<i2"))
            packed.attrs["scale_factor"] = 0.5
            packed.attrs["_FillValue"] = np.int16(3)
            layout = h5py.VirtualLayout((10,), "<i2")
            layout[:] = h5py.VirtualSource(".", "packed", shape=(10,))
            file.create_virtual_dataset("virtual", layout)
            file.create_dataset("group/scalar", data=1.5)
            file.create_dataset("empty", shape=(0, 3), dtype="f8", maxshape=(None, 3))

    def texts(self):
        """Patches of what is right: see run_state.cpp and checkpoint.cpp."""
        for patch in (
            {}, {"epoch": 1, "batch": 2}, {"epoch": -1}, {"batch": 1e30}, {"rows": None, "fields": {"x": "0"}},
            {"order": "sequential"}, {"last_batch": "keep", "batch_rows": 16}, {"selected": "0"}, {"penstock_state": 2},
        ):  # fmt: skip
            self.put("run-state", json.dumps(patch).encode())
        for choice, patch in enumerate((
            {}, {"format": 5}, {"hidden": [7, 7]}, {"inputs": 1 << 62, "outputs": 3}, {"activation": "gelu"},
            {"compute": "float64"}, {"loss": "binary"}, {"dropout": 0.5, "layer_norm": True}, {"next_row": 3},
            {"training": {"rows": 1, "loss_sum": None}}, {"source": [], "steps": 18446744073709551615},
            {"identity": {"seed": 4}}, {"checksums": {"/normalisation/mean": None}}, {"checksums": 0},
        )):  # fmt: skip
            self.put("checkpoint", bytes([0]) + json.dumps(patch).encode())
            self.put("checkpoint", bytes([choice]) + json.dumps(patch).encode())


    def findings(self):
        """What was found once, and mended: an input each, `found-...`. test/fuzz/run --findings tries these alone."""
        # Literals, then the last three bytes nine times on: from before the chunk, by a difference that wrapped.
        self.chunk("lzf", bytes([2]) + b"abc" + bytes([7 << 5, 0, 2]), 12, name="found-bytes-that-repeat")
        stored, (options, _, bits, line) = stored_by_hdf5(smooth(960), 4, (0x20 | 4, 16), 2)
        self.chunk("szip", stored, 960, options, line - 1, 15, bits, name="found-odd-block")
        for name, patch in {
            "unknown-activation": {"activation": "no such"},
            "unknown-type": {"compute": "no such"},
            "unknown-join": {"pair": {"join": "no such", "shared": True, "embedding": 4, "head": []}},
            "no-checksums": {"checksums": None},
            "count-that-does-not-fit": {"steps": 99e99},
            "layers-without-gradients": {},
            "norms-without-gradients": {"layer_norm": True},
        }.items():
            self.put("checkpoint", bytes([0]) + json.dumps(patch).encode(), f"found-{name}")
        path = self.folder / "file" / "found-time-of-filling.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.arange(12, dtype="u2").reshape(4, 3))
        was = bytes([2, 2, 2, 1])  # a fill value's message: its version, times of allocating and of filling
        data = path.read_bytes()
        assert data.count(was) == 1
        path.write_bytes(data.replace(was, bytes([2, 2, 255, 1])))


def main(folder):
    made = seeds(folder)
    made.decoders()
    made.files()
    made.texts()
    made.findings()


if __name__ == "__main__":
    main(sys.argv[1])
