"""The short programs to copy from."""

import pathlib
import re

import h5py

from program_case import program_case


class sum_case(program_case):
    def sum_of(self, path):
        with h5py.File(path) as file:
            return file["x"][:].astype("f8").sum()

    def check_sum(self, done, path, epochs):
        shown = float(re.search(r"sum (\S+)", done.stdout).group(1))
        self.assertAlmostEqual(shown, epochs * self.sum_of(path), delta=1e-4 * abs(shown) + 1e-2)


class short_programs(sum_case):
    def test_read_batches_adds_up_every_row_of_two_epochs(self):
        path = self.make_rows("--type", "uint8")
        self.check_sum(self.run_program("read_batches", path, "/x"), path, 2)

    def test_training_loop_learns(self):
        done = self.run_program("training_loop", self.make_rows(), "/x", "/label", 10)
        accuracies = [float(word) for word in re.findall(r"accuracy (\S+)", done.stdout)]
        self.assertEqual(len(accuracies), 5)
        self.assertGreater(accuracies[-1], 0.9)

    def test_the_readme_shows_a_part_of_read_batches(self):
        root = pathlib.Path(__file__).parents[2]
        source = (root / "examples" / "read_batches.cpp").read_text()
        shown = re.search(r"// \[readme\]\n(.*?)\n *// \[readme\]", source, re.DOTALL).group(1)
        shown = "\n".join(line.removeprefix("  ") for line in shown.splitlines())
        self.assertIn(shown, (root / "README.md").read_text())
