"""penstock-train: what it learns, and what it refuses."""

import json
import os
import re
import subprocess

import h5py
import numpy

from program_case import program_case, programs


class train(program_case):
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

    def test_learns_values(self):
        path = self.make_rows(rows=2000, columns=8)
        with h5py.File(path, "a") as file:
            x = file["x"][:]
            file["y"] = numpy.stack([x[:, 0] - 2 * x[:, 1], x.sum(1)], 1)
        results = self.folder / "results.json"
        for loss in "huber", "mse":
            done = self.run_program(
                "penstock-train", path, "--y", "/y", "--test-x", "/x", "--test-y", "/y", "--loss", loss, "--epochs", 10,
                "--batch-rows", 64,
                "--hidden", "64", "--activation", "gelu", "--layer-norm", "--lr", "0.01", "--json", results
            )  # fmt: skip
            rmse = json.loads(results.read_text())["test_rmse"]
            self.assertIn(f"test RMSE {rmse:.4f}", done.stdout)
            with h5py.File(path) as file:
                self.assertLess(rmse, 0.2 * file["y"][:].std(), loss)

    def test_a_budget_too_small_shows_what_was_asked_for_and_what_would_do(self):
        path = self.make_rows(rows=2000)
        done = self.run_program("penstock-train", path, "--batch-rows", 256, "--device-memory", "100KiB", expect=1)
        self.assertIn("batches of 256 rows", done.stderr)
        self.assertIn("256 rows of 512", done.stderr)  # the ledger's line of the first layer
        device = re.search(r"smallest budget that would do: device ([0-9]+KiB)", done.stderr)
        self.assertIsNotNone(device, done.stderr)
        plan = lambda bytes: ("penstock-train", path, "--batch-rows", 256, "--plan", "--device-memory", bytes)
        self.assertIn("256 batches of 1 rows", self.run_program(*plan(device.group(1))).stdout)

    def test_what_pinned_memory_has_no_room_for_stays_on_the_device(self):
        run = ("penstock-train", self.make_rows(rows=2000), "--device", "host", "--hidden", "256,256,256,256,256", "--threads", 1,
               "--no-normalise", "--plan", "--device-memory", "5MiB", "--pinned-memory", "2MiB")  # fmt: skip
        told = self.run_program(*run).stdout
        self.assertIn("steps are made of 8 batches of 32 rows", told)
        self.assertNotIn("moments wait", told)

    def test_the_smallest_budget_that_would_do_does_and_less_does_not(self):
        path = self.make_rows(rows=2000)
        with h5py.File(path, "a") as file:
            file["w"] = numpy.ones(2000, "f4")
            file["few"], file["few_label"] = file["x"][:50], file["label"][:50]
        plan = ("penstock-train", path, "--device", "host", "--threads", 1, "--hidden", "128,128", "--plan")
        one, two = ("--weights", "/w"), ("--test-x", "/few", "--test-y", "/few_label", "--offload", "optimizer,activations")
        for kind, budget, more in (
            ("device", "100KiB", ()), ("device", "100KiB", two), ("pinned", "50KiB", ()), ("pinned", "90KiB", one),
            ("pinned", "50KiB", two), ("host", "1MiB", ()), ("host", "1MiB", (*one, *two)),
        ):  # fmt: skip
            with self.subTest(kind=kind, more=more):
                run = lambda bytes, **how: self.run_program(*plan, *more, f"--{kind}-memory", bytes, **how)
                does = int(re.search(rf"smallest budget that would do:.*?{kind} (\d+)KiB", run(budget, expect=1).stderr).group(1))
                run(f"{does}KiB")
                run(f"{does - 1}KiB", expect=1)

    def test_results_say_what_cuda_takes_beside_the_budget(self):
        results = self.folder / "results.json"
        run = ("penstock-train", self.make_rows(), "--epochs", 1, "--device-memory", "16MiB", "--json", results)
        self.run_program(*run, "--device", "host")
        self.assertNotIn("outside_budget", json.loads(results.read_text()))
        if not os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is no CUDA device")
        self.run_program(*run, "--device", "cuda:0")
        outside = json.loads(results.read_text())["outside_budget"]
        self.assertGreater(outside["device_total_bytes"], outside["before_run_bytes"] + outside["since_bytes"])
        self.assertGreater(outside["before_run_bytes"], 1 << 20)
        self.assertGreater(outside["since_bytes"], 0)

    def test_a_plan_says_what_lies_outside_the_budget(self):
        plan = lambda device: self.run_program("penstock-train", self.make_rows(rows=500), "--device", device, "--plan").stdout
        self.assertIn("\noutside the budget: none, since the host has", plan("host"))
        if not os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is no CUDA device")
        size = r"[1-9][\d.]* [MG]iB"
        self.assertRegex(plan("cuda:0"), rf"\noutside the budget: CUDA's context, .*, {size} of the device's {size}; "
                                         rf"loaded kernels .*: about {size}, as measured")  # fmt: skip

    def test_results_tell_bytes_that_are_looked_up_from_derived_ones(self):
        results = self.folder / "results.json"
        self.run_program("penstock-train", self.make_rows(rows=500), "--device", "host", "--epochs", 1, "--json", results)
        told = json.loads(results.read_text())
        self.assertEqual(told["memory"]["derived"], ["used_bytes", "peak_bytes"])
        for kind in "device", "pinned":
            uses = [use["allocated_bytes"] for use in told["memory"]["uses"] if use["kind"] == kind]
            self.assertEqual(sum(uses), told["plan"][f"{kind}_bytes"], kind)

    def test_the_plan_says_which_levers_it_pulls_and_what_fits(self):
        path = self.make_rows(rows=2000)
        def plan(rows, device_memory, *more, expect=0):
            return self.run_program("penstock-train", path, "--hidden", "128,128,128,128,128,128", "--batch-rows", rows,
                                    "--plan", "--device-memory", device_memory, *more, expect=expect)  # fmt: skip
        roomy = plan(512, "8MiB").stdout
        self.assertNotIn("do not fit", roomy)
        largest = int(re.search(r"the largest batches that fit: (\d+) rows", roomy).group(1))
        self.assertGreater(largest, 512)
        self.assertNotIn("do not fit", plan(largest, "8MiB").stdout)
        self.assertIn(f"batches of {largest + 1} rows do not fit", plan(largest + 1, "8MiB").stdout)
        smallest = re.search(r"smallest budget that would do: device ([0-9]+KiB)", plan(512, "9KiB", expect=1).stderr)
        tight = plan(512, smallest.group(1)).stdout
        def check_order(shown, *words):
            places = [shown.find(word) for word in words]
            self.assertNotIn(-1, places, shown)
            self.assertEqual(places, sorted(places))
        check_order(tight, "moments wait", "activations wait", "512 batches of 1 rows")
        check_order(plan(512, "1900KiB", "--device", "host").stdout, "4 batches of 128 rows", "of every 2 layers one output is kept",
                    "moments wait", "activations wait")  # fmt: skip
        self.assertIn("with these levers: 1 rows", tight)
        # A floor of one row: smaller batches come before any other lever.
        self.assertNotIn("one output", plan(512, "2400KiB", "--floor-rows", 1).stdout)
        # A prime number of rows has no batches but of one row: another number near to it is named, and needs no lever.
        told = re.search(r"batches of (\d+) rows would fit, but 1021 .* --batch-rows (\d+) .* (\d+) batches of (\d+) rows",
                         plan(1021, "4MiB").stdout)  # fmt: skip
        fitting, better, parts, rows = map(int, told.groups())
        self.assertEqual(better, parts * rows)
        self.assertTrue(rows <= fitting and 1021 <= better < 1021 + parts)
        self.assertNotIn("would fit", plan(better, "4MiB").stdout)
        self.assertIn(f"steps are made of {parts} batches of {rows} rows", plan(better, "4MiB").stdout)

    def test_levers_change_the_plan_and_not_the_results(self):
        path, results = self.make_rows(rows=1000), self.folder / "results.json"
        run = lambda *levers: self.run_program(
            "penstock-train", path, "--hidden", "64,64,64,64", "--epochs", 2, "--json", results, *levers)  # fmt: skip
        def outcome(*levers):
            run(*levers)
            read = json.loads(results.read_text())
            return [epoch["loss"] for epoch in read["epochs"]], read["plan"]["device_bytes"]
        losses, device_bytes = outcome()
        for levers in ("--offload", "optimizer"), ("--offload", "activations"), ("--offload", "optimizer,activations"), \
                ("--recompute", 2), ("--recompute", 2, "--offload", "optimizer,activations"):  # fmt: skip
            with_levers, less_bytes = outcome(*levers)
            self.assertEqual(with_levers, losses)
            self.assertLess(less_bytes, device_bytes)
        self.assert_one_line(self.run_program("penstock-train", path, "--offload", "weights", expect=2), "--offload")

    def test_narrow_arithmetic_learns_alike_and_takes_less(self):
        path, results = self.make_rows(rows=1000), self.folder / "results.json"
        def outcome(precision):
            self.run_program("penstock-train", path, "--hidden", "64", "--epochs", 2, "--device", "host", "--json", results,
                             "--precision", precision)  # fmt: skip
            read = json.loads(results.read_text())
            activations = sum(i["bytes"] for i in read["plan"]["items"] if i["name"].startswith("train: activations"))
            return read["epochs"][-1]["loss"], activations
        loss, activations = outcome("float32")
        for narrow in "bf16", "fp16":
            other, bytes = outcome(narrow)
            self.assertAlmostEqual(other, loss, delta=0.01 * loss)
            self.assertEqual(2 * bytes, activations)
        refused = self.run_program("penstock-train", path, "--precision", "tf32", "--device", "host", expect=2)
        self.assert_one_line(refused, "tf32", "host")

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
        self.assert_one_line(run(path, "--y", "/short", expect=1), "100 rows", "50 rows", "/short")
        for option in "--threads", "--seed", "--epochs", "--classes", "--pool-rows", "--warmup-steps", "--accumulate":
            self.assert_one_line(run(path, option, "-1", expect=2), option, "-1")
        for option in "--batch-rows", "--accumulate", "--recompute":
            for count in 2**31 + 1, 2**63 - 1, 2**64 - 1, 2**64:
                self.assert_one_line(run(path, option, count, expect=2), option, "too many")
        self.assert_one_line(run(path, "--classes", "1", expect=2), "--classes")
        self.assert_one_line(run("", expect=2), "empty name")
        self.assert_one_line(run(path, "--momentum", "0.5", expect=2), "--momentum", "sgd")
        self.assert_one_line(run(path, "--resume", expect=2), "--checkpoint")
        self.assert_one_line(run(path, "--device", "cuda:99", expect=1), "cuda:99")
        self.assert_one_line(run("/etc/passwd", expect=1), "/etc/passwd", "no HDF5 file", "h5dump")
        self.assert_one_line(run(path, "--x", "/nope", expect=1), "/nope", "there are /label, /short, /x")
        self.assert_one_line(run(path, "--checkpoint", self.folder / "no" / "c.h5", expect=1), "no folder")
        for option in "--checkpoint", "--json", "--x":
            self.assert_one_line(run(path, option, "", expect=2), option, "empty name")
        self.assert_one_line(run(path, "--checkpoint", "/dev/full", expect=2), "--checkpoint", "/dev/full", "no file")
        self.assert_one_line(run(path, "--seed", 2**64, expect=2), "--seed", "above")
        self.run_program("penstock-train", path, "--seed", 2**64 - 1, "--plan")
        self.assertEqual(sorted(entry.name for entry in self.folder.iterdir()), ["rows.h5"])

    def test_inputs_that_are_no_numbers_or_none_at_all_are_refused(self):
        path = self.make_rows(rows=100)
        with h5py.File(path, "a") as file:
            file["texts"] = ["word"] * 100
            file["empty"] = numpy.zeros((100, 0), "f4")
        for name in "texts", "empty":
            done = self.run_program("penstock-train", path, "--x", f"/{name}", "--epochs", 1, expect=1)
            self.assert_one_line(done, f"{path}:/{name}", "a model")

    def test_the_default_test_set_is_there_whole_or_not_at_all_and_told_of(self):
        random = numpy.random.default_rng(6)
        whole, lacks = self.folder / "whole.h5", self.folder / "lacks.h5"
        for path in whole, lacks:
            with h5py.File(path, "w") as file:
                for part, rows in ("train", 120), ("test", 40):
                    file[f"{part}/images"] = random.normal(size=(rows, 6)).astype("f4")
                    file[f"{part}/labels"] = random.integers(0, 3, rows)
        train = lambda *more, expect=0: self.run_program(
            "penstock-train", *more, "--hidden", 8, "--epochs", 1, "--device", "host", expect=expect)  # fmt: skip
        told = "test set: /test/images and /test/labels, which are there"
        for files in (whole,), (whole, lacks):
            shown = train(*files).stdout
            self.assertIn(told, shown)
            self.assertRegex(shown.splitlines()[-1], "^test accuracy ")
        for named in ("--y", "/train/labels"), ("--x", "/train/images"), ("--x", "/train/images", "--y", "/train/labels"):
            shown = train(whole, *named).stdout
            self.assertNotIn("test set: ", shown)
            self.assertNotIn("test accuracy", shown)
        for half in ("--test-x", "/test/images"), ("--test-y", "/test/labels"):
            self.assert_one_line(train(whole, *half, expect=2), "both --test-x and --test-y")
        with h5py.File(lacks, "a") as file:
            del file["test/labels"]
        for files, why in (((whole, lacks), [f"without a test set: {lacks} has no /test/labels"]), ((lacks, whole), [])):
            shown = train(*files).stdout
            self.assertEqual([line.split("; ")[0] for line in shown.splitlines() if "test set" in line], why)
            self.assertNotIn("test accuracy", shown)

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

    def test_types_that_cannot_be_trained_on_are_named(self):
        path = self.make_rows(rows=100)
        with h5py.File(path, "a") as file:
            file.create_dataset("ragged", (100,), dtype=h5py.vlen_dtype("f4"))
            file.create_dataset("reference", (100,), dtype=h5py.ref_dtype)
            file["table"] = numpy.zeros(100, [("a", "f4"), ("b", "i4")])
            file["text"] = numpy.array([b"12"] * 100, "S2")
        for name, what in ("ragged", "variable length"), ("reference", "reference"), ("table", "compound"):
            for option in "--x", "--y":
                done = self.run_program("penstock-train", path, option, f"/{name}", expect=1)
                self.assert_one_line(done, "rows.h5", f"/{name}", what)
        done = self.run_program("penstock-train", path, "--x", "/text", expect=1)
        self.assert_one_line(done, "rows.h5:/text", "texts", "numbers")
        self.run_program("penstock-train", path, "--x", "/table[a]", "--y", "/table[b]", "--epochs", 1)

    def test_a_value_that_is_not_finite_is_named_by_its_file_and_row_there(self):
        first, second = self.make_rows(rows=300, name="part1.h5"), self.make_rows(rows=200, name="part2.h5")
        with h5py.File(second, "a") as file:
            file["x"][123, 5] = numpy.nan
        train = lambda *more: self.run_program("penstock-train", first, second, "--epochs", 1, *more, expect=1)
        self.assert_one_line(train(), "part2.h5:/x row 123:", "row 423 of the training set")
        self.assert_one_line(train("--no-normalise"), "part2.h5:/x row 123:", "--skip-non-finite")
        for path in first, second:
            with h5py.File(path, "a") as file:
                file["half"] = file["label"][:].astype("f2")
        self.run_program(
            "penstock-train", first, second, "--y", "/half", "--epochs", 1, "--skip-non-finite"
        )  # fmt: skip
        with h5py.File(second, "a") as file:
            file["half"][7] = numpy.nan
        self.assert_one_line(train("--y", "/half"), "part2.h5:/half row 7:", "nan")

    def test_a_gradient_that_overflows_is_told_from_a_loss_that_does(self):
        path, random = self.folder / "data.h5", numpy.random.default_rng(1)
        with h5py.File(path, "w") as file:
            file["x"] = random.normal(size=(256, 4)).astype("f4")
            file["y"] = (1e6 * random.normal(size=256)).astype("f4")
        run = lambda *more: self.run_program(
            "penstock-train", path, "--device", "host", "--hidden", 0, "--loss", "mse", "--batch-rows", 64, *more, expect=1)
        fp16 = ("--y", "/y", "--precision", "fp16")
        done = run(*fp16)
        self.assert_one_line(done, f"{path}:/x row ", "gradient", "overflows fp16", "loss scale is 1;", "bf16 or float32")
        done = run(*fp16, "--skip-non-finite", "--epochs", 8)
        self.assert_one_line(done, "were skipped", "gradients", "the loss scale is 1")

    def test_columns_that_float32_does_not_keep_are_named(self):
        path, random = self.folder / "data.h5", numpy.random.default_rng(2)
        d = random.normal(size=2000)
        with h5py.File(path, "w") as file:
            file["label"] = (d > 0).astype("i4")
            x = numpy.stack([d, 1.6e9 + d, numpy.full(2000, 1.6e9), 1e3 + d, 1e6 + d], 1)
            file["x"], file["narrow"], file["less"] = x, x.astype("f4"), x - x[0]
            file["seconds"] = (1.6e9 + 10 * d).astype("i8")[:, None]
        run = lambda x: self.run_program(
            "penstock-train", path, "--x", x, "--y", "/label", "--device", "host", "--epochs", 1, "--hidden", 8).stderr
        told = run("/x").splitlines()
        self.assertEqual(len(told), 2, told)  # a constant is one, whatever its size
        for line, column, step in zip(told, (1, 4), (128, 0.0625)):
            for word in f"{path}:/x column {column}:", "float64", f"steps of {step:.3g} ", "less a constant":
                self.assertIn(word, line)
        self.assertIn(f"{path}:/seconds column 0: its int64", run("/seconds"))
        for x in "/narrow", "/less":
            self.assertEqual(run(x), "", x)

    def test_targets_and_inputs_as_they_are_that_float32_does_not_keep_are_named(self):
        path, random, rows = self.folder / "data.h5", numpy.random.default_rng(3), 300_000
        d = random.normal(size=rows)
        with h5py.File(path, "w") as file:
            file["x"], file["label"] = d.astype("f4")[:, None], (d > 0).astype("i8")
            file["time"] = 1.7e9 + numpy.arange(rows) % 3000.0
            file["two"] = numpy.stack([d, 1e6 + d], 1)
            file["whole"] = (1.7e9 + 10 * d).astype("i8")
            # Sorted: the first 65,536 have a deviation of 6e-6 of their mean, all of them 2.7e-5.
            file["sorted"] = 1.6e9 + 0.5 * numpy.arange(rows)
            file["same"], file["narrow"], file["less"] = numpy.full(rows, 1.7e9), file["time"][:].astype("f4"), file["time"][:] - 1.7e9
            for name in "time", "two", "sorted", "less":
                file[f"x_{name}"] = file[name][:].reshape(rows, -1)
        run = lambda *how: self.run_program(
            "penstock-train", path, *how, "--device", "host", "--epochs", 1, "--hidden", 0, "--batch-rows", 4096).stderr
        of_values = lambda y, loss="mse": run("--x", "/x", "--y", y, "--loss", loss)
        as_they_are = lambda x: run("--x", x, "--y", "/label", "--no-normalise", "--skip-non-finite")
        for told, words in (
            (of_values("/time"), ("/time column 0: its float64 values, from 1.7e+09 on", "3e+03", "steps of 128 ", "less a constant")),
            (of_values("/two", "huber"), ("/two column 1: ", "float64", "steps of 0.0625 ")),
            (of_values("/whole"), ("/whole column 0: its int64",)),
            (as_they_are("/x_time"), ("/x_time column 0: its float64", "steps of 128 ")),
            (as_they_are("/x_two"), ("/x_two column 1: ",)),
        ):
            self.assertEqual(told.count("\n"), 1, told)
            for word in ("penstock-train: warning: ", *words):
                self.assertIn(word, told)
        for y in "/sorted", "/same", "/narrow", "/less":
            self.assertEqual(of_values(y), "", y)
        for x in "/x_sorted", "/x_less", "/x":
            self.assertEqual(as_they_are(x), "", x)

    def test_files_and_patterns_are_joined_in_order(self):
        for part in 1, 2, 10:
            self.make_rows("--seed", 1, rows=100 * part, columns=8, name=f"part{part}.h5")
        files = [self.folder / f"part{part}.h5" for part in (1, 2, 10)]
        weights = []
        for number, given in enumerate((files, [self.folder / "part*.h5"])):
            checkpoint, results = self.folder / f"state{number}", self.folder / "results.json"
            self.run_program(
                "penstock-train", *given, "--epochs", 1, "--hidden", 8, "--checkpoint", checkpoint, "--json", results,
                "--device", "cpu"
            )  # fmt: skip
            self.assertEqual(json.loads(results.read_text())["rows"], 1300)
            with h5py.File(checkpoint) as file:
                weights.append(file["/model/layer0/weight"][:])
        self.assertTrue((weights[0] == weights[1]).all())

    def test_options_have_the_names_that_people_know(self):
        results = self.folder / "results.json"
        self.run_program(
            "penstock-train", self.make_rows(rows=500), "--batch-size", 50, "--lr", 0.25, "--device", "cpu", "--epochs", 1,
            "--optimizer", "sgd", "--json", results
        )  # fmt: skip
        shown = json.loads(results.read_text())
        self.assertEqual(shown["batch_rows"], 50)
        self.assertIn("learning rate 0.25", shown["optimizer"])
        self.assertIn("host", shown["device"])

    def test_schedules_optimizers_and_losses_have_their_numbers(self):
        path, log, results = self.make_rows(rows=400, columns=8), self.folder / "log.jsonl", self.folder / "r.json"
        state = self.folder / "c.h5"
        run = lambda *more, expect=0: self.run_program(
            "penstock-train", path, "--hidden", 8, "--batch-rows", 100, "--device", "host", "--lr", 0.1, *more, expect=expect)
        def rates(*schedule):
            self.forget(log)
            run("--schedule", *schedule, "--log", log, "--log-steps", 1)
            return [line["learning_rate"] for line in map(json.loads, log.read_text().splitlines()) if line["kind"] == "steps"]
        found = rates("steps", "--step-epochs", 2, "--step-factor", 0.5, "--epochs", 5)
        numpy.testing.assert_allclose(found, [0.1] * 8 + [0.05] * 8 + [0.025] * 4, rtol=1e-12)
        found = rates("cosine", "--final-factor", 0.25, "--epochs", 3)
        numpy.testing.assert_allclose(
            found, 0.1 * (0.25 + 0.75 * (1 + numpy.cos(numpy.pi * numpy.arange(12) / 12)) / 2), rtol=1e-12)
        adam = ("--beta1", 0.8, "--beta2", 0.99, "--epsilon", 1e-6, "--epochs", 1)
        run(*adam, "--json", results, "--checkpoint", state)
        self.assertIn("betas 0.8 and 0.99, epsilon 1e-06", json.loads(results.read_text())["optimizer"])
        # A resume compares them.
        go_on = lambda *more: run(*more, "--epochs", 2, "--resume", "--checkpoint", state).stdout
        self.assertIn("betas 0.8 and 0.99, epsilon 1e-06, weight decay 0.01, and this run's is adamw, learning rate 0.1, betas "
                      "0.9 and 0.99", go_on(*adam[2:-2]))
        self.forget(state)
        run("--schedule", "steps", "--step-factor", 0.5, "--epochs", 1, "--checkpoint", state)
        self.assertIn("its schedule was times 0.5 after every 10 epochs, and this run's is times 0.25 after every 3 epochs",
                      go_on("--schedule", "steps", "--step-factor", 0.25, "--step-epochs", 3))
        for more, words in (
            (("--schedule", "steps", "--step-factor", "nan"), ("nan times the rate",)),
            (("--schedule", "steps", "--step-epochs", 0), ("--step-epochs",)),
            (("--schedule", "cosine", "--final-factor", "inf"), ("inf times the rate",)),
            (("--schedule", "cosine", "--step-epochs", 3), ("--step-epochs", "steps", "cosine")),
            (("--step-factor", 0.1), ("--step-factor", "constant")),
            (("--schedule", "steps", "--final-factor", 0.1), ("--final-factor", "cosine", "steps")),
            (("--beta1", 1), ("beta1 is 1",)),
            (("--beta2", "nan"), ("beta2 is nan",)),
            (("--epsilon", 0), ("epsilon is 0",)),
            (("--optimizer", "sgd", "--beta1", 0.9), ("--beta1", "adamw", "sgd")),
            (("--delta", 1), ("--delta", "huber", "softmax")),
        ):
            for plan in ("--plan",), ():
                self.assert_one_line(run(*more, *plan, expect=2), *words)

    def test_the_delta_of_huber_is_where_squares_end(self):
        path, state, results = self.make_rows(rows=200, columns=4), self.folder / "c.h5", self.folder / "r.json"
        with h5py.File(path, "a") as file:
            x = file["x"][:].astype("f8")
            file["y"] = x @ [1, -2, 3, 1]
        run = lambda *more, expect=0: self.run_program(
            "penstock-train", path, "--y", "/y", "--loss", "huber", "--hidden", 0, "--lr", 0, "--no-normalise", "--epochs", 1,
            "--checkpoint", state, "--json", results, *more, expect=expect)  # fmt: skip
        run("--delta", 0.25)
        with h5py.File(state) as file, h5py.File(path) as data:
            far = abs(x @ file["model/layer0/weight"][:].reshape(4) + file["model/layer0/bias"][0] - data["y"][:])
        self.assertTrue((far < 0.25).any() and (far > 1).any())
        expected = numpy.where(far < 0.25, far**2 / 2, 0.25 * (far - 0.125)).mean()
        self.assertAlmostEqual(json.loads(results.read_text())["epochs"][0]["loss"], expected, delta=1e-5 * expected)
        self.assert_one_line(run("--delta", 0.5, "--resume", expect=1), "its loss is", "delta 0.25", "delta 0.5")
        self.forget(state)
        self.assert_one_line(run("--delta", 0, "--plan", expect=2), "a delta of 0")
        other = self.run_program("penstock-train", path, "--y", "/y", "--loss", "mse", "--delta", 2, expect=2)
        self.assert_one_line(other, "--delta", "huber", "mse")

    def test_a_lever_that_frees_nothing_is_told_of(self):
        path = self.make_rows(rows=1000, columns=8)
        told = lambda *more: re.findall(r"^(.*) frees nothing here: training takes .* with it, and .* without$", self.run_program(
            "penstock-train", path, "--device", "host", *more).stdout, re.MULTILINE)  # fmt: skip
        levers = ("--recompute", 2, "--offload", "activations")
        for run in ("--plan",), ("--epochs", 1):
            self.assertEqual(told(*run), [])
            self.assertEqual(told(*levers, *run), ["--recompute 2", "--offload activations"])
            self.assertEqual(told("--optimizer", "sgd", "--momentum", 0, "--offload", "optimizer", *run), ["--offload optimizer"])
            deep = ("--hidden", ",".join(["128"] * 8), "--batch-rows", 512)
            self.assertEqual(told(*deep, "--recompute", 3, *run), [])
            self.assertEqual(told(*deep, "--offload", "activations", *run), [])
        # Each frees nothing beside the other, and both together do: one alone is told of.
        deep = ("--hidden", ",".join(["512"] * 8), "--batch-rows", 128, "--plan")
        self.assertEqual(told(*deep, "--recompute", 3, "--offload", "activations"), ["--recompute 3"])
        self.assertEqual(told(*deep, "--offload", "activations"), [])

    def test_a_checkpoint_of_a_model_of_ones_own_is_refused_by_its_model(self):
        path, checkpoint = self.make_rows(rows=1000, columns=8), self.folder / "own.h5"
        with h5py.File(path, "a") as file:
            file["y"] = file["x"][:, 0]
        self.run_program("own_model", path, "/x", "/y", 1, "host", checkpoint)
        train = lambda *more: self.run_program("penstock-train", path, "--device", "host", "--checkpoint", checkpoint, "--resume",
                                               *more, expect=1)  # fmt: skip
        for more in (), ("--plan",):
            self.assert_one_line(train(*more), "own.h5", "its model is", "and this run's is")
        predict = self.run_program("penstock-predict", checkpoint, path, "--output", self.folder / "p.h5", "--device", "host",
                                   expect=1)  # fmt: skip
        self.assert_one_line(predict, "own.h5", "a model of the user's own")

    def test_a_batch_beyond_the_training_set_is_told_of(self):
        path = self.make_rows(rows=1000, columns=8)
        run = lambda *more: self.run_program("penstock-train", path, "--hidden", 8, "--device", "host", *more).stdout
        self.assertIn("a batch of 4096 rows holds the whole training set, 1000 rows, and padding, which takes as long as rows do: "
                      "--batch-rows 1000 makes the same steps, to rounding\n", run("--batch-rows", 4096, "--epochs", 1))  # fmt: skip
        for rows in 512, 1000:
            shown = run("--batch-rows", rows, "--plan")
            self.assertNotIn("padding", shown)
            self.assertIn("the largest batches that fit: 1000 rows, all of the training set\n", shown)
        tight = run("--batch-rows", 64, "--plan", "--device-memory", "64KiB")
        self.assertRegex(tight, "the largest batches that fit: [0-9]{2,3} rows\n")

    def test_a_learning_rate_of_0_changes_nothing(self):
        path, weights = self.make_rows(rows=200), []
        for epochs in 1, 3:
            checkpoint = self.folder / f"state{epochs}.h5"
            self.run_program("penstock-train", path, "--lr", 0, "--epochs", epochs, "--checkpoint", checkpoint)
            with h5py.File(checkpoint) as file:
                weights.append(file["/model/layer0/weight"][:])
        self.assertTrue((weights[0] == weights[1]).all())

    def test_results_never_replace_the_data(self):
        path = self.make_rows(rows=100)
        before = path.read_bytes()
        for option in "--checkpoint", "--json":
            self.assert_one_line(self.run_program("penstock-train", path, option, path, expect=2), option)
        self.assertEqual(path.read_bytes(), before)

    def test_results_go_to_pipes_and_through_links_and_touch_no_other_file(self):
        path = self.make_rows(rows=100)
        data = path.rename(self.folder / "results.json.part")
        train = lambda to: self.run_program(
            "penstock-train", data, "--epochs", 1, "--hidden", 4, "--device", "host", "--json", to)
        (self.folder / "link.json").symlink_to(self.folder / "results.json")
        train(self.folder / "link.json")
        self.assertTrue((self.folder / "link.json").is_symlink())
        self.assertEqual(len(json.loads((self.folder / "results.json").read_text())["epochs"]), 1)
        os.mkfifo(self.folder / "pipe")
        reader = subprocess.Popen(["cat", self.folder / "pipe"], stdout=subprocess.PIPE, text=True)
        train(self.folder / "pipe")
        self.assertEqual(len(json.loads(reader.communicate(timeout=60)[0])["epochs"]), 1)
        self.assertTrue((self.folder / "pipe").is_fifo())
        self.assertTrue(data.is_file())

    def test_output_that_nobody_can_keep_is_a_failure(self):
        path = self.make_rows(rows=100)
        with open("/dev/full", "w") as full:
            done = subprocess.run([programs / "penstock-inspect", path], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assert_one_line(done, "output could not be written")
