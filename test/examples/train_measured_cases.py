"""The scripts that measure training: what they run, and what their tables say."""

import json
import pathlib
import subprocess
import sys

import h5py
import numpy

from program_case import program_case, programs

scripts = pathlib.Path(__file__).resolve().parent.parent / "train" / "benchmark"


class train_measured(program_case):
    def run_script(self, name, *arguments, expect=0):
        done = subprocess.run([sys.executable, scripts / name, *map(str, arguments)], capture_output=True, text=True, timeout=500)
        self.assertEqual(done.returncode, expect, f"{done.stdout}\n{done.stderr}")
        return done.stdout

    def test_levers_are_compared_run_by_run(self):
        path = self.folder / "images.h5"
        random = numpy.random.default_rng(1)
        with h5py.File(path, "w") as file:
            for name, rows in ("train", 600), ("test", 200):
                labels = random.integers(0, 3, rows)
                images = random.normal(size=(rows, 8)).astype("f4")
                images[numpy.arange(rows), labels] += 4
                file[f"{name}/images"], file[f"{name}/labels"] = images, labels
        names = ["float32", "activations computed again", "moments on the host", "steps of 4 batches of 64"]
        table = self.run_script(
            "lever_accuracies.py", programs, path, "--device", "host", "--epochs", 3, "--hidden", "16,16,16", "--noise", 0.05,
            "--only", ";".join(names)
        ).splitlines()  # fmt: skip
        self.assertEqual([line.split(" | ")[0] for line in table[2:]], [f"| {name}" for name in names])
        self.assertEqual([line.count("the same bits") for line in table[2:]], [0, 1, 1, 0])
        below = self.run_script(
            "lever_accuracies.py", programs, path, "--device", "host", "--epochs", 1, "--hidden", "16", "--only", "float32",
            "--least", 1.01, expect=1
        )  # fmt: skip
        self.assertEqual(below.splitlines()[-1].split(" | ")[-1], "BELOW 1.01 |")

    def test_speeds_are_windows_of_whole_epochs(self):
        path, out = self.make_rows(rows=500, columns=1024), self.folder / "speeds"
        self.run_script(
            "speeds.py", programs, path, "--out", out, "--parts", "streamed", "--device", "host", "--batch", 100, "--precision",
            "float32", "--windows", 2, "--seconds", 0.01, "--device-memory", "128MiB"
        )  # fmt: skip
        (figure,) = json.loads((out / "speeds.json").read_text())["streamed"]
        self.assertEqual(len(figure["windows"]), 2)
        self.assertAlmostEqual(figure["gb_per_s"], sum(figure["windows"]) / 2)

    def test_the_table_says_which_bars_are_met(self):
        at = lambda rate, batch, **more: {"batch": batch, "precision": "tf32", "gb_per_s": rate, "windows": [], **more}
        values = {
            "device": "a card",
            "settings": {"windows": 5, "seconds": 2, "processors": 16},
            "limit": [{"run": 1, "gb_per_s": 40}, {"run": 2, "gb_per_s": 38}],
            "streamed": [at(33.9, 32), at(34.0, 64), at(8.8, 256), at(34.0, 4096)],
            "resident": [at(39.0, 32), at(39.0, 64), at(9.0, 256), at(39.0, 4096)],
            "pytorch": [
                at(6.0, 256, kind="graph", workers=8), at(0.5, 256, kind="h5slice", workers=8), at(1.0, 256, kind="h5slice", workers=4),
                at(37.0, 4096, kind="graph", workers=8), at(2.0, 4096, kind="h5slice", workers=8),
            ]  # fmt: skip
        }
        path = self.folder / "speeds.json"
        path.write_text(json.dumps(values))
        # At 256: 1.5 * 6.0 is 9.0, fed by h5py 8 * 1.0 is more than 6.0, and 0.95 * 9.0 is 8.55. At 4096: 0.85 * 40 is 34.0,
        # which is enough where PyTorch was not measured.
        lines = self.run_script("speed_table.py", path, expect=1).splitlines()
        self.assertEqual(lines[-4], "| 32 | tf32 | 33.9 | 39.0 |  |  |  |  |")
        self.assertEqual(lines[-3], "| 64 | tf32 | 34.0 | 39.0 |  |  |  | met |")
        self.assertEqual(lines[-2], "| 256 | tf32 | 8.8 | 9.0 | 6.0 |  | 1.0 | missed: graph (9.0) |")
        self.assertEqual(lines[-1], "| 4096 | tf32 | 34.0 | 39.0 | 37.0 |  | 2.0 | met |")
