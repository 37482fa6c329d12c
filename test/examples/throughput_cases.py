"""penstock-throughput, against checksums by numpy."""

import json

import h5py
import numpy

from program_case import program_case


def checksum_of(path, dataset):
    """The sum of the rows' 32-bit words, each row filled up with zeros, modulo 2^64, in hexadecimal."""
    with h5py.File(path) as file:
        values = file[dataset][:]
    row_bytes = values.reshape(len(values), -1).view("u1")
    padded = numpy.pad(row_bytes, ((0, 0), (0, -row_bytes.shape[1] % 4)))
    return f"{int(padded.view('<u4').sum(dtype='u8')):016x}"


class throughput(program_case):
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

    def test_the_baseline_reads_patterns_and_16_bit_floats_as_they_are(self):
        for part in 1, 2, 10:
            self.make_rows("--type", "float16", "--seed", part, rows=100 * part, columns=5, name=f"part{part}.h5")
        expected = sum(int(checksum_of(self.folder / f"part{part}.h5", "/x"), 16) for part in (1, 2, 10))
        for batch_rows in 64, 250, 5000:
            results, _ = self.measure(self.folder / "part*.h5", "--batch-rows", batch_rows, "--baseline")
            for figures in results["runs"], results["baseline"]:
                self.assertEqual([figure["checksum"] for figure in figures], [f"{expected:016x}"])

    def test_the_baseline_reads_every_type_that_is_streamed(self):
        path = self.folder / "types.h5"
        random = numpy.random.default_rng(1)
        with h5py.File(path, "w") as file:
            file["big"] = random.normal(size=(500, 3)).astype(">f4")
            file["bool"] = random.integers(0, 2, (500, 3)).astype("?")
            file["complex"] = random.normal(size=(500, 2)).astype("c8")
            file["text"] = numpy.array([b"ab", b"cde"] * 250, "S5")
            file.create_dataset("array", (500,), dtype=numpy.dtype(("f2", (3,))))[...] = random.normal(size=(500, 3))
            datasets = list(file)
        for dataset in datasets:
            results, _ = self.measure(path, "--batch-rows", 64, "--baseline", dataset="/" + dataset)
            self.assertEqual(results["baseline"][0]["checksum"], results["runs"][0]["checksum"], dataset)

    def test_what_the_baseline_cannot_read_is_said_before_anything_is_measured(self):
        path = self.folder / "types.h5"
        with h5py.File(path, "w") as file:
            file["scalar"] = 3.0
            file["texts"] = numpy.array(["cat", "dog"] * 5, dtype=h5py.string_dtype())
            file["table"] = numpy.zeros(10, [("a", "i4"), ("b", "f8")])
        for dataset in "/scalar", "/texts", "/table[b]":
            run = lambda *more, expect: self.run_program(
                "penstock-throughput", path, "--dataset", dataset, "--epochs", 1, "--repeat", 1, *more, expect=expect
            )
            done = run("--baseline", expect=1)
            self.assert_one_line(done, "types.h5", dataset, "--baseline")
            self.assertEqual(done.stdout, "")
            run(expect=0)

    def test_bad_input_is_one_line_and_shows_no_table(self):
        path = self.make_rows(rows=100)

        def run(*arguments, expect):
            done = self.run_program("penstock-throughput", *arguments, expect=expect)
            self.assertEqual(done.stdout, "")
            return done

        self.assert_one_line(run(self.folder / "none.h5", "--dataset", "/x", expect=1), "none.h5")
        self.assert_one_line(run(path, "--dataset", "/y", expect=1), "/y")
        self.assert_one_line(run(path, "--dataset", "/x", "--batch-rows", "many", expect=2), "many")
        self.assert_one_line(run(path, "--dataset", "/x", "--device", "tpu", expect=2), "tpu")
        self.assert_one_line(run(path, "--dataset", "/x", "--threads", "-1", expect=2), "--threads", "-1")
        self.assert_one_line(run(path, "--dataset", "/x", "--repeat", "0", expect=2), "--repeat", "at least 1")
        self.assert_one_line(run(path, "--dataset", "/x", "--json", path, expect=2), "--json")
        self.assert_one_line(run(path, "--dataset", "/x", "--json", self.folder / "no" / "r", expect=1), "no folder")
        run(path, "--dataset", "/x", "--device-memory", "1KiB", expect=1)
        run(path, "--dataset", "/x", "--device-memory", "much", expect=2)
        run(path, expect=2)
