"""Disturbs penstock-train at random for a while: SIGKILL, SIGINT, SIGTERM, a data file that is damaged or gone and put
back, a checkpoint cut or flipped (the one before is put back, as a user would), no space for files. Whatever happens,
the program ends in time, with one line where it fails, and each run ends with the bits of the undisturbed one:
soak.py FOLDER_OF_PROGRAMS [SECONDS [SEED]]"""

import collections
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from training import state_of, training

PROMPT = 120  # seconds; much longer than anything here takes, on a busy machine and disk too


class soak:
    def __init__(self, run, chance, seconds):
        self.run, self.chance, self.seconds = run, chance, seconds
        self.checkpoint = run.folder / "state.h5"
        self.counts = collections.Counter()

    def end(self, running, expected):
        shown, errors = running.communicate(timeout=PROMPT)
        assert running.returncode in expected, f"exit code {running.returncode}: {errors}"
        if running.returncode == 1:
            assert errors.count("\n") == 1, f"not one line: {errors}"
        return running.returncode

    def signalled(self, number):
        running = self.run.start(self.checkpoint)
        try:
            running.communicate(timeout=self.chance.uniform(0, self.seconds / 3))
        except subprocess.TimeoutExpired:
            running.send_signal(number)
            self.end(running, (-number, 128 + number, 0))  # 0: it was done by then
        else:
            self.end(running, (0,))

    def killed(self):
        self.signalled(signal.SIGKILL)

    def interrupted(self):
        self.signalled(signal.SIGINT)

    def terminated(self):
        self.signalled(signal.SIGTERM)

    def damaged_data(self):
        """Another file of that name, with a piece overwritten or cut off: refused, or read where the damage does not matter."""
        folder = self.run.folder / "damaged"
        folder.mkdir()
        copy = folder / self.run.data.name
        shutil.copy(self.run.data, copy)
        size = copy.stat().st_size
        if self.chance.random() < 0.5:
            os.truncate(copy, self.chance.randrange(size))
        else:
            with open(copy, "r+b") as file:
                file.seek(self.chance.randrange(64))
                file.write(self.chance.randbytes(64))
        before = self.checkpoint.read_bytes() if self.checkpoint.exists() else None
        code = self.end(self.run.start(self.checkpoint, copy), (0, 1))
        shutil.rmtree(folder)
        if code == 0:  # what it learned from damaged data is no part of this run
            self.checkpoint.unlink() if before is None else self.checkpoint.write_bytes(before)

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
        code = self.end(self.run.start(self.checkpoint), (0, 1))
        if code == 1:
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

    def go(self, until, expected):
        steps = [self.killed, self.interrupted, self.terminated, self.damaged_data, self.damaged_checkpoint, self.full_disk]
        while time.monotonic() < until:
            step = self.chance.choice(steps)
            step()
            self.counts[step.__name__] += 1
            if self.counts.total() % 8 == 0:
                self.finish(expected)
        self.finish(expected)

    def finish(self, expected):
        self.end(self.run.start(self.checkpoint), (0,))
        assert state_of(self.checkpoint) == expected, "other bits than the undisturbed run"
        self.checkpoint.unlink()
        self.counts["runs to the end, with the same bits"] += 1


def main(programs, seconds=600, seed=1):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where this runs in the background
    with tempfile.TemporaryDirectory() as folder:
        run = training(programs, folder, rows=20000)
        checkpoint = pathlib.Path(folder) / "state.h5"
        began = time.monotonic()
        undisturbed = run.start(checkpoint)
        _, errors = undisturbed.communicate(timeout=300)
        assert undisturbed.returncode == 0, errors
        test = soak(run, random.Random(int(seed)), time.monotonic() - began)
        expected = state_of(checkpoint)
        checkpoint.unlink()
        test.go(began + float(seconds), expected)
    for what, count in sorted(test.counts.items()):
        print(f"{count:6} {what}")


if __name__ == "__main__":
    main(*sys.argv[1:])
