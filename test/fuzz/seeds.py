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


FILTERS = [1, 2, 3, 4, 32000, 32001, 32004, 32008, 32015]
SPARSE, UNFILTERED, KEPT, MEMBER = 4, 8, 16, 32


def described(shape, chunks, file, entries, filters=(), parts=(), size=4, bits=0, row_axis=0):
    """An input of the target chunk-index (chunk_input.hpp), every number of an entry in full."""
    out = bytes([len(shape) - 1 | bits | size.bit_length() - 1 << 6, row_axis | 128])
    out += b"".join(bytes([extent - 1, chunk - 1]) for extent, chunk in zip(shape, chunks))
    out += bytes([len(filters)])
    for number, values in filters:
        out += bytes([FILTERS.index(number), len(values)]) + b"".join(struct.pack("<H", value) for value in values)
    out += bytes([len(entries)])
    for number, address, stored, mask in entries:
        out += struct.pack("<BQQII", 0xFF, number, address, stored, mask)
    out += bytes([len(parts)])
    for part in parts:
        out += b"".join(bytes([start, count - 1]) for start, count in part)
    return out + file


def in_a_row(chunks, first=0):
    """A file of these chunks, one after the other, and their entries."""
    entries, at = [], first
    for number, chunk in enumerate(chunks):
        entries.append((number, at, len(chunk), 0))
        at += len(chunk)
    return bytes(first) + b"".join(chunks), entries


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

    def indices(self):
        """In a row of two or three dimensions: plain, compressed, with gaps, masks, repeats, and lies."""
        parts = [[(3, 9), (1, 7)], [(19, 1), (0, 12)]]
        flat, cut = ((20, 12), (8, 5)), {"parts": parts}
        deep = b"[" * 100000 + b"]" * 100000
        self.put("checkpoint", b'\0\0{"format":' + deep + b"}", "found-nests-without-end")
        self.put("run-state", b'{"penstock_state":' + deep + b"}", "found-nests-without-end")
        size = 8 * 5 * 4
        file, entries = in_a_row([noise(size + n)[:size] for n in range(9)], 5)
        last = (1 << 64) - 1
        lies = [
            (0, last - 3, size, 0), (1, last - size, size + 1, 0), (2, len(file) - size + 1, size, 0),
            (3, 0, 0, 0), (4, 0, (1 << 32) - 1, 0), (5, len(file), 0, 0), (6, 7, size - 1, 0), (7, last, 9, 1),
            (4, 3, size, 0), (1 << 63, 0, size, 0), (last, 0, size, 0),
        ]  # fmt: skip
        for bits in (0, SPARSE):
            self.put("chunk-index", described(*flat, file, entries, bits=bits, **cut))
            self.put("chunk-index", described(*flat, file, entries[::-2], bits=bits, row_axis=1, **cut))
            self.put("chunk-index", described(*flat, file, lies, bits=bits, **cut))
            for n, lie in enumerate(lies):
                others = [entry for entry in entries if entry[0] != lie[0]]
                self.put("chunk-index", described(*flat, file, others + [lie], bits=bits, **cut))
        whole = [described((40,), (10,), smooth(160), in_a_row([smooth(40)] * 4)[1], parts=[[(7, 20)]])]
        whole.append(described((4, 6, 5), (2, 3, 5), file, entries, parts=[[(1, 2), (2, 3), (0, 5)]], row_axis=2))
        member = [smooth(8 * 5 * 10) for _ in range(9)]
        whole.append(described(*flat, *in_a_row(member), bits=MEMBER, **cut))
        for seed in whole:
            self.put("chunk-index", seed)
        self.compressed_indices(flat, size, cut)

    def compressed_indices(self, flat, size, cut):
        chains = {
            "gzip": ([(1, [4])], lambda data: zlib.compress(data, 4)),
            "shuffle, gzip, fletcher32": (
                [(2, [4]), (1, [4]), (3, [])], lambda data: fletcher32(zlib.compress(shuffled(data, 4), 4))
            ),
            "fletcher32, shuffle": ([(3, []), (2, [4])], lambda data: shuffled(fletcher32(data), 4)),
            "fletcher32 twice": ([(3, []), (3, [])], lambda data: fletcher32(fletcher32(data))),
            "shuffle, lzf": ([(2, [4]), (32000, [])], lambda data: lzf_stream(shuffled(data, 4))),
            "blosc": ([(32001, [2, 2, 4, size])], lambda data: blosc_buffer(data, 4, b"lz4", 1)),
            "shuffle, lz4": ([(2, [4]), (32004, [])], lambda data: lz4_chunk(shuffled(data, 4), size)),
            "bitshuffle": ([(32008, [0, 2, 4, 0, 2])], lambda data: bitshuffle_chunk(data, 4, 0, lz4_block)),
            "zstd": ([(32015, [3])], lambda data: zstd_frame(data)),
        }  # fmt: skip
        for name, (filters, encode) in chains.items():
            file, entries = in_a_row([encode(smooth(size)) for _ in range(9)])
            masked = [(number, at, stored, number % 4) for number, at, stored, _ in entries]
            for bits in (0, SPARSE | KEPT, UNFILTERED | KEPT):
                self.put("chunk-index", described(*flat, file, entries, filters, bits=bits, **cut))
            self.put("chunk-index", described(*flat, file, masked, filters, row_axis=1, **cut))
            self.put("chunk-index", described(*flat, file[:-9], entries, filters, bits=SPARSE, **cut))
            empty = [(number, at, 0, 0) for number, at, _, _ in entries]
            self.put("chunk-index", described(*flat, file, empty, filters, bits=SPARSE, **cut))

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
            # libhdf5 converts these, and reads them; their sources are looked at before.
            file.create_dataset("stored", data=np.arange(40, dtype="<i2"), chunks=(8,), compression="gzip")
            layout = h5py.VirtualLayout((20,), "<i2")
            layout[:16:2] = h5py.VirtualSource(file["stored"])[3:35:4]
            layout[16:] = h5py.VirtualSource(file["stored"])[20:24]
            file.create_virtual_dataset("steps", layout)
            layout = h5py.VirtualLayout((4, 10), "<i4")
            layout[:2] = h5py.VirtualSource(file["steps"])[:]
            layout[2:, :5] = h5py.VirtualSource(file["stored"])[30:40]
            file.create_virtual_dataset("converted", layout)
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
            {}, {"format": 6}, {"hidden": [7, 7]}, {"inputs": 1 << 62, "outputs": 3}, {"activation": "gelu"},
            {"compute": "float64"}, {"loss": "binary"}, {"dropout": 0.5, "layer_norm": True}, {"next_row": 3},
            {"training": {"rows": 1, "loss_sum": None}}, {"source": [], "steps": 18446744073709551615},
            {"identity": {"seed": 4}}, {"checksums": {"/normalisation/mean": None}}, {"checksums": 0},
        )):  # fmt: skip
            self.put("checkpoint", bytes([0, 0]) + json.dumps(patch).encode())
            self.put("checkpoint", bytes([choice, 0]) + json.dumps(patch).encode())
        for choice, patch in enumerate((
            {}, {"begun_step": None}, {"begun_step": {"batches": 2}}, {"begun_step": {"rows": 5}},
            {"begun_step": {"batch_rows": 2, "of": 4}}, {"begun_step": {"weight": -1}}, {"begun_step": {"bad_input": 3}},
            {"begun_step": {"bad_loss": 1 << 62}}, {"next_row": 8}, {"next_row": 7}, {"begun_step": {"running": {"rows": 1e300}}},
            {"classes": {"names": 1 << 40}}, {"classes": {"bytes_of_names": 2}}, {"classes": {"weights": 2}}, {"classes": None},
            {"precision": "fp16", "loss_scale": 0},
        )):  # fmt: skip
            self.put("checkpoint", bytes([0, 1]) + json.dumps(patch).encode())
            for dataset in range(22):  # each in turn is missing, of another type, shorter, or has other values
                self.put("checkpoint", bytes([dataset << 3 | 1 + choice % 4, 1]) + json.dumps(patch).encode())


    def findings(self):
        """What was found once, and mended: an input each, `found-...`. test/fuzz/run --findings tries these alone."""
        # Literals, then the last three bytes nine times on: from before the chunk, by a difference that wrapped.
        self.chunk("lzf", bytes([2]) + b"abc" + bytes([7 << 5, 0, 2]), 12, name="found-bytes-that-repeat")
        stored, (options, _, bits, line) = stored_by_hdf5(smooth(960), 4, (0x20 | 4, 16), 2)
        self.chunk("szip", stored, 960, options, line - 1, 15, bits, name="found-odd-block")
        self.chunk("szip", bytes.fromhex("01000000df89fabfc0030013"), 1, 0x2C, 0x2F, 0x10, 0xDF, name="found-half-a-sample")
        for name, patch in {
            "unknown-activation": {"activation": "no such"},
            "unknown-type": {"compute": "no such"},
            "unknown-join": {"pair": {"join": "no such", "shared": True, "embedding": 4, "head": []}},
            "no-checksums": {"checksums": None},
            "count-that-does-not-fit": {"steps": 99e99},
            "layers-without-gradients": {},
            "norms-without-gradients": {"layer_norm": True},
        }.items():
            self.put("checkpoint", bytes([0, 0]) + json.dumps(patch).encode(), f"found-{name}")
        size = 8 * 5 * 4
        file, entries = in_a_row([smooth(size)] * 9)
        wraps = [(4, (1 << 64) - 20, size, 0)] + entries[:4] + entries[5:]
        self.put("chunk-index", described((20, 12), (8, 5), file, wraps, parts=[[(9, 3), (5, 5)]]), "found-address-wraps")
        empty = described((20, 12), (8, 5), file, [(4, 8, 0, 0)], [(32001, [2, 2, 4, size])], bits=SPARSE)
        self.put("chunk-index", empty, "found-chunks-of-no-bytes")
        outside = [(number, 1 << 40, 0, 0) for number in range(3)]
        self.put("chunk-index", described((20, 12), (8, 5), file, outside, [(1, [4])]), "found-no-bytes-past-the-end")
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
    made.indices()
    made.files()
    made.texts()
    made.findings()


if __name__ == "__main__":
    main(sys.argv[1])
