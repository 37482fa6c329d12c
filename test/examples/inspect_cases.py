"""penstock-inspect, against h5py."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import zlib

import h5py
import numpy

from program_case import program_case, programs

corpus = pathlib.Path(__file__).resolve().parents[3] / "shared" / "corpus"  # as for penstock-test-io


class inspect(program_case):
    def test_shows_each_dataset(self):
        path = self.make_rows("--filter", "gzip:2", "--shuffle", "--chunk-rows", 100)
        done = self.run_program("penstock-inspect", path)
        for word in "/x", "/label", "5000", "64", "float32", "int32", "chunked", "contiguous", "direct":
            self.assertIn(word, done.stdout)
        self.assert_one_line(self.run_program("penstock-inspect", self.folder / "none.h5", expect=1), "none.h5")

    def test_json_describes_each_dataset_and_its_storage(self):
        path, results = self.folder / "stored.h5", self.folder / "results.json"
        values = numpy.arange(6000, dtype=">i2").reshape(1000, 6)
        with h5py.File(path, "w") as file:
            file.create_dataset("packed", data=values, chunks=(100, 6), compression="gzip", shuffle=True)
            file.create_dataset("plain", data=values.astype("f4"))
            file.create_dataset("ragged", (10,), dtype=h5py.vlen_dtype("f4"))
            stored = file["packed"].id.get_storage_size()
        self.run_program("penstock-inspect", path, "--json", results, "--digest")
        packed, plain, ragged = json.loads(results.read_text())["datasets"]
        crc32 = packed.pop("crc32")
        self.assertEqual(crc32, f"{zlib.crc32(values.astype('<i2').tobytes()):08x}")
        self.assertEqual([f.pop("id") for f in packed["filters"]], [2, 1])
        self.assertEqual([f.pop("values") for f in packed["filters"]], [[2], [4]])
        self.assertEqual([f.pop("name") for f in packed.pop("filters")], ["shuffle", "deflate"])
        self.assertTrue(packed.pop("reason"))
        self.assertEqual(
            packed,
            {"path": "/packed", "shape": [1000, 6], "type": "<i2", "plan": "direct", "layout": "chunked",
             "chunks": [100, 6], "stored_bytes": stored, "row_cost": 100.0},
        )  # fmt: skip
        self.assertEqual((plain["layout"], plain["chunks"], plain["filters"]), ("contiguous", None, []))
        self.assertEqual((plain["stored_bytes"], plain["row_cost"]), (values.size * 4, 1.0))
        self.assertIn("variable length", ragged["error"])

    def test_advises_against_rows_that_are_scattered_over_many_chunks(self):
        path = self.folder / "scattered.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", (100000, 1024), "f4", chunks=(7813, 8))
        shown = self.run_program("penstock-inspect", path).stdout
        self.assertIn("/x: one row lies in 128 chunks, 32 B in each", shown)
        self.assertIn("h5repack -l '/x:CHUNK=256x1024'", shown)

    def test_advises_the_command_that_mends_a_bad_layout(self):
        path, mended = self.folder / "it's bad.h5", self.folder / "OUT.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", (40, 65536), "f4", chunks=(40, 8192), compression="gzip")[:10] = 1
        shown = self.run_program("penstock-inspect", path).stdout
        (command,) = [line for line in shown.splitlines() if "h5repack" in line]
        if shutil.which("h5repack") is None:
            self.skipTest("h5repack is not installed (package hdf5-tools)")
        subprocess.run(command, shell=True, check=True, cwd=self.folder)
        self.assertNotIn("h5repack", self.run_program("penstock-inspect", mended).stdout)
        with h5py.File(path) as before, h5py.File(mended) as after:
            self.assertTrue((before["x"][:] == after["x"][:]).all())
            self.assertEqual((after["x"].chunks, after["x"].compression), ((4, 65536), "gzip"))

    def test_the_command_is_right_for_names_and_shapes_of_every_kind(self):
        if shutil.which("h5repack") is None:
            self.skipTest("h5repack is not installed (package hdf5-tools)")
        path, mended = self.folder / "odd.h5", self.folder / "OUT.h5"
        cases = {
            "a:b": ((20000, 256), (1000, 4), "f4", None),
            "a b'c\"d$x": ((20000, 256), (1000, 4), "f4", None),
            "image": ((3000, 3, 32, 64), (100, 1, 8, 16), "u1", "gzip"),
            "one": ((5000000,), (100,), "f4", None),
            "grows": ((40, 65536), (40, 1000), "f8", "gzip"),
        }
        for name, (shape, chunks, kind, compression) in cases.items():
            with h5py.File(path, "w") as file:
                data = file.create_dataset(name, shape, kind, chunks=chunks, compression=compression, maxshape=(None, *shape[1:]))
                data[0], data[-1] = 1, 2
            shown = self.run_program("penstock-inspect", path).stdout
            (command,) = [line for line in shown.splitlines() if "h5repack" in line]
            subprocess.run(command, shell=True, check=True, cwd=self.folder, executable="/bin/bash")
            self.assertNotIn("h5repack", self.run_program("penstock-inspect", mended).stdout)
            with h5py.File(path) as before, h5py.File(mended) as after:
                self.assertEqual(after[name].chunks[1:], shape[1:])
                self.assertTrue((before[name][::7] == after[name][::7]).all())
            mended.unlink()

    def test_names_that_h5repack_cannot_be_told_get_no_command(self):
        for name in "a,b", "a\nb":
            path = self.folder / "names.h5"
            with h5py.File(path, "w") as file:
                file.create_dataset(name, (20000, 1024), "f4", chunks=(7813, 8))
            shown = self.run_program("penstock-inspect", path).stdout
            self.assertIn("write it anew with chunks of 256 x 1024", shown)
            self.assertNotIn("h5repack -l", shown)

    def test_names_the_sources_of_a_virtual_dataset_that_are_missing(self):
        path = self.folder / "virtual.h5"
        layout = h5py.VirtualLayout((10, 4), "f4")
        layout[:] = h5py.VirtualSource("gone.h5", "/x", (10, 4))
        with h5py.File(path, "w") as file:
            file.create_virtual_dataset("v", layout)
        shown = self.run_program("penstock-inspect", path).stdout
        self.assertIn("missing", shown)
        self.assertIn("gone.h5:/x", shown)

    def test_isolated_shows_the_same_and_survives_a_crash_of_libhdf5(self):
        path = self.folder / "crafted.h5"
        layout = h5py.VirtualLayout((10,), "<i2")
        layout[:] = h5py.VirtualSource(".", "x", shape=(10,))
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=numpy.arange(10, dtype="<i2"))
            file.create_virtual_dataset("v", layout)
        shown = self.run_program("penstock-inspect", path).stdout
        self.assertEqual(self.run_program("penstock-inspect", "--isolated", path).stdout, shown)
        done = self.run_program("penstock-inspect", "--isolated", self.folder / "none.h5", expect=1)
        self.assert_one_line(done, "none.h5")
        # The selection of a virtual dataset, stored with its number of axes: libhdf5 1.10 believes any.
        selection = struct.pack("<5I", 2, 1, 0, 16, 1)
        self.assertIn(selection, path.read_bytes())
        path.write_bytes(path.read_bytes().replace(selection, struct.pack("<5I", 2, 1, 0, 16, 51201)))
        bare = subprocess.run([programs / "penstock-inspect", path], capture_output=True)
        if bare.returncode >= 0:
            self.skipTest("this version of libhdf5 does not crash on it")
        done = self.run_program("penstock-inspect", "--isolated", path, expect=1)
        self.assert_one_line(done, "crafted.h5", "libhdf5 crashed")

    def test_isolated_ends_as_the_program_does_where_nobody_reads_its_output(self):
        path = self.folder / "many.h5"
        with h5py.File(path, "w") as file:
            for n in range(1500):
                file.create_dataset(f"{n:0100}", data=[n])
        for how in [], ["--isolated"]:
            running = self.start_program("penstock-inspect", *how, path, stdout=subprocess.PIPE)
            running.stdout.close()
            self.assertEqual((running.wait(timeout=500), running.stderr.read()), (-signal.SIGPIPE, ""))

    def make_endless(self):
        """Rows of fill values, for some minutes of digesting."""
        path = self.folder / "endless.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", (240_000_000, 64), "f4", chunks=(1000, 64))[0] = 1
        return path

    def test_isolated_leaves_no_child_behind(self):
        path, results = self.make_endless(), self.folder / "results.json"
        for ending in signal.SIGTERM, signal.SIGKILL:
            running = self.start_program(
                "penstock-inspect", "--isolated", "--digest", "--json", results, path, stdout=subprocess.PIPE
            )
            running.stdout.readline()  # the child is at work
            running.send_signal(ending)
            self.assertEqual(running.wait(timeout=500), -ending)
            running.stdout.read()  # until the child is gone, too
            self.assertFalse(results.exists())

    def test_isolated_ends_a_child_that_takes_too_long(self):
        done = self.run_program(
            "penstock-inspect", "--isolated", "--digest", "--json", self.folder / "all.json", "--seconds", 1,
            self.make_endless(), expect=1,
        )  # fmt: skip
        self.assert_one_line(done, "endless.h5", "not read after 1 s")
        self.run_program("penstock-inspect", "--seconds", 1, self.make_endless(), expect=2)

    def test_isolated_gives_a_child_no_more_memory_than_it_may_take(self):
        texts, same, results = self.folder / "texts.h5", self.folder / "same.h5", self.folder / "all.json"
        large = h5py.h5t.C_S1.copy()
        large.set_size(2**31 - 1)
        with h5py.File(texts, "w") as file:
            h5py.h5d.create(file.id, b"x", large, h5py.h5s.create_simple((4,)))
            file["small"] = numpy.arange(10)
        # Eight rows of 512 MiB, each another view of one that is not stored.
        array = h5py.h5t.array_create(h5py.h5t.IEEE_F32LE, (2**27,))
        with h5py.File(same, "w", libver="latest") as file:
            h5py.h5d.create(file.id, b"s", array, h5py.h5s.create_simple((1,)))
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            for row in range(8):
                space = h5py.h5s.create_simple((8,))
                space.select_hyperslab((row,), (1,))
                creation.set_virtual(space, b".", b"/s", h5py.h5s.create_simple((1,)))
            h5py.h5d.create(file.id, b"v", array, h5py.h5s.create_simple((8,)), creation)
        digest = "--isolated", "--digest", "--json", results
        for path in texts, same:
            done = self.run_program("penstock-inspect", *digest, "--memory", "256MiB", path, expect=1)
            self.assert_one_line(done, path.name, "it takes more than 256 MiB of memory", "--memory allows more")
            self.assertFalse(results.exists())
        # What needs little has it, also beside what the program takes for itself.
        self.run_program("penstock-inspect", *digest, "--memory", "256MiB", texts, "/small")
        self.assertEqual(len(json.loads(results.read_text())["datasets"]), 1)
        self.run_program("penstock-inspect", "--memory", "1GiB", texts, expect=2)

    def test_isolated_ends_a_child_that_waits_without_end(self):
        outside, path = self.folder / "outside.bin", self.folder / "waits.h5"
        outside.write_bytes(bytes(32000))
        with h5py.File(path, "w") as file:
            file.create_dataset("x", (1000, 8), "f4", external=[(str(outside), 0, 32000)])
        # A lease (fcntl(2)): whoever opens the file waits, as on a file system that does not answer. The kernel ends that
        # after 45 s (/proc/sys/fs/lease-break-time).
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGIO, before)
        lease = os.open(outside, os.O_RDONLY)
        self.addCleanup(os.close, lease)
        fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        running = self.start_program(
            "penstock-inspect", "--isolated", "--digest", "--json", self.folder / "all.json", "--seconds", 1, path, "/x",
            stdout=subprocess.PIPE,
        )  # fmt: skip
        errors = running.communicate(timeout=500)[1]
        self.assertEqual(running.returncode, 1)
        self.assertIn("waits.h5: it was not read after 10 s", errors)

    def test_files_are_looked_for_where_the_variables_of_libhdf5_say(self):
        for folder, value in {"beside": 1, "moved": 2}.items():
            (self.folder / folder).mkdir()
            numpy.full(20000, value, "<f4").tofile(self.folder / folder / "b.raw")
            numpy.full(20000, 0, "<f4").tofile(self.folder / folder / "a.raw")
            for name in "ab":
                with h5py.File(self.folder / folder / f"{name}.h5", "w") as file:
                    file["x"] = numpy.full(20000, value if name == "b" else 0, "<f4")
        path, results = self.folder / "beside" / "all.h5", self.folder / "results.json"
        with h5py.File(path, "w", libver="latest") as file:
            file.create_dataset("external", (40000,), "<f4", external=[("a.raw", 0, 80000), ("b.raw", 0, 80000)])
            layout = h5py.VirtualLayout((40000,), "<f4")
            layout[:20000] = h5py.VirtualSource("a.h5", "x", (20000,))
            layout[20000:] = h5py.VirtualSource("b.h5", "x", (20000,))
            file.create_virtual_dataset("virtual", layout)
        read = "import h5py, sys, zlib; print(*(f'{zlib.crc32(d[:].tobytes()):08x}' for d in h5py.File(sys.argv[1]).values()))"
        seen = set()
        for prefix in "", ".", str(self.folder / "moved"), "${ORIGIN}/../moved":
            more = {name: prefix for name in ("HDF5_VDS_PREFIX", "HDF5_EXTFILE_PREFIX")}
            how = {"env": {**os.environ, **more}, "cwd": path.parent, "check": True, "capture_output": True}
            expected = subprocess.run(["/usr/bin/python3", "-c", read, path], **how).stdout.decode().split()
            subprocess.run([programs / "penstock-inspect", path, "--json", results, "--digest"], **how)
            datasets = json.loads(results.read_text())["datasets"]
            self.assertEqual([d["crc32"] for d in datasets], expected, prefix)
            self.assertEqual([d["plan"] for d in datasets], ["locked" if prefix else "direct"] * 2, prefix)
            self.assertEqual(["_PREFIX is set" in d["reason"] for d in datasets], [bool(prefix)] * 2)
            self.assertFalse(any("missing_sources" in d for d in datasets))
            seen.add(tuple(expected))
        self.assertEqual(len(seen), 2)

    def test_digests_are_shown_without_json_too(self):
        path, values = self.folder / "digested.h5", numpy.arange(600, dtype="<i2")
        with h5py.File(path, "w") as file:
            file["x"] = values
            file.create_dataset("ragged", (10,), dtype=h5py.vlen_dtype("f4"))
        shown = self.run_program("penstock-inspect", path, "--digest").stdout
        self.assertIn(f"\n/x: crc32 {zlib.crc32(values.tobytes()):08x}\n", shown)
        self.assertRegex(shown, r"\n/ragged: no digest: .*variable length")
        self.assertIn("has no checksum", shown)
        rows, model = self.make_rows(rows=100, columns=4), self.folder / "model.h5"
        self.run_program("penstock-train", rows, "--device", "host", "--epochs", 1, "--checkpoint", model)
        shown = self.run_program("penstock-inspect", model, "--digest").stdout
        self.assertIn("ends with its checksum, which is right", shown)
        self.assertNotIn("crc32", self.run_program("penstock-inspect", model).stdout)

    def test_bfloat16_is_digested_as_h5py_reads_it(self):
        path, results = self.folder / "halves.h5", self.folder / "results.json"
        bits = numpy.arange(0x7F80, dtype="<u2").reshape(-1, 48)
        kind = h5py.h5t.IEEE_F32LE.copy()
        kind.set_fields(15, 7, 8, 0, 7)
        kind.set_size(2)
        kind.set_ebias(127)
        with h5py.File(path, "w") as file:
            data = h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple(bits.shape))
            data.write(h5py.h5s.ALL, h5py.h5s.ALL, bits, kind)
        with h5py.File(path) as file:
            read = file["x"][:]
        self.assertEqual(read.dtype, "<f4")
        self.run_program("penstock-inspect", path, "--json", results, "--digest")
        (found,) = json.loads(results.read_text())["datasets"]
        self.assertEqual((found["type"], found["plan"]), ("<f4", "direct"))
        self.assertEqual(found["crc32"], f"{zlib.crc32(read.tobytes()):08x}")

    def test_fill_values_alone_are_digested_at_once(self):
        path, results = self.folder / "filled.h5", self.folder / "results.json"
        with h5py.File(path, "w") as file:
            file.create_dataset("long", (200 * 1024, 1001), ">i2", chunks=(1 << 20, 7), maxshape=(None, 1001), fillvalue=258)
            file.create_dataset("short", (3 << 20,), "<u4", fillvalue=7)
        self.run_program("penstock-inspect", path, "--json", results, "--digest")
        long, short = json.loads(results.read_text())["datasets"]
        crc, row = 0, numpy.full((1 << 10, 1001), 258, "<i2").tobytes()
        for _ in range(200):
            crc = zlib.crc32(row, crc)
        self.assertEqual(long["crc32"], f"{crc:08x}")
        self.assertEqual(short["crc32"], f"{zlib.crc32(numpy.full(3 << 20, 7, '<u4').tobytes()):08x}")

    def test_files_and_datasets_may_have_any_name(self):
        names = [b"a*b.h5", b"[x].h5", b"line\nbreak.h5", b"not\xffutf8.h5", b"not\xfeutf8.h5", b"\xed\xa0\x80 \xf0\x9f\x98\x80 \xe2\x82.h5", b" sp ace ", "caf\u00e9.h5".encode(), b"\x1b[31m.h5"]
        values = numpy.arange(12, dtype="<i4").reshape(4, 3)
        crc32 = f"{zlib.crc32(values.tobytes()):08x}"
        first = self.folder / "first.h5"
        with h5py.File(first, "w") as file:
            for name in names:
                h5py.h5d.create(file.id, name, h5py.h5t.STD_I32LE, h5py.h5s.create_simple(values.shape)).write(
                    h5py.h5s.ALL, h5py.h5s.ALL, values)  # fmt: skip
        run = lambda *arguments: subprocess.run([programs / "penstock-inspect", *arguments], capture_output=True, timeout=60)
        for name in names:
            path = bytes(self.folder) + b"/" + name
            results = path + b".json"
            shutil.copy(first, path)
            done = run(path, "--json", results, "--digest")
            self.assertEqual((done.returncode, done.stderr), (0, b""), name)
            self.assertEqual(done.stdout.count(b"\n"), len(names) + 1, name)
            with open(results, encoding="utf-8") as text:
                datasets = json.load(text)["datasets"]
            self.assertEqual([d["crc32"] for d in datasets], [crc32] * len(names))
            self.assertEqual(
                {d["path"] for d in datasets}, {"/" + n.decode("utf-8", "backslashreplace") for n in names}, name)  # fmt: skip
            for missing in [path + b"\n.h5", path]:
                done = run(missing, b"/no\nsuch")
                self.assertEqual((done.returncode, done.stderr.count(b"\n")), (1, 1), done.stderr)
                self.assertNotIn(b"\x1b", done.stderr)

    def test_the_files_of_hdf5s_own_tests_give_what_h5py_reads(self):
        if not (corpus / "manifest.json").exists():
            self.skipTest(f"there is no corpus at {corpus}")
        right = 0
        for name, expected in sorted(json.loads((corpus / "manifest.json").read_text()).items()):
            path, results = (corpus / "files" / name).resolve(), self.folder / "results.json"
            results.unlink(missing_ok=True)
            done = subprocess.run(
                [programs / "penstock-inspect", path, "--json", results, "--digest"],
                capture_output=True, cwd=path.parent, timeout=300)  # fmt: skip
            self.assertIn(done.returncode, (0, 1), f"{name}: {done.stderr}")
            if done.returncode == 1:
                self.assertEqual(done.stderr.count(b"\n"), 1, f"{name}: {done.stderr}")
                found = {}
            else:
                found = {d["path"]: d for d in json.loads(results.read_text())["datasets"]}
            for dataset in found.values():
                self.assertEqual("crc32" in dataset, "error" not in dataset, f"{name}: {dataset}")
            for dataset, values in expected.get("datasets", {}).items():
                if "crc32" not in values:
                    continue
                known = {key: found.get(dataset, {}).get(key) for key in ("shape", "type", "crc32")}
                self.assertEqual(known, {key: values[key] for key in known}, f"{name}:{dataset}")
                right += 1
        self.assertGreater(right, 800)

    def test_bad_input_is_one_line(self):
        path = self.make_rows(rows=10)
        run = lambda *arguments, expect: self.run_program("penstock-inspect", *arguments, expect=expect)
        self.assert_one_line(run(path, "/nothing", expect=1), "rows.h5", "/nothing", "/x")
        self.assert_one_line(run(path, "--json", path, expect=2), "--json")
        self.assert_one_line(run(path, "--json", "--digest", expect=2), "--json", "--digest")
        self.assert_one_line(run("/etc/passwd", expect=1), "/etc/passwd", "no HDF5 file")
        self.assert_one_line(run(expect=2), "FILE")
