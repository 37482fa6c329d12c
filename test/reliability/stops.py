"""Sends SIGINT to the programs at random moments, where stopping is hard: chunks of 64 MiB of gzip, a thousand joined files, a
checkpoint of 100 MB. Each ends with the signal's code, and leaves no unfinished file; a table says how long that took. A signal
that comes when a program is done does not count: another is sent to it, sooner.
stops.py FOLDER_OF_PROGRAMS [SIGNALS_FOR_EACH [SEED]]"""

import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ENOUGH = ["--device", "host", "--device-memory", "2GiB", "--pinned-memory", "1GiB", "--host-memory", "2GiB"]
HANGS = 60  # seconds; much longer than anything here takes, on a busy machine too


def start(programs, command):
    return subprocess.Popen([programs / command[0], *map(str, command[1:])], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)  # fmt: skip


def finish(programs, *command):
    running = start(programs, command)
    _, errors = running.communicate()
    assert running.returncode == 0, errors


def end_of(running):
    """What it says on its way; a program that hangs is ended first."""
    try:
        return running.communicate(timeout=HANGS)[1]
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate()
        raise


def stopped(programs, command, moment):
    """Seconds from the signal to the end; nothing where the program had ended by then."""
    running = start(programs, command)
    try:
        _, errors = running.communicate(timeout=moment)
        assert running.returncode == 0, errors
        return None
    except subprocess.TimeoutExpired:
        sent = time.monotonic()
        running.send_signal(signal.SIGINT)
    errors = end_of(running)
    took = time.monotonic() - sent
    # Before it could look after signals itself, it is ended by one; and it may have been done when the signal came.
    assert running.returncode in (128 + signal.SIGINT, -signal.SIGINT, 0), f"{running.returncode}: {errors}"
    return took if running.returncode != 0 else None


def times_of(programs, command, seconds, signals, chance):
    """Of so many signals that came in time, at random moments of the first `seconds`, or of as long as it goes on."""
    took = []
    for _ in range(20 * signals):
        moment = chance.uniform(0, seconds)
        one = stopped(programs, command, moment)
        if one is None:
            seconds = moment
            continue
        took.append(one)
        if len(took) == signals:
            return took
    raise AssertionError(f"{command[0]} is done before a signal can come")


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
    print("| program | signals | seconds: median | at the most |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        big, many, model = make_files(programs, folder)
        train = ["--epochs", 1000, *ENOUGH, "--checkpoint", folder / "state.h5"]
        predict = ["-o", folder / "out.h5", *ENOUGH]
        for what, seconds, command in (
            ("penstock-train, chunks of 64 MiB of gzip", 8, ["penstock-train", big, "--validation", 0.2, *train]),
            ("penstock-train, a model whose checkpoint has 100 MB", 8, ["penstock-train", big, "--hidden", "4096,1024", "--no-normalise", *train]),
            ("penstock-train --calibrate, a thousand files", 8, ["penstock-train", many, "--calibrate", *train]),
            ("penstock-train --plan, a thousand files", 8, ["penstock-train", many, "--plan", *ENOUGH]),
            ("penstock-predict, chunks of 64 MiB of gzip", 3, ["penstock-predict", model, big, *predict]),
            ("penstock-predict, a thousand files", 2, ["penstock-predict", model, many, *predict]),
            ("penstock-make-dataset", 3, ["penstock-make-dataset", "rows", folder / "new.h5", "--rows", 1 << 20, "--filter", "gzip:6"]),
        ):  # fmt: skip
            took = times_of(programs, command, seconds, int(signals), chance)
            print(f"| {what} | {len(took)} | {statistics.median(took):.2f} | {max(took):.2f} |", flush=True)
            assert not list(folder.glob("*.partial-*")), what


if __name__ == "__main__":
    main(*sys.argv[1:])
