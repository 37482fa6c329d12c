"""Kills penstock-train with SIGKILL at random moments, resumes it each time, and compares what comes out in the end with
a run that nobody disturbed, bit by bit: kill.py FOLDER_OF_PROGRAMS [KILLS [SEED]]"""

import pathlib
import random
import subprocess
import sys
import tempfile
import time

from training import state_of, training


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
            try:
                _, errors = running.communicate(timeout=moment)
            except subprocess.TimeoutExpired:
                running.kill()
                running.communicate()
                killed += 1
                within_saves += bool(list(pathlib.Path(folder).glob("*.partial-*")))
                continue
            assert running.returncode == 0, f"after {killed} kills: {errors}"
            assert state_of(checkpoint) == expected, f"after {killed} kills: other bits than the undisturbed run"
            whole_runs += 1
            checkpoint.unlink()
        left = len(list(pathlib.Path(folder).glob("*.partial-*")))
    print(f"{killed} kills, {within_saves} of them within a save, {resumed} resumes, {whole_runs} runs to the end: all with the bits of "
          f"the undisturbed one; {left} partial files left in the end")  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
