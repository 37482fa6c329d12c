"""What the scripts that disturb penstock-predict share: its command line, and what its output has to be."""

import json
import os
import pathlib
import subprocess
import tempfile

import h5py

KINDS = "probabilities", "classes"


class predicting:
    """Predictions of two kinds by one checkpoint, which take turns in one file, so that each can be told from the one before."""

    def __init__(self, programs, folder, checkpoint, data):
        self.programs, self.folder = pathlib.Path(programs), pathlib.Path(folder)
        self.checkpoint, self.data = checkpoint, data
        self.output = self.folder / "predictions.h5"
        self.expected, self.bytes = {}, {}
        for kind in KINDS:
            running = self.start(kind)
            _, errors = running.communicate(timeout=300)
            assert running.returncode == 0, errors
            assert self.is_sealed(), f"{kind}: penstock-inspect finds no seal"
            self.expected[kind], self.bytes[kind] = self.read(), self.output.stat().st_size
        assert self.expected["probabilities"] != self.expected["classes"]
        self.there = "classes"  # which kind the file is of

    def start(self, kind):
        command = [self.programs / "penstock-predict", self.checkpoint, self.data, "-o", self.output, "--device", "host",
                   "--threads", "2", "--batch-rows", "64"]  # fmt: skip
        if kind == "classes":
            command.append("--classes")
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                restore_signals=False)  # fmt: skip

    def next_kind(self):
        return KINDS[1 - KINDS.index(self.there)]

    def partials(self):
        return list(self.folder.glob(f"{self.output.name}.partial-*"))

    def read(self):
        """All that the file holds, but for libhdf5's times."""
        found = {}
        with h5py.File(self.output) as file:
            found.update({f"attribute {name}": str(value) for name, value in file.attrs.items()})
            for name, item in file.items():
                found[name] = item.dtype.str, item.shape, item[()].tobytes()
                found.update({f"attribute {name} {key}": str(value) for key, value in item.attrs.items()})
        return found

    def is_sealed(self):
        """What a user would ask: reads every dataset, and the checksum of the whole file, or says what is wrong."""
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "digest.json"
            look = subprocess.run([self.programs / "penstock-inspect", self.output, "--digest", "--json", results],
                                  capture_output=True, text=True)  # fmt: skip
            assert look.returncode == 0, look.stderr
            return json.loads(results.read_text())["sealed"]

    def look(self, kind, done):
        """After a run for `kind`: its predictions, or where it was disturbed maybe those before. True where they are new."""
        whole = self.read()
        if whole == self.expected[kind]:
            self.there = kind
        else:
            assert not done, f"{kind}: other values than those of the undisturbed run"
            assert whole == self.expected[self.there], f"neither the {kind} nor the {self.there} of before"
        assert self.is_sealed()
        return self.there == kind
