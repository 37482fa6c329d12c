"""penstock-make-dataset, against h5py and the package of Fashion-MNIST."""

import gzip
import pathlib
import resource
import signal
import subprocess

import h5py
import numpy

from program_case import program_case, programs

fashion_mnist = pathlib.Path("/usr/share/datasets/fashion-mnist")


class make_dataset(program_case):
    def idx(self, name, header):
        return numpy.frombuffer(gzip.open(fashion_mnist / name).read()[header:], "u1")

    def test_fashion_mnist_is_what_the_package_holds(self):
        path = self.folder / "fashion.h5"
        self.run_program("penstock-make-dataset", "fashion-mnist", path)
        with h5py.File(path) as file:
            for group, prefix, rows in ("train", "train", 60000), ("test", "t10k", 10000):
                images, labels = file[group]["images"], file[group]["labels"]
                self.assertEqual((images.shape, images.dtype), ((rows, 28, 28), "u1"))
                self.assertEqual((labels.shape, labels.dtype), ((rows,), "u1"))
                self.assertTrue((images[:].ravel() == self.idx(f"{prefix}-images-idx3-ubyte.gz", 16)).all())
                self.assertTrue((labels[:] == self.idx(f"{prefix}-labels-idx1-ubyte.gz", 8)).all())

    def test_headers_of_idx_files_that_claim_anything_take_no_memory(self):
        source, out = self.folder / "source", self.folder / "out.h5"
        source.mkdir()
        for extents in [], [60000, 2048, 2048], [60000, 1 << 31, 1 << 31, 1 << 31], [0, 28, 28], [60000, 0, 28]:
            header = bytes([0, 0, 8, len(extents)]) + b"".join(n.to_bytes(4, "big") for n in extents)
            (source / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(header))
            done = self.run_program("penstock-make-dataset", "fashion-mnist", out, "--source", source, expect=1)
            self.assert_one_line(done, "train-images-idx3-ubyte.gz", "header")
        self.assertEqual([each.name for each in self.folder.iterdir()], ["source"])

    def test_files_that_are_read_are_not_replaced(self):
        source, out = self.folder / "source", self.folder / "out.h5"
        source.mkdir()
        for part, rows in ("train", 3), ("t10k", 2):
            for kind, extents in ("images-idx3", (rows, 28, 28)), ("labels-idx1", (rows,)):
                header = bytes([0, 0, 8, len(extents)]) + b"".join(n.to_bytes(4, "big") for n in extents)
                values = bytes(n % 10 for n in range(int(numpy.prod(extents))))
                (source / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(header + values))
        before = {file: file.read_bytes() for file in source.iterdir()}
        self.assertEqual(len(before), 4)
        make = ("penstock-make-dataset", "fashion-mnist", "--source", source)
        for file in before:
            out.hardlink_to(file)  # the same file by another name
            for name in file, out:
                self.assert_one_line(self.run_program(*make, name, expect=2), name.name, "the data are read from it")
                self.assertTrue(out.samefile(file))
            out.unlink()
        self.assertEqual({file: file.read_bytes() for file in source.iterdir()}, before)
        self.run_program(*make, out)
        with h5py.File(out) as file:
            self.assertEqual((file["train/images"].shape, list(file["test/labels"])), ((3, 28, 28), [0, 1]))

    def test_files_that_it_did_not_make_are_not_replaced(self):
        theirs, notes = self.folder / "theirs.h5", self.folder / "notes.txt"
        with h5py.File(theirs, "w") as file:
            file["x"] = numpy.arange(12)
        notes.write_text("not to be lost")
        before = {path: path.read_bytes() for path in (theirs, notes)}
        for path in before:
            for command in ("rows", path, "--rows", 10), ("fashion-mnist", path):
                done = self.run_program("penstock-make-dataset", *command, expect=2)
                self.assert_one_line(done, f"OUT.h5 {path}: ", "not made by penstock-make-dataset", "remove it")
        self.assertEqual({path: path.read_bytes() for path in before}, before)
        self.make_rows(rows=10)
        with h5py.File(self.make_rows(rows=20)) as file:  # its own ones are
            self.assertEqual((len(file["x"]), file.attrs["penstock_dataset"]), (20, "rows"))

    def test_rows_are_stored_as_asked(self):
        path = self.make_rows("--type", "uint8", "--chunk-rows", 100, "--filter", "gzip:3", "--shuffle", rows=1234, columns=5)
        with h5py.File(path) as file:
            x = file["x"]
            self.assertEqual((x.shape, x.dtype, x.chunks), ((1234, 5), "u1", (100, 5)))
            self.assertEqual((x.compression, x.compression_opts, x.shuffle), ("gzip", 3, True))
            self.assertEqual((file["label"].shape, file["label"].dtype), ((1234,), "i4"))
        for element, kind in ("float16", "f2"), ("float64", "f8"), ("int16", "i2"):
            with h5py.File(self.make_rows("--type", element, "--layout", "contiguous")) as file:
                self.assertEqual((file["x"].dtype, file["x"].chunks), (numpy.dtype(kind), None))

    def test_compression_changes_no_value(self):
        plain = self.make_rows("--type", "float32", rows=1234, columns=7)
        with h5py.File(plain) as file:
            expected = file["x"][:]
        for name, *storage in (
            ("shuffled", "--filter", "gzip:4", "--shuffle", "--chunk-rows", 100),
            ("packed", "--filter", "gzip:9", "--chunk-rows", 1000),
            ("one chunk", "--filter", "gzip:1"),
            ("stored", "--filter", "gzip:0", "--chunk-rows", 100),
            ("only shuffled", "--shuffle", "--chunk-rows", 100),
        ):
            with h5py.File(self.make_rows(*storage, rows=1234, columns=7, name="packed.h5")) as file:
                self.assertTrue((file["x"][:] == expected).all(), name)

    def test_labels_can_be_learned(self):
        for element in "float32", "uint8", "float16":
            with h5py.File(self.make_rows("--type", element, "--classes", 5)) as file:
                x, label = file["x"][:].astype("f8"), file["label"][:]
            centres = numpy.stack([x[:4000][label[:4000] == k].mean(0) for k in range(5)])
            nearest = ((x[4000:, None] - centres) ** 2).sum(2).argmin(1)
            self.assertGreater((nearest == label[4000:]).mean(), 0.9, element)

    def test_wrong_use_exits_with_2_and_leaves_no_file(self):
        path = self.folder / "rows.h5"
        for wrong in (
            ["--filter", "lzma"],
            ["--filter", "gzip:10"],
            ["--type", "complex64"],
            ["--layout", "contiguous", "--shuffle"],
            ["--columns", "0"],
            ["--columns", "-1"],
            ["--classes", "1"],
            ["--seed", "-1"],
            ["--chunk-rows=-1"],
            ["--no-such-option"],
        ):
            self.run_program("penstock-make-dataset", "rows", path, "--rows", 10, *wrong, expect=2)
        self.run_program("penstock-make-dataset", expect=2)
        done = self.run_program("penstock-make-dataset", "rows", path, "--rows", -1, expect=2)
        self.assert_one_line(done, "penstock-make-dataset", "--rows", "-1")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_failed_work_exits_with_1_and_leaves_no_file(self):
        path = self.folder / "fashion.h5"
        done = self.run_program("penstock-make-dataset", "fashion-mnist", path, "--source", self.folder, expect=1)
        self.assert_one_line(done, "train-images-idx3-ubyte.gz", "dataset-fashion-mnist")
        self.assertEqual(list(self.folder.iterdir()), [])
        done = self.run_program("penstock-make-dataset", "rows", self.folder / "no" / "x.h5", "--rows", 10, expect=1)
        self.assert_one_line(done, "no folder")
        rows = self.folder / "rows.h5"
        self.assert_one_line(self.run_program("penstock-make-dataset", "rows", rows, "--rows", 1 << 60, expect=1), "free")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_limit_on_the_size_of_files_is_an_error_and_leaves_no_file(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        path = self.folder / "rows.h5"
        command = [programs / "penstock-make-dataset", "rows", path, "--rows", "20000", "--columns", "64"]
        done = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_one_line(done, str(path), "File too large")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_more_classes_than_labels_tell_apart_are_refused(self):
        command = "penstock-make-dataset", "rows", self.folder / "rows.h5", "--rows", 10, "--classes", 99999999999
        self.assert_one_line(self.run_program(*command, expect=2), "--classes")

    def test_a_signal_leaves_no_file_and_an_older_one_as_it_was(self):
        path = self.make_rows(rows=10)
        before = path.read_bytes()
        for number in signal.SIGINT, signal.SIGTERM:
            running = self.start_program("penstock-make-dataset", "rows", path, "--rows", 1 << 40, "--filter", "gzip:1")
            while not list(self.folder.glob("*.partial-*")):
                self.assertIsNone(running.poll())
            running.send_signal(number)
            _, errors = running.communicate(timeout=100)
            self.assertEqual(running.returncode, 128 + number, errors)
            self.assertEqual(errors.count("\n"), 1, errors)
            self.assertEqual(list(self.folder.iterdir()), [path])
            self.assertEqual(path.read_bytes(), before)
