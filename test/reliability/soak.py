"""Disturbs penstock-train and penstock-predict at random for a while: SIGKILL, SIGINT, SIGTERM, a data file that is overwritten
anywhere, in headers, indices or values, or cut, bits flipped within its stored chunks, a checkpoint cut or flipped (the one before is put back, as a user
would), no space for files. Whatever happens, the program ends in time, with one line where it fails, and each run ends with the
bits of the undisturbed one; where damaged chunks may be left out, with those of a run in which their rows weigh nothing:
soak.py FOLDER_OF_PROGRAMS [SECONDS [SEED]]"""

import collections
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import h5py
import numpy

from predicting import predicting
from signals import allowed, send
from training import CHUNK, state_of, training

PROMPT = 120  # seconds; much longer than anything here takes, on a busy machine and disk too
NOTHING = "stopped before the first step; there is nothing to keep\n"
THEIRS = re.compile(r"HDF5: infinite loop closing library\n +.*\n")  # libhdf5's own, after damaged headers
HEADERS = rb"\x89HDF|OHDR|OCHK|FAHD|FADB|FSHD|TREE|SNOD|HEAP|FRHP|BTHD"  # what libhdf5 marks them with


class soak:
    def __init__(self, run, predicted, expected, chance, seconds):
        self.run, self.predicted, self.expected, self.chance, self.seconds = run, predicted, expected, chance, seconds
        self.checkpoint = run.folder / "state.h5"
        self.counts = collections.Counter()

    def end(self, running, expected):
        shown, errors = running.communicate(timeout=PROMPT)
        assert running.returncode in expected, f"exit code {running.returncode}: {errors}"
        errors = THEIRS.sub("", errors)
        if running.returncode == 1:
            assert errors.count("\n") == 1, f"not one line: {errors}"
        self.said = shown + errors
        return running.returncode

    def disturbed(self, running, seconds, number):
        """Sends the signal at a random moment, if the program is not done by then. It ends in time, with the code that it must have."""
        try:
            running.communicate(timeout=self.chance.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            limit, wanted = allowed(), send(running, number)
            sent = time.monotonic()
            code = self.end(running, (wanted, 0))  # 0: it was done by then
            took = time.monotonic() - sent
            assert took < limit, f"{took:.2f} s from the signal to the end; {limit:.2f} s are allowed"
            return code
        return self.end(running, (0,))

    def signalled(self, number):
        existed = self.checkpoint.exists()
        if self.disturbed(self.run.start(self.checkpoint), self.seconds / 3, number) != 128 + number:
            return
        if NOTHING in self.said:
            assert self.checkpoint.exists() == existed
            return
        at = re.search(r"^stopped at epoch (\d+), batch (\d+); go on with", self.said, re.M)
        assert at, f"it does not say where it stopped: {self.said}"
        with h5py.File(self.checkpoint) as file:
            there = json.loads(file.attrs["penstock"])
        place = there["epoch"] + 1, there["next_row"] / there["identity"]["rows of a step"]
        assert place == (int(at[1]), int(at[2])), f"the checkpoint stands at {place}: {at[0]}"

    def killed(self):
        self.signalled(signal.SIGKILL)

    def interrupted(self):
        self.signalled(signal.SIGINT)

    def terminated(self):
        self.signalled(signal.SIGTERM)

    def damage(self, copy):
        """Cuts the file, or overwrites up to 64 bytes of it: anywhere, or within a header or an index."""
        stored = copy.read_bytes()
        if self.chance.random() < 0.3:
            os.truncate(copy, self.chance.randrange(len(stored)))
            return
        places = [found.start() for found in re.finditer(HEADERS, stored)]
        at = self.chance.randrange(len(stored))
        if self.chance.random() < 0.5:
            at = min(self.chance.choice(places) + self.chance.randrange(128), len(stored) - 1)
        with open(copy, "r+b") as file:
            file.seek(at)
            file.write(self.chance.randbytes(min(self.chance.randint(1, 64), len(stored) - at)))

    def damaged_data(self):
        """Another file of that name, which was cut or partly overwritten. All that is stored has a checksum: it is an error that names the
        file, and the run goes on from its checkpoint, with the whole file; or the damage is in bytes that nothing is made of, or in rows
        that were read before, and the run has the right bits."""
        folder = self.run.folder / "damaged"
        folder.mkdir()
        copy = folder / self.run.data.name
        shutil.copy(self.run.data, copy)
        self.damage(copy)
        code = self.end(self.run.start(self.checkpoint, copy), (0, 1))
        shutil.rmtree(folder)
        if code == 1:
            assert str(copy) in self.said, self.said
            return
        assert state_of(self.checkpoint) == self.expected, "damaged data were not told, and other bits came out"
        self.counts["damaged data that no row was made of any more"] += 1

    def with_flipped_bits(self, folder):
        """A copy of the data in which a few bits are flipped within one to three stored chunks; their dataset and rows."""
        folder.mkdir()
        copy = folder / self.run.data.name
        shutil.copy(self.run.data, copy)
        dataset = self.chance.choice(("x", "label"))
        with h5py.File(copy) as file:
            stored = file[dataset].id
            chosen = self.chance.sample(range(stored.get_num_chunks()), self.chance.randint(1, 3))
            chunks = [stored.get_chunk_info(number) for number in chosen]
            rows = file[dataset].shape[0]
        with open(copy, "r+b") as file:
            for chunk in chunks:
                for at in self.chance.sample(range(chunk.size), self.chance.randint(1, 3)):
                    file.seek(chunk.byte_offset + at)
                    byte = file.read(1)[0]
                    file.seek(chunk.byte_offset + at)
                    file.write(bytes([byte ^ (1 << self.chance.randrange(8))]))
        return copy, dataset, sorted((range(c.chunk_offset[0], min(c.chunk_offset[0] + CHUNK, rows)) for c in chunks), key=min)

    def flipped_bits(self):
        """The run ends with the error that names file, dataset and rows. Its checkpoint is none the worse: the run goes on from it. Where
        the damaged rows are behind it, and no epoch is left, it has the right bits."""
        copy, dataset, damaged = self.with_flipped_bits(self.run.folder / "flipped")
        running = self.run.start(self.checkpoint, copy)
        shown, errors = running.communicate(timeout=PROMPT)
        shutil.rmtree(copy.parent)
        if running.returncode == 0:
            assert state_of(self.checkpoint) == self.expected, "flipped bits were not told, and other bits came out"
            self.counts["flipped bits that no row was read of any more"] += 1
            return
        assert running.returncode == 1 and errors.count("\n") == 1, f"exit code {running.returncode}: {errors}"
        assert str(copy) in errors and f"/{dataset}" in errors and "rows " in errors, errors
        told = [tuple(map(int, pair)) for pair in re.findall(r"(\d+)(?:-| to )(\d+)", errors)]
        assert any(first < rows.stop and last >= rows.start for first, last in told for rows in damaged), f"no row of {damaged}: {errors}"

    def flipped_bits_left_out(self):
        """With --damaged skip the rows of the chunks are masked, all of them and no others, and listed: the bits are those of a run in
        which these rows weigh nothing."""
        copy, dataset, damaged = self.with_flipped_bits(self.run.folder / "flipped")
        skipping, weighted = copy.parent / "skipping.h5", copy.parent / "weighted.h5"
        results = copy.parent / "results.json"
        order = ["--run-rows", str(CHUNK), "--pool-rows", "4096"]  # whatever fields there are
        running = self.run.start(skipping, copy, more=[*order, "--damaged", "skip:20000", "--json", results])
        shown, errors = running.communicate(timeout=PROMPT)
        assert running.returncode == 0, errors
        assert json.loads(results.read_text())["damaged_rows"] == sum(map(len, damaged)), shown
        listed = re.findall(rf"^ *{dataset}: rows (\d+)-(\d+), {re.escape(str(copy))}:/{dataset} from row ", shown, re.M)  # neighbours joined
        listed = sorted(row for first, last in listed for row in range(int(first), int(last) + 1))
        assert listed == [row for rows in damaged for row in rows], f"{damaged}, and no others, are to be listed: {shown}"
        shutil.copy(self.run.data, copy)
        with h5py.File(copy, "a") as file:
            weights = numpy.ones(file[dataset].shape[0], "f4")
            for rows in damaged:
                weights[rows.start : rows.stop] = 0
            file["weight"] = weights
        self.end(self.run.start(weighted, copy, more=[*order, "--weights", "/weight"]), (0,))
        same, other = state_of(skipping), state_of(weighted)
        shutil.rmtree(copy.parent)
        assert same == other, f"other bits than where rows {damaged} weigh nothing"

    def predictions(self):
        """Predictions that are killed, stopped or left alone: those before, or the new ones, whole."""
        kind, number = self.predicted.next_kind(), self.chance.choice((signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
        code = self.disturbed(self.predicted.start(kind), self.seconds / 6, number)
        if code >= 0:
            left = self.predicted.partials()
            assert not left, f"exit code {code}, and it left {left}"
        self.predicted.look(kind, done=code == 0)

    def damaged_checkpoint(self):
        if not self.checkpoint.exists():
            return self.interrupted()
        good = self.checkpoint.read_bytes()
        bad = bytearray(good)
        if self.chance.random() < 0.5:
            del bad[self.chance.randrange(len(bad)) :]
        else:
            bad[self.chance.randrange(len(bad))] ^= 1 << self.chance.randrange(8)
        self.checkpoint.write_bytes(bad)
        self.end(self.run.start(self.checkpoint), (1,))
        assert str(self.checkpoint) in self.said, self.said
        assert self.checkpoint.read_bytes() == bad, "a refused checkpoint was changed"
        self.checkpoint.write_bytes(good)

    def full_disk(self):
        """No file may grow beyond a few bytes: the checkpoint cannot be written, and the one before stays."""
        before = self.checkpoint.read_bytes() if self.checkpoint.exists() else None
        limit = self.chance.randrange(100000)
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
        try:
            running = self.run.start(self.checkpoint)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
        if self.end(running, (0, 1)) == 1:
            assert (self.checkpoint.read_bytes() if self.checkpoint.exists() else None) == before

    def go(self, until):
        steps = [self.killed, self.interrupted, self.terminated, self.damaged_data, self.flipped_bits, self.flipped_bits_left_out,
                 self.damaged_checkpoint, self.full_disk, self.predictions]  # fmt: skip
        while time.monotonic() < until:
            step = self.chance.choice(steps)
            step()
            self.counts[step.__name__] += 1
            if self.counts.total() % 8 == 0:
                self.finish()
        self.finish()

    def finish(self):
        self.end(self.run.start(self.checkpoint), (0,))
        assert state_of(self.checkpoint) == self.expected, "other bits than the undisturbed run"
        self.checkpoint.unlink()
        self.counts["runs to the end, with the same bits"] += 1


def main(programs, seconds=600, seed=1):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where this runs in the background
    with tempfile.TemporaryDirectory() as folder:
        run = training(programs, folder, rows=20000)
        run.store()
        checkpoint = pathlib.Path(folder) / "state.h5"
        began = time.monotonic()
        undisturbed = run.start(checkpoint)
        _, errors = undisturbed.communicate(timeout=300)
        assert undisturbed.returncode == 0, errors
        took = time.monotonic() - began
        model = pathlib.Path(folder) / "model.h5"
        shutil.copy(checkpoint, model)
        predicted = predicting(programs, folder, model, run.data)
        test = soak(run, predicted, state_of(checkpoint), random.Random(int(seed)), took)
        checkpoint.unlink()
        test.go(began + float(seconds))
    for what, count in sorted(test.counts.items()):
        print(f"{count:6} {what}")


if __name__ == "__main__":
    main(*sys.argv[1:])
