"""penstock-train and penstock-predict: two inputs head to head."""

import json

import h5py
import numpy

from program_case import program_case


class train_pairs(program_case):
    def make_pairs(self, rows=1500, columns=8):
        """Pairs of rows, which of the two has the larger sum, and whether they point the same way."""
        random = numpy.random.default_rng(7)
        path = self.folder / "pairs.h5"
        first, second = (random.normal(size=(rows, columns)).astype("f4") for _ in range(2))
        with h5py.File(path, "w") as file:
            file["a"], file["b"], file["narrow"] = first, second, second[:, 1:]
            file["better"] = (first.sum(1) > second.sum(1)).astype("u1")
            file["alike"] = (first[:, :2] * second[:, :2]).sum(1) > 0
        return path

    def train(self, path, *more, x2="/b", y="/better", hidden="32", batch_rows=50, expect=0, epochs=6):
        results = self.folder / "results.json"
        done = self.run_program(
            "penstock-train", path, "--x", "/a", "--x2", x2, "--y", y, "--hidden", hidden, "--epochs", epochs,
            "--batch-rows", batch_rows, "--lr", 0.01, "--device", "host", "--json", results, *more, expect=expect
        )  # fmt: skip
        return done, json.loads(results.read_text()) if expect == 0 else None

    def tested(self, y="/better"):
        return "--test-x", "/a", "--test-x2", "/b", "--test-y", y

    def test_the_better_of_two_is_learned_and_predicted(self):
        path, state, out = self.make_pairs(), self.folder / "c.h5", self.folder / "out.h5"
        found = self.train(path, "--loss", "ranking", *self.tested(), "--no-normalise", "--checkpoint", state)[1]
        self.assertGreater(found["test_accuracy"], 0.9)
        predict = lambda x, x2: self.run_program("penstock-predict", state, path, "--x", x, "--x2", x2, "-o", out)
        predict("/a", "/b")
        with h5py.File(path) as data, h5py.File(state) as model, h5py.File(out) as written:
            def score(x):
                for n in 0, 1:
                    x = x @ model[f"model/layer{n}/weight"][:].T.astype("f8") + model[f"model/layer{n}/bias"][:]
                    x = numpy.maximum(x, 0) if n == 0 else x
                return x[:, 0]
            lead = score(data["a"][:]) - score(data["b"][:])
            first = written["prediction"][:].reshape(-1)
            numpy.testing.assert_allclose(first, 1 / (1 + numpy.exp(-lead)), atol=1e-5)
            self.assertAlmostEqual(((first > 0.5) == data["better"][:]).mean(), found["test_accuracy"], places=6)
        predict("/b", "/a")
        with h5py.File(out) as written:
            numpy.testing.assert_allclose(written["prediction"][:].reshape(-1), 1 - first, atol=1e-6)

    def test_the_better_of_two_is_a_class_with_a_margin_too(self):
        path, state, out = self.make_pairs(), self.folder / "c.h5", self.folder / "out.h5"
        found = self.train(path, "--loss", "ranking", "--margin", 1, *self.tested(), "--checkpoint", state)[1]
        self.run_program("penstock-predict", state, path, "--x", "/a", "--x2", "/b", "-o", out, "--classes")
        with h5py.File(path) as data, h5py.File(out) as written:
            right = written["prediction"][:] == data["better"][:]
            self.assertEqual(right.shape, (len(data["better"]),))
            self.assertAlmostEqual(right.mean(), found["test_accuracy"], places=6)

    def test_towers_and_joins_of_every_kind_learn_what_suits_them(self):
        path = self.make_pairs()
        for towers, join, loss, y, *more in (
            ("shared", "difference", "ranking", "/better", "--margin", 1),
            ("separate", "difference", "binary", "/better"),
            ("separate", "concat", "ranking", "/better", "--head", "16"),
            ("shared", "concat", "softmax", "/better", "--head", "16"),
            ("shared", "dot", "binary", "/alike"),
            ("separate", "product", "binary", "/alike", "--head", "16"),
        ):
            how = ("--towers", towers, "--join", join, "--loss", loss, *more)
            found = self.train(path, *how, *self.tested(y), y=y, epochs=20)[1]
            self.assertGreater(found["test_accuracy"], 0.85, how)

    def test_levers_and_logs_are_those_of_one_input(self):
        path, log = self.make_pairs(rows=400), self.folder / "log.jsonl"
        def losses(*levers, **how):
            found = self.train(path, "--loss", "ranking", *levers, hidden="16,16", **how)[1]
            return [epoch["loss"] for epoch in found["epochs"]]
        plain = losses("--log", log)
        self.assertEqual([json.loads(line)["loss"] for line in log.read_text().splitlines()], plain)
        self.assertLess(plain[-1], plain[0])
        for levers in ("--offload", "optimizer,activations"), ("--recompute", 2), ("--threads", 1):
            self.assertEqual(losses(*levers), plain, levers)
        numpy.testing.assert_allclose(losses("--accumulate", 2, batch_rows=25), plain, rtol=1e-4)
        plan = self.run_program(
            "penstock-train", path, "--x", "/a", "--x2", "/b", "--y", "/better", "--loss", "ranking", "--plan")  # fmt: skip
        self.assertIn("the largest batches that fit", plan.stdout)
        self.assertNotIn("epoch 1", plan.stdout)

    def test_two_inputs_that_do_not_fit_are_refused(self):
        path, state = self.make_pairs(rows=200), self.folder / "c.h5"
        refused = lambda *more, **how: self.train(path, *more, **how)[0]
        self.assert_one_line(refused(x2="/narrow", expect=1), "/narrow", "7", "8")
        self.assert_one_line(refused("--test-x", "/a", "--test-y", "/better", expect=2), "--test-x2")
        self.assert_one_line(refused("--loss", "ranking", "--labels-from", 1, expect=1), "/better", "label")
        one = lambda *more, expect=0: self.run_program(
            "penstock-train", path, "--x", "/a", "--y", "/better", "--epochs", 1, "--hidden", 8, *more, expect=expect)  # fmt: skip
        for option in ("--towers", "shared"), ("--join", "dot"), ("--head", 4), ("--test-x2", "/b"):
            self.assert_one_line(one(*option, expect=2), option[0], "--x2")
        self.assert_one_line(one("--loss", "ranking", expect=2), "--loss ranking", "--x2")
        one("--checkpoint", state)
        self.assert_one_line(refused("--checkpoint", state, "--resume", expect=1), "c.h5")
        predict = lambda *more: self.run_program(
            "penstock-predict", state, path, "--x", "/a", "-o", self.folder / "out.h5", *more, expect=2)  # fmt: skip
        self.assert_one_line(predict("--x2", "/b"), "one input", "--x2")
        self.forget(state)
        self.train(path, "--loss", "ranking", "--checkpoint", state, epochs=1)
        self.assert_one_line(predict(), "two inputs", "--x2")
