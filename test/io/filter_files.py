"""Filters in every variant, masks of every kind, and streams that end short, for make_files.py: make(folder, ...)."""
import os
import struct
import zlib

import h5py
import numpy as np

from encoders import bitshuffle_chunk, blosc_buffer, fletcher32, library, lz4_block, lz4_chunk, shuffled, zstd_frame

rng = np.random.default_rng(13)


def by_h5py(data, code, shape, **options):
    """A chunk as h5py's own filters store it; they must not leave it as it is."""
    with h5py.File("chunk.h5", "w", driver="core", backing_store=False) as f:
        d = f.create_dataset("x", data=np.frombuffer(data, code).reshape(shape), chunks=shape, **options)
        mask, stored = d.id.read_direct_chunk((0,) * len(shape))
        if mask != 0:
            raise RuntimeError("a chunk that was to be compressed is stored as it is")
        return stored


def codecs(size, shape):
    """Name: number, parameters, and how a chunk of elements of `size` bytes is stored."""
    integer = f"<u{size}"
    known = {
        "deflate": (1, (4,), zlib.compress),
        "lzf": (32000, (), lambda b: by_h5py(b, integer, shape, compression="lzf")),
        "szip": (4, (161, 8), lambda b: by_h5py(b, integer, shape, compression="szip", compression_opts=("nn", 8))),
        "bitshuffle": (32008, (0, 4, size, 0, 0), lambda b: bitshuffle_chunk(b, size, 0)),
    }
    if library("liblz4.so.1"):
        known["lz4"] = (32004, (256,), lambda b: lz4_chunk(b, 256))
        known["bitshuffle_lz4"] = (32008, (0, 4, size, 0, 2), lambda b: bitshuffle_chunk(b, size, 0, lz4_block))
    if library("libzstd.so.1"):
        known["zstd"] = (32015, (3,), zstd_frame)
        known["bitshuffle_zstd"] = (32008, (0, 4, size, 0, 3, 3), lambda b: bitshuffle_chunk(b, size, 0, zstd_frame))
    if library("libblosc.so.1"):
        known["blosc"] = (32001, (2, 2, size, 0, 5, 1, 0), lambda b: blosc_buffer(b, size, b"lz4", 1))
    return known


def mixed_masks(write_chunks):
    """A codec between shuffle and checksum, each left out of some chunks: all eight masks in one dataset."""
    array = (np.arange(61 * 37) // 3).astype("<u4").reshape(61, 37)
    chunks = (16, 10)
    for name, (number, values, encode) in codecs(4, chunks).items():
        def stored(mask):
            def how(data):
                data = data if mask & 1 else shuffled(data, 4)
                data = data if mask & 2 else encode(data)
                return data if mask & 4 else fletcher32(data)
            return mask, how
        masks = {n: stored(n % 8) for n in range(16)}
        write_chunks("masks.h5", f"/{name}", array, chunks, [(2, (4,)), (number, values), (3, ())], stored(0)[1], masks)


def bit_shuffles(write_chunks):
    """Elements of many sizes, few of them left over after the last eight, chunks with fewer than eight in all."""
    packs = {"alone": (0, None)}
    if library("liblz4.so.1"):
        packs["lz4"] = (2, lz4_block)
    if library("libzstd.so.1"):
        packs["zstd"] = (3, zstd_frame)
    for size in [1, 2, 3, 4, 8, 12, 16]:
        for kind in ["smooth", "random"]:
            data = (np.arange(61 * 37 * size) // (5 * size)).astype("u1") if kind == "smooth" else rng.integers(0, 256, 61 * 37 * size, "u1")
            array = data.view({1: "u1", 2: "<i2", 3: "V3", 4: "<f4", 8: "<f8", 12: "V12", 16: "<c16"}[size]).reshape(61, 37)
            for pack, (codec, encode) in packs.items():
                for chunks in [(37, 11), (61, 37), (1, 5)]:
                    for block in [0, 64] if chunks == (37, 11) else [0]:
                        name = f"/{pack}/{kind}_{size}_{chunks[0]}x{chunks[1]}_{block}"
                        values = (0, 4, size, block, codec, 3)[: 5 if codec < 3 else 6]
                        write_chunks("bitshuffle.h5", name, array, chunks, [(32008, values)], lambda b: bitshuffle_chunk(b, size, block, encode))


def szips(folder, expect):
    """Elements of all sizes, lines that are no multiple of a block, and chunks that really are shorter for it."""
    file = "szip.h5"
    with h5py.File(os.path.join(folder, file), "w") as f:
        for code in ["i1", "<i2", ">u2", "<i4", ">f4", "<i8", ">f8"]:
            array = (np.arange(67 * 45) // 7 % 113).astype(code).reshape(67, 45)
            for chunks in [(16, 16), (7, 33), (2, 45), (67, 1)]:
                for method in ["nn", "ec"]:
                    for block in [8, 16, 32]:
                        name = f"/{code.strip('<>')}{'be' if code[0] == '>' else ''}/{chunks[0]}x{chunks[1]}_{method}_{block}"
                        d = f.create_dataset(name, data=array, chunks=chunks, compression="szip", compression_opts=(method, block))
                        infos = [d.id.get_chunk_info(n) for n in range(d.id.get_num_chunks())]
                        if method == "nn" and (any(c.filter_mask for c in infos) or min(c.size for c in infos) >= chunks[0] * chunks[1] * array.itemsize):
                            raise RuntimeError(f"{name} is not compressed")
                        expect(file, name, "direct", array)


def blosc_shuffles(write_chunks):
    """Its three kinds of shuffle on elements of other sizes, with a rest that fills no vector."""
    if not library("libblosc.so.1"):
        return
    for size in [1, 2, 8]:
        for kind in ["smooth", "random"]:
            array = (np.arange(61 * 37) // 3 if kind == "smooth" else rng.integers(0, 1 << 7 * size, 61 * 37)).astype(f"<u{size}").reshape(61, 37)
            for shuffle in [0, 1, 2]:
                write_chunks("blosc.h5", f"/{kind}_{size}_{shuffle}", array, (37, 11), [(32001, (2, 2, size, 0, 5, shuffle, 1))], lambda b: blosc_buffer(b, size, b"lz4", shuffle))


def short_streams(folder):
    """short.h5: of each dataset, whose rows hold their numbers, the first or the sixth chunk of four rows is stored short:
    half its values, or half its stored bytes."""
    array = np.repeat(np.arange(32, dtype="<u4"), 16).reshape(32, 16)
    with h5py.File(os.path.join(folder, "short.h5"), "w") as f:
        for name, (number, values, encode) in codecs(4, (4, 16)).items():
            half = codecs(4, (2, 16))[name][2]
            for kind, shorten in {"values": lambda b: half(b[: len(b) // 2]), "bytes": lambda b: encode(b)[: len(encode(b)) // 2]}.items():
                for at in [0, 20]:
                    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                    creation.set_chunk((4, 16))
                    creation.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
                    path = f"/{name}_{kind}_{at}"
                    d = h5py.h5d.create(f.id, path.encode(), h5py.h5t.STD_U32LE, h5py.h5s.create_simple(array.shape), creation)
                    for row in range(0, 32, 4):
                        part = array[row : row + 4].tobytes()
                        d.write_direct_chunk((row, 0), shorten(part) if row == at else encode(part), 0)
        layout = h5py.VirtualLayout(array.shape, "<u4")
        layout[:] = h5py.VirtualSource(".", "/deflate_values_0", array.shape)
        f.create_virtual_dataset("/virtual_0", layout)


def make(folder, expect, write_chunks):
    mixed_masks(write_chunks)
    bit_shuffles(write_chunks)
    szips(folder, expect)
    blosc_shuffles(write_chunks)
    short_streams(folder)
