"""Kills penstock-predict with SIGKILL: at random moments, and every second time within its output, as soon as the unfinished file
is there, has a byte, half of them, or all and is about to be renamed. Whatever was killed, the file of predictions is the one before or the new one, whole,
and the next run takes away what the killed one left: kill_predictions.py FOLDER_OF_PROGRAMS [KILLS [SEED]]"""

import pathlib
import random
import subprocess
import sys
import tempfile
import time

from predicting import predicting
from training import training


def partial_of(run, running):
    return next((path for path in run.partials() if path.name.endswith(f"-{running.pid}")), None)


def size_of(path):
    try:
        return path.stat().st_size if path else -1
    except FileNotFoundError:  # renamed meanwhile
        return -1


def wait_for_output(run, running, bytes_there):
    """Until the unfinished file has so many bytes, or the run is over."""
    until = time.monotonic() + 300
    while running.poll() is None and time.monotonic() < until and size_of(partial_of(run, running)) < bytes_there:
        time.sleep(0.0002)


def main(programs, kills=20, seed=1):
    chance = random.Random(int(seed))
    with tempfile.TemporaryDirectory() as folder:
        trained = training(programs, folder, rows=20000)
        checkpoint = pathlib.Path(folder) / "state.h5"
        _, errors = trained.start(checkpoint).communicate(timeout=300)
        assert checkpoint.exists(), errors
        run = predicting(programs, folder, checkpoint, trained.data)
        began = time.monotonic()
        _, errors = run.start("classes").communicate(timeout=300)
        seconds = time.monotonic() - began

        killed = unfinished = whole = published = cleaned = done = 0
        while killed < int(kills):
            kind = run.next_kind()
            left = run.partials()
            running = run.start(kind)
            moment = chance.uniform(0, seconds)
            if killed % 2 == 1:
                size = run.bytes[kind]
                wait_for_output(run, running, (0, 1, size // 2, size)[killed // 2 % 4])
                moment = 0
            try:
                _, errors = running.communicate(timeout=moment)
            except subprocess.TimeoutExpired:
                running.kill()
                running.communicate()
            if running.returncode == 0:
                done += 1
                run.look(kind, done=True)
                assert not run.partials(), f"a whole run left {run.partials()}"
                continue
            assert running.returncode == -9, f"{running.returncode}: {errors}"
            killed += 1
            partial = partial_of(run, running)
            unfinished += partial is not None
            whole += size_of(partial) == run.bytes[kind]
            if size_of(partial) > 0:  # an empty one may be what the program tries the folder with, before all else
                assert run.partials() == [partial], f"the next run has not taken away what was left: {run.partials()}"
                cleaned += bool(left)
            published += run.look(kind, done=False)
        kind = run.next_kind()
        _, errors = run.start(kind).communicate(timeout=300)
        run.look(kind, done=True)
        assert not run.partials(), f"a whole run left {run.partials()}"
    print(f"{killed} kills, {unfinished} of them with an unfinished file, {whole} of these whole and not yet renamed; {published} times "
          f"the new predictions were there, else those before, whole; {cleaned} files that killed runs left were taken away by "
          f"the next, {done} runs to the end")  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
