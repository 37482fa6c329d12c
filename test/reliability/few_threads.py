"""Starts penstock-train where the system gives it 1, 2, 3, ... threads and no more: it ends in time, with the bits of a run
that has all it wants or with one line that says why not: few_threads.py FOLDER_OF_PROGRAMS

The limit (RLIMIT_NPROC) counts all of a user's threads, and root has none: as root, the program runs as a user who has no
other."""

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

from training import state_of, training

PROMPT = 60  # seconds; much longer than it takes, on a busy machine too
MOST = 12
NOBODY = 65534


def threads_of(user):
    """How many threads a user has now."""
    count = 0
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            count += len(os.listdir(process / "task")) if process.stat().st_uid == user else 0
        except OSError:
            pass  # it has ended
    return count


def main(programs):
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        run = training(programs, folder, rows=2000)
        # Where another user may come to them.
        program = shutil.copy(run.programs / "penstock-train", run.folder)
        os.chmod(run.folder, 0o777)
        os.chmod(run.data, 0o644)
        run.programs = run.folder

        def limited(threads):
            def limit():
                most = threads_of(user) + threads
                resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
                if user != os.geteuid():
                    os.setgroups([])
                    os.setgid(user)
                    os.setuid(user)

            return limit if threads else None

        def train(threads=None):
            checkpoint = run.folder / f"{threads}.h5"
            # OpenBLAS starts threads before main(), and raises a signal where it gets none.
            running = run.start(checkpoint, before=limited(threads), OPENBLAS_NUM_THREADS="1")
            try:
                _, errors = running.communicate(timeout=PROMPT)
            except subprocess.TimeoutExpired:
                running.kill()
                raise AssertionError(f"hangs with {threads} threads") from None
            return running.returncode, errors, checkpoint

        code, errors, whole = train()
        assert code == 0, errors
        expected = state_of(whole)
        refused = right = 0
        for threads in range(1, MOST + 1):
            code, errors, checkpoint = train(threads)
            if code == 0:
                assert state_of(checkpoint) == expected, f"other bits with {threads} threads"
                right += 1
                continue
            assert code == 1 and errors.count("\n") == 1 and "thread" in errors, f"{threads} threads: {code}: {errors}"
            print(f"{threads} threads: {errors.strip()}")
            refused += 1
        os.remove(program)
    assert refused and right, "the limit made no difference, or too much"
    print(f"{refused} times refused in one line, {right} times the bits of an undisturbed run")


if __name__ == "__main__":
    main(*sys.argv[1:])
