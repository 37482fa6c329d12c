"""Runs the example programs as a user does, and checks them against h5py and numpy.

Usage: examples.py FOLDER_OF_PROGRAMS CASE; exit code 77 where the case is skipped, with a line that says why.
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy

programs = pathlib.Path(sys.argv[1])
fashion_mnist = pathlib.Path("/usr/share/datasets/fashion-mnist")


class example_case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, name, *arguments, expect=0):
        done = subprocess.run([programs / name, *map(str, arguments)], capture_output=True, text=True, timeout=500)
        if done.returncode == 77 and expect == 0:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, expect, f"{name} {arguments}:\n{done.stdout}\n{done.stderr}")
        return done

    def make_rows(self, *arguments, rows=5000, columns=64):
        path = self.folder / "rows.h5"
        self.run_program("penstock-make-dataset", "rows", path, "--rows", rows, "--columns", columns, *arguments)
        return path

    def assert_one_line(self, done, *words):
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class make_dataset(example_case):
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
            ["--no-such-option"],
        ):
            self.run_program("penstock-make-dataset", "rows", path, "--rows", 10, *wrong, expect=2)
        self.run_program("penstock-make-dataset", expect=2)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_failed_work_exits_with_1_and_leaves_no_file(self):
        path = self.folder / "fashion.h5"
        done = self.run_program("penstock-make-dataset", "fashion-mnist", path, "--source", self.folder, expect=1)
        self.assert_one_line(done, "train-images-idx3-ubyte.gz", "dataset-fashion-mnist")
        self.assertEqual(list(self.folder.iterdir()), [])
        done = self.run_program("penstock-make-dataset", "rows", self.folder / "no" / "x.h5", "--rows", 10, expect=1)
        self.assert_one_line(done, "no folder")


def checksum_of(path, dataset):
    """The sum of the rows' 32-bit words, each row filled up with zeros, modulo 2^64, in hexadecimal."""
    with h5py.File(path) as file:
        values = file[dataset][:]
    row_bytes = values.reshape(len(values), -1).view("u1")
    padded = numpy.pad(row_bytes, ((0, 0), (0, -row_bytes.shape[1] % 4)))
    return f"{int(padded.view('<u4').sum(dtype='u8')):016x}"


class throughput(example_case):
    def measure(self, path, *arguments, dataset="/x"):
        results = self.folder / "results.json"
        done = self.run_program(
            "penstock-throughput", path, "--dataset", dataset, "--epochs", 1, "--repeat", 1, "--json", results, *arguments
        )
        return json.loads(results.read_text()), done.stdout

    def test_every_order_and_batch_size_gives_the_files_checksum(self):
        path = self.make_rows("--filter", "gzip:1", "--chunk-rows", 128)
        expected = checksum_of(path, "/x")
        for order in "sequential", "shuffled":
            results, _ = self.measure(path, "--batch-rows", "32:256,1000,7000", "--order", order, "--baseline")
            self.assertEqual([run["batch_rows"] for run in results["runs"]], [32, 64, 128, 256, 1000, 7000])
            self.assertEqual({run["checksum"] for run in results["runs"] + results["baseline"]}, {expected})

    def test_rows_that_are_no_whole_words_are_summed_too(self):
        path = self.make_rows("--type", "uint8", columns=7)
        results, _ = self.measure(path, "--batch-rows", 100, "--baseline")
        self.assertEqual(results["runs"][0]["checksum"], checksum_of(path, "/x"))
        self.assertEqual(results["baseline"][0]["checksum"], checksum_of(path, "/x"))

    def test_json_holds_what_the_table_shows(self):
        results, table = self.measure(self.make_rows(), "--batch-rows", 256, "--device", "host")
        self.assertIn("host", results["device"])
        (run,) = results["runs"]
        self.assertEqual(set(run), {"dataset", "batch_rows", "rows_per_s", "gb_per_s", "checksum"})
        self.assertAlmostEqual(run["gb_per_s"], run["rows_per_s"] * 64 * 4 / 1e9)
        self.assertIn(run["checksum"], table)
        self.assertIn(f"{run['rows_per_s']:.0f}", table)

    def test_bad_input_is_one_line(self):
        path = self.make_rows(rows=100)
        run = lambda *arguments, expect: self.run_program("penstock-throughput", *arguments, expect=expect)
        self.assert_one_line(run(self.folder / "none.h5", "--dataset", "/x", expect=1), "none.h5")
        self.assert_one_line(run(path, "--dataset", "/y", expect=1), "/y")
        self.assert_one_line(run(path, "--dataset", "/x", "--batch-rows", "many", expect=2), "many")
        self.assert_one_line(run(path, "--dataset", "/x", "--device", "tpu", expect=2), "tpu")
        run(path, "--dataset", "/x", "--device-memory", "1KiB", expect=1)
        run(path, "--dataset", "/x", "--device-memory", "much", expect=2)
        run(path, expect=2)


class short_programs(example_case):
    def sum_of(self, path):
        with h5py.File(path) as file:
            return file["x"][:].astype("f8").sum()

    def check_sum(self, done, path, epochs):
        shown = float(re.search(r"sum (\S+)", done.stdout).group(1))
        self.assertAlmostEqual(shown, epochs * self.sum_of(path), delta=1e-4 * abs(shown) + 1e-2)

    def test_read_batches_adds_up_every_row_of_two_epochs(self):
        path = self.make_rows("--type", "uint8")
        self.check_sum(self.run_program("read_batches", path, "/x"), path, 2)

    def test_own_kernel_adds_up_every_row(self):
        path = self.make_rows("--type", "uint8")
        self.check_sum(self.run_program("own_kernel", path, "/x"), path, 1)

    def test_training_loop_learns(self):
        done = self.run_program("training_loop", self.make_rows(), "/x", "/label", 10)
        accuracies = [float(word) for word in re.findall(r"accuracy (\S+)", done.stdout)]
        self.assertEqual(len(accuracies), 5)
        self.assertGreater(accuracies[-1], 0.9)

    def test_the_readme_shows_a_part_of_read_batches(self):
        root = pathlib.Path(__file__).parents[2]
        source = (root / "examples" / "read_batches.cpp").read_text()
        shown = re.search(r"// \[readme\]\n(.*?)\n *// \[readme\]", source, re.DOTALL).group(1)
        shown = "\n".join(line.removeprefix("  ") for line in shown.splitlines())
        self.assertIn(shown, (root / "README.md").read_text())


class train(example_case):
    def test_learns_the_synthetic_task(self):
        results = self.folder / "results.json"
        done = self.run_program(
            "penstock-train", self.make_rows(), "--test-x", "/x", "--test-y", "/label", "--hidden", "64", "--epochs", 4,
            "--batch-rows", 100, "--device-memory", "4MiB", "--json", results
        )  # fmt: skip
        shown = re.fullmatch(r"test accuracy (0\.\d{4})", done.stdout.splitlines()[-1])
        self.assertIsNotNone(shown, done.stdout)
        self.assertGreater(float(shown.group(1)), 0.9)
        self.assertAlmostEqual(json.loads(results.read_text())["test_accuracy"], float(shown.group(1)), delta=1e-4)

    def test_bad_input_is_one_line(self):
        path = self.make_rows(rows=100)
        run = lambda *arguments, expect: self.run_program("penstock-train", *arguments, expect=expect)
        self.assert_one_line(run(self.folder / "none.h5", expect=1), "none.h5")
        self.assert_one_line(run(path, "--x", "/y", "--y", "/label", expect=1), "/y")
        self.assert_one_line(run(path, "--device", "tpu", expect=2), "tpu")
        self.assertIn("KiB", run(path, "--device-memory", "1KiB", expect=1).stderr)
        self.assert_one_line(run(path, "--batch-rows", 0, expect=2), "penstock-train", "batch-rows")
        self.assert_one_line(run(path, "--bogus", expect=2), "penstock-train", "--bogus")
        run(path, "--hidden=-4", expect=2)
        self.assert_one_line(run(expect=2), "penstock-train")
        with h5py.File(path, "a") as file:
            file["short"] = numpy.zeros(50, "i4")
        self.assert_one_line(run(path, "--y", "/short", expect=2), "100 rows", "50 rows", "/short")

    def test_labels_that_do_not_fit_are_found_before_training(self):
        path = self.make_rows(rows=100)
        with h5py.File(path, "a") as file:
            label = file["label"][:]
            file["wrapped"] = label.astype("i8") + 2**32
            file["half"] = label + 0.5
            file["two"] = numpy.zeros((100, 2), "i4")
        for name in "wrapped", "half", "two":
            done = self.run_program("penstock-train", path, "--test-x", "/x", "--test-y", f"/{name}", expect=1)
            self.assert_one_line(done, f"/{name}")
            self.assertNotIn("epoch 1", done.stdout)

    def test_results_never_replace_the_data(self):
        path = self.make_rows(rows=100)
        before = path.read_bytes()
        for option in "--checkpoint", "--json":
            self.assert_one_line(self.run_program("penstock-train", path, option, path, expect=2), option)
        self.assertEqual(path.read_bytes(), before)


class inspect(example_case):
    def test_shows_each_dataset(self):
        path = self.make_rows("--filter", "gzip:2", "--shuffle", "--chunk-rows", 100)
        done = self.run_program("penstock-inspect", path)
        for word in "/x", "/label", "5000", "64", "float32", "int32", "chunked", "contiguous", "direct":
            self.assertIn(word, done.stdout)
        self.assert_one_line(self.run_program("penstock-inspect", self.folder / "none.h5", expect=1), "none.h5")


if __name__ == "__main__":
    group, case = sys.argv[2].split(".")
    run = unittest.main(argv=[sys.argv[0], f"{group}.test_{case}"], exit=False).result
    for _, reason in run.skipped:
        print(reason)
    sys.exit(77 if run.skipped else not run.wasSuccessful())
