"""The short program with a model of its own."""

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
