"""penstock-predict: what it writes, and what it refuses."""

import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import time
import unittest

import h5py
import numpy

from damaged_file import damage_chunks
from program_case import program_case, programs


def full_pipe():
    """A pipe that takes nothing until it is read from: where to read, and where to write."""
    out, end = os.pipe()
    os.set_blocking(end, False)
    for piece in bytes(4096), bytes(1):
        try:
            while True:
                os.write(end, piece)
        except BlockingIOError:
            pass
    os.set_blocking(end, True)
    return out, end


def text_of(pipe):
    """What was written to a full pipe since, as soon as there is some, or nobody is left to write."""
    while piece := os.read(pipe, 1 << 20):
        if text := piece.lstrip(b"\0"):
            return text
    return b""


def is_in(running, call, descriptor=None):
    """Whether a thread of a program waits in this call of the system's, of this descriptor where one is given."""
    for thread in pathlib.Path(f"/proc/{running.pid}/task").iterdir():
        try:
            now = (thread / "syscall").read_text().split()
        except OSError:  # it has ended
            continue
        if now[0] == str(call) and descriptor in (None, int(now[1], 16)):
            return True
    return False


class predict(program_case):
    def trained(self, rows, *options):
        checkpoint = self.folder / "c.h5"
        self.forget(checkpoint)
        self.run_program("penstock-train", rows, "--hidden", "32", "--epochs", 3, "--checkpoint", checkpoint, *options)
        return checkpoint

    def test_writes_the_probabilities_of_the_weights_in_the_checkpoint(self):
        path = self.make_rows(rows=1000)
        checkpoint, out = self.trained(path), self.folder / "out.h5"
        self.run_program("penstock-predict", checkpoint, path, "--output", out, "--batch-rows", 77)
        with h5py.File(path) as data, h5py.File(checkpoint) as model, h5py.File(out) as written:
            deviation = model["normalisation/deviation"][:]
            y = (data["x"][:] - model["normalisation/mean"][:]) / numpy.where(deviation > 0, deviation, 1)
            for n in 0, 1:
                y = y @ model[f"model/layer{n}/weight"][:].T.astype("f8") + model[f"model/layer{n}/bias"][:]
                y = numpy.maximum(y, 0) if n == 0 else y
            y = numpy.exp(y - y.max(1, keepdims=True))
            y /= y.sum(1, keepdims=True)
            numpy.testing.assert_allclose(written["prediction"][:], y, atol=1e-5)

    def test_predictions_say_what_they_are_of_and_changed_bytes_are_told(self):
        path, out, results = self.make_rows(rows=1000), self.folder / "out.h5", self.folder / "results.json"
        checkpoint = self.trained(path)
        self.run_program("penstock-predict", checkpoint, path, "--output", out)
        with h5py.File(checkpoint) as model, h5py.File(out) as written:
            origin = json.loads(written.attrs["penstock_predictions"])
            self.assertEqual(origin["checkpoint_checksum"], model.attrs["penstock_checksum"])
        self.assertEqual(origin["format"], 1)
        self.assertIn("64-32-10, relu", origin["model"])
        self.assertEqual((origin["first"], origin["last"], origin["files"]), (f"{path}:/x", f"{path}:/x", 1))
        self.assertEqual((origin["source"]["rows"], list(origin["source"]["fields"])), (1000, ["x"]))
        look = ("penstock-inspect", out, "--digest", "--json", results)
        self.run_program(*look)
        self.assertIs(json.loads(results.read_text())["sealed"], True)
        whole = out.read_bytes()
        for at in 100, len(whole) // 2, len(whole) - 200:
            out.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            self.assert_one_line(self.run_program(*look, expect=1), "out.h5")
        out.write_bytes(whole)
        self.run_program(*look)

    def test_writes_classes_on_request(self):
        path = self.make_rows(rows=500)
        checkpoint, out = self.trained(path), self.folder / "out.h5"
        self.run_program("penstock-predict", checkpoint, path, "-o", out)
        probabilities = h5py.File(out)["prediction"][:]
        self.run_program("penstock-predict", checkpoint, path, "-o", out, "--classes", "--dataset", "/a/class")
        with h5py.File(out) as written:
            self.assertEqual(written["a/class"].dtype, "i4")
            numpy.testing.assert_array_equal(written["a/class"][:], probabilities.argmax(1))

    def test_a_row_beyond_the_range_of_its_type_has_no_class(self):
        path, out = self.make_rows(rows=500), self.folder / "out.h5"
        with h5py.File(path, "a") as file:
            file["large"] = file["x"][:]
            file["large"][7] = numpy.where(numpy.arange(file["x"].shape[1]) % 2, 3e38, -3e38)
            file["two"] = (file["label"][:][:, None] > numpy.array([2, 5])).astype("u1")
        for more in (), ("--y", "/two", "--loss", "binary"):
            checkpoint = self.trained(path, "--no-normalise", *more)
            predict = ("penstock-predict", checkpoint, path, "--x", "/large", "-o", out)
            self.run_program(*predict, "--skip-non-finite")
            values = h5py.File(out)["prediction"][:]
            self.assertTrue(numpy.isnan(values[7]).all() and numpy.isfinite(numpy.delete(values, 7, 0)).all())
            self.assert_one_line(self.run_program(*predict, "--classes", expect=1), f"{path}:/large row 7: its outputs")
            self.run_program(*predict, "--classes", "--skip-non-finite")
            classes = h5py.File(out)["prediction"][:]
            self.assertTrue((classes[7] == -1).all() and (numpy.delete(classes, 7, 0) >= 0).all())

    def test_a_row_of_which_evaluation_predicts_nothing_has_no_class(self):
        path, out, results = (self.folder / name for name in ("rows.h5", "out.h5", "r.json"))
        random = numpy.random.default_rng(4)
        label = random.integers(0, 2, 600)
        x = random.normal(size=(600, 2)) * 0.01
        x[:, 0] += (2 * label - 1) * 0.02
        large = x.copy()
        large[7] = 3e38, 0
        with h5py.File(path, "w") as file:
            file["x"], file["large"], file["label"] = x.astype("f4"), large.astype("f4"), label
        rows = ("--x", "/x", "--y", "/label", "--test-x", "/large", "--test-y", "/label", "--batch-rows", 50)
        how = ("--hidden", 0, "--no-normalise", "--optimizer", "sgd", "--lr", 200, "--epochs", 5, "--skip-non-finite")
        for loss, more, infinite, predicted in ("softmax", ("--confusion",), -1, 599), ("binary", (), 1, 600):
            checkpoint = self.folder / f"{loss}.h5"
            kept = ("--checkpoint", checkpoint, "--json", results)
            self.run_program("penstock-train", path, *rows, *how, "--loss", loss, *more, *kept)
            with h5py.File(checkpoint) as model:  # one product alone is beyond float32: infinite, and no NaN
                weight = model["model/layer0/weight"][:, 0]
            self.assertTrue((numpy.abs(weight) > 1.2).all() and weight[-1] > 0, weight)
            predict = ("penstock-predict", checkpoint, path, "--x", "/large", "-o", out, "--classes")
            self.run_program(*predict, expect=1 if infinite < 0 else 0)
            self.run_program(*predict, "--skip-non-finite")
            classes = h5py.File(out)["prediction"][:].reshape(600)
            self.assertEqual(classes[7], infinite)
            self.assertEqual((classes >= 0).sum(), predicted)
            found = json.loads(results.read_text())
            self.assertAlmostEqual(found["test_accuracy"], (classes == label).mean())
            if loss == "softmax":
                self.assertEqual(numpy.sum(found["confusion"]["counts"]), predicted)

    def test_several_yes_and_no_of_a_row_are_several_classes(self):
        path, out = self.make_rows(rows=600), self.folder / "out.h5"
        with h5py.File(path, "a") as file:
            file["several"] = (file["x"][:, :3] > 0.2).astype("u1")
        checkpoint = self.trained(path, "--y", "/several", "--loss", "binary", "--lr", 0.01, "--batch-rows", 16)
        self.run_program("penstock-predict", checkpoint, path, "-o", out)
        probabilities = h5py.File(out)["prediction"][:]
        self.run_program("penstock-predict", checkpoint, path, "-o", out, "--classes")
        with h5py.File(out) as file, h5py.File(path) as data:
            self.assertEqual((file["prediction"].shape, file["prediction"].dtype), ((600, 3), "i4"))
            numpy.testing.assert_array_equal(file["prediction"][:], (probabilities > 0.5).astype("i4"))
            self.assertGreater((file["prediction"][:] == data["several"][:]).mean(), 0.8)

    def test_leaves_nothing_where_it_fails(self):
        path = self.make_rows(rows=500)
        checkpoint, out = self.trained(path), self.folder / "out.h5"
        with h5py.File(path, "a") as file:
            file["x"][123, 1] = numpy.nan
        done = self.run_program("penstock-predict", checkpoint, path, "-o", out, expect=1)
        self.assert_one_line(done, "row 123")
        self.assert_one_line(self.run_program("penstock-predict", path, path, "-o", out, expect=1), "no checkpoint")
        self.assert_one_line(self.run_program("penstock-predict", checkpoint, path, "-o", path, expect=2), "--output")
        self.assertFalse(out.exists())
        self.assertEqual(sorted(entry.name for entry in self.folder.iterdir()), ["c.h5", "rows.h5"])

    def test_rows_of_another_width_are_named_before_anything_is_planned(self):
        path = self.make_rows(rows=500)
        with h5py.File(path, "a") as file:
            file["narrow"] = file["x"][:, :63]
            file["other"], file["better"] = file["x"][:][::-1], numpy.arange(500) % 2
            file["blocks"] = file["x"][:].reshape(500, 8, 8)
        checkpoint, out = self.trained(path), self.folder / "out.h5"
        predict = lambda *more, **how: self.run_program("penstock-predict", checkpoint, path, "-o", out, *more, **how)
        for more in (), ("--plan",):
            self.assert_one_line(predict("--x", "/narrow", *more, expect=1), f"{path}:/narrow", "63", "64", str(checkpoint))
        predict("--x", "/blocks")  # the same numbers
        checkpoint = self.trained(path, "--x2", "/other", "--loss", "ranking", "--y", "/better")
        for more in (), ("--plan",):
            self.assert_one_line(predict("--x2", "/narrow", *more, expect=1), f"{path}:/narrow", "63", "64", str(checkpoint))

    def test_rows_that_are_not_finite_are_left_out_on_request(self):
        path = self.make_rows(rows=500)
        checkpoint, out = self.trained(path), self.folder / "out.h5"
        self.run_program("penstock-predict", checkpoint, path, "-o", out)
        expected = h5py.File(out)["prediction"][:]
        bad = [3, 4, 120, 499]
        with h5py.File(path, "a") as file:
            file["x"][3:5, 1], file["x"][120, 0], file["x"][499, 2] = numpy.nan, numpy.inf, numpy.nan
        for classes in False, True:
            more = ["--classes"] if classes else []
            done = self.run_program(
                "penstock-predict", checkpoint, path, "-o", out, "--skip-non-finite", "--batch-rows", 64, *more
            )
            self.assertIn("not finite, without predictions: 4\n", done.stdout)
            for listed in "/x row 3 and the 1 behind it\n", "/x row 120\n", "/x row 499\n":
                self.assertIn(listed, done.stdout)
            with h5py.File(out) as file:
                found = file["prediction"][:]
                self.assertEqual(file["prediction"].attrs["rows_not_finite"], "4")
            good = numpy.delete(numpy.arange(500), bad)
            if classes:
                self.assertTrue((found[bad] == -1).all())
                numpy.testing.assert_array_equal(found[good], expected[good].argmax(1))
            else:
                self.assertTrue(numpy.isnan(found[bad]).all())
                numpy.testing.assert_allclose(found[good], expected[good], atol=1e-6)

    def prices(self):
        """Rows of which a model learns values of 30,000 and of 90,000, and which are the latter: fp16 ends at 65,504."""
        path, checkpoint, large = self.folder / "house.h5", self.folder / "h.h5", numpy.arange(2000) >= 1000
        large[[400, 1500, 1501]] = True, False, False
        x = numpy.random.default_rng(5).normal(size=(2000, 3)).astype("f4")
        x[:, 0] = numpy.where(large, 1, -1)
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=x, chunks=(100, 3), fletcher32=True)
            file["price"] = (60000 + 30000 * x[:, 0]).astype("f4")
        how = ("--y", "/price", "--loss", "mse", "--hidden", 0, "--lr", 3000, "--weight-decay", 0, "--epochs", 30)
        self.run_program("penstock-train", path, *how, "--checkpoint", checkpoint, "--device", "host")
        return path, checkpoint, large

    def test_outputs_beyond_fp16_are_an_error_that_says_what_helps(self):
        path, checkpoint, large = self.prices()
        out = self.folder / "out.h5"
        predict = ("penstock-predict", checkpoint, path, "-o", out, "--batch-rows", 64)
        for precision in "float32", "bf16":
            done = self.run_program(*predict, "--precision", precision)
            self.assertNotIn("without predictions", done.stdout)
            with h5py.File(out) as file:
                numpy.testing.assert_array_equal(file["prediction"][:, 0] > 70000, large)
                self.assertEqual(len(file["prediction"].attrs), 0)
        out.unlink()
        done = self.run_program(*predict, "--precision", "fp16", expect=1)
        self.assert_one_line(
            done, f"{path}:/x row 400: its outputs are not finite", "65504", "bf16 or float32 (--precision)", "--skip-non-finite"
        )
        self.assertFalse(out.exists())
        done = self.run_program(*predict, "--precision", "fp16", "--skip-non-finite")
        self.assertIn("rows with outputs that are not finite, without predictions: 999\n", done.stdout)
        self.assertNotIn("with inputs", done.stdout)
        for listed in "row 400\n", "row 1000 and the 499 behind it\n", "row 1502 and the 497 behind it\n":
            self.assertIn(f"  {path}:/x {listed}", done.stdout)
        with h5py.File(out) as file:
            self.assertEqual(dict(file["prediction"].attrs), {"outputs_not_finite": "999"})
            found = file["prediction"][:, 0]
            numpy.testing.assert_array_equal(numpy.isnan(found), large)  # and not infinite: there is no prediction
            self.assertTrue((found[~large] < 50000).all())

    def test_rows_without_predictions_are_counted_by_what_they_lack(self):
        path, checkpoint, large = self.prices()
        out = self.folder / "out.h5"
        with h5py.File(path, "a") as file:
            file["x"][1050, 1] = numpy.nan
        damage_chunks(path, "x", [1, 15])
        predict = ("penstock-predict", checkpoint, path, "-o", out, "--batch-rows", 64, "--precision", "fp16", "--damaged", "skip")
        # Outputs are told of where they come before the first input at fault.
        self.assert_one_line(self.run_program(*predict, expect=1), "/x row 400: its outputs")
        done = self.run_program(*predict, "--skip-non-finite")
        of_outputs, of_inputs = (f"rows with {what} that are not finite" for what in ("outputs", "inputs"))
        for kind, rows in (of_outputs, 900), (of_inputs, 1), ("damaged rows", 200):
            self.assertIn(f"{kind}, without predictions: {rows}\n", done.stdout)
        for listed in "row 1000 and the 49 behind it\n", "row 1050\n", "row 1051 and the 448 behind it\n":
            self.assertIn(listed, done.stdout)
        none = large.copy()
        none[100:200] = none[1500:1600] = True
        with h5py.File(out) as file:
            self.assertEqual(
                dict(file["prediction"].attrs), {"outputs_not_finite": "900", "rows_not_finite": "1", "damaged_rows": "200"}
            )
            numpy.testing.assert_array_equal(numpy.isnan(file["prediction"][:, 0]), none)

    def test_damaged_rows_and_inputs_at_fault_are_told_as_such_whatever_their_outputs(self):
        path, checkpoint, out = self.folder / "rows.h5", self.folder / "c.h5", self.folder / "out.h5"
        x = numpy.random.default_rng(6).normal(size=(1000, 2))
        with h5py.File(path, "w") as file:  # so far from 0, which takes the place of damaged values, that 0 is beyond fp16
            file.create_dataset("x", data=(1e6 + x).astype("f4"), chunks=(100, 2), fletcher32=True)
            file["y"] = x[:, 0].astype("f4")
        self.run_program(
            "penstock-train", path, "--y", "/y", "--loss", "mse", "--hidden", 0, "--epochs", 1, "--checkpoint", checkpoint,
            "--device", "host"
        )  # fmt: skip
        with h5py.File(path, "a") as file:
            file["healthy"], file["zeros"] = file["x"][:], numpy.zeros((10, 2), "f4")
        damage_chunks(path, "x", [3])
        predict = ("penstock-predict", checkpoint, path, "-o", out, "--precision", "fp16")
        self.assert_one_line(self.run_program(*predict, "--x", "/zeros", expect=1), "row 0: its outputs")
        done = self.run_program(*predict, "--damaged", "skip")
        self.assertIn("damaged rows, without predictions: 100\n", done.stdout)
        self.assertNotIn("not finite", done.stdout)
        with h5py.File(out) as file:
            self.assertEqual(dict(file["prediction"].attrs), {"damaged_rows": "100"})
        with h5py.File(path, "a") as file:
            file["healthy"][0, 1] = numpy.inf
        done = self.run_program(*predict, "--x", "/healthy", expect=1)
        self.assert_one_line(done, "/healthy row 0: an input is not finite")

    def test_predictions_are_written_before_rows_without_any_are_listed(self):
        path = self.make_rows(rows=20000, columns=4)
        checkpoint, out = self.trained(path), self.folder / "out.h5"
        with h5py.File(path, "a") as file:
            x = file["x"][:]
            x[::3, 1] = numpy.nan
            file["x"][:] = x
        # The list is longer than a pipe: its reader is gone before the end.
        command = [programs / "penstock-predict", checkpoint, path, "-o", out, "--skip-non-finite", "--device", "host"]
        running = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        while (line := running.stdout.readline()) and not line.startswith(b"rows with inputs that are not finite"):
            pass
        running.stdout.close()
        self.assertEqual(running.wait(timeout=100), -signal.SIGPIPE)
        with h5py.File(out) as file:
            found = numpy.isnan(file["prediction"][:]).all(1)
        numpy.testing.assert_array_equal(found, numpy.arange(20000) % 3 == 0)

    @unittest.skipUnless(platform.machine() == "x86_64", "the system's calls have other numbers on this processor")
    def test_a_signal_just_before_it_begins_leaves_no_file(self):
        path, out, write, pause = self.make_rows(rows=500), self.folder / "out.h5", 1, 34
        checkpoint = self.trained(path)
        # It waits with its plan for a full pipe, and then with the sentence for the signal for another one.
        (shown, shown_end), (errors, errors_end) = full_pipe(), full_pipe()
        self.addCleanup(os.close, shown)
        self.addCleanup(os.close, errors)
        command = [programs / "penstock-predict", checkpoint, path, "-o", out, "--device", "host"]
        running = subprocess.Popen(command, stdout=shown_end, stderr=errors_end)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        os.close(shown_end)
        os.close(errors_end)
        while not is_in(running, write, 1):
            self.assertIsNone(running.poll())
        running.send_signal(signal.SIGINT)
        while not is_in(running, write, 2):
            self.assertIsNone(running.poll())
        self.assertIn(b"model", text_of(shown))
        while not is_in(running, pause):  # it would begin now
            self.assertEqual(list(self.folder.glob("out.h5*")), [])
            self.assertIsNone(running.poll())
        self.assertIn(b"nothing is written", text_of(errors))
        self.assertEqual(running.wait(timeout=100), 128 + signal.SIGINT)
        self.assertEqual(list(self.folder.glob("out.h5*")), [])

    @unittest.skipUnless(platform.machine() == "x86_64", "the system's calls have other numbers on this processor")
    def test_a_checkpoint_that_takes_the_place_of_another_is_the_one_that_is_named(self):
        path, out, place, write = self.make_rows(rows=500), self.folder / "out.h5", self.folder / "place.h5", 1
        with h5py.File(path, "a") as file:
            for name in "ab":
                file[name] = numpy.array([f"{name}{n}" for n in file["label"][:]], "S2")
        saved = {}
        for name, y, epochs in ("first", "/a", 1), ("later", "/a", 2), ("other", "/b", 1):
            saved[name] = self.folder / f"{name}.h5"
            self.run_program(
                "penstock-train", path, "--x", "/x", "--y", y, "--hidden", 8, "--epochs", epochs, "--device", "host",
                "--checkpoint", saved[name]
            )  # fmt: skip
        for name, code in ("later", 0), ("other", 1):
            shutil.copy(saved["first"], place)
            shutil.copy(saved[name], self.folder / "next.h5")
            shown, shown_end = full_pipe()  # it waits for it with its plan, when it has read labels, and no weights
            command = [programs / "penstock-predict", place, path, "-o", out, "--device", "host"]
            running = subprocess.Popen(command, stdout=shown_end, stderr=subprocess.PIPE, text=True)
            self.addCleanup(running.communicate)
            self.addCleanup(running.kill)
            os.close(shown_end)
            while not is_in(running, write, 1):
                self.assertIsNone(running.poll())
            (self.folder / "next.h5").replace(place)
            while os.read(shown, 1 << 20):
                pass
            os.close(shown)
            errors = running.communicate(timeout=100)[1]
            self.assertEqual(running.returncode, code, errors)
            if code == 0:
                with h5py.File(place) as model, h5py.File(out) as written:
                    origin = json.loads(written.attrs["penstock_predictions"])
                    self.assertEqual(origin["checkpoint_checksum"], model.attrs["penstock_checksum"])
                before = out.read_bytes()
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn("place.h5: a checkpoint with other classes took its place", errors)
        self.assertEqual(out.read_bytes(), before)

    def test_a_signal_is_answered_while_rows_without_predictions_are_written(self):
        path, out, rows, classes = self.folder / "rows.h5", self.folder / "out.h5", 60_000, 1000
        with h5py.File(path, "w") as file:
            x = numpy.random.default_rng(1).normal(size=(rows, 2)).astype("f4")
            file.create_dataset("x", data=x, chunks=(1000, 2), fletcher32=True)
            file["few"], file["label"] = x[:1000], numpy.arange(1000, dtype="i4")
        checkpoint = self.folder / "c.h5"
        self.run_program(
            "penstock-train", path, "--x", "/few", "--y", "/label", "--hidden", 4, "--epochs", 1, "--checkpoint", checkpoint,
            "--device", "host"
        )  # fmt: skip
        damage_chunks(path, "x", range(1, 60))
        predict = ["penstock-predict", checkpoint, path, "-o", out, "--damaged", f"skip:{rows}", "--device", "host"]
        all_bytes, begun = rows * classes * 4, 16 << 20
        for _ in range(10):
            running = self.start_program(*predict, stdout=subprocess.PIPE)
            written = lambda: int(re.search(r"wchar: (\d+)", pathlib.Path(f"/proc/{running.pid}/io").read_text())[1])
            try:
                while running.poll() is None and written() < all_bytes + begun:
                    time.sleep(0.0005)
                running.send_signal(signal.SIGSTOP)
                in_time = written() < 2 * all_bytes - begun * 4
                running.send_signal(signal.SIGTERM)
                running.send_signal(signal.SIGCONT)
            except (OSError, TypeError):  # it ended just then
                in_time = False
            _, errors = running.communicate(timeout=100)
            if in_time:
                break
            self.forget(out)
        else:
            self.skipTest("these rows are written faster than this test looks")
        self.assertEqual(running.returncode, 128 + signal.SIGTERM, errors)
        self.assertEqual(errors, "penstock-predict: stopped; nothing is written\n")
        self.assertEqual(list(self.folder.glob("out.h5*")), [])

    def test_a_signal_leaves_no_file_and_an_older_one_as_it_was(self):
        path = self.make_rows(rows=500)
        checkpoint, out, endless = self.trained(path), self.folder / "out.h5", self.folder / "endless.h5"
        self.run_program("penstock-predict", checkpoint, path, "-o", out)
        before = out.read_bytes()
        with h5py.File(endless, "w") as file:  # of which nothing is stored
            file.create_dataset("x", (1 << 31, 64), "f4", chunks=(1024, 64))
        for number in signal.SIGINT, signal.SIGTERM:
            running = self.start_program("penstock-predict", checkpoint, endless, "-o", out)
            while not list(self.folder.glob("out.h5.partial-*")):
                self.assertIsNone(running.poll())
            running.send_signal(number)
            _, errors = running.communicate(timeout=100)
            self.assertEqual(running.returncode, 128 + number, errors)
            self.assertEqual(errors.count("\n"), 1, errors)
            self.assertEqual(out.read_bytes(), before)
            self.assertEqual(list(self.folder.glob("*.partial-*")), [])
