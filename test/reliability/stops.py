"""Sends SIGINT to the programs at random moments, where stopping is hard: chunks of 64 MiB of gzip, a thousand joined files, a
checkpoint of 100 MB. Each ends with the signal's code, and leaves no unfinished file; a table says how long that took:
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
    _, errors = running.communicate(timeout=HANGS)
    # Before it could look after signals itself, it is ended by one; and it may have been done when the signal came.
    assert running.returncode in (128 + signal.SIGINT, -signal.SIGINT, 0), f"{running.returncode}: {errors}"
    return time.monotonic() - sent


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
    print("| program | signals | seconds to its end: median | at the most |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        big, many, model = make_files(programs, folder)
        train = ["--epochs", 1000, *ENOUGH, "--checkpoint", folder / "state.h5"]
        predict = ["-o", folder / "out.h5", *ENOUGH]
        for what, seconds, command in (
            ("penstock-train, large chunks", 8, ["penstock-train", big, "--validation", 0.2, *train]),
            ("penstock-train, a large model", 8, ["penstock-train", big, "--hidden", "4096,1024", "--no-normalise", *train]),
            ("penstock-train --calibrate, a thousand files", 8, ["penstock-train", many, "--calibrate", *train]),
            ("penstock-train --plan, a thousand files", 8, ["penstock-train", many, "--plan", *ENOUGH]),
            ("penstock-predict, large chunks", 3, ["penstock-predict", model, big, *predict]),
            ("penstock-predict, a thousand files", 2, ["penstock-predict", model, many, *predict]),
            ("penstock-make-dataset", 3, ["penstock-make-dataset", "rows", folder / "new.h5", "--rows", 1 << 20, "--filter", "gzip:6"]),
        ):  # fmt: skip
            took = [stopped(programs, command, chance.uniform(0, seconds)) for _ in range(int(signals))]
            took = [each for each in took if each is not None] or [0]
            print(f"| {what} | {len(took)} | {statistics.median(took):.2f} | {max(took):.2f} |", flush=True)
            assert not list(folder.glob("*.partial-*")), what


if __name__ == "__main__":
    main(*sys.argv[1:])
