"""Rows that are damaged in their files: what training, evaluation and predictions make of them."""

import json

import h5py
import numpy

from damaged_file import damage_chunks
from program_case import program_case

rows, chunk = 1024, 64
order = ("--run-rows", 16, "--pool-rows", 256)


class damaged(program_case):
    def make(self, name="data.h5", weights=None):
        random = numpy.random.default_rng(7)
        label = random.integers(0, 4, rows)
        x = random.normal(size=(rows, 12)).astype("f4")
        x[numpy.arange(rows), label] += 3
        path = self.folder / name
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=x, chunks=(chunk, 12), compression="gzip")
            file.create_dataset("label", data=label.astype("u1"), chunks=(chunk,), fletcher32=True)
            if weights is not None:
                file["weight"] = weights
        return path

    def train(self, path, *more, expect=0, checkpoint="c.h5", epochs=2):
        results = self.folder / "results.json"
        if "--resume" not in more:
            self.forget(self.folder / checkpoint)
        done = self.run_program(
            "penstock-train", path, "--hidden", "16", "--epochs", epochs, "--batch-rows", 50, "--device", "host", "--no-normalise",
            *order, "--checkpoint", self.folder / checkpoint, "--json", results, *more, expect=expect
        )  # fmt: skip
        return done, json.loads(results.read_text()) if expect == 0 else None

    def weights_of(self, checkpoint):
        with h5py.File(self.folder / checkpoint) as file:
            return [file[f"model/layer{n}/{part}"][:] for n in (0, 1) for part in ("weight", "bias")]

    def assert_same_model(self, one, other):
        for a, b in zip(self.weights_of(one), self.weights_of(other)):
            numpy.testing.assert_array_equal(a, b)

    def test_a_dataset_whose_header_is_damaged_is_not_taken_for_one_that_there_is_not(self):
        x, label = numpy.zeros((100, 4), "f4"), numpy.arange(100, dtype="u1") % 2
        for damaged in "/x", "/label", "/test/images", "/test/labels":
            path = self.folder / "headers.h5"
            train = ("/train/images", "/train/labels") if damaged.startswith("/test") else ("/x", "/label")
            with h5py.File(path, "w", libver="latest") as file:  # headers with checksums
                for name, values in zip((*train, "/test/images", "/test/labels"), (x, label, x, label)):
                    file[name] = values
                header = h5py.h5o.get_info(file[damaged].id).addr
            with open(path, "r+b") as file:
                file.seek(header + 12)
                file.write(b"\xff" * 8)
            done = self.run_program("penstock-train", path, "--epochs", 1, "--device", "host", expect=1)
            first = done.stderr.splitlines()[0]  # libhdf5 may complain when the program ends
            self.assertIn(f"headers.h5:{damaged}", first)
            self.assertNotIn("Name it", first)

    def test_damaged_rows_teach_nothing_and_are_listed(self):
        healthy = numpy.ones(rows, "f4")
        healthy[3 * chunk : 4 * chunk] = healthy[7 * chunk : 8 * chunk] = 0
        self.train(self.make("healthy.h5", healthy), "--weights", "/weight", checkpoint="expected.h5")
        path = self.make()
        damage_chunks(path, "x", [3])
        damage_chunks(path, "label", [7])  # the scan of all labels goes past it, too
        stopped, _ = self.train(path, expect=1)
        self.assert_one_line(stopped, "data.h5", "rows")
        done, results = self.train(path, "--damaged", "skip")
        self.assert_same_model("c.h5", "expected.h5")
        self.assertEqual(results["damaged_rows"], 2 * chunk)
        self.assertIn(f"damaged rows left out: {2 * chunk}", done.stdout)
        self.assertIn(f"x: rows {3 * chunk}-{4 * chunk - 1}", done.stdout)
        self.assertIn(f"label: rows {7 * chunk}-{8 * chunk - 1}", done.stdout)
        refused, _ = self.train(path, "--damaged", f"skip:{2 * chunk - 1}", expect=1)
        self.assert_one_line(refused, f"{2 * chunk - 1}")

    def test_behind_virtual_datasets_the_same_rows_are_left_out(self):
        path, shown = self.make(), self.folder / "virtual.h5"
        damage_chunks(path, "x", [3, 15])
        damage_chunks(path, "label", [7])
        with h5py.File(path) as file, h5py.File(shown, "w") as to:
            for name, dataset in file.items():
                layout = h5py.VirtualLayout(dataset.shape, dataset.dtype)
                layout[:] = h5py.VirtualSource(dataset)
                to.create_virtual_dataset(name, layout)
        self.train(path, "--damaged", "skip", checkpoint="expected.h5")
        done, results = self.train(shown, "--damaged", "skip")
        self.assert_same_model("c.h5", "expected.h5")
        self.assertEqual(results["damaged_rows"], 3 * chunk)
        for first, field in (3, "x"), (15, "x"), (7, "label"):
            self.assertIn(f"{field}: rows {first * chunk}-{(first + 1) * chunk - 1}", done.stdout)
        self.assert_one_line(self.train(shown, expect=1)[0], "virtual.h5", "damaged")

    def test_weights_of_rows_count_beside_the_mask(self):
        weights = numpy.random.default_rng(3).integers(0, 3, rows).astype("i2")
        masked = weights.copy()
        masked[5 * chunk : 6 * chunk] = 0
        self.train(self.make("healthy.h5", masked), "--weights", "/weight", checkpoint="expected.h5")
        path = self.make(weights=weights)
        damage_chunks(path, "x", [5])
        self.train(path, "--weights", "/weight", "--damaged", "skip")
        self.assert_same_model("c.h5", "expected.h5")

    def test_a_run_goes_on_past_damage_whatever_else_is_read(self):
        for weights in (), ("--weights", "/weight"):
            path = self.make(weights=numpy.ones(rows, "f4"))
            with h5py.File(path, "a") as file:
                file["group"] = numpy.arange(rows) // 4
            more = (*weights, "--validation", 0.2, "--validation-group", "/group")
            self.train(path, *more, epochs=1)
            damage_chunks(path, "x", [5])
            self.assert_one_line(self.train(path, *more, "--resume", expect=1)[0], "data.h5")
            self.assertIn("epoch 2/2", self.train(path, *more, "--resume", "--damaged", "skip")[0].stdout)

    def test_a_test_set_is_evaluated_without_its_damaged_rows(self):
        path, test = self.make(), self.make("test.h5")
        with h5py.File(path, "a") as file, h5py.File(test) as other:
            for name in "x", "label":
                other.copy(name, file, f"test_{name}")
        healthy = ("--test-x", "/x", "--test-y", "/label")
        damage_chunks(path, "test_x", [0, 1])
        done, results = self.train(path, "--test-x", "/test_x", "--test-y", "/test_label", "--damaged", "skip")
        self.assertEqual(results["test_damaged_rows"], 2 * chunk)
        self.assertEqual(results["damaged_rows"], 0)
        self.assertIn(f"damaged rows of the test set, not evaluated on: {2 * chunk}", done.stdout)
        # By hand: the model's classes of the rows that are intact.
        layer = self.weights_of("c.h5")
        with h5py.File(path) as file:
            x, label = file["x"][2 * chunk :], file["label"][2 * chunk :]
        y = numpy.maximum(x @ layer[0].T.astype("f8") + layer[1], 0) @ layer[2].T.astype("f8") + layer[3]
        self.assertAlmostEqual(results["test_accuracy"], (y.argmax(1) == label).mean(), places=6)
        self.train(path, *healthy)

    def test_predictions_of_damaged_rows_are_none_and_the_others_as_before(self):
        path, out = self.make(), self.folder / "out.h5"
        self.train(path)
        predict = lambda *more, expect=0: self.run_program(
            "penstock-predict", self.folder / "c.h5", path, "-o", out, "--batch-rows", 100, *more, expect=expect)  # fmt: skip
        predict()
        with h5py.File(out) as file:
            expected = file["prediction"][:]
            self.assertNotIn("damaged_rows", file["prediction"].attrs)
        out.unlink()
        damage_chunks(path, "x", [2, 3, 15])
        lost = numpy.zeros(rows, bool)
        lost[2 * chunk : 4 * chunk] = lost[15 * chunk :] = True
        self.assert_one_line(predict(expect=1), "data.h5")
        self.assert_one_line(predict("--damaged", "skip:100", expect=1), "100")
        self.assertFalse(out.exists())
        done = predict("--damaged", "skip")
        self.assertIn(f"damaged rows, without predictions: {3 * chunk}", done.stdout)
        with h5py.File(out) as file:
            found = file["prediction"][:]
            self.assertEqual(file["prediction"].attrs["damaged_rows"], str(3 * chunk))
        self.assertTrue(numpy.isnan(found[lost]).all())
        numpy.testing.assert_array_equal(found[~lost], expected[~lost])
        predict("--damaged", "skip", "--classes")
        with h5py.File(out) as file:
            found = file["prediction"][:]
        numpy.testing.assert_array_equal(found, numpy.where(lost, -1, expected.argmax(1)))

    def test_a_policy_that_there_is_not_is_refused(self):
        path = self.make()
        for policy in "ignore", "skip:", "skip:many", "skip:-1":
            self.assert_one_line(self.train(path, "--damaged", policy, expect=2)[0], "--damaged", "skip:1000")
