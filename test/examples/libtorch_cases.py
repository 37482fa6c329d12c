"""penstock-libtorch: what its network learns, from which rows, and what it refuses. Built where libtorch is found."""

import json
import os
import re
import signal
import subprocess

import h5py
import numpy

from program_case import program_case, programs

# torch's threads wait for each other many times a step: where others want the processors too, one is faster than several.
os.environ.setdefault("OMP_NUM_THREADS", "1")


class libtorch(program_case):
    def train(self, *arguments, expect=0):
        self.results = self.folder / "results.json"
        return self.run_program("penstock-libtorch", *arguments, "--json", self.results, expect=expect)

    def results_of(self, *arguments):
        self.train(*arguments)
        return json.loads(self.results.read_text())

    def fashion_mnist(self):
        path = self.folder / "fashion.h5"
        self.run_program("penstock-make-dataset", "fashion-mnist", path)
        return path

    def write(self, **datasets):
        path = self.folder / "made.h5"
        with h5py.File(path, "w") as file:
            for name, values in datasets.items():
                file[name] = values
        return path

    def skip_where_torch_has_no_cuda(self, path):
        command = [programs / "penstock-libtorch", path, "--device", "cuda:0", "--device-memory", "1MiB"]
        if "this libtorch has no CUDA" in subprocess.run(command, capture_output=True, text=True).stderr:
            self.skipTest("this libtorch has no CUDA")

    def test_a_convolutional_network_learns_fashion_mnist(self):
        done = self.train(self.fashion_mnist(), "--device", "host", "--epochs", 2)
        shown = re.fullmatch(r"test accuracy (0\.\d{4})", done.stdout.splitlines()[-1])
        self.assertIsNotNone(shown, done.stdout)
        self.assertGreaterEqual(float(shown.group(1)), 0.9)
        results = json.loads(self.results.read_text())
        self.assertEqual((len(results["epochs"]), results["device"]), (2, "host"))
        self.assertAlmostEqual(results["test_accuracy"], float(shown.group(1)), delta=1e-4)

    def test_one_budget_holds_for_torch_and_penstock_on_a_gpu(self):
        if not os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is no CUDA device")
        path, budget = self.fashion_mnist(), ("--device-memory", "256MiB", "--rows-memory", "48MiB")
        self.skip_where_torch_has_no_cuda(path)
        results = self.results_of(path, "--device", "cuda:0", *budget)
        memory = results["memory"]
        self.assertGreaterEqual(results["test_accuracy"], 0.9)
        self.assertEqual(memory["penstock_bytes"] + memory["torch_limit_bytes"], 256 << 20)
        self.assertLessEqual(memory["torch_most_bytes"], memory["torch_limit_bytes"])
        # A network whose activations do not fit torch's share is refused by torch, not served from beyond the budget.
        wide = ("--device", "cuda:0", "--width", 512, "--batch-rows", 2048, *budget)
        self.assert_one_line(self.train(path, *wide, expect=1), "torch needs more memory", "--device-memory")
        self.assert_one_line(self.train(path, "--device", "cuda:0", "--device-memory", "32MiB", expect=1), "too little")

    def test_rows_of_values_are_lines(self):
        path = self.make_rows()
        same = ("--x", "/x", "--y", "/label", "--test-x", "/x", "--test-y", "/label", "--device", "host")
        self.assertGreater(self.results_of(path, *same, "--epochs", 8)["test_accuracy"], 0.9)

    def test_channels_may_come_last(self):
        random = numpy.random.default_rng(1)
        images, labels = random.random((600, 3, 9, 8), dtype="f4"), random.integers(0, 4, 600)
        path = self.write(first=images, last=images.transpose(0, 2, 3, 1), y=labels)
        how = ("--y", "/y", "--epochs", 1, "--device", "host")
        first = self.results_of(path, "--x", "/first", *how)["epochs"][0]
        last = self.results_of(path, "--x", "/last", "--channels-last", *how)["epochs"][0]
        self.assertAlmostEqual(first["loss"], last["loss"], delta=1e-3)
        self.assertNotIn("test_accuracy", first)

    def test_labels_that_are_none_are_named_with_their_row(self):
        path = self.write(x=numpy.zeros((20, 4, 4), "f4"), half=[0.0] * 7 + [3.5] + [0.0] * 12, y=numpy.arange(20))
        inputs = ("--x", "/x", "--device", "host")
        self.assert_one_line(self.train(path, *inputs, "--y", "/half", expect=1), "/half, row 7", "the label is 3.5")
        done = self.train(path, *inputs, "--y", "/y", "--classes", 10, expect=1)
        self.assert_one_line(done, "/y, row 10", "from 0 to 9")
        self.assert_one_line(self.train(path, *inputs, "--y", "/x", expect=2), "/x", "one number in each row")

    def write_texts(self, random, **texts):
        """Rows whose values tell ant, bee and cat apart, and these as texts and as numbers."""
        path, names = self.folder / "texts.h5", ["ant", "bee", "cat"]
        with h5py.File(path, "w") as file:
            for name, labels in texts.items():
                classes = numpy.array([names.index(label) for label in labels])
                file[f"{name}_x"] = (classes[:, None] + random.normal(0, 0.05, (len(labels), 16))).astype("f4")
                file[f"{name}_text"], file[f"{name}_number"] = [str(label) for label in labels], classes
        return path

    def test_texts_name_the_same_classes_in_both_sets(self):
        random = numpy.random.default_rng(1)
        names = numpy.array(["ant", "bee", "cat"])
        path = self.write_texts(random, all=names[random.integers(0, 3, 600)], some=names[random.integers(1, 3, 200)])

        def losses(y, training="all", testing="some"):
            sets = ("--x", f"/{training}_x", "--y", f"/{training}_{y}", "--test-x", f"/{testing}_x", "--test-y", f"/{testing}_{y}")
            found = self.results_of(path, *sets, "--epochs", 6, "--batch-rows", 64, "--device", "host")
            return [(epoch["loss"], epoch["test_loss"]) for epoch in found["epochs"]], found["test_accuracy"]

        texts, numbers = losses("text"), losses("number")
        numpy.testing.assert_allclose(texts[0], numbers[0], rtol=1e-3)  # torch's threads add in any order
        self.assertGreater(texts[1], 0.95)

    def test_texts_that_name_no_class_of_the_training_set_are_refused(self):
        path = self.write_texts(numpy.random.default_rng(1), all=["ant", "bee", "cat"] * 7, some=["ant", "cat"] * 7)
        some = ("--x", "/some_x", "--y", "/some_text", "--device", "host")
        done = self.train(path, *some, "--test-x", "/all_x", "--test-y", "/all_text", expect=2)
        self.assert_one_line(done, "texts.h5:/all_text", "'bee'", "none of the 2 classes of the training set")
        done = self.train(path, *some, "--test-x", "/all_x", "--test-y", "/all_number", expect=2)
        self.assert_one_line(done, "/all_number: its labels are numbers, and those of the training set texts")
        done = self.train(path, "--x", "/all_x", "--y", "/all_number", "--test-x", "/some_x", "--test-y", "/some_text", "--device", "host", expect=2)
        self.assert_one_line(done, "/some_text: its labels are texts, and those of the training set numbers")
        done = self.train(path, "--x", "/all_x", "--y", "/all_text", "--classes", 2, "--device", "host", expect=2)
        self.assert_one_line(done, "/all_text", "3 different texts", "more than 2 classes")

    def test_labels_may_be_a_column(self):
        random = numpy.random.default_rng(1)
        labels = random.integers(0, 4, 200)
        path = self.write(x=random.random((200, 4, 4), dtype="f4"), line=labels, column=labels.reshape(200, 1))
        how = ("--x", "/x", "--test-x", "/x", "--epochs", 1, "--device", "host")
        line = self.results_of(path, *how, "--y", "/line", "--test-y", "/line")["epochs"][0]
        column = self.results_of(path, *how, "--y", "/column", "--test-y", "/column")["epochs"][0]
        self.assertAlmostEqual(line["test_loss"], column["test_loss"], delta=1e-4)

    def test_inputs_that_are_not_finite_end_the_training(self):
        x = numpy.zeros((200, 4, 4), "f4")
        x[150] = numpy.nan
        path = self.write(x=x, y=numpy.arange(200) % 2)
        done = self.train(path, "--x", "/x", "--y", "/y", "--device", "host", expect=1)
        self.assert_one_line(done, "the loss is not finite")

    def test_inputs_of_the_test_set_that_are_not_finite_end_the_run(self):
        x = numpy.random.default_rng(1).random((200, 4), dtype="f4")
        unknown = x.copy()
        unknown[150] = numpy.nan
        path = self.write(x=x, unknown=unknown, y=numpy.arange(200) % 2)
        tested = ("--test-x", "/unknown", "--test-y", "/y", "--epochs", 1, "--device", "host")
        done = self.train(path, "--x", "/x", "--y", "/y", *tested, expect=1)
        self.assert_one_line(done, "the loss is not finite")
        self.assertNotIn("accuracy", done.stdout)

    def test_a_last_batch_of_one_small_row_is_trained_on(self):
        random = numpy.random.default_rng(1)
        x = random.random((201, 4), dtype="f4")
        path = self.write(x=x, one=x[:, :1], y=numpy.arange(201) % 2)
        for x in ("/x", "/one"):
            how = ("--x", x, "--y", "/y", "--batch-rows", 100, "--epochs", 1, "--device", "host")
            self.assertEqual(len(self.results_of(path, *how)["epochs"]), 1)

    def test_inputs_without_rows_or_values_are_named(self):
        empty, nothing = numpy.zeros((0, 4, 4), "f4"), numpy.zeros((20, 4, 0), "f4")
        rows = {"x": numpy.zeros((20, 4, 4), "f4"), "y": numpy.arange(20) % 2}
        path = self.write(empty=empty, labels=numpy.zeros(0, "i8"), nothing=nothing, **rows)
        host = ("--device", "host")
        self.assert_one_line(self.train(path, "--x", "/empty", "--y", "/labels", *host, expect=2), "/empty", "no rows")
        self.assert_one_line(self.train(path, "--x", "/nothing", "--y", "/y", *host, expect=2), "hold no values")
        tested = ("--x", "/x", "--y", "/y", "--test-x", "/empty", "--test-y", "/labels")
        self.assert_one_line(self.train(path, *tested, *host, expect=2), "/empty", "no rows")

    def test_a_signal_does_not_wait_for_labels_to_be_looked_at(self):
        path = self.write(x=numpy.zeros((20, 4), "f4"), y=numpy.zeros(20, "i4"))
        for n in range(1000):
            os.link(path, self.folder / f"part-{n:03}.h5")
        files = (self.folder / "part-*.h5", "--x", "/x", "--y", "/y", "--device", "host")
        running = self.start_program("penstock-libtorch", *files, stdout=subprocess.PIPE)
        while not self.handles(running, signal.SIGINT):
            self.assertIsNone(running.poll())
        running.send_signal(signal.SIGINT)
        shown, errors = running.communicate(timeout=100)
        self.assertEqual(running.returncode, 128 + signal.SIGINT)
        self.assertEqual((shown, errors), ("", "penstock-libtorch: stopped; nothing is kept\n"))

    def test_a_budget_that_is_too_small_names_the_options_that_set_it(self):
        path = self.write(x=numpy.zeros((20, 4), "f4"), y=numpy.zeros(20, "i4"))
        rows = (path, "--x", "/x", "--y", "/y", "--device", "host")
        done = self.train(*rows, "--rows-memory", "1KiB", expect=1)
        for word in "The smallest budget that would do: device", "--rows-memory", "--pinned-memory", "--host-memory":
            self.assertIn(word, done.stderr)

    def test_wrong_use_is_refused(self):
        path = self.write(x=numpy.zeros((20, 2, 2, 2, 2), "f4"), y=numpy.zeros(20, "i4"))
        rows = (path, "--x", "/x", "--y", "/y", "--device", "host")
        self.assert_one_line(self.train(*rows, expect=2), "4 axes")
        self.assert_one_line(self.train(path, "--x", "/x", expect=2), "--y")
        self.assert_one_line(self.train(*rows, "--classes", 1, expect=2), "--classes")
        self.assert_one_line(self.train(path, "--device", "host", expect=1), "/train/images")
        self.assert_one_line(self.train(*rows[:-1], "cuda:99", expect=1), "cuda:99")
