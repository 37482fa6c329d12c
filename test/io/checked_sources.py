#!/usr/bin/python3
"""Virtual datasets that libhdf5 reads, of a source with a chunk that it must not read. Usage: checked_sources.py FOLDER

Writes NAME.h5 for each kind of mapping, with the dataset x, and what reading it gives by h5py, before the chunk is damaged:
NAME.bytes, all values as int64; NAME.rows, the rows that show a value of that chunk; NAME.part, an axis, how many indices of
it from 0 on are read, and then the rows that show such a value there; names.txt, all names.
"""
import os
import sys
import zlib

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

END = h5s.UNLIMITED
CHUNK = (64, 4)
folder = sys.argv[1]
packer = zlib.compressobj(9)
inflating = zlib.compress(b"".join([packer.compress(bytes(1 << 20)) for n in range(64)] + [packer.flush()]), 9)


def numbers(first=0, rows=256):
    return first + np.arange(rows * 8, dtype="<i4").reshape(rows, 8)


def source(f, name, data, chunk=CHUNK):
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_chunk(chunk)
    create.set_deflate(9)
    create.set_deflate(9)
    space = h5s.create_simple(data.shape, (END,) * data.ndim)
    h5d.create(f.id, name.encode(), h5t.STD_I32LE, space, dcpl=create).write(h5s.ALL, h5s.ALL, data)


def space(shape, *parts):
    """Each part: start, count, stride and block along each axis. All of it where there is none."""
    made = h5s.create_simple(shape, (END,) + shape[1:])
    for n, part in enumerate(parts):
        made.select_hyperslab(*part, op=h5s.SELECT_OR if n else h5s.SELECT_SET)
    return made


def block(start, count):
    return start, (1,) * len(start), (1,) * len(start), count


def virtual(f, name, shape, *mappings, of=h5t.STD_I64LE):
    """libhdf5 converts values to another type, and so reads them."""
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_fill_value(np.array(-1, "<i8"))
    for target, file, source_name, part in mappings:
        create.set_virtual(target, file.encode(), source_name.encode(), part)
    h5d.create(f.id, name.encode(), of, h5s.create_simple(shape, (END,) + shape[1:]), dcpl=create)


def one(make):
    """A file with the source /of, and a mapping of it."""

    def with_source(path, f):
        source(f, "of", numbers())
        make(f)

    return with_source


whole = space((256, 8), block((0, 0), (256, 8)))
endless = space((256, 8), block((0, 0), (END, 8)))
uneven = space((256, 8), block((0, 0), (100, 8)), block((150, 0), (106, 8)))
corners = space((300, 8), block((3, 0), (40, 5)), block((10, 5), (50, 3)), block((90, 2), (200, 6)))  # 200 + 150 + 1200


def in_files(path, f):
    for n in range(4):
        with h5py.File(f"{path}.{n}", "w") as other:
            source(other, "of", numbers(10000 * n, 64))
    part = space((64, 8), block((0, 0), (64, 8)))
    virtual(f, "x", (256, 8), *[(space((256, 8), block((64 * n, 0), (64, 8))), os.path.basename(path) + f".{n}", "of", part) for n in range(4)])


def in_turns(f):
    source(f, "first", numbers(5000, 300))
    turn = [space((512, 8), ((n, 0), (END, 1), (2, 1), (1, 8))) for n in (0, 1)]
    virtual(f, "x", (512, 8), (turn[0], ".", "first", endless), (turn[1], ".", "of", endless))


def files_in_turns(path, f):
    for n in (0, 3):
        with h5py.File(f"{path}.{n}", "w") as other:
            source(other, "of", numbers(10000 * n))
    virtual(f, "x", (512, 8), *[(space((512, 8), ((n % 2, 0), (256, 1), (2, 1), (1, 8))), os.path.basename(path) + f".{n}", "of", whole) for n in (0, 3)])


def numbered(f, step=64):
    for n in range(4):
        source(f, f"of{n}", numbers(10000 * n, 64))
    part = space((64, 8), block((0, 0), (64, 8)))
    shape = (3 * step + 64, 8)
    virtual(f, "x", shape, (space(shape, ((0, 0), (END, 1), (step, 1), (64, 8))), ".", "of%b", part))


def flat(f):
    source(f, "flat", numbers().reshape(-1), (256,))
    virtual(f, "x", (256, 8), (whole, ".", "flat", space((2048,), block((0,), (2048,)))))


def layout(f):
    shown = h5py.VirtualLayout((256, 8), "<i8")
    shown[...] = h5py.VirtualSource(f["of"])
    f.create_virtual_dataset("x", shown, fillvalue=-1)


def nested(f, inner, outer, shape=(256, 8)):
    virtual(f, "inner", (256, 8), (inner, ".", "of", inner), of=h5t.STD_I32LE)
    virtual(f, "x", shape, (outer[0], ".", "inner", outer[1]))


def every(start, step, count, shape=(256, 8)):
    return space(shape, (start, count, step, (1, 1)))


def grown(f, shape, rows=256):
    """A source that was resized since it was mapped, with other values."""
    virtual(f, "x", (rows, 8), (space((rows, 8), block((0, 0), (rows, 8))), ".", "of", h5s.create_simple((256, 8))))
    f["of"].resize(shape)
    f["of"][...] = 7000 + np.arange(shape[0] * shape[1], dtype="<i4").reshape(shape)


def missing(path, f):
    in_files(path, f)
    os.remove(path + ".1")


KINDS = {
    "boxes": one(lambda f: virtual(f, "x", (256, 8), (whole, ".", "of", whole))),
    "layout": one(layout),
    "files": in_files,
    "files_in_turns": files_in_turns,
    "missing": missing,
    "ranks": one(lambda f: virtual(f, "x", (256, 1, 8), (space((256, 1, 8), block((0, 0, 0), (256, 1, 8))), ".", "of", whole))),
    "steps": one(lambda f: virtual(f, "x", (256, 8), (every((1, 0), (2, 2), (80, 4)), ".", "of", every((5, 1), (3, 2), (80, 4))))),
    "blocks": one(lambda f: virtual(f, "x", (256, 8), *[(space((256, 8), ((0, c), (50, 1), (5, 1), (4, 4))), ".", "of", space((256, 8), ((56, c), (40, 1), (5, 1), (5, 4)))) for c in (0, 4)])),
    "irregular": one(lambda f: virtual(f, "x", (256, 8), (uneven, ".", "of", uneven))),
    "irregular_target": one(lambda f: virtual(f, "x", (300, 8), (corners, ".", "of", space((256, 8), block((0, 0), (193, 8)), block((200, 0), (1, 6)))))),
    "irregular_source": one(lambda f: virtual(f, "x", (1650,), (space((1650,), block((0,), (1648,))), ".", "of", uneven))),
    "to_flat": one(lambda f: virtual(f, "x", (2048,), (space((2048,), block((0,), (2048,))), ".", "of", whole))),
    "flat": lambda path, f: flat(f),
    "folded": one(lambda f: virtual(f, "x", (128, 16), (space((128, 16), block((0, 0), (128, 16))), ".", "of", whole))),
    "not_shown": one(lambda f: virtual(f, "x", (256, 8), (space((256, 8), block((0, 0), (192, 8))), ".", "of", space((256, 8), block((0, 0), (192, 8)))))),
    "unlimited": one(lambda f: virtual(f, "x", (256, 8), (endless, ".", "of", endless))),
    "unlimited_part": one(lambda f: virtual(f, "x", (100, 8), (space((100, 8), block((10, 0), (END, 8))), ".", "of", space((256, 8), ((1, 0), (END, 1), (4, 1), (1, 8)))))),
    "grown": one(lambda f: grown(f, (700, 8))),
    "grown_across": one(lambda f: grown(f, (256, 9))),
    "turns": one(in_turns),
    "numbered": lambda path, f: numbered(f),
    "numbered_apart": lambda path, f: numbered(f, 80),
    "nested": one(lambda f: nested(f, whole, (whole, whole))),
    "nested_uneven": one(lambda f: nested(f, uneven, (every((0, 0), (1, 1), (120, 8)), every((3, 0), (2, 1), (120, 8))))),
}


def damaged_chunk(f, path):
    """The dataset, and where its last chunk begins."""
    for name in ("of3", "flat", "of"):
        if name in f:
            d = f[name]
            return d, tuple((s - 1) // c * c for s, c in zip(d.shape, d.chunks))
    return None


def make(name, kind):
    path = os.path.join(folder, name + ".h5")
    with h5py.File(path, "w") as f:
        kind(path, f)
    with h5py.File(path, "r") as f:
        expected = f["x"][:].astype("<i8")
    with h5py.File(path, "r+") as f:
        other = None if damaged_chunk(f, path) else h5py.File(path + ".3", "r+")
        d, at = damaged_chunk(other or f, path)
        bad = d[tuple(slice(a, a + c) for a, c in zip(at, d.chunks))].reshape(-1)
        d.id.write_direct_chunk(at, inflating)
        if other:
            other.close()
    expected.tofile(os.path.join(folder, name + ".bytes"))
    shown = np.isin(expected, bad)

    def rows(some):
        return "".join(f"{n}\n" for n in np.flatnonzero(some.reshape(len(some), -1).any(1)))

    with open(os.path.join(folder, name + ".rows"), "w") as out:
        out.write(rows(shown))
    axis, count = shown.ndim - 1, shown.shape[-1] // 2
    with open(os.path.join(folder, name + ".part"), "w") as out:
        out.write(f"{axis} {count}\n" + rows(shown[..., :count]))


def show(f, name, shape, part):
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_virtual(h5s.create_simple(shape), b".", f"of_{name}".encode(), part)
    h5d.create(f.id, name.encode(), h5t.STD_I64LE, h5s.create_simple(shape), dcpl=create)


def many_chunks():
    """many.h5: /grown and /far of sources that have more chunks now, of which none is stored behind the first, and some too many
    to be gone through; /scattered of as many chunks as values, in 1000 boxes, and /scattered_less of larger ones. Their rows, or
    first column: many_NAME.bytes."""
    with h5py.File(os.path.join(folder, "many.h5"), "w", libver="latest") as f:
        for name, rows in {"grown": 3000, "far": 1 << 40}.items():
            f.create_dataset(f"of_{name}", data=np.arange(10, dtype="<i4"), chunks=(1,), maxshape=(None,), compression="gzip")
            show(f, name, (10,), h5s.create_simple((10,)))
            f[f"of_{name}"].resize((rows,))
        for name, chunk in {"scattered": 1, "scattered_less": 64}.items():
            f.create_dataset(f"of_{name}", (150000,), "<i4", chunks=(chunk,), maxshape=(None,), compression="gzip")[:640] = np.arange(640)
            part = h5s.create_simple((150000,))
            part.select_hyperslab((0,), (500,), (300,), (144,))
            part.select_hyperslab((147,), (500,), (300,), (144,), op=h5s.SELECT_OR)
            show(f, name, (18000, 8), part)
    with h5py.File(os.path.join(folder, "many.h5"), "r") as f:
        for name in ["grown", "far"]:
            f[name][:].tofile(os.path.join(folder, f"many_{name}.bytes"))
        f["scattered_less"][:2000, 0].tofile(os.path.join(folder, "many_scattered_less.bytes"))


for name, kind in KINDS.items():
    make(name, kind)
many_chunks()
with open(os.path.join(folder, "names.txt"), "w") as out:
    out.write("".join(name + "\n" for name in KINDS))
