"""penstock-throughput, against checksums by numpy."""

import csv
import json
import os
import re
import resource
import subprocess
import xml.etree.ElementTree

import h5py
import numpy

from damaged_file import damage_chunks
from program_case import program_case, programs


def sum_of(values):
    """The sum of the rows' 32-bit words, each row filled up with zeros."""
    row_bytes = values.reshape(len(values), -1).view("u1")
    padded = numpy.pad(row_bytes, ((0, 0), (0, -row_bytes.shape[1] % 4)))
    return int(padded.view("<u4").sum(dtype="u8"))


def checksum_of(path, dataset):
    """The same of a dataset, modulo 2^64, in hexadecimal."""
    with h5py.File(path) as file:
        return f"{sum_of(file[dataset][:]):016x}"


def size(bytes):
    """As the programs write it: "512 B", "1.50 MiB", three significant digits."""
    unit = 0
    while bytes >= 1024:
        bytes, unit = bytes / 1024, unit + 1
    return f"{bytes:.{0 if unit == 0 or bytes >= 100 else 1 if bytes >= 10 else 2}f} {['B', 'KiB', 'MiB', 'GiB'][unit]}"


class throughput(program_case):
    def measure(self, path, *arguments, dataset="/x", repeat=1):
        results = self.folder / "results.json"
        done = self.run_program(
            "penstock-throughput", path, "--dataset", dataset, "--epochs", 1, "--repeat", repeat, "--json", results, *arguments
        )
        return json.loads(results.read_text()), done.stdout

    def test_every_order_and_batch_size_gives_the_files_checksum(self):
        path = self.make_rows("--filter", "gzip:1", "--chunk-rows", 128)
        expected = checksum_of(path, "/x")
        for order in "sequential", "shuffled", "random":
            results, _ = self.measure(path, "--batch-rows", "32:256,1000,7000", "--order", order, "--baseline")
            self.assertEqual([run["batch_rows"] for run in results["runs"]], [32, 64, 128, 256, 1000, 7000])
            self.assertEqual({run["checksum"] for run in results["runs"] + results["baseline"]}, {expected})

    def test_rows_that_are_no_whole_words_are_summed_too(self):
        path = self.make_rows("--type", "uint8", columns=7)
        results, _ = self.measure(path, "--batch-rows", 100, "--baseline")
        self.assertEqual(results["runs"][0]["checksum"], checksum_of(path, "/x"))
        self.assertEqual(results["baseline"][0]["checksum"], checksum_of(path, "/x"))

    def test_json_holds_what_the_table_shows(self):
        large = self.make_rows(rows=100_000)
        results, table = self.measure(large, "--batch-rows", 256, "--device", "host", "--block-bytes", "64KiB")
        self.assertIn("host", results["device"])
        (run,) = results["runs"]
        self.assertEqual(set(run), {
            "dataset", "order", "batch_rows", "rows_per_s", "gb_per_s", "gb_per_s_min", "gb_per_s_max", "repetitions",
            "first_batch_ms", "bottleneck", "choices", "consumer_waited_s", "consumer_waits", "device_bytes_peak", "pinned_bytes_peak", "checksum",
            "storage_gb_per_s", "share_of_limit"
        })  # fmt: skip
        self.assertGreater(results["storage_gb_per_s"], 0)
        self.assertEqual(run["storage_gb_per_s"], results["storage_gb_per_s"])
        self.assertIsNone(results["link_gb_per_s"])  # the host has none
        self.assertLessEqual(run["gb_per_s_min"], run["gb_per_s"])
        self.assertLessEqual(run["gb_per_s"], run["gb_per_s_max"])
        self.assertGreater(run["first_batch_ms"], 0)
        self.assertTrue(run["bottleneck"])
        self.assertAlmostEqual(run["gb_per_s"], run["rows_per_s"] * 64 * 4 / 1e9)
        for name, shown in ("rows/s", f"{run['rows_per_s']:.0f}"), ("GB/s", f"{run['gb_per_s']:.3f}"), (
            "least, most", f"{run['gb_per_s_min']:.3f}, {run['gb_per_s_max']:.3f}"
        ), ("first ms", f"{run['first_batch_ms']:.1f}"), ("device", size(run["device_bytes_peak"])), (
            "pinned", size(run["pinned_bytes_peak"])
        ), ("checksum", run["checksum"]), ("", "    " + run["bottleneck"] + "\n"):  # fmt: skip
            self.assertIn(name, table)
            self.assertRegex(table, rf"\s{re.escape(shown)}")

    def test_shares_are_of_what_is_stored_and_none_is_shown_of_small_files(self):
        device = "--device", "host", "--batch-rows", 256, "--block-bytes", "64KiB"
        path = self.make_rows("--filter", "gzip:1", "--chunk-rows", 128, rows=200_000)  # random numbers; 45 MB of 51
        results, shown = self.measure(path, *device, "--resident", "--baseline", "--csv", self.folder / "results.csv")
        with h5py.File(path) as file:
            ratio = file["x"].id.get_storage_size() / file["x"].nbytes
        for figure in results["runs"] + results["baseline"]:
            share = ratio * figure["gb_per_s"] / results["storage_gb_per_s"]
            self.assertAlmostEqual(figure["share_of_limit"] / share, 1, delta=0.03)
        self.assertNotIn("share_of_limit", results["resident"][0])  # it uses neither storage nor link
        with open(self.folder / "results.csv", newline="") as file:
            shares = {line["reader"]: line["share_of_limit"] for line in csv.DictReader(file)}
        self.assertAlmostEqual(float(shares["penstock"]), results["runs"][0]["share_of_limit"], places=6)
        self.assertEqual(shares["resident"], "")
        self.assertIn(f" {100 * results['runs'][0]['share_of_limit']:.0f} % ", shown)
        results, shown = self.measure(self.make_rows(rows=100), *device, "--csv", self.folder / "results.csv")
        self.assertNotIn("share_of_limit", results["runs"][0])
        self.assertIn(" n/a ", shown)
        self.assertIn("rows.h5 is too small to tell", shown)
        self.assertIsNone(results["storage_gb_per_s"])
        self.assertIsNone(results["runs"][0]["storage_gb_per_s"])
        with open(self.folder / "results.csv", newline="") as file:
            self.assertEqual([line["storage_gb_per_s"] for line in csv.DictReader(file)], [""])

    def test_the_storages_limit_is_of_the_files_that_hold_the_values(self):
        rows, columns = 100_000, 64
        values = numpy.arange(rows * columns, dtype="f4").reshape(rows, columns)
        with h5py.File(self.folder / "source.h5", "w") as file:
            file["x"] = values
        values.tofile(self.folder / "raw")
        stub = self.folder / "stub.h5"
        with h5py.File(stub, "w") as file:
            layout = h5py.VirtualLayout((rows, columns), "f4")
            layout[:] = h5py.VirtualSource(self.folder / "source.h5", "x", (rows, columns))
            file.create_virtual_dataset("virtual", layout)
            file.create_dataset("external", (rows, columns), "f4", external=[(str(self.folder / "raw"), 0, values.nbytes)])
        self.assertLess(stub.stat().st_size, 20_000)
        for dataset in "/virtual", "/external":
            results, shown = self.measure(
                stub, "--device", "host", "--batch-rows", 256, "--block-bytes", "64KiB", dataset=dataset)
            self.assertNotIn("too small", shown, dataset)
            self.assertGreater(results["storage_gb_per_s"], 0, dataset)
            self.assertIn("share_of_limit", results["runs"][0], dataset)

    def test_each_dataset_is_judged_by_the_storage_of_its_own_files(self):
        rows, columns = 100_000, 64
        with h5py.File(self.folder / "source.h5", "w") as file:
            file["x"] = numpy.arange(rows * columns, dtype="f4").reshape(rows, columns)
        path, table = self.folder / "main.h5", self.folder / "results.csv"
        with h5py.File(path, "w") as file:
            layout = h5py.VirtualLayout((rows, columns), "f4")
            layout[:] = h5py.VirtualSource(self.folder / "source.h5", "x", (rows, columns))
            file.create_virtual_dataset("virtual", layout)
            file["few"] = numpy.arange(1000, dtype="f4").reshape(500, 2)  # too small to measure
        arguments = "--device", "host", "--block-bytes", "64KiB", "--batch-rows", "64,256", "--baseline", "--csv", table
        for datasets in ("/virtual", "/few"), ("/few", "/virtual"):
            results, shown = self.measure(path, *arguments, "--dataset", datasets[1], dataset=datasets[0])
            self.assertIsNone(results["storage_gb_per_s"])
            figures = results["runs"] + results["baseline"]
            self.assertEqual(len(figures), 8)
            (storage,) = {f["storage_gb_per_s"] for f in figures if f["dataset"] == "/virtual"}
            self.assertGreater(storage, 0)
            for figure in figures:
                if figure["dataset"] == "/few":
                    self.assertIsNone(figure["storage_gb_per_s"])
                    self.assertNotIn("share_of_limit", figure)
                else:
                    self.assertAlmostEqual(figure["share_of_limit"] * storage / figure["gb_per_s"], 1, delta=0.03)
            with open(table, newline="") as file:
                limits = {(line["dataset"], line["storage_gb_per_s"]) for line in csv.DictReader(file)}
            self.assertEqual(limits, {("/virtual", str(storage)), ("/few", "")})
            self.assertIn("main.h5: /few is too small to tell", shown)
            self.assertNotIn("that the storage gives", "".join(re.findall(r"/few .*\n    (.*)\n", shown)))

        # Each has enough of its own files; and several of one file share what that gives.
        large = self.make_rows(rows=rows)
        with h5py.File(large, "r+") as file:
            file.create_virtual_dataset("virtual", layout)
            few = h5py.VirtualLayout((500, 2), "f4")
            few[:] = h5py.VirtualSource(self.folder / "few.h5", "x", (500, 2))
            file.create_virtual_dataset("few", few)
            few_values = numpy.arange(1000, dtype="f4").reshape(500, 2)
            file["linked"] = h5py.ExternalLink("few.h5", "/x")
            raw = file.create_dataset("raw", (500, 2), "<f4", external=[(str(self.folder / "few.raw"), 0, few_values.nbytes)])
            raw[:] = few_values
        with h5py.File(self.folder / "few.h5", "w") as file:
            file["x"] = few_values
        arguments = "--device", "host", "--block-bytes", "64KiB", "--batch-rows", 256
        for dataset in "/few", "/linked", "/raw":  # a small file, described in a large one
            results, shown = self.measure(large, *arguments, "--dataset", dataset)
            self.assertEqual([run["storage_gb_per_s"] is None for run in results["runs"]], [False, True], dataset)
            self.assertIn(f"rows.h5: {dataset} is too small to tell", shown)
        results, shown = self.measure(large, *arguments, "--dataset", "/virtual", "--dataset", "/label")
        own = {run["dataset"]: run["storage_gb_per_s"] for run in results["runs"]}
        self.assertNotIn("too small", shown)
        self.assertEqual(own["/x"], own["/label"])
        self.assertNotEqual(own["/x"], own["/virtual"])
        self.assertIsNone(results["storage_gb_per_s"])
        results, _ = self.measure(large, *arguments, "--dataset", "/label")
        self.assertEqual({run["storage_gb_per_s"] for run in results["runs"]}, {results["storage_gb_per_s"]})
        self.require_gnuplot()
        for other, drawn in ("/label", True), ("/virtual", False):
            self.measure(large, *arguments, "--dataset", other, "--plot", self.folder / "plot.svg")
            text = "".join(xml.etree.ElementTree.parse(self.folder / "plot.svg").getroot().itertext())
            (self.assertIn if drawn else self.assertNotIn)("storage (", text)

    def test_the_median_of_two_repetitions_is_their_mean(self):
        results, _ = self.measure(self.make_rows(), repeat=2)
        for run in results["runs"]:
            self.assertLess(run["gb_per_s_min"], run["gb_per_s_max"])
            self.assertAlmostEqual(run["gb_per_s"], (run["gb_per_s_min"] + run["gb_per_s_max"]) / 2)

    def test_repetitions_take_as_long_as_is_asked_for(self):
        path, saved = self.make_rows("--layout", "contiguous"), self.folder / "saved.json"
        arguments = ["--dataset", "/x", "--device", "host", "--batch-rows", 256, "--repeat", 3, "--json", saved]
        readers = ["--baseline", "--resident", "--pread"]
        self.run_program("penstock-throughput", path, *arguments, *readers, "--seconds", 0.2)
        results = json.loads(saved.read_text())
        for reader in "runs", "baseline", "resident", "pread":
            (figure,) = results[reader]
            self.assertEqual(len(figure["repetitions"]), 3, reader)
            for one in figure["repetitions"]:
                self.assertGreaterEqual(one["seconds"], 0.2, reader)
            rates = sorted(5000 * one["epochs"] / one["seconds"] for one in figure["repetitions"])
            self.assertAlmostEqual(figure["rows_per_s"] / rates[1], 1, places=9)
        results, _ = self.measure(path, "--batch-rows", 256, repeat=2)
        self.assertEqual([one["epochs"] for one in results["runs"][0]["repetitions"]], [1, 1])
        with h5py.File(path, "a") as file:
            file.create_dataset("none", (0, 16), "f4")
        done = self.run_program("penstock-throughput", path, "--dataset", "/none", "--device", "host", expect=2)
        self.assert_one_line(done, f"{path}:/none has no rows to measure")
        for seconds in 0, "nan":
            self.assert_one_line(self.run_program("penstock-throughput", path, *arguments, "--seconds", seconds, expect=2), "--seconds")
        done = self.run_program("penstock-throughput", path, *arguments, "--seconds", 1, "--epochs", 1, expect=2)
        self.assert_one_line(done, "--seconds", "--epochs")

    def test_values_are_cast_on_the_device_and_rates_are_those_of_stored_bytes(self):
        path = self.make_rows("--type", "uint8", columns=7)
        with h5py.File(path) as file:
            values, labels = file["x"][:], file["label"][:]
        cast = ["--as", "float32", "--scale", 0.5, "--shift", -3]
        for more, bytes_of_row, others in ([], 7, 0), (["--with", "/label"], 7 + labels.itemsize, sum_of(labels)):
            arguments = ["--batch-rows", "100,5000", "--order", "sequential,shuffled"]
            results, shown = self.measure(path, *arguments, *cast, *more)
            expected = (sum_of(values.astype("f4") / 2 - 3) + others) % 2**64
            self.assertEqual({run["checksum"] for run in results["runs"]}, {f"{expected:016x}"})
            for run in results["runs"]:
                self.assertAlmostEqual(run["gb_per_s"], run["rows_per_s"] * bytes_of_row / 1e9)
                self.assertEqual((run["as"], run["scale"], run["shift"]), ("float32", 0.5, -3))
                self.assertEqual(run.get("with", []), more[1:])
            self.assertIn("/x as float32 + /label" if more else "/x as float32 ", shown)
        stored, _ = self.measure(path, "--batch-rows", 100, "--with", "/label", "--with", "/x")
        self.assertEqual(int(stored["runs"][0]["checksum"], 16), 2 * sum_of(values) + sum_of(labels))
        self.assertNotIn("as", stored["runs"][0])

    def test_csv_holds_a_line_for_each_figure(self):
        table = self.folder / "results.csv"
        arguments = ["--batch-rows", "64,256", "--order", "sequential,random", "--baseline", "--resident", "--csv", table]
        results, _ = self.measure(self.make_rows(), *arguments)
        with open(table, newline="") as file:
            lines = list(csv.DictReader(file))
        self.assertEqual(
            [(line["reader"], line["order"], int(line["batch_rows"])) for line in lines],
            [(reader, order, rows) for order, readers in (
                ("sequential", ("penstock", "baseline", "resident")), ("random", ("penstock",))
            ) for rows in (64, 256) for reader in (
                readers
            )],
        )  # fmt: skip
        streamed = [line for line in lines if line["reader"] == "penstock"]
        for line, run in zip(streamed, results["runs"], strict=True):
            for name in "rows_per_s", "gb_per_s", "first_batch_ms", "device_bytes_peak":
                self.assertAlmostEqual(float(line[name]) / run[name], 1, places=6)
            self.assertEqual((line["checksum"], line["bottleneck"]), (run["checksum"], run["bottleneck"]))

    def test_calibrating_shows_what_was_tried_and_changes_no_row(self):
        path = self.make_rows(rows=100_000)
        results, shown = self.measure(path, "--batch-rows", "64,1000", "--order", "sequential,shuffled", "--calibrate")
        self.assertEqual({run["checksum"] for run in results["runs"]}, {checksum_of(path, "/x")})
        self.assertEqual(len(re.findall("^blocks: (?:not )?measured: ", shown, re.MULTILINE)), 4)
        for run in results["runs"]:
            rates = [(one["block_bytes"], one["gb_per_s"]) for one in run["tried"]["blocks"]]
            if not rates:
                continue  # too slow a machine
            self.assertEqual(rates, sorted(rates))
            fast = [size for size, rate in rates if rate >= 0.97 * max(rate for _, rate in rates)]
            rows, why = re.match(r"blocks of (\d+) rows, .*?: (.*)", run["choices"][0]).groups()
            self.assertEqual(int(rows) * 64 * 4, fast[0])
            self.assertTrue(why.startswith("measured: "), why)
        fixed, shown = self.measure(path, "--batch-rows", 64, "--calibrate", "--block-bytes", "64KiB", "--slots", 3)
        self.assertIn("blocks: as asked for", shown)
        self.assertIn("slots: ", shown)
        self.assertEqual(fixed["runs"][0]["tried"], {"blocks": [], "slots": []})

    def test_resident_rows_are_the_files_where_they_fit_and_its_first_ones_where_not(self):
        path = self.make_rows()
        results, _ = self.measure(path, "--batch-rows", 128, "--resident")
        self.assertEqual(results["resident"][0]["checksum"], checksum_of(path, "/x"))
        # Half of 1 MiB holds 2048 rows of 256 bytes: 5000 rows are these twice, and 904 of them.
        arguments = ["--batch-rows", 128, "--resident", "--device-memory", "1MiB", "--pinned-memory", "8MiB"]
        results, _ = self.measure(path, *arguments)
        with h5py.File(path) as file:
            words = file["x"][:].view("<u4").astype("u8")
        expected = (2 * int(words[:2048].sum()) + int(words[:904].sum())) % 2**64
        self.assertEqual(results["resident"][0]["checksum"], f"{expected:016x}")

    def test_plain_positioned_reads_give_the_same_sum_on_the_host_where_bytes_lie_one_after_another(self):
        host = ["--device", "host", "--pread"]
        for part in 1, 2:
            self.make_rows("--layout", "contiguous", "--type", "uint8", "--seed", part, rows=3000 * part, columns=701, name=f"part{part}.h5")
        results, _ = self.measure(self.folder / "part*.h5", "--batch-rows", 100, "--order", "sequential,random", *host)
        (figure,) = results["pread"]
        self.assertEqual({run["checksum"] for run in results["runs"]}, {figure["checksum"]})
        expected = sum(int(checksum_of(self.folder / f"part{part}.h5", "/x"), 16) for part in (1, 2))
        self.assertEqual(int(figure["checksum"], 16), expected)
        chunked = self.make_rows("--chunk-rows", 128)
        done = self.run_program("penstock-throughput", chunked, "--dataset", "/x", *host, expect=1)
        self.assert_one_line(done, "/x", "one after another", "--pread")
        self.assertEqual(done.stdout, "")
        with h5py.File(self.folder / "types.h5", "w") as file:  # h5py's texts are padded with zeros
            file["texts"] = numpy.array([b"a", b"bc", b""] * 100, "S2")
            file["big_endian"] = numpy.arange(600, dtype=">f4")
            padded = h5py.h5t.C_S1.copy()
            padded.set_size(2)
            padded.set_strpad(h5py.h5t.STR_SPACEPAD)
            h5py.h5d.create(file.id, b"padded", padded, h5py.h5s.create_simple((300,))).write(
                h5py.h5s.ALL, h5py.h5s.ALL, numpy.array([b"a ", b"bc", b"  "] * 100, "S2"), mtype=padded)
        results, _ = self.measure(self.folder / "types.h5", "--batch-rows", 100, *host, dataset="/texts")
        self.assertEqual(results["pread"][0]["checksum"], results["runs"][0]["checksum"])
        for dataset in "/big_endian", "/padded":
            done = self.run_program("penstock-throughput", self.folder / "types.h5", "--dataset", dataset, *host, expect=1)
            self.assert_one_line(done, dataset, "are converted", "--pread")
            self.assertEqual(done.stdout, "")

    def test_many_files_are_measured_with_few_descriptors(self):
        for part in range(100):
            self.make_rows(rows=3000, name=f"part{part:02}.h5")
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))  # noqa: E731
        arguments = "--dataset", "/x", "--device", "host", "--epochs", "2", "--batch-rows", "100", "--block-bytes", "16KiB"
        running = self.start_program(
            "penstock-throughput", self.folder / "part*.h5", *arguments, "--json", self.folder / "results.json", preexec_fn=limit)
        self.assertEqual(running.communicate(timeout=300), (None, ""))
        self.assertEqual(running.returncode, 0)
        results = json.loads((self.folder / "results.json").read_text())
        self.assertGreater(results["storage_gb_per_s"], 0)  # of 32 files of 750 KiB

    def test_results_are_not_written_over_each_other_by_whatever_names(self):
        path = self.make_rows(rows=300)
        (self.folder / "link").symlink_to("same")
        for name in self.folder / "same", "./same", f"../{self.folder.name}/same", "link":
            command = [programs.resolve() / "penstock-throughput", path, "--dataset", "/x", "--epochs", "2", "--json", "same", "--csv", str(name)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=self.folder)
            self.assertEqual(done.returncode, 2, name)
            self.assert_one_line(done, "--csv", "it is the file of --json too")
            self.assertFalse((self.folder / "same").exists())

    def test_files_are_read_around_the_page_cache_to_the_same_sum(self):
        path = self.make_rows()
        results, _ = self.measure(path, "--around-page-cache")
        self.assertEqual({run["checksum"] for run in results["runs"]}, {checksum_of(path, "/x")})

    def test_a_picture_shows_each_line_and_the_storages_limit(self):
        picture = self.folder / "it's.svg"
        path = self.make_rows(rows=100_000)
        self.require_gnuplot()
        arguments = ["--batch-rows", "64:256", "--order", "sequential,shuffled", "--block-bytes", "64KiB"]
        self.measure(path, *arguments, "--baseline", "--plot", picture)
        text = "".join(xml.etree.ElementTree.parse(picture).getroot().itertext())
        for line in "penstock /x sequential", "penstock /x shuffled", "baseline /x sequential", "storage", "GB/s":
            self.assertIn(line, text)
        self.measure(path, "--batch-rows", "64", "--plot", self.folder / "one.png")
        self.assertTrue((self.folder / "one.png").read_bytes().startswith(b"\x89PNG"))
        self.assertEqual(list(self.folder.glob("*.part")), [])

    def test_a_picture_is_drawn_from_results_of_earlier_runs(self):
        self.require_gnuplot()
        run = lambda *arguments, **how: self.run_program("penstock-throughput", *arguments, **how)
        path = self.make_rows(rows=100_000)
        for order in "sequential", "shuffled":
            arguments = ["--batch-rows", "64,128", "--order", order, "--json", self.folder / f"{order}.json"]
            run(path, "--dataset", "/x", "--device", "host", "--block-bytes", "64KiB", "--epochs", 1, *arguments)
        picture = self.folder / "both.svg"
        saved = [self.folder / "sequential.json", self.folder / "shuffled.json"]
        run("--plot", picture, "--from", *saved)
        text = "".join(xml.etree.ElementTree.parse(picture).getroot().itertext())
        for line in "penstock /x sequential", "penstock /x shuffled", "storage":
            self.assertIn(line, text)
        twice = self.folder / "twice.svg"
        run("--plot", twice, "--from", *saved, saved[0])  # points that are there already draw no line back to them
        self.assertEqual(twice.read_text(), picture.read_text())
        self.assert_one_line(run("--from", saved[0], expect=2), "--plot")
        self.assert_one_line(run(path, "--dataset", "/x", "--plot", picture, "--from", saved[0], expect=2), "--from")
        for option in ("--csv", picture), ("--json", picture), ("--baseline",), ("--batch-rows", 99):
            self.assert_one_line(run("--plot", picture, "--from", saved[0], *option, expect=2), "--from", option[0])
        self.assert_one_line(run("--plot", picture, "--from", path, expect=1), str(path), "--json")
        self.assert_one_line(run("--plot", picture, expect=2), "FILE")
        self.assert_one_line(run(path, expect=2), "--dataset")

    def test_limits_are_lines_of_a_picture_where_they_are_known(self):
        self.require_gnuplot()
        picture, saved = self.folder / "saved.svg", self.folder / "saved.json"
        run = {"dataset": "/x", "order": "sequential", "batch_rows": 256, "gb_per_s": 40.5}
        for link, storage in (53.25, 61.5), (None, 61.5), (53.25, None), (None, None):
            limits = {"link_gb_per_s": link, "storage_gb_per_s": storage}
            saved.write_text(json.dumps({"device": "H100", "runs": [run], **limits}))
            self.run_program("penstock-throughput", "--plot", picture, "--from", saved)
            text = "".join(xml.etree.ElementTree.parse(picture).getroot().itertext())
            for title, rate in ("link", link), ("storage", storage):
                (self.assertIn if rate else self.assertNotIn)(title, text)
                if rate:
                    above = ", above the picture" if rate > 1.15 * (link or storage) else ""
                    self.assertIn(f"{title} ({rate:.1f} GB/s{above})", text)
        saved.write_text(json.dumps({"device": "H100", "runs": [run], "link_gb_per_s": "fast"}))
        done = self.run_program("penstock-throughput", "--plot", picture, "--from", saved, expect=1)
        self.assert_one_line(done, "saved.json", '"link_gb_per_s"')

    def test_results_of_the_first_versions_are_drawn_too_and_odd_ones_are_refused(self):
        self.require_gnuplot()
        picture, saved = self.folder / "saved.svg", self.folder / "saved.json"

        def draw(expect=0, device="H100", **changes):
            run = {"dataset": "/x", "batch_rows": 256, "gb_per_s": 40.5, "rows_per_s": 1e7, "checksum": "0", **changes}
            saved.write_text(json.dumps({"device": device, "runs": [run]}))
            return self.run_program("penstock-throughput", "--plot", picture, "--from", saved, expect=expect)

        draw()  # no order, no limits
        self.assertIn("penstock /x", picture.read_text())
        draw(dataset="/two\nlines")
        self.assertIn("penstock /two lines", picture.read_text())
        for name, value in ("batch_rows", -5), ("batch_rows", 0), ("gb_per_s", None), ("gb_per_s", 1e308), ("dataset", 3):
            done = draw(expect=1, **{name: value})
            self.assert_one_line(done, "saved.json", f'"{name}"', "--json wrote")
            self.assertNotIn("exception", done.stderr)
        deep = "[" * 100000 + "]" * 100000
        endless = deep, f'{{"device": {deep}}}', f'{{"device": "x", "runs": [{{"dataset": {deep}}}]}}'
        for text in "[1]", '{"device": 3}', '{"device": "x", "runs": {"a": 1}}', '{"device": "x", "runs": [1]}', *endless:
            saved.write_text(text)
            done = self.run_program("penstock-throughput", "--plot", picture, "--from", saved, expect=1)
            self.assert_one_line(done, "saved.json", "--json wrote")
            self.assertNotIn("exception", done.stderr)
            self.assertLess(len(done.stderr), 1000)

    def test_names_of_any_bytes_are_in_the_results(self):
        path = self.folder / "names.h5"
        with h5py.File(path, "w") as file:
            file[b"caf\xe9"] = numpy.arange(100, dtype="f4")
        saved = self.folder / "saved.json"
        arguments = [path, "--dataset", b"/caf\xe9", "--epochs", "1", "--repeat", "1", "--json", saved]
        subprocess.run([programs / "penstock-throughput", *arguments], capture_output=True, check=True)
        self.assertEqual({run["dataset"] for run in json.loads(saved.read_text())["runs"]}, {"/caf\\xe9"})

    def test_a_file_that_cannot_be_written_takes_no_other_with_it(self):
        table = self.folder / "results.csv"
        arguments = ["--dataset", "/x", "--epochs", 1, "--repeat", 1, "--batch-rows", 64]
        done = self.run_program(
            "penstock-throughput", self.make_rows(rows=100), *arguments, "--json", "/dev/full", "--csv", table, expect=1
        )
        self.assertIn("/dev/full", done.stderr)
        self.assertEqual(len(table.read_text().splitlines()), 2)
        full = self.folder / "full.csv"  # another name of the same device
        full.symlink_to("/dev/full")
        arguments += ["--json", "/dev/full", "--csv", full]
        done = self.run_program("penstock-throughput", self.make_rows(rows=100), *arguments, expect=1)
        self.assert_one_line(done, "/dev/full", "full.csv")

    def test_an_error_in_a_later_figure_leaves_those_before(self):
        path, saved, table = self.make_rows(rows=2000), self.folder / "r.json", self.folder / "r.csv"
        with h5py.File(path, "a") as file:
            file.create_dataset("bad", data=file["x"][:], chunks=(500, 64), fletcher32=True)
        damage_chunks(path, "bad", [2])
        arguments = ["--dataset", "/x", "--dataset", "/bad", "--epochs", 1, "--repeat", 1, "--batch-rows", "64,128"]
        done = self.run_program("penstock-throughput", path, *arguments, "--json", saved, "--csv", table, expect=1)
        self.assert_one_line(done, "/bad", "1000")
        results = json.loads(saved.read_text())
        self.assertEqual([(run["dataset"], run["batch_rows"]) for run in results["runs"]], [("/x", 64), ("/x", 128)])
        self.assertIn("/bad", results["ended_by"])
        self.assertEqual(len(table.read_text().splitlines()), 3)
        self.assertIn("what was measured before it is written", done.stdout)
        # The error is told, too, where these cannot be written.
        done = self.run_program("penstock-throughput", path, *arguments, "--json", "/dev/full", expect=1)
        self.assertIn("/dev/full", done.stderr.splitlines()[0])
        self.assertIn("/bad", done.stderr.splitlines()[1])
        self.assertNotIn("is written", done.stdout)
        # Before the first figure there is nothing to write.
        self.forget(saved)
        arguments = ["--dataset", "/bad", "--epochs", 1, "--repeat", 1, "--json", saved]
        self.assert_one_line(self.run_program("penstock-throughput", path, *arguments, expect=1), "/bad")
        self.assertFalse(saved.exists())

    def require_gnuplot(self):
        if not any(os.access(f"{folder}/gnuplot", os.X_OK) for folder in os.environ["PATH"].split(":")):
            self.skipTest("there is no gnuplot")

    def test_a_picture_without_gnuplot_is_refused_before_anything_is_measured(self):
        done = subprocess.run(
            [programs / "penstock-throughput", self.make_rows(), "--dataset", "/x", "--plot", self.folder / "p.svg"],
            capture_output=True, text=True, env={"PATH": str(self.folder)},
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assert_one_line(done, "p.svg", "gnuplot-nox")

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

    def test_the_price_and_the_mixing_of_an_order_are_said_before_it_runs(self):
        path = self.folder / "sorted.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=numpy.zeros((8192, 16), "f4"), chunks=(128, 16), compression=1)
            file["label"] = numpy.arange(8192) // 1024
            file["few"] = numpy.arange(100)
        orders = "sequential,shuffled,random"
        arguments = "--order", orders, "--run-rows", 128, "--pool-rows", 4096, "--batch-rows", 256
        table = self.folder / "results.csv"
        results, shown = self.measure(path, *arguments, "--mixing", "/label", "--csv", table)
        said = dict(re.findall(r"^/x (\w+), batches of 256 rows: (.*)$", shown, re.MULTILINE))
        self.assertEqual(list(said), orders.split(","))
        mixed = {order: float(re.search(r"mixes classes to ([\d.]+) of", line)[1]) for order, line in said.items()}
        self.assertEqual(mixed["sequential"], 0)
        self.assertAlmostEqual(mixed["random"], 1, delta=0.02)
        self.assertTrue(0.7 < mixed["shuffled"] < 1)
        self.assertIn("pool of 256 KiB; each byte is read 1.00 times", said["shuffled"])
        for run in results["runs"]:
            self.assertAlmostEqual(run["mixing"], mixed[run["order"]], delta=0.005)
            self.assertGreaterEqual(run["read_amplification"], 1)
        with open(table, newline="") as file:
            self.assertEqual([float(line["mixing"]) for line in csv.DictReader(file)],
                             [run["mixing"] for run in results["runs"]])
        done = self.run_program("penstock-throughput", path, "--dataset", "/x", "--mixing", "/few", expect=1)
        self.assert_one_line(done, "/few has 100 labels, and /x 8192 rows")
        self.assertEqual(done.stdout, "")

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
        for more, word in (("--as", "float3"), "float32"), (("--with", "/y"), "/y"), (("--baseline", "--as", "float64"), "--as"):
            expect = 1 if "--with" in more else 2
            self.assert_one_line(run(path, "--dataset", "/x", *more, expect=expect), word)
        self.assert_one_line(run(path, "--dataset", "/x", "--json", path, expect=2), "--json")
        self.assert_one_line(run(path, "--dataset", "/x", "--json", self.folder / "no" / "r", expect=1), "no folder")
        self.assert_one_line(run(path, "--dataset", "/x", "--plot", "plot.pdf", expect=2), "--plot", ".svg")
        self.assert_one_line(run(path, "--dataset", "/x", "--csv", path, expect=2), "--csv")
        self.assert_one_line(run(path, "--dataset", "/x", "--order", "any", expect=2), "--order", "any")
        same = self.folder / "same"
        self.assert_one_line(run(path, "--dataset", "/x", "--json", same, "--csv", same, expect=2), "--csv", "--json")
        self.assert_one_line(run(path, "--dataset", "/x", "--batch-rows", "64,50:4", expect=2), "50:4 is empty")
        self.assert_one_line(run(path, "--dataset", "/x", "--batch-rows", "32:100", expect=2), "32:100", "at 64 or 128")
        self.assert_one_line(run(path, "--dataset", "/x", "--order", "random,random", expect=2), "random twice")
        for option in "--run-rows", "--pool-rows":
            self.assert_one_line(run(path, "--dataset", "/x", option, 10, expect=2), option, "--order shuffled")
        self.assert_one_line(run(path, "--dataset", "/label", "--scale", 0.5, expect=2), "/label", "cut to", "--as float32")
        large = self.make_rows(rows=2000, name="large.h5")  # 500 KiB, and a ring of two batches and more
        arguments = ["--dataset", "/x", "--batch-rows", "10,1000", "--resident", "--device-memory", "1100KiB"]
        self.assertIn("resident: rows", run(large, *arguments, expect=1).stderr)
        run(path, "--dataset", "/x", "--device-memory", "1KiB", expect=1)
        run(path, "--dataset", "/x", "--device-memory", "much", expect=2)
        run(path, expect=2)

    def test_names_that_are_missing_or_too_many_are_one_line_that_says_what_helps(self):
        parts = [self.make_rows(rows=10, name=f"part{n}.h5") for n in range(2)]
        run = lambda *arguments: self.run_program("penstock-throughput", *arguments, expect=2)
        for arguments in parts, (*parts, "--dataset", "/x"), ("--dataset", "/x", *parts):
            self.assert_one_line(run(*arguments), "part1.h5", "quote the pattern")
        for name in parts[0], self.folder / "part*.h5":
            self.assert_one_line(run(name), "part0.h5: which dataset?", "--dataset", "/label", "/x")
        self.assert_one_line(run("--dataset", "/x"), "FILE is missing")
