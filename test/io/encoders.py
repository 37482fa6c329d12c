"""Chunks as HDF5's filters write them, made by the codecs' own libraries or by hand: never by Penstock."""
import ctypes
import struct

import numpy as np


def library(name):
    """A codec's shared library, or None: what is absent is not tested."""
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def lz4_block(data):
    codec = library("liblz4.so.1")
    out = ctypes.create_string_buffer(codec.LZ4_compressBound(len(data)))
    size = codec.LZ4_compress_default(data, out, len(data), len(out))
    return out.raw[:size]


def zstd_frame(data):
    codec = library("libzstd.so.1")
    codec.ZSTD_compressBound.restype = codec.ZSTD_compress.restype = ctypes.c_size_t
    codec.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    codec.ZSTD_compress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    out = ctypes.create_string_buffer(codec.ZSTD_compressBound(len(data)))
    size = codec.ZSTD_compress(out, len(out), data, len(data), 3)
    return out.raw[:size]


def blosc_buffer(data, size, name, shuffle):
    codec = library("libblosc.so.1")
    codec.blosc_compress_ctx.argtypes = [ctypes.c_int, ctypes.c_int] + [ctypes.c_size_t] * 2 + [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    out = ctypes.create_string_buffer(len(data) + 16)
    packed = codec.blosc_compress_ctx(5, shuffle, size, len(data), data, out, len(out), name, 0, 1)
    return out.raw[:packed]


def lz4_chunk(data, block):
    out = struct.pack(">QI", len(data), block)
    for at in range(0, len(data), block):
        part = data[at : at + block]
        packed = lz4_block(part)
        out += struct.pack(">I", min(len(packed), len(part))) + (packed if len(packed) < len(part) else part)
    return out


def transposed(data, size):
    """bitshuffle of a block whose number of elements is a multiple of 8."""
    bits = np.unpackbits(np.frombuffer(data, "u1").reshape(-1, size), axis=1, bitorder="little")
    return np.packbits(bits.T, axis=1, bitorder="little").tobytes()


def bitshuffle_chunk(data, size, block, pack=None):
    block = block or max(8192 // size // 8 * 8, 128)
    elements, at, out = len(data) // size, 0, b""
    if pack:
        out += struct.pack(">QI", len(data), block * size)
    while elements >= 8:
        some = min(block, elements // 8 * 8)
        part = transposed(data[at : at + some * size], size)
        out += struct.pack(">I", len(pack(part))) + pack(part) if pack else part
        at += some * size
        elements -= some
    return out + data[at:]


def shuffled(data, size):
    whole = len(data) // size * size
    return np.frombuffer(data[:whole], "u1").reshape(-1, size).T.tobytes() + data[whole:]


def fletcher32(data, old=False):
    """The bytes with their checksum; before 1.6.3 libhdf5 swapped the bytes of its halves."""
    sums = [0, 0]
    for at in range(0, len(data), 2):
        sums[0] += data[at] << 8 | (data[at + 1] if at + 1 < len(data) else 0)
        sums[1] += sums[0]
        sums = [(s & 0xFFFF) + (s >> 16) for s in sums]
    sums = [(s & 0xFFFF) + (s >> 16) for s in sums]
    low, high = ((s >> 8 | (s & 255) << 8) for s in sums) if old else sums
    return data + struct.pack("<I", high << 16 | low)
