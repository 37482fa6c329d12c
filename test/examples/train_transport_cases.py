"""penstock-train: what is shown of how rows travel, and what is chosen of it."""

import json
import re

import h5py

from program_case import program_case


class train_transport(program_case):
    def train(self, path, *more, expect=0):
        return self.run_program(
            "penstock-train", path, "--hidden", "64", "--batch-rows", 128, "--epochs", 2, *more, expect=expect
        )

    def weights_of(self, path):
        with h5py.File(path) as file:
            return [file[f"model/layer{n}/weight"][:].tobytes() for n in (0, 1)]

    def test_a_trace_shows_every_row_of_every_pass_on_the_tracks_of_threads(self):
        trace = self.folder / "trace.json"
        self.train(self.make_rows(), "--no-normalise", "--trace", trace)
        events = json.loads(trace.read_text())["traceEvents"]
        spans = [event for event in events if event["ph"] == "X"]
        rows = lambda name: sum(span["args"]["rows"] for span in spans if span["name"] == name)
        self.assertEqual(rows("read"), 2 * 5000)
        self.assertEqual(rows("gather"), 2 * 5000)
        self.assertEqual({span["args"]["epoch"] for span in spans if span["name"] == "read"}, {0, 1})
        tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        named = lambda name: {tracks[span["tid"]] for span in spans if span["name"] == name}
        self.assertEqual((named("read"), named("gather")), ({"reader"}, {"device"}))
        for span in spans:
            self.assertGreaterEqual(span["dur"], 0)

    def test_a_trace_that_cannot_be_written_is_refused_before_anything_is_read(self):
        path = self.make_rows()
        self.assert_one_line(self.train(path, "--trace", self.folder / "no" / "trace.json", expect=1), "no folder")
        self.assert_one_line(self.train(path, "--trace", path, expect=2), "--trace")
        same = self.folder / "both.json"
        self.assert_one_line(self.train(path, "--trace", same, "--json", same, expect=2), "--trace", "--json")

    def test_calibrating_shows_what_was_tried_and_changes_no_bit_of_the_model(self):
        path = self.make_rows(rows=50_000)
        plain, calibrated = self.folder / "plain.h5", self.folder / "calibrated.h5"
        order = ["--pool-rows", 20_000, "--device", "host"]
        self.train(path, *order, "--checkpoint", plain)
        shown = self.train(path, *order, "--checkpoint", calibrated, "--calibrate").stdout
        self.assertEqual(self.weights_of(plain), self.weights_of(calibrated))
        (tried,) = re.findall(r"^blocks: (.*)$", shown, re.MULTILINE)
        self.assertRegex(tried, r"^(not )?measured: ")
        if tried.startswith("measured: "):
            self.assertGreaterEqual(len(re.findall(r"[\d.]+ GB/s", tried)), 2)
            self.assertIn(f": {tried}\n", ("\n" + shown).split("\nblocks: ", 1)[1].split("\n", 1)[1])  # in the report, too
