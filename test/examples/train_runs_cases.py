"""penstock-train as it runs: checkpoints, signals, a terminal."""

import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import time
import unittest.mock

import h5py
import numpy

from predict_cases import is_in
from program_case import program_case, programs
from train_logs_cases import timeless


def datasets_of(path):
    """Every dataset of a checkpoint, as bytes."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()].tobytes()}) if hasattr(item, "dtype") else None)
    return found


class train_runs(program_case):
    def arguments(self, data, checkpoint, *more):
        return [
            data, "--test-x", "/x", "--test-y", "/label", "--hidden", "256,256", "--batch-rows", 128, "--device", "host",
            "--checkpoint", checkpoint, *more
        ]  # fmt: skip

    def assert_same_state(self, one, other):
        expected, found = datasets_of(one), datasets_of(other)
        self.assertGreater(len(expected), 6)
        self.assertEqual(expected.keys(), found.keys())
        self.assertEqual([name for name in expected if expected[name] != found[name]], [])

    def test_a_resumed_run_ends_with_the_bits_of_the_undisturbed_one(self):
        data, whole, parts = self.make_rows(), self.folder / "whole.h5", self.folder / "parts.h5"
        undisturbed = self.run_program("penstock-train", *self.arguments(data, whole, "--epochs", 4))
        self.run_program("penstock-train", *self.arguments(data, parts, "--epochs", 2))
        resumed = self.run_program("penstock-train", *self.arguments(data, parts, "--epochs", 4, "--resume"))
        self.assertIn("epoch 3", resumed.stdout)
        self.assertIn("means and deviations are the checkpoint's; learning rate", resumed.stdout)
        self.assertNotIn("deviations are the checkpoint's", undisturbed.stdout)
        self.assertNotIn("epoch 2/4:", resumed.stdout)
        self.assertNotIn("not to the bits", resumed.stdout)
        self.assertEqual(resumed.stdout.splitlines()[-1], undisturbed.stdout.splitlines()[-1])
        self.assert_same_state(whole, parts)
        # Once more, with nothing left to do: the result is shown, and the checkpoint stays.
        again = self.run_program("penstock-train", *self.arguments(data, parts, "--epochs", 4, "--resume"))
        self.assertEqual(again.stdout.splitlines()[-1], undisturbed.stdout.splitlines()[-1])
        other = self.run_program("penstock-train", *self.arguments(data, parts, "--epochs", 4, "--resume", "--clip-norm", 1))
        self.assertIn("not to the bits of a run without a stop: its clipping was none, and this run's is at a norm of 1\n", other.stdout)
        self.assert_same_state(whole, parts)

    def test_products_of_another_processor_are_told_of(self):
        data, state = self.make_rows(), self.folder / "state.h5"
        on_the_host = lambda *more: self.run_program("penstock-train", *self.arguments(data, state, *more))
        with unittest.mock.patch.dict(os.environ, OPENBLAS_CORETYPE="Nehalem"):  # kernels that every processor has
            on_the_host("--epochs", 1)
            self.assertNotIn("not to the bits", on_the_host("--epochs", 2, "--resume").stdout)
        with h5py.File(state) as file:
            made = json.loads(file.attrs["penstock"])["algorithms"]
        if "Nehalem" not in made:
            self.skipTest(f"OpenBLAS has kernels for one processor only: {made}")
        resumed = on_the_host("--epochs", 3, "--resume").stdout
        self.assertRegex(resumed, r"not to the bits .*: products are made by OpenBLAS .*, and were by OpenBLAS .* for Nehalem")

    def test_other_weights_of_rows_are_refused(self):
        data, state = self.make_rows(), self.folder / "state.h5"
        with h5py.File(data, "a") as file:
            for name, weight in {"w1": 1, "w2": 2}.items():
                file[name] = numpy.full(5000, weight, "f4")
        first = ["--weights", "/w1"]
        self.run_program("penstock-train", *self.arguments(data, state, "--epochs", 1, *first))
        go_on = self.arguments(data, state, "--epochs", 2, "--resume")
        for damaged in [], ["--damaged", "skip:5"]:
            for other in ["--weights", "/w2"], []:
                done = self.run_program("penstock-train", *go_on, *other, *damaged, expect=1)
                self.assert_one_line(done, "/label with rows.h5:/w1,", *other[1:])
        self.run_program("penstock-train", *go_on, *first, *damaged)

    def test_epochs_judged_by_another_quantity_or_on_another_test_set_are_forgotten(self):
        data, state = self.make_rows(rows=1000, columns=16), self.folder / "state.h5"
        with h5py.File(data, "a") as file:
            file["few"], file["few_labels"] = file["x"][:300], file["label"][:300]
        follow = lambda *more: self.run_program("penstock-train", *self.arguments(data, state, "--keep-best", *more)).stdout
        self.assertNotIn("forgotten", follow("--epochs", 2, "--patience", 1, "--min-delta", 100))  # no epoch is so much better
        shown = follow("--epochs", 4, "--resume", "--watch", "accuracy")
        self.assertIn("its epochs were judged by their loss, and this run's are by their accuracy: ", shown)
        judged = re.findall(r"epoch (\d)/4: .*, test accuracy ([\d.]+)", shown)
        best, value = re.search(r"best epoch: (\d), test accuracy ([\d.]+)", shown).groups()
        self.assertIn((best, value), judged)
        self.assertEqual(value, max(value for _, value in judged))
        command = ["/few" if word == "/x" else "/few_labels" if word == "/label" else word
                   for word in self.arguments(data, state, "--epochs", 5, "--resume", "--watch", "accuracy")]  # fmt: skip
        shown = self.run_program("penstock-train", *command).stdout
        self.assertRegex(shown, r"judged on 1000 rows .*, and now it is 300 rows .* forgotten")

    def test_other_rows_kept_for_evaluation_and_another_file_in_the_middle_are_refused(self):
        for n in range(4):
            with h5py.File(self.make_rows(rows=1000, columns=8, name=f"s{n}.h5"), "a") as file:
                file["near"], file["far"] = numpy.arange(1000) // 10, numpy.arange(1000) % 100
        files = [self.folder / f"s{n}.h5" for n in range(4)]
        state = self.folder / "state.h5"
        go_on = lambda *of, **how: self.run_program(
            "penstock-train", *of, "--hidden", 8, "--device", "host", "--checkpoint", state, **how
        )
        kept = ["--validation", 0.1, "--validation-group"]
        go_on(files[0], *kept, "/near", "--epochs", 1)
        self.assert_one_line(go_on(files[0], *kept, "/far", "--epochs", 2, "--resume", expect=1), "rows that take part")
        go_on(files[0], *kept, "/near", "--epochs", 2, "--resume", "--threads", 1, "--batch-rows", 64, "--accumulate", 4)
        self.forget(state)
        go_on(*files[:3], "--epochs", 1)
        other = go_on(files[0], files[3], files[2], "--epochs", 2, "--resume", expect=1)
        self.assert_one_line(other, "s0.h5:/x to s2.h5:/x", "began with")
        go_on(*files[:3], "--epochs", 2, "--resume")

    def check_signal(self, number):
        data, whole, stopped = self.make_rows(rows=20000), self.folder / "whole.h5", self.folder / "stopped.h5"
        running = self.start_program(
            "penstock-train", *self.arguments(data, stopped, "--epochs", 6), stdout=subprocess.PIPE
        )
        while not (line := running.stdout.readline()).startswith("epoch 1/6"):
            self.assertTrue(line, "ended before its first epoch")
        running.send_signal(number)
        shown, errors = running.communicate(timeout=100)
        self.assertEqual((running.returncode, errors), (128 + number, ""), shown)
        self.assertRegex(shown, r"stopped at epoch [2-6], batch \d+; go on with --checkpoint .* --resume")
        self.assertIn("bottleneck", shown)
        resumed = self.run_program("penstock-train", *self.arguments(data, stopped, "--epochs", 6, "--resume"))
        undisturbed = self.run_program("penstock-train", *self.arguments(data, whole, "--epochs", 6))
        self.assertEqual(resumed.stdout.splitlines()[-1], undisturbed.stdout.splitlines()[-1])
        self.assert_same_state(whole, stopped)

    def test_ctrl_c_ends_cleanly_and_loses_nothing(self):
        self.check_signal(signal.SIGINT)

    def test_sigterm_ends_cleanly_and_loses_nothing(self):
        self.check_signal(signal.SIGTERM)

    def test_so_does_the_end_of_its_terminal(self):
        self.check_signal(signal.SIGHUP)

    def test_sigterm_between_the_batches_of_a_step_loses_none_of_them(self):
        data, log = self.make_rows(rows=20000), self.folder / "stopped.jsonl"
        command = lambda name, *more: (
            "penstock-train", data, "--hidden", "256", "--batch-rows", 8, "--accumulate", 60, "--epochs", 8, "--device", "host",
            "--checkpoint", self.folder / f"{name}.h5", "--log", self.folder / f"{name}.jsonl", "--log-steps", 7, *more
        )  # fmt: skip
        for attempt in range(10):  # one of 60 batches ends a step
            self.forget(log, self.folder / "stopped.h5")
            running = self.start_program(*map(str, command("stopped")), stdout=subprocess.PIPE)
            while not log.exists() or log.read_text().count("\n") < 8 + attempt % 3:  # an epoch has 7 lines
                self.assertIsNone(running.poll())
            running.send_signal(signal.SIGTERM)
            shown, errors = running.communicate(timeout=100)
            self.assertEqual((running.returncode, errors), (128 + signal.SIGTERM, ""), shown)
            if within := re.search(r"stopped at epoch (\d), batch (\d+) \((\d+) of the 60 batches of a step\); go on with", shown):
                break
        self.assertTrue(within, shown)
        epoch, batch, begun = map(int, within.groups())
        self.assertEqual(batch % 60, begun)
        with h5py.File(self.folder / "stopped.h5") as file:
            there = json.loads(file.attrs["penstock"])
            self.assertEqual(file["gradients/layer0/weight"].shape, file["model/layer0/weight"].shape)
        self.assertEqual((there["epoch"] + 1, there["next_row"] + 8 * begun), (epoch, 8 * batch))
        resumed = self.run_program(*command("stopped", "--resume")).stdout
        self.assertIn(f"epoch {epoch}, batch {batch} ({begun} of the 60 batches of a step)\n", resumed)
        self.assertNotIn("not to the bits", resumed)
        self.run_program(*command("whole"))
        self.assert_same_state(self.folder / "whole.h5", self.folder / "stopped.h5")
        logs = [[timeless(json.loads(line)) for line in (self.folder / f"{name}.jsonl").read_text().splitlines()]
                for name in ("whole", "stopped")]  # fmt: skip
        self.assertEqual(*logs)

    def test_a_signal_does_not_wait_for_files_to_be_opened_and_planned_for(self):
        data = self.make_rows(rows=10)
        for n in range(1000):
            os.link(data, self.folder / f"part-{n:03}.h5")
        running = self.start_program(
            "penstock-train", self.folder / "part-*.h5", "--device", "host", "--plan", stdout=subprocess.PIPE
        )
        while not self.handles(running, signal.SIGINT):
            self.assertIsNone(running.poll())
        running.send_signal(signal.SIGINT)
        shown, errors = running.communicate(timeout=100)
        self.assertEqual(running.returncode, 128 + signal.SIGINT)
        self.assertEqual((shown, errors.count("\n")), ("", 1), errors)
        self.assertIn("stopped before the first step", errors)

    def test_two_signals_at_once_are_one(self):
        """`timeout` sends one to the program, and one to its group."""
        data, checkpoint = self.make_rows(rows=20000), self.folder / "state.h5"
        running = self.start_program(
            "penstock-train", *self.arguments(data, checkpoint, "--epochs", 1000), stdout=subprocess.PIPE
        )  # fmt: skip
        while not checkpoint.exists():
            self.assertIsNone(running.poll())
            time.sleep(0.01)
        running.send_signal(signal.SIGSTOP)  # both are there when it goes on
        running.send_signal(signal.SIGINT)
        running.send_signal(signal.SIGTERM)
        running.send_signal(signal.SIGCONT)
        shown, errors = running.communicate(timeout=100)
        self.assertIn(running.returncode, (128 + signal.SIGINT, 128 + signal.SIGTERM))
        self.assertEqual(errors, "")
        self.assertIn("stopped at", shown)

    def test_a_second_signal_ends_it_at_once(self):
        data, checkpoint = self.make_rows(rows=2000), self.folder / "state.h5"
        out, end = os.pipe()
        self.addCleanup(os.close, out)
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
        running = self.start_program("penstock-train", *self.arguments(data, checkpoint, "--epochs", 100000), stdout=end)
        os.close(end)
        began = time.monotonic()
        # It says what nobody reads, until the pipe is full: the first signal is waited for without end.
        while not checkpoint.exists() or not is_in(running, 1, 1):
            self.assertIsNone(running.poll())
            self.assertLess(time.monotonic() - began, 300)
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        time.sleep(0.5)  # beyond what counts as the same signal
        self.assertIsNone(running.poll())
        running.send_signal(signal.SIGTERM)
        _, errors = running.communicate(timeout=100)
        self.assertEqual((running.returncode, errors), (128 + signal.SIGTERM, ""))
        # What was saved last is whole.
        self.run_program("penstock-train", *self.arguments(data, checkpoint, "--epochs", 1, "--resume"))

    def test_closed_standard_streams_become_nothing(self):
        data, whole = self.make_rows(rows=500), self.folder / "whole.h5"
        self.run_program("penstock-train", *self.arguments(data, whole, "--epochs", 1))
        for closed in (0,), (1,), (2,), (0, 1), (0, 1, 2):
            checkpoint = self.folder / f"closed-{len(closed)}-{closed[0]}.h5"
            command = [programs / "penstock-train", *self.arguments(data, checkpoint, "--epochs", 1)]
            shell = 'exec "$@" ' + " ".join(f"{number}>&-" for number in closed)
            done = subprocess.run(["sh", "-c", shell, "sh", *map(str, command)], capture_output=True, timeout=100)
            self.assertEqual((done.returncode, done.stderr), (0, b""), closed)
            self.assert_same_state(whole, checkpoint)

    def test_a_full_disk_and_too_few_descriptors_are_named(self):
        data, full = self.make_rows(rows=500), pathlib.Path("/dev/full")
        for option, name in ("--log", "log.jsonl"), ("--json", "results.json"), ("--trace", "trace.json"):
            (self.folder / name).symlink_to(full)
            command = [data, "--device", "host", "--epochs", 1, option, self.folder / name]
            self.assert_one_line(
                self.run_program("penstock-train", *command, expect=1), name, "No space left on device"
            )  # fmt: skip
        command = [programs / "penstock-train", *self.arguments(data, self.folder / "state.h5", "--epochs", 1)]
        refused = 0
        for most in range(6, 40):
            limit = lambda most=most: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # noqa: E731
            done = subprocess.run(
                list(map(str, command)), capture_output=True, text=True, timeout=100, preexec_fn=limit
            )  # fmt: skip
            if done.returncode == 0:
                break
            if done.returncode == 1:
                self.assert_one_line(done)
                self.assertRegex(done.stderr.lower(), "too many (open files|files are open)")
                self.assertNotIn("free space", done.stderr)
                refused += 1
        self.assertEqual(done.returncode, 0)
        self.assertGreater(refused, 0)

    def test_a_terminal_shows_progress_and_a_file_plain_lines(self):
        arguments = [self.make_rows(rows=20000), "--epochs", 1, "--hidden", "256", "--batch-rows", 32]
        plain = self.run_program("penstock-train", *arguments).stdout
        for word in "\r", "\033", " left":
            self.assertNotIn(word, plain)
        shown = self.on_a_terminal(*arguments)
        progress = (
            rb"\repoch 1/1 \[#* *\] \d+ rows/s, \d+\.\d\d GB/s, loss \d+\.\d{4}, "
            rb"device [\d.]+ \w+ of [\d.]+ \w+, \d+ s left"
        )
        self.assertRegex(shown, progress)
        self.assertIn(b"epoch 1/1: loss", shown)

    def test_the_progress_of_a_short_epoch_is_shown_with_its_speed(self):
        # 40 steps, each long enough for a line of its own.
        arguments = [self.make_rows(rows=10240), "--hidden", "1024,1024", "--batch-rows", 256, "--no-normalise", "--device", "host"]
        shown = self.on_a_terminal(*arguments, "--epochs", 1).decode()
        rates = sorted(int(rate) for rate in re.findall(r"\repoch 1/1 \[#* *\] (\d+) rows/s", shown))
        self.assertGreater(len(rates), 4, shown)
        whole = int(re.search(r"epoch 1/1: .*, (\d+) rows/s", shown)[1])
        self.assertTrue(whole / 2 < rates[len(rates) // 2] < 2 * whole, (rates, whole))

    def on_a_terminal(self, *arguments):
        """What penstock-train writes to a terminal."""
        ours, theirs = pty.openpty()
        running = self.start_program("penstock-train", *arguments, stdout=theirs)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:
            pass  # a terminal whose other side is closed
        os.close(ours)
        self.assertEqual(running.wait(), 0)
        return shown

    def test_a_checkpoint_of_another_run_is_refused_with_both_sides(self):
        data, checkpoint = self.make_rows(rows=200), self.folder / "state.h5"
        self.run_program("penstock-train", *self.arguments(data, checkpoint, "--epochs", 1))
        before = checkpoint.read_bytes()
        for other in ["--seed", 9], ["--hidden", "255"], ["--optimizer", "sgd"]:
            done = self.run_program("penstock-train", *self.arguments(data, checkpoint, "--resume", *other), expect=1)
            self.assert_one_line(done, "state.h5")
        self.assertEqual(checkpoint.read_bytes(), before)
        absent = self.arguments(data, self.folder / "none.h5", "--resume")
        self.assert_one_line(self.run_program("penstock-train", *absent, expect=1), "none.h5")
        self.assert_one_line(self.run_program("penstock-train", data, "--resume", expect=2), "--checkpoint")
