"""Kills penstock-train with SIGKILL at random moments, every second time as soon as it saves, resumes it each time, and compares
what comes out in the end with a run that nobody disturbed, bit by bit: kill.py FOLDER_OF_PROGRAMS [KILLS [SEED]]"""

import pathlib
import random
import subprocess
import sys
import tempfile
import time

from training import state_of, training


def is_within_save(folder, running):
    return any(pathlib.Path(folder).glob(f"*.partial-{running.pid}*"))


def wait_for_save(folder, running, seconds):
    until = time.monotonic() + seconds
    while running.poll() is None and time.monotonic() < until and not is_within_save(folder, running):
        time.sleep(0.0005)


def main(programs, kills=20, seed=1):
    chance = random.Random(int(seed))
    with tempfile.TemporaryDirectory() as folder:
        run = training(programs, folder, rows=20000)
        checkpoint = pathlib.Path(folder) / "state.h5"
        began = time.monotonic()
        undisturbed = run.start(checkpoint)
        _, errors = undisturbed.communicate(timeout=300)
        assert undisturbed.returncode == 0, errors
        seconds = time.monotonic() - began
        expected = state_of(checkpoint)
        checkpoint.unlink()

        killed = within_saves = resumed = whole_runs = 0
        while killed < int(kills) or whole_runs == 0 or checkpoint.exists():
            resumed += checkpoint.exists()
            # The last run is left alone, so that it ends.
            moment = chance.uniform(0, seconds) if killed < int(kills) else 300
            running = run.start(checkpoint)
            if killed % 2 == 1 and killed < int(kills):  # every second kill is for a save
                wait_for_save(folder, running, 300)
                moment = 0
            try:
                _, errors = running.communicate(timeout=moment)
            except subprocess.TimeoutExpired:
                running.kill()
                running.communicate()
                killed += 1
                within_saves += is_within_save(folder, running)
                continue
            assert running.returncode == 0, f"after {killed} kills: {errors}"
            assert state_of(checkpoint) == expected, f"after {killed} kills: other bits than the undisturbed run"
            whole_runs += 1
            checkpoint.unlink()
        left = len(list(pathlib.Path(folder).glob("*.partial-*")))
    print(f"{killed} kills, {within_saves} of them within a save, {resumed} resumes, {whole_runs} runs to the end: all with the bits "
          f"of the undisturbed one; {left} partial files left in the end")  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
