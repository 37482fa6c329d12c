"""Sends SIGINT and SIGTERM in turns to the programs at random moments, where stopping is hard: chunks of 64 MiB of gzip, a thousand
joined files, a checkpoint of 100 MB. Each ends within two seconds (times what the processors are wanted for by others) with the code
of the signal, says in its last words what is kept, and leaves no unfinished file. Once training has begun, a checkpoint is kept: whole,
and where its words say. Before a program looks after signals, and after it is done, a signal ends it as any; which of the two it
is, is looked at while it is held, just before it gets the signal. A signal that comes when a program is done does not count:
another is sent to it, sooner. A table says how long it took.
stops.py FOLDER_OF_PROGRAMS [SIGNALS_FOR_EACH [SEED]]"""

import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import h5py

from signals import allowed, send

ENOUGH = ["--device", "host", "--device-memory", "2GiB", "--pinned-memory", "1GiB", "--host-memory", "2GiB"]
HANGS = 60  # seconds; much longer than anything here takes, on a busy machine too
NOTHING = "stopped before the first step; there is nothing to keep\n"


def start(programs, command):
    return subprocess.Popen([programs / command[0], *map(str, command[1:])], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)  # fmt: skip


def finish(programs, *command):
    running = start(programs, command)
    _, errors = running.communicate()
    assert running.returncode == 0, errors


def end_of(running):
    """What it says on its way; a program that hangs is ended first."""
    try:
        return running.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate()
        raise


def stopped(programs, command, moment, number):
    """Seconds from the signal to the end, what it said, and whether the program looked after the signal; nothing where the program
    had ended, or was done, by then."""
    running = start(programs, command)
    try:
        _, errors = running.communicate(timeout=moment)
        assert running.returncode == 0, errors
        return None
    except subprocess.TimeoutExpired:
        limit = allowed()
        wanted = send(running, number)
    sent = time.monotonic()
    said = end_of(running)
    took = time.monotonic() - sent
    if running.returncode == 0:
        return None
    assert running.returncode == wanted, f"{running.returncode}, where {wanted} is due: {said}"
    assert took < limit, f"{command[0]}: {took:.2f} s from the signal to the end; {limit:.2f} s are allowed"
    return took, said, wanted == 128 + number


def check_checkpoint(programs, checkpoint, shown):
    """It stands where the program says, and is whole to the last byte."""
    at = re.search(r"^stopped at epoch (\d+), batch (\d+); go on with --checkpoint", shown, re.M)
    assert at, f"it does not say where it stopped: {shown}"
    with h5py.File(checkpoint) as file:
        there = json.loads(file.attrs["penstock"])
    place = there["epoch"] + 1, there["next_row"] / there["identity"]["rows of a step"]
    assert place == (int(at[1]), int(at[2])), f"the checkpoint stands at {place}: {at[0]}"
    assert there["steps"] + there["skipped"] > 0 or place == (1, 0), "it was trained, and the checkpoint knows no step"
    digests = checkpoint.with_suffix(".json")
    finish(programs, "penstock-inspect", checkpoint, "--digest", "--json", digests)
    assert json.loads(digests.read_text())["sealed"], "the checkpoint has no seal"
    digests.unlink()


class trained:
    """What a run of penstock-train with --checkpoint must leave."""

    def __init__(self, programs, checkpoint):
        self.programs, self.output, self.kept = programs, checkpoint, 0

    def look(self, shown, errors, handled):
        if not handled or NOTHING in shown + errors:
            assert not self.output.exists(), "a checkpoint of no step"
            return
        assert errors == "", errors
        check_checkpoint(self.programs, self.output, shown)
        self.kept += 1

    def enough(self, signals):
        return self.kept > signals // 4


class unwritten:
    """No output, where there was to be one; and nothing more."""

    def __init__(self, output=None):
        self.output = output

    def look(self, shown, errors, handled):
        assert not handled or errors.count("\n") == 1, f"not one line: {errors}"
        assert self.output is None or not self.output.exists(), "an output that is not whole"

    def enough(self, signals):
        return True


def times_of(programs, command, seconds, signals, chance, expected):
    """Of so many signals that came in time, at random moments of the first `seconds`, or of as long as it goes on; and of more, later,
    where too few came while there was something to keep."""
    took = []
    for tried in range(20 * signals):
        if expected.output is not None:
            expected.output.unlink(missing_ok=True)
        number = (signal.SIGINT, signal.SIGTERM)[tried % 2]
        later = max(0, len(took) - signals + 1)  # a busy machine may take long to come to what is kept
        moment = chance.uniform(0, seconds) if later == 0 else chance.uniform(seconds, (2 + later) * seconds)
        one = stopped(programs, command, moment, number)
        if one is None:
            seconds = min(seconds, moment)
            continue
        took.append(one[0])
        expected.look(*one[1], one[2])
        if len(took) >= signals and expected.enough(signals):
            return took
    raise AssertionError(f"{command[0]} is done before a signal can come, or keeps nothing for too long")


def make_files(programs, folder):
    big, part = folder / "big.h5", folder / "part.h5"
    finish(programs, "penstock-make-dataset", "rows", big, "--rows", 65536, "--filter", "gzip:1", "--chunk-rows", 16384)
    finish(programs, "penstock-make-dataset", "rows", part, "--rows", 10, "--filter", "gzip:1")
    for n in range(1000):
        os.link(part, folder / f"part-{n:03}.h5")
    model = folder / "model.h5"
    finish(programs, "penstock-train", part, "--epochs", 1, "--hidden", "512", *ENOUGH, "--checkpoint", model)
    return big, folder / "part-*.h5", model


def main(programs, signals=20, seed=1):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where this runs in the background
    programs, chance = pathlib.Path(programs), random.Random(int(seed))
    print("| program | signals | checkpoints kept | seconds: median | at the most |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        big, many, model = make_files(programs, folder)
        state, out, new = folder / "state.h5", folder / "out.h5", folder / "new.h5"
        train = ["--epochs", 1000, *ENOUGH, "--checkpoint", state]
        predict = ["-o", out, *ENOUGH]
        kept = lambda: trained(programs, state)
        for what, seconds, command, expected in (
            ("penstock-train, chunks of 64 MiB of gzip", 8, ["penstock-train", big, "--validation", 0.2, *train], kept()),
            ("penstock-train, a model whose checkpoint has 100 MB", 8, ["penstock-train", big, "--hidden", "4096,1024", "--no-normalise", *train], kept()),
            ("penstock-train --calibrate, a thousand files", 8, ["penstock-train", many, "--calibrate", *train], kept()),
            ("penstock-train --plan, a thousand files", 8, ["penstock-train", many, "--plan", *ENOUGH], unwritten()),
            ("penstock-predict, chunks of 64 MiB of gzip", 3, ["penstock-predict", model, big, *predict], unwritten(out)),
            ("penstock-predict, a thousand files", 2, ["penstock-predict", model, many, *predict], unwritten(out)),
            ("penstock-make-dataset", 3, ["penstock-make-dataset", "rows", new, "--rows", 1 << 20, "--filter", "gzip:6"], unwritten(new)),
        ):  # fmt: skip
            took = times_of(programs, command, seconds, int(signals), chance, expected)
            checkpoints = getattr(expected, "kept", "")
            print(f"| {what} | {len(took)} | {checkpoints} | {statistics.median(took):.2f} | {max(took):.2f} |", flush=True)
            assert not list(folder.glob("*.partial-*")), what


if __name__ == "__main__":
    main(*sys.argv[1:])
