"""penstock-train where a run goes on, or has nothing to go on with: what is refused, looked at and written."""

import csv
import json
import shutil
import signal
import subprocess

import h5py
import numpy

from damaged_file import damage_chunks
from program_case import program_case
from train_logs_cases import timeless


class train_resume(program_case):
    def make_data(self):
        """Labels that are half noise, so that the best epoch is not the last; /other is as if another file had them."""
        random = numpy.random.default_rng(3)
        path = self.folder / "data.h5"
        with h5py.File(path, "w") as file:
            x, label = random.normal(size=(300, 12)).astype("f4"), random.integers(0, 3, 300)
            x[numpy.arange(300), label] += 2
            label = numpy.where(random.random(300) < 0.5, random.integers(0, 3, 300), label)
            file["x"], file["label"], file["other"], file["weight"] = x, label, label, numpy.ones(300, "f4")
            file["test_x"], file["test_label"] = x[100:] + random.normal(size=(200, 12)), label[100:]
        return path

    def arguments(self, *more, label="/label", rate=0.01):
        return [
            self.folder / "data.h5", "--x", "/x", "--y", label, "--hidden", 64, "--batch-rows", 50, "--lr", rate,
            "--device", "host", "--threads", 1, *more
        ]  # fmt: skip

    def train(self, *more, expect=0, **how):
        return self.run_program("penstock-train", *self.arguments(*more, **how), expect=expect)

    def contents(self):
        return {entry.name: entry.read_bytes() for entry in self.folder.iterdir()}

    def read_log(self, path):
        return [json.loads(line) for line in path.read_text().splitlines()]

    def state_of(self, path):
        with h5py.File(path) as file:
            weights = [file[f"model/layer{n}/{name}"][:].tobytes() for n in (0, 1) for name in ("weight", "bias")]
            return weights, json.loads(file.attrs["penstock"])

    def keeping(self, *more):
        return ("--checkpoint", self.folder / "c.h5", "--keep-best", "--log", self.folder / "log.jsonl", "--log-steps", 2,
                *more)  # fmt: skip

    def test_what_is_refused_leaves_checkpoints_and_log_as_they_were(self):
        self.make_data()
        kept = self.keeping("--validation", 0.3)
        self.train(*kept, "--epochs", 8)
        self.assertLess(self.state_of(self.folder / "c.h5")[1]["judged"]["best"], 7)
        before = self.contents()
        refused = self.train(*kept, "--epochs", 12, "--resume", expect=1, label="/other")
        self.assert_one_line(refused, "data.h5:/other", "this run began with", "data.h5:/label")
        self.assertNotIn("epoch 8/12", refused.stdout)
        self.assertNotIn("forgotten", refused.stdout)
        self.assertEqual(self.contents(), before)
        self.assertIn("epoch 9/12", self.train(*kept, "--epochs", 12, "--resume").stdout)

    def test_what_a_run_has_come_to_is_not_replaced_where_resume_is_forgotten(self):
        self.make_data()
        state, best, log, csv_log, notes = (self.folder / name for name in ("c.h5", "b.h5", "log.jsonl", "log.csv", "notes.csv"))
        evaluated = ("--validation", 0.3, "--epochs", 2)
        self.train(*self.keeping(*evaluated))
        self.train(*evaluated, "--log", csv_log, "--best-checkpoint", best)
        notes.write_text("dear diary\nit rained")
        before = self.contents()
        kept_best = self.folder / "c.h5.best"
        for more, named, helps in (
            (self.keeping(), ("--checkpoint", state), ("--resume", "name another", "remove it")),
            (("--checkpoint", state), ("--checkpoint", state), ("--resume", "name another", "remove it")),
            (("--checkpoint", best, "--best-checkpoint", kept_best), ("--checkpoint", best), ("--resume",)),
            (("--checkpoint", self.folder / "n.h5", "--best-checkpoint", kept_best), ("--best-checkpoint", kept_best), ("--resume",)),
            (("--best-checkpoint", best), ("--best-checkpoint", best), ("name another", "remove it")),
            (("--log", log), ("--log", log), ("name another", "remove it")),
            (("--log", csv_log), ("--log", csv_log), ("name another", "remove it")),
            (("--log", notes), ("--log", notes), ("name another", "remove it")),
        ):
            for plan in ("--plan",), ():
                done = self.train(*more, *evaluated, *plan, expect=2)
                self.assert_one_line(done, " ".join(map(str, named)), *helps)
                self.assertEqual("--resume" in done.stderr, "--checkpoint" in more, done.stderr)  # which needs a checkpoint
                self.assertEqual(self.contents(), before)
        self.forget(kept_best)
        state.rename(self.folder / "c.h5.best")
        self.assert_one_line(self.train(*self.keeping(*evaluated), expect=2), f"--keep-best {kept_best}")

    def test_a_log_of_a_run_that_ended_before_its_first_epoch_is_written_anew(self):
        self.make_data()
        for name, start in ("log.jsonl", '{"kind":"steps","epoch":1,"step_of_epoch":1}\n{"kind":"ste'), (
            "log.csv", "kind,epoch,step_of_epoch,steps\nsteps,1,1,1\nst"
        ):  # fmt: skip
            log = self.folder / name
            log.write_text(start)
            self.train("--log", log, "--epochs", 1)
            self.assertEqual([line.count("epoch") > 0 for line in log.read_text().splitlines()], [True] * (1 + (name == "log.csv")))

    def test_a_look_at_a_checkpoint_changes_nothing(self):
        self.make_data()
        kept = self.keeping()
        own, tests = ("--validation", 0.3), ("--test-x", "/test_x", "--test-y", "/test_label")
        self.train(*kept, *own, "--epochs", 8)
        self.assertLess(self.state_of(self.folder / "c.h5")[1]["judged"]["best"], 7)
        before = self.contents()
        for rows in own, tests:
            for more in ("--epochs", 0), ("--epochs", 8), ("--epochs", 8, "--watch", "accuracy"), ("--epochs", 3, "--patience", 1):
                name = "validation" if rows == own else "test"
                shown = self.train(*kept, *rows, *more, "--resume").stdout
                self.assertRegex(shown.splitlines()[-1], f"^{name} accuracy ")
                self.assertIn("no epoch is left to train: checkpoints and log stay as they are\n", shown)
                self.assertEqual(self.contents(), before, (rows, more))
        # Nor with a training set that could not be gone on with, and without anything to evaluate on.
        self.train(*kept, *tests, "--epochs", 0, "--resume", label="/other")
        self.train("--checkpoint", self.folder / "c.h5", "--epochs", 0, "--resume", "--log", self.folder / "none.csv")
        self.assertEqual(self.contents(), before)
        # By what tells a better epoch, training goes on as if nobody had looked.
        self.train(*kept, *own, "--epochs", 9, "--resume")
        self.assertEqual(self.state_of(self.folder / "c.h5")[1]["judged"]["epochs"], 9)

    def test_a_run_that_was_stopped_while_its_last_epoch_was_evaluated_is_completed(self):
        path, log, whole = self.make_data(), self.folder / "log.jsonl", self.folder / "whole.jsonl"
        with h5py.File(path, "a") as file:  # of which nothing is stored
            file.create_dataset("long_x", (1 << 18, 12), "f4", chunks=(4096, 12))
            file.create_dataset("long_label", (1 << 18,), "i4", chunks=(1 << 18,))
        long = ("--test-x", "/long_x", "--test-y", "/long_label", "--epochs", 2)
        running = self.start_program("penstock-train", *map(str, self.arguments(*self.keeping(*long))), stdout=subprocess.PIPE)
        while not log.exists() or len(log.read_text().splitlines()) < 7:  # three of steps, an epoch, three of steps
            self.assertIsNone(running.poll())
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=100)
        self.assertEqual(running.returncode, 128 + signal.SIGINT)
        self.assertEqual(self.state_of(self.folder / "c.h5")[1]["judged"]["epochs"], 1)
        self.train(*self.keeping(*long, "--resume"))
        judged = self.state_of(self.folder / "c.h5")[1]["judged"]
        self.assertEqual(judged["epochs"], 2)
        self.assertEqual(self.state_of(self.folder / "c.h5.best")[1]["epoch"], judged["best"] + 1)
        self.train(*long, "--log", whole, "--log-steps", 2)
        self.assertEqual(*(list(map(timeless, self.read_log(file))) for file in (log, whole)))

    def test_steps_without_any_weight_are_in_a_log_once(self):
        path = self.make_data()
        with h5py.File(path, "a") as file:  # of six steps of an epoch, two have no weight
            file["weight"][:100] = 0
        how = ("--weights", "/weight", "--run-rows", 50, "--pool-rows", 50, "--log-steps", 1)
        for seed in range(100):
            whole = self.folder / "whole.jsonl"
            self.forget(whole)
            self.train(*how, "--log", whole, "--epochs", 3, "--seed", seed)
            lines = self.read_log(whole)
            first = next(n for n, line in enumerate(lines) if line["epoch"] == 3)
            if lines[first]["steps"] == lines[first - 1]["steps"]:  # the third epoch begins with such a step
                break
        self.assertEqual([(line["epoch"], line["step_of_epoch"]) for line in lines if line["kind"] == "steps"],
                         [(epoch, step) for epoch in (1, 2, 3) for step in range(1, 7)])  # fmt: skip
        self.assertEqual([line["step_of_epoch"] for line in lines if line["kind"] == "epoch"], [6, 6, 6])
        for ending in "jsonl", "csv":
            whole, parts = self.folder / f"whole.{ending}", self.folder / f"parts.{ending}"
            state, kept = self.folder / f"{ending}.h5", self.folder / f"kept-{ending}.h5"
            self.forget(whole)
            self.train(*how, "--log", whole, "--epochs", 3, "--seed", seed)
            self.train(*how, "--log", parts, "--checkpoint", state, "--epochs", 2, "--seed", seed)
            shutil.copy(state, kept)
            for checkpoint in state, kept:  # the second as if the run had been killed after its log
                self.train(*how, "--log", parts, "--checkpoint", checkpoint, "--resume", "--epochs", 3, "--seed", seed)
                read = self.read_log if ending == "jsonl" else lambda file: list(csv.DictReader(file.read_text().splitlines()))
                self.assertEqual(list(map(timeless, read(parts))), list(map(timeless, read(whole))))

    def test_initial_weights_are_kept_and_gone_on_from(self):
        self.make_data()
        first, still, whole = (self.folder / name for name in ("first.h5", "still.h5", "whole.h5"))
        tests = ("--test-x", "/test_x", "--test-y", "/test_label")
        shown = self.train("--epochs", 0, "--checkpoint", first, *tests).stdout
        self.assertIn(f"no epoch is asked for, and nothing is trained: the initial weights are kept in {first}\n", shown)
        self.assertRegex(shown.splitlines()[-1], "^test accuracy ")
        self.train("--epochs", 1, "--checkpoint", still, rate=0)
        weights, told = self.state_of(first)
        self.assertEqual(weights, self.state_of(still)[0])
        self.assertEqual((told["epoch"], told["next_row"], told["steps"]), (0, 0, 0))
        # Nothing that was trained is lost where --resume was forgotten.
        refused = self.train("--epochs", 0, "--checkpoint", still, expect=2)
        self.assert_one_line(refused, "--epochs 0", str(still), "--resume")
        self.assertEqual(self.state_of(still)[1]["epoch"], 1)
        self.assert_one_line(self.train("--epochs", 1, "--checkpoint", first, "--resume", expect=1, label="/other"), "/other")
        self.train("--epochs", 2, "--checkpoint", first, "--resume")
        self.train("--epochs", 2, "--checkpoint", whole)
        self.assertEqual(self.state_of(first)[0], self.state_of(whole)[0])
        self.assertIn("no epoch is asked for, and nothing is trained\n", self.train("--epochs", 0).stdout)

    def test_an_error_within_an_epoch_keeps_the_steps_before_it(self):
        path, state, whole = (self.folder / name for name in ("data.h5", "c.h5", "whole.h5"))
        random = numpy.random.default_rng(5)
        x, label = random.normal(size=(40000, 12)).astype("f4"), random.integers(0, 3, 40000)
        x[numpy.arange(40000), label] += 2
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=x, chunks=(40, 12), fletcher32=True)
            file["label"] = label
        # Few rows are drawn from: those that cannot be read come within the epoch.
        how = ("--no-normalise", "--run-rows", 20, "--pool-rows", 100, "--epochs", 2)
        self.train(*how, "--checkpoint", whole)

        def spoil():
            damage_chunks(path, "x", [500])

        def mask():
            with h5py.File(path, "a") as file:
                file["x"][20010] = numpy.nan if numpy.isfinite(file["x"][20010]).all() else x[20010]

        for change, words in (spoil, ("data.h5:/x", "damaged")), (mask, ("data.h5:/x row 20010", "not finite")):
            change()
            done = self.train(*how, "--checkpoint", state, expect=1)
            self.assert_one_line(done, *words, "what was trained before, up to epoch 1, batch", f"is kept: go on with --checkpoint {state} --resume")  # fmt: skip
            kept = self.state_of(state)[1]
            self.assertEqual(kept["epoch"], 0)
            self.assertIn(f"up to epoch 1, batch {kept['next_row'] // 50},", done.stderr)
            self.assertGreater(kept["next_row"], 0)
            # It ends there again: at the same row, or where the error of a read, which does not wait for the rows
            # before it, comes a little later. With mended data it goes on.
            before = state.read_bytes()
            done = self.train(*how, "--checkpoint", state, "--resume", expect=1)
            self.assert_one_line(done, *words)
            self.assertEqual("is kept" in done.stderr, state.read_bytes() != before, done.stderr)
            again = self.state_of(state)[1]
            self.assertEqual(again["epoch"], 0)
            self.assertGreaterEqual(again["next_row"], kept["next_row"])
            if change == mask:
                self.assertEqual(state.read_bytes(), before)
            change()
            self.train(*how, "--checkpoint", state, "--resume")
            self.assertEqual(self.state_of(state)[0], self.state_of(whole)[0])
            self.forget(state)
        # Nor is a log to lack lines where a run goes on.
        full = self.folder / "full.jsonl"
        full.symlink_to("/dev/full")
        done = self.train(*how, "--checkpoint", state, "--log", full, "--log-steps", 100, expect=1)
        self.assert_one_line(done, "full.jsonl", "No space left")
        self.assertFalse(state.exists())
        spoil()
        # Without a checkpoint, and before the first step, there is nothing to keep.
        self.assertNotIn("kept", self.train(*how, expect=1).stderr)
        damage_chunks(path, "x", [n for n in range(1000) if n != 500])
        self.assertNotIn("kept", self.train(*how, "--checkpoint", state, expect=1).stderr)
        self.assertFalse(state.exists())

    def test_an_evaluation_that_fails_keeps_the_epoch_before_it(self):
        path, state = self.make_data(), self.folder / "c.h5"
        with h5py.File(path, "a") as file:
            file["test_x"][7] = numpy.inf
        tests = ("--test-x", "/test_x", "--test-y", "/test_label", "--epochs", 1)
        done = self.train("--checkpoint", state, *tests, expect=1)
        self.assert_one_line(done, "/test_x row 7", "up to epoch 2, batch 0, is kept")
        with h5py.File(path, "a") as file:
            file["test_x"][7] = 0
        done = self.train("--checkpoint", state, *tests, "--resume")
        self.assertIn("epoch 1/1", done.stdout)

    def test_weights_of_a_run_that_diverges_take_the_place_of_none(self):
        self.make_data()
        state = self.folder / "c.h5"
        self.train("--checkpoint", state, "--epochs", 1)
        before = state.read_bytes()
        done = self.train("--checkpoint", state, "--epochs", 5, "--resume", "--optimizer", "adamw", rate=1e30, expect=1)
        self.assert_one_line(done, "the loss is not finite")
        self.assertNotIn("is kept", done.stderr)
        self.assertEqual(state.read_bytes(), before)

    def test_weights_with_which_an_evaluation_diverges_take_the_place_of_none(self):
        path = self.make_data()
        state = self.folder / "c.h5"
        tests = ("--test-x", "/test_x", "--test-y", "/test_label", "--accumulate", 6)  # one step is an epoch
        self.train("--checkpoint", state, "--epochs", 1, *tests)
        before = state.read_bytes()
        go_on = ("--checkpoint", state, "--epochs", 3, "--resume", "--optimizer", "adamw", *tests)
        done = self.train(*go_on, rate=1e30, expect=1)
        self.assert_one_line(done, "the loss is not finite", "of the test set")
        self.assertNotIn("is kept", done.stderr)
        self.assertEqual(state.read_bytes(), before)
        # Nor where a row further behind is at fault by itself, which is told of first.
        with h5py.File(path, "a") as file:
            file["test_x"][199] = numpy.inf
        done = self.train(*go_on, rate=1e30, expect=1)
        self.assert_one_line(done, "/test_x row 199", "an input is not finite")
        self.assertNotIn("is kept", done.stderr)
        self.assertEqual(state.read_bytes(), before)
        done = self.train(*go_on, expect=1)
        self.assert_one_line(done, "/test_x row 199", "up to epoch 3, batch 0, is kept")
        self.assertEqual(self.state_of(state)[1]["epoch"], 2)

    def test_a_plan_refuses_what_the_run_would(self):
        self.make_data()
        state, log = self.folder / "c.h5", self.folder / "log.csv"
        own = ("--validation", 0.3)
        self.train("--checkpoint", state, "--epochs", 1, *own, "--log", log)
        go_on = ("--checkpoint", state, "--resume", *own)
        before = self.contents()
        for more, code, words in (
            (("--min-delta", -1), 2, ("least change", "-1")),
            (("--schedule", "steps", "--step-factor", -1), 2, ("-1 times the rate",)),
            (("--checkpoint", self.folder / "none.h5", "--resume"), 1, ("none.h5",)),
            (("--checkpoint", self.folder / "data.h5", "--resume"), 2, ("--checkpoint", "data.h5")),
            (("--checkpoint", log, "--resume"), 1, ("log.csv",)),
            ((*go_on, "--activation", "gelu"), 1, ("c.h5", "relu", "gelu")),
            ((*go_on, "--accumulate", 2), 1, ("c.h5", "rows of a step")),
            ((*go_on, "--log", log, "--top-k", 2), 1, ("log.csv", "its columns are")),
        ):
            for plan in ("--plan",), ():
                self.assert_one_line(self.train(*more, *plan, expect=code), *words)
        self.assertIn("the largest batches that fit", self.train(*go_on, "--log", log, "--plan").stdout)
        self.assertEqual(self.contents(), before)
