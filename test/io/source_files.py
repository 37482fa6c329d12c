"""Virtual datasets and external files, for make_files.py: make(folder, expect). Uses source0.h5 to source15.h5 of it."""
import os
import subprocess

import h5py
import numpy as np

whole = (np.arange(64 * 6) // 3).astype("<f4").reshape(64, 6)


def linked_sources(folder):
    """Beside /x of source N.h5: links, and datasets that libhdf5 alone can read in some."""
    for n in range(16):
        part = whole[4 * n : 4 * n + 4]
        with h5py.File(os.path.join(folder, f"linked{n}.h5"), "w", userblock_size=512 if n % 3 == 0 else 0) as f:
            options = [{}, {"chunks": (3, 6), "compression": "gzip"}, {"chunks": (2, 4), "compression": "gzip", "shuffle": True}][n % 3]
            f.create_dataset("/group/x", data=part, **options)
            f["soft"] = h5py.SoftLink("/group/x")
            f["dangling"] = h5py.SoftLink("/nowhere")
            f["outside"] = h5py.ExternalLink(f"linked{(n + 1) % 16}.h5", "/group/x")
            f["outside_soft"] = h5py.ExternalLink(f"linked{(n + 1) % 16}.h5", "/soft")
            f.create_dataset("/big_endian", data=part.astype(">f4"))
            f.create_dataset("/integers", data=part.astype("<i4"), **({"chunks": (2, 6), "scaleoffset": 0} if n == 5 else {}))
            f.create_dataset("/scaled", data=part.astype("<i4"), chunks=(2, 6), scaleoffset=0)
        if n == 3:
            with open(os.path.join(folder, "linked3.h5"), "rb") as f, open(os.path.join(folder, "100%d%.h5"), "wb") as out:
                out.write(f.read())


def virtual(folder, expect):
    file = "linked.h5"
    with h5py.File(os.path.join(folder, file), "w", libver="latest") as f:
        def make(name, source, array, access="direct", dtype="<f4", files=lambda n: f"linked{n}.h5"):
            layout = h5py.VirtualLayout((64, 6), dtype)
            for n in range(16):
                layout[4 * n : 4 * n + 4] = h5py.VirtualSource(files(n), source, (4, 6))
            f.create_virtual_dataset(name, layout, fillvalue=9)
            if array is not None:
                expect(file, name, access, array)

        make("/soft", "soft", whole)
        make("/outside", "outside", np.roll(whole, -4, 0))
        make("/outside_soft", "outside_soft", np.roll(whole, -4, 0))
        make("/big_endian", "big_endian", whole.astype(">f4"), dtype=">f4")
        make("/swapped", "big_endian", whole, "locked")
        make("/narrowed", "group/x", whole.astype("<i2"), "locked", "<i2")
        make("/one_locked", "integers", whole.astype("<i4"), dtype="<i4")
        make("/all_locked", "scaled", whole.astype("<i4"), "locked", "<i4")
        make("/percent", "group/x", np.concatenate([whole[12:16]] * 16), files=lambda n: "100%%d%%.h5")
        stepped = h5py.VirtualLayout((32, 6), "<f4")
        for n in range(16):
            stepped[2 * n : 2 * n + 2] = h5py.VirtualSource(f"linked{n}.h5", "group/x", (4, 6))[n % 2 :: 2]
        f.create_virtual_dataset("/stepped", stepped)
        expect(file, "/stepped", "direct", np.concatenate([whole[4 * n : 4 * n + 4][n % 2 :: 2] for n in range(16)]))
        columns = h5py.VirtualLayout((64, 3), "<f4")
        for n in range(16):
            columns[4 * n : 4 * n + 4] = h5py.VirtualSource(f"linked{n}.h5", "group/x", (4, 6))[:, ::2]
        f.create_virtual_dataset("/columns", columns)
        expect(file, "/columns", "locked", whole[:, ::2])


def silent_fills(folder):
    """Virtual datasets that libhdf5 reads with success, but not from their sources. absent.h5; each lacks some."""
    with open(os.path.join(folder, "no_hdf5.h5"), "w") as f:
        f.write("no HDF5 file")
    with h5py.File(os.path.join(folder, "absent.h5"), "w", libver="latest") as f:
        def make(name, file, source):
            layout = h5py.VirtualLayout((8, 6), "<f4")
            layout[:4] = h5py.VirtualSource("linked0.h5", "group/x", (4, 6))
            layout[4:] = h5py.VirtualSource(file, source, (4, 6))
            f.create_virtual_dataset(name, layout, fillvalue=9)

        make("/file", "nowhere.h5", "x")
        make("/dataset", "linked1.h5", "x")
        make("/group", "linked1.h5", "group")
        make("/dangling", "linked1.h5", "dangling")
        make("/deep", "linked1.h5", "nowhere/x")
        make("/no_hdf5", "no_hdf5.h5", "x")
        nested = h5py.VirtualLayout((8, 6), "<f4")
        nested[:] = h5py.VirtualSource(".", "file", (8, 6))
        f.create_virtual_dataset("/nested", nested, fillvalue=7)
        irregular = h5py.VirtualLayout((8, 6), "<f4")
        irregular[:4] = h5py.VirtualSource("linked0.h5", "group/x", (4, 6))
        irregular[4:, [0, 2, 3]] = h5py.VirtualSource("nowhere.h5", "x", (4, 3))
        f.create_virtual_dataset("/irregular", irregular, fillvalue=9)
        text = h5py.string_dtype()
        texts = h5py.VirtualLayout((8,), text)
        texts[4:] = h5py.VirtualSource("nowhere.h5", "x", (4,), text)
        f.create_virtual_dataset("/texts", texts)
    with h5py.File(os.path.join(folder, "circle.h5"), "w", libver="latest") as f:
        for name, source, kind in [("/self", "/self", "<f4"), ("/there", "/back", "<f4"), ("/back", "/there", "<f4"), ("/texts", "/texts", h5py.string_dtype())]:
            layout = h5py.VirtualLayout((8,), kind)
            layout[:] = h5py.VirtualSource(".", source, (8,), kind)
            f.create_virtual_dataset(name, layout)


def deep_sources(folder):
    """deep.h5: /plain0 and /numbered0 with 32 more virtual datasets behind them, and then /real, or all of /real%b."""
    last = 32
    with h5py.File(os.path.join(folder, "deep.h5"), "w", libver="latest") as f:
        f["real"] = f["real0"] = np.ones((8,), "<f4")
        for kind in ["numbered", "plain"]:
            for n in range(last):
                layout = h5py.VirtualLayout((8,), "<f4")
                layout[:] = h5py.VirtualSource(".", f"{kind}{n + 1}", (8,))
                f.create_virtual_dataset(f"{kind}{n}", layout)
        layout = h5py.VirtualLayout((8,), "<f4")
        layout[:] = h5py.VirtualSource(".", "real", (8,))
        f.create_virtual_dataset(f"plain{last}", layout)
        space = h5py.h5s.create_simple((8,), (h5py.h5s.UNLIMITED,))
        space.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), (8,), (8,))
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_virtual(space, b".", b"real%b", h5py.h5s.create_simple((8,)))
        h5py.h5d.create(f.id, f"numbered{last}".encode(), h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((8,), (h5py.h5s.UNLIMITED,)), create)


def external_segments(folder, expect):
    """Several segments with offsets, by paths that lead from the working directory: relative.h5."""
    array = np.arange(60 * 6).astype(">i4").reshape(60, 6)
    data = array.tobytes()
    parts = {"segment0.raw": b"12345" + data[:300], "segment1.raw": data[300:301], "segment2.raw": b"#" * 1000 + data[301:1000] + b"!" * 10 + data[1000:]}
    for name, content in parts.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content)
    for file, place in {"relative.h5": "", "segments.h5": folder + "/"}.items():
        segments = [("segment0.raw", 5, 300), ("segment1.raw", 0, 1), ("segment2.raw", 1000, 699), ("segment2.raw", 1709, h5py.h5f.UNLIMITED)]
        segments = [(place + name, offset, size) for name, offset, size in segments]
        table = np.dtype([("a", ">i4"), ("b", "<i2"), ("c", ">f8", (2,)), ("rest", "V2")])
        with h5py.File(os.path.join(folder, file), "w") as f:
            f.create_dataset("/x", array.shape, ">i4", external=segments)
            f.create_dataset("/table", (60,), table, external=segments)
    expect("segments.h5", "/x", "direct", array)
    members = np.frombuffer(data, table)
    for name in ["a", "b", "c"]:
        expect("segments.h5", f"/table[{name}]", "direct", members[name])
    with open(os.path.join(folder, "segments.bin"), "wb") as f:
        f.write(data)


def moved_sources(folder):
    """moved.h5: sources beside it and in prefix/, where HDF5_VDS_PREFIX may send libhdf5. The first source has all of the sample that is compared at opening."""
    os.makedirs(os.path.join(folder, "prefix"))
    rows, values = 8192, {"moved0.h5": 0, "moved1.h5": 1, "prefix/moved1.h5": 2, "prefix/moved2.h5": 3}
    for name, value in values.items():
        with h5py.File(os.path.join(folder, name), "w") as f:
            f["x"] = np.full((rows, 4), value, "<f4")
    with h5py.File(os.path.join(folder, "moved.h5"), "w", libver="latest") as f:
        for name, second in {"/v": "moved1.h5", "/moved_alone": "moved2.h5", "/absent": "moved3.h5"}.items():
            layout = h5py.VirtualLayout((2 * rows, 4), "<f4")
            layout[:rows] = h5py.VirtualSource("moved0.h5", "x", (rows, 4))
            layout[rows:] = h5py.VirtualSource(second, "x", (rows, 4))
            f.create_virtual_dataset(name, layout, fillvalue=9)
    read = "import h5py, sys; open(sys.argv[2], 'wb').write(h5py.File(sys.argv[1])['v'][:].tobytes())"
    for result, more in {"beside.bin": {}, "moved.bin": {"HDF5_VDS_PREFIX": os.path.join(folder, "prefix")}}.items():
        subprocess.run(["/usr/bin/python3", "-c", read, os.path.join(folder, "moved.h5"), os.path.join(folder, result)], env={**os.environ, **more}, check=True)


def make(folder, expect):
    linked_sources(folder)
    virtual(folder, expect)
    silent_fills(folder)
    deep_sources(folder)
    external_segments(folder, expect)
    moved_sources(folder)
