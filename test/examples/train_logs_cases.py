"""penstock-train: when it ends, the best checkpoint, logs, pictures, and files of results that cannot be."""

import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import xml.dom.minidom

import h5py
import numpy

from program_case import program_case, programs

times = ("rows_per_s", "gb_per_s", "seconds")


def timeless(values):
    return {key: value for key, value in values.items() if key not in times}


class train_logs(program_case):
    def make_data(self):
        """Few rows that can be learned by heart, and whose labels are half noise: the test loss rises soon."""
        random = numpy.random.default_rng(3)
        path = self.folder / "data.h5"
        with h5py.File(path, "w") as file:
            for name in "x", "test_x":
                x = random.normal(size=(300, 12)).astype("f4")
                label = random.integers(0, 3, 300)
                x[numpy.arange(300), label] += 2
                noise = random.random(300) < 0.5
                file[name] = x
                file["label" if name == "x" else "test_label"] = numpy.where(noise, random.integers(0, 3, 300), label)
        return path

    def arguments(self, path, *more, epochs=40):
        return [
            path, "--x", "/x", "--y", "/label", "--test-x", "/test_x", "--test-y", "/test_label", "--hidden", "64",
            "--batch-rows", 50, "--lr", 0.01, "--device", "host", "--epochs", epochs, *more
        ]  # fmt: skip

    def train(self, path, *more, expect=0, epochs=40):
        return self.run_program("penstock-train", *self.arguments(path, *more, epochs=epochs), expect=expect)

    def read_log(self, path):
        return [json.loads(line) for line in path.read_text().splitlines()]

    def weights_of(self, path):
        with h5py.File(path) as file:
            return [file[f"model/layer{n}/weight"][:].tobytes() for n in (0, 1)]

    def test_training_ends_when_nothing_becomes_better_and_the_best_is_kept(self):
        path, results = self.make_data(), self.folder / "r.json"
        state, best, log = self.folder / "c.h5", self.folder / "c.h5.best", self.folder / "log.jsonl"
        done = self.train(path, "--patience", 4, "--checkpoint", state, "--keep-best", "--json", results, "--log", log)
        losses = [line["test_loss"] for line in self.read_log(log)]
        place = min(range(len(losses)), key=losses.__getitem__)
        self.assertEqual(len(losses), place + 1 + 4)
        self.assertLess(len(losses), 40)
        kept = json.loads(results.read_text())
        self.assertEqual((kept["best"]["epoch"], kept["best"]["loss"]), (place + 1, losses[place]))
        self.assertTrue(kept["stopped_early"])
        self.assertIn("ended early: no better test loss for 4 epochs", done.stdout)
        # The best checkpoint is the one that a run of so many epochs would have ended with.
        short = self.folder / "short.h5"
        self.train(path, "--checkpoint", short, epochs=place + 1)
        self.assertEqual(self.weights_of(best), self.weights_of(short))
        self.assertNotEqual(self.weights_of(best), self.weights_of(state))
        # It stays ended, and goes on where patience is longer; the best alone can be evaluated.
        again = self.train(path, "--patience", 4, "--checkpoint", state, "--resume", "--json", results)
        self.assertNotIn(f"epoch {len(losses) + 1}/", again.stdout)
        longer = self.train(path, "--patience", 5, "--checkpoint", state, "--resume", "--log", log)
        self.assertIn(f"epoch {len(losses) + 1}/40", longer.stdout)
        self.assertEqual(len(self.read_log(log)), len(losses) + 1)
        evaluated = self.train(path, "--checkpoint", best, "--resume", "--json", results, epochs=0)
        accuracy = self.read_log(log)[place]["test_accuracy"]
        self.assertAlmostEqual(json.loads(results.read_text())["test_accuracy"], accuracy)
        self.assertIn(f"test accuracy {accuracy:.4f}", evaluated.stdout)

    def test_a_resumed_run_ends_when_the_undisturbed_one_does(self):
        path, whole, parts = self.make_data(), self.folder / "whole.h5", self.folder / "parts.h5"
        rule = ("--patience", 3, "--watch", "accuracy", "--min-delta", 0.01)
        log = {name: self.folder / f"{name}.jsonl" for name in ("whole", "parts")}
        self.train(path, *rule, "--checkpoint", whole, "--best-checkpoint", self.folder / "b1", "--log", log["whole"])
        self.train(path, *rule, "--checkpoint", parts, "--best-checkpoint", self.folder / "b2", "--log", log["parts"], epochs=2)
        self.train(path, *rule, "--checkpoint", parts, "--best-checkpoint", self.folder / "b2", "--log", log["parts"], "--resume")
        expected, found = (list(map(timeless, self.read_log(log[name]))) for name in ("whole", "parts"))
        self.assertEqual(found, expected)
        self.assertEqual(self.weights_of(parts), self.weights_of(whole))
        self.assertEqual(self.weights_of(self.folder / "b2"), self.weights_of(self.folder / "b1"))

    def test_logs_of_steps_go_on_without_a_gap_or_a_repetition(self):
        path = self.make_data()
        for ending in "jsonl", "csv":
            whole, parts = self.folder / f"whole.{ending}", self.folder / f"parts.{ending}"
            state = self.folder / f"{ending}.h5"
            self.train(path, "--log", whole, "--log-steps", 4, epochs=3)
            self.train(path, "--log", parts, "--log-steps", 4, "--checkpoint", state, epochs=2)
            shown = parts.read_text()
            # As if it had been killed after the log, before the checkpoint: lines beyond it, the last cut short.
            kept = self.folder / "kept.h5"
            shutil.copy(state, kept)
            self.train(path, "--log", parts, "--log-steps", 4, "--checkpoint", state, "--resume", epochs=3)
            parts.write_text(parts.read_text()[:-9])
            self.train(path, "--log", parts, "--log-steps", 4, "--checkpoint", kept, "--resume", epochs=3)
            self.assertTrue(parts.read_text().startswith(shown))
            read = self.read_log if ending == "jsonl" else lambda file: list(csv.DictReader(file.open(newline="")))
            self.assertEqual(list(map(timeless, read(parts))), list(map(timeless, read(whole))))
            lines = read(whole)
            self.assertEqual([int(line["steps"]) for line in lines if line["kind"] == "steps"], [4, 8, 12, 16])
            self.assertEqual([int(line["epoch"]) for line in lines if line["kind"] == "epoch"], [1, 2, 3])
            self.assertEqual(len(lines), 7)

    def test_a_line_that_nests_without_end_is_none_of_a_log(self):
        path, state, log = self.make_data(), self.folder / "c.h5", self.folder / "log.jsonl"
        self.train(path, "--log", log, "--checkpoint", state, epochs=1)
        deep = "[" * 100000 + "]" * 100000
        log.write_text(f'{{"kind":"epoch","epoch":1,"steps":1,"skipped":0,"more":{deep}}}\n' + log.read_text())
        before = log.read_text()
        arguments = self.arguments(path, "--log", log, "--checkpoint", state, "--resume", epochs=2)
        done = self.run_program("penstock-train", *arguments, expect=1)
        self.assert_one_line(done, "log.jsonl: line 1 is none of a log")
        self.assertEqual(log.read_text(), before)

    def test_steps_that_were_skipped_are_steps_of_a_log_too(self):
        path = self.make_data()
        with h5py.File(path, "a") as file:  # of six steps of an epoch, two are skipped
            file["x"][:100] = numpy.nan
        how = ("--skip-non-finite", "--run-rows", 50, "--pool-rows", 50, "--log-steps", 1)
        for ending in "jsonl", "csv":
            whole, parts = self.folder / f"whole.{ending}", self.folder / f"parts.{ending}"
            state, kept = self.folder / f"{ending}.h5", self.folder / f"kept-{ending}.h5"
            self.train(path, *how, "--log", whole, epochs=3)
            self.train(path, *how, "--log", parts, "--checkpoint", state, epochs=2)
            shutil.copy(state, kept)
            self.train(path, *how, "--log", parts, "--checkpoint", state, "--resume", epochs=3)
            self.train(path, *how, "--log", parts, "--checkpoint", kept, "--resume", epochs=3)  # as if it had been killed
            read = self.read_log if ending == "jsonl" else lambda file: list(csv.DictReader(file.open(newline="")))
            steps = [int(line["steps"]) + int(line["skipped"]) for line in read(parts) if line["kind"] == "steps"]
            self.assertEqual(steps, list(range(1, 19)))
            self.assertEqual((int(read(parts)[-1]["steps"]), int(read(parts)[-1]["skipped"])), (12, 6))
            self.assertEqual(list(map(timeless, read(parts))), list(map(timeless, read(whole))))

    def test_an_epoch_that_is_evaluated_later_has_one_line(self):
        path, state, log = self.make_data(), self.folder / "c.h5", self.folder / "log.jsonl"
        how = ("--log", log, "--log-steps", 3, "--checkpoint", state)
        arguments = self.arguments(path, *how, epochs=2)
        test = arguments.index("--test-x")
        self.run_program("penstock-train", *arguments[:test], *arguments[test + 4 :])
        before = self.read_log(log)
        self.train(path, *how, "--resume", epochs=3)
        *after, step_15, step_18, epoch_3 = self.read_log(log)
        self.assertEqual([(line["kind"], line["epoch"], line["steps"]) for line in (step_15, step_18, epoch_3)],
                         [("steps", 3, 15), ("steps", 3, 18), ("epoch", 3, 18)])  # fmt: skip
        self.assertEqual([(line["kind"], line["epoch"], line["steps"]) for line in after],
                         [("steps", 1, 3), ("steps", 1, 6), ("epoch", 1, 6), ("steps", 2, 9), ("steps", 2, 12), ("epoch", 2, 12)])  # fmt: skip
        self.assertEqual(after[:-1], before[:-1])
        self.assertEqual(after[-1]["loss"], before[-1]["loss"])
        self.assertNotIn("test_accuracy", before[-1])
        self.assertIn("test_accuracy", after[-1])

    def test_a_log_of_something_else_is_not_gone_on_with(self):
        path, state, log = self.make_data(), self.folder / "c.h5", self.folder / "log.csv"
        self.train(path, "--checkpoint", state, epochs=1)
        log.write_text("a,b\n1,2\n")
        self.assert_one_line(self.train(path, "--checkpoint", state, "--resume", "--log", log, expect=1), "log.csv", "a,b")
        self.assertEqual(log.read_text(), "a,b\n1,2\n")
        text = self.folder / "notes.jsonl"
        text.write_text("dear diary\nit rained\n")
        self.assert_one_line(self.train(path, "--checkpoint", state, "--resume", "--log", text, expect=1), "notes.jsonl", "line 1")
        self.assertEqual(text.read_text(), "dear diary\nit rained\n")
        self.assert_one_line(self.train(path, "--log", self.folder / "log.txt", expect=2), ".jsonl")

    def test_a_log_that_cannot_be_read_is_not_taken_for_an_empty_one(self):
        path, state, log, broken = self.make_data(), *(self.folder / name for name in ("c.h5", "log.jsonl", "broken.csv"))
        self.train(path, "--log", log, "--checkpoint", state, epochs=1)
        before = log.read_bytes()
        ways = ("--log", log), ("--log", log, "--checkpoint", state, "--resume")
        # A regular file whose first bytes no program has: reading them is an error of input and output.
        broken.symlink_to("/proc/self/mem")
        for more in ("--log", broken), ("--log", broken, "--checkpoint", state, "--resume"):
            done = self.train(path, *more, expect=1, epochs=2)
            self.assert_one_line(done, "broken.csv", "cannot be read", "Input/output error")
        how = {}
        if os.geteuid() == 0:  # who may read everything
            how = {"user": 65534, "group": 65534, "extra_groups": []}
            self.folder.chmod(0o777)
            try:
                subprocess.run([programs / "penstock-train", "--help"], capture_output=True, check=True, **how)
            except (OSError, subprocess.SubprocessError) as error:
                self.skipTest(f"another user cannot run the program: {error}")
        log.chmod(0)
        for more in ways:
            command = [programs / "penstock-train", *self.arguments(path, *more, epochs=2)]
            done = subprocess.run([*map(str, command)], capture_output=True, text=True, **how)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assert_one_line(done, "log.jsonl", "cannot be read", "Permission denied")
        log.chmod(0o600)
        self.assertEqual(log.read_bytes(), before)

    def test_loss_and_accuracy_are_drawn(self):
        if shutil.which("gnuplot") is None:
            self.skipTest("gnuplot is not installed")
        path, state, log = self.make_data(), self.folder / "c.h5", self.folder / "log.csv"
        picture = self.folder / "curves.svg"
        self.train(path, "--checkpoint", state, "--log", log, epochs=2)
        self.train(path, "--checkpoint", state, "--log", log, "--resume", "--plot", picture, epochs=3)
        shown = picture.read_text()
        xml.dom.minidom.parseString(shown)
        for word in "loss", "accuracy", "epoch", "train", "test", "12-64-3":
            self.assertIn(word, shown)
        self.train(path, "--plot", self.folder / "curves.png", epochs=1)
        self.assertEqual((self.folder / "curves.png").read_bytes()[:4], b"\x89PNG")
        self.assert_one_line(self.train(path, "--plot", self.folder / "curves.gif", expect=2), "--plot", ".svg")

    def test_files_of_results_that_cannot_be_are_found_before_training(self):
        path, name = self.make_data(), self.folder / "same"
        for one, other in ("--json", "--checkpoint"), ("--log", "--json"), ("--best-checkpoint", "--checkpoint"):
            file = f"{name}.jsonl"
            done = self.train(path, one, file, other, self.folder / "." / "same.jsonl", expect=2)
            self.assert_one_line(done, one, other, "same.jsonl")
            self.assertNotIn("epoch 1", done.stdout)
        for option, ending in ("--checkpoint", ".h5"), ("--json", ".json"), ("--log", ".csv"), ("--best-checkpoint", ".h5"):
            nowhere = pathlib.Path("/proc") / f"result{ending}"  # a folder where nobody, root included, makes files
            done = self.train(path, option, nowhere, expect=1)
            self.assert_one_line(done, option, "/proc")
            self.assertNotIn("epoch 1", done.stdout)
        self.assertEqual(sorted(entry.name for entry in self.folder.iterdir()), ["data.h5"])

    def test_what_needs_an_evaluation_is_refused_without_one(self):
        path = self.make_data()
        for option in ("--patience", 2), ("--watch", "accuracy"), ("--best-checkpoint", self.folder / "b.h5"):
            done = self.run_program("penstock-train", path, *option, expect=2)
            self.assert_one_line(done, option[0], "--test-x")
        self.assert_one_line(self.run_program("penstock-train", path, "--keep-best", expect=2), "--checkpoint")
        self.assert_one_line(self.run_program("penstock-train", path, "--log-steps", 10, expect=2), "--log-steps", "--log")

    def test_a_run_that_is_stopped_goes_on_with_its_log(self):
        path, state, log, whole = (self.folder / name for name in ("data.h5", "c.h5", "log.csv", "whole.csv"))
        self.make_data()
        arguments = self.arguments(path, "--log-steps", 2, epochs=60)
        running = self.start_program("penstock-train", *map(str, arguments), "--checkpoint", state, "--log", log,
                                     stdout=subprocess.PIPE)  # fmt: skip
        while not (line := running.stdout.readline()).startswith("epoch 3/60"):
            self.assertTrue(line, "ended before its third epoch")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=100)
        self.assertEqual(running.returncode, 128 + signal.SIGINT)
        self.run_program("penstock-train", *arguments, "--checkpoint", state, "--log", log, "--resume")
        self.run_program("penstock-train", *arguments, "--log", whole)
        read = lambda file: [timeless(line) for line in csv.DictReader(file.open(newline=""))]
        self.assertEqual(read(log), read(whole))

    def test_an_epoch_that_a_resumed_run_evaluates_is_logged_like_the_others(self):
        path, state, log, whole = (self.folder / name for name in ("data.h5", "c.h5", "log.csv", "whole.csv"))
        self.make_data()
        with h5py.File(path, "a") as file:  # of which nothing is stored
            file.create_dataset("long_x", (1 << 26, 12), "f4", chunks=(4096, 12))
            file.create_dataset("long_label", (1 << 26,), "i4", chunks=(1 << 20,))
        arguments = self.arguments(path, "--schedule", "cosine", "--log-steps", 1, epochs=3)
        long = ["/long_x" if word == "/test_x" else "/long_label" if word == "/test_label" else word for word in arguments]
        running = self.start_program("penstock-train", *map(str, long), "--checkpoint", state, "--log", log)
        self.run_program("penstock-train", *arguments, "--log", whole)
        read = lambda file: list(csv.DictReader(file.open(newline=""))) if file.exists() else []
        steps = sum(line["kind"] == "steps" and line["epoch"] == "1" for line in read(whole))
        while len(read(log)) < steps:  # then it evaluates
            self.assertIsNone(running.poll())
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=100)
        self.assertEqual(running.returncode, 128 + signal.SIGINT)
        self.run_program("penstock-train", *arguments, "--checkpoint", state, "--log", log, "--resume")
        self.assertEqual(*([timeless(line) for line in read(file)] for file in (log, whole)))
        self.assertNotIn("0.0", [line[name] for line in read(log) for name in times])
