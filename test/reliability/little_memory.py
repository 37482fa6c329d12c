"""Starts penstock-train and penstock-predict where they may have little memory (RLIMIT_AS): each ends in time, with the bits of
a run that has all it wants or with one line that says why not: little_memory.py FOLDER_OF_PROGRAMS

Programs of which the loader itself cannot map the libraries are not looked at."""

import resource
import subprocess
import sys
import tempfile

from training import state_of, training

PROMPT = 60  # seconds; much longer than it takes, on a busy machine too
LOADER_FAILED = 127
FEWEST = 448 << 20
STEP = 96 << 20


def limited(most):
    return (lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most))) if most else None


def end_of(running, what):
    try:
        _, errors = running.communicate(timeout=PROMPT)
    except subprocess.TimeoutExpired:
        running.kill()
        raise AssertionError(f"{what} hangs") from None
    return running.returncode, errors


def main(programs):
    with tempfile.TemporaryDirectory() as folder:
        run = training(programs, folder, rows=500)
        whole = run.folder / "whole.h5"

        def train(most=None):
            checkpoint = run.folder / f"{most}.h5" if most else whole
            code, errors = end_of(run.start(checkpoint, before=limited(most)), f"penstock-train with {most} bytes")
            return code, errors, checkpoint

        def predict(most=None):
            output = run.folder / f"{most}.predicted.h5"
            command = [run.programs / "penstock-predict", whole, run.data, "--output", output]
            command += ["--device", "host", "--threads", "2"]
            running = subprocess.Popen(
                list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limited(most)
            )
            return *end_of(running, f"penstock-predict with {most} bytes"), output

        for start in (train, predict):
            code, errors, output = start()
            assert code == 0, errors
            expected = state_of(output)
            refused = right = 0
            most = FEWEST
            while right < 2:
                most += STEP
                assert most < 16 << 30, "refused with 16 GiB"
                code, errors, output = start(most)
                if code == LOADER_FAILED:
                    continue
                if code == 0:
                    assert state_of(output) == expected, f"other bits with {most} bytes"
                    right += 1
                    continue
                assert code == 1 and errors.count("\n") == 1, f"{most >> 20} MiB: {code}: {errors}"
                print(f"{most >> 20} MiB: {errors.strip()}")
                refused += 1
            assert refused, "the limit made no difference"
            print(f"{start.__name__}: {refused} times refused in one line, {right} times the bits of an undisturbed run")


if __name__ == "__main__":
    main(*sys.argv[1:])
