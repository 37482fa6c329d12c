"""The short program with a model of its own."""

import json
import re
import signal
import subprocess

import h5py
import numpy

from program_case import program_case


class own_model(program_case):
    def weights_of(self, checkpoint):
        with h5py.File(checkpoint) as file:
            return file["model/weight"][:]

    def make_values(self):
        path = self.make_rows(rows=2000, columns=8)
        with h5py.File(path, "a") as file:
            file["y"] = file["x"][:] @ numpy.arange(1, 9, dtype="f4")
        return path

    def check_fit(self, device):
        path, checkpoint = self.make_values(), self.folder / f"{device}.h5"
        run = lambda epochs, to: self.run_program("own_model", path, "/x", "/y", epochs, device, to)
        done = run(12, checkpoint)
        self.assertIn("epoch 12: loss", done.stdout)
        with h5py.File(path) as file:
            x, y = file["x"][:].astype("f8"), file["y"][:].astype("f8")
        exact = numpy.linalg.lstsq(x, y, rcond=None)[0]
        self.assertLess(abs(self.weights_of(checkpoint) - exact).max(), 1e-2)
        # Stopped and gone on with: the same bits.
        parts = self.folder / "parts.h5"
        run(5, parts), run(12, parts)
        self.assertTrue((self.weights_of(parts) == self.weights_of(checkpoint)).all())

    def test_own_model_finds_the_weights_on_the_host(self):
        self.check_fit("host")

    def test_own_model_finds_the_weights_on_the_best_device(self):
        self.check_fit("auto")

    def check_signal(self, number):
        path, stopped, whole = self.make_values(), self.folder / "stopped.h5", self.folder / "whole.h5"
        running = self.start_program("own_model", path, "/x", "/y", 1000000, "host", stopped, stdout=subprocess.PIPE)
        while not stopped.exists():
            self.assertIsNone(running.poll())
        running.send_signal(number)
        shown, errors = running.communicate(timeout=100)
        self.assertEqual((running.returncode, errors), (128 + number, ""), shown)
        epoch, batch = map(int, re.search(r"stopped at epoch (\d+), batch (\d+)\n$", shown).groups())
        with h5py.File(stopped) as file:
            there = json.loads(file.attrs["penstock"])
        self.assertEqual((there["epoch"] + 1, there["next_row"]), (epoch, batch * 256))
        for checkpoint in stopped, whole:
            self.run_program("own_model", path, "/x", "/y", epoch + 1, "host", checkpoint)
        self.assertTrue((self.weights_of(stopped) == self.weights_of(whole)).all())

    def test_own_model_ends_at_ctrl_c_with_a_checkpoint(self):
        self.check_signal(signal.SIGINT)

    def test_own_model_ends_at_sigterm_with_a_checkpoint(self):
        self.check_signal(signal.SIGTERM)

    def test_own_model_says_what_it_needs(self):
        self.assertIn("usage", self.run_program("own_model", expect=2).stderr)
        done = self.run_program("own_model", self.make_rows(rows=100), "/x", "/none", 1, "host", expect=1)
        self.assert_one_line(done, "/none")

    def test_own_model_refuses_rows_of_which_it_would_see_a_part(self):
        path = self.make_values()
        with h5py.File(path, "a") as file:
            file["wide"] = file["x"][:].reshape(-1, 2, 4)
            file["none"] = numpy.zeros((2000, 0), "f4")
            file["several"], file["column"] = numpy.zeros((2000, 3), "f4"), file["y"][:][:, None]
        run = lambda x, y, **how: self.run_program("own_model", path, x, y, 1, "host", **how)
        for x, y, *words in (
            ("/wide", "/y", f"{path}:/wide", "3 axes"), ("/y", "/y", f"{path}:/y", "1 axis"),
            ("/none", "/y", f"{path}:/none", "no value"), ("/x", "/several", f"{path}:/several", "3 values"),
        ):  # fmt: skip
            self.assert_one_line(run(x, y, expect=1), *words)
        run("/x", "/column")  # one value a row, however it is stored

    def test_own_model_takes_whole_numbers_of_epochs(self):
        path = self.make_values()
        for epochs in "abc", "-1", "", "2x", "99999999999999999999":
            self.assert_one_line(self.run_program("own_model", path, "/x", "/y", epochs, "host", expect=1), "EPOCHS", f"'{epochs}'")
        self.assertEqual(self.run_program("own_model", path, "/x", "/y", 0, "host").stdout, "")
