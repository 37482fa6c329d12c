"""Sends two SIGINT to each program that looks after signals, where the first one is waited for without end: what the program
says goes into a pipe that is full, and nobody reads it. The second one ends it within a second, whether it comes at once
or when the program waits. Programs that look after no signal are ended by the first.
second_signal.py FOLDER_OF_PROGRAMS"""

import fcntl
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import h5py
import numpy

PROMPT = 1.0  # seconds: what is promised
SAME = 0.3  # within 0.2 a second one counts for the first
HANGS = 60
WRITE, OUT, ERR = 1, 1, 2  # the system's call, and descriptors
HOST = ["--device", "host", "--threads", "1"]


def small_pipe(full):
    """A pipe of one page that nobody reads: where to read, and where to write."""
    out, end = os.pipe()
    size = fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
    if full:
        os.write(end, bytes(size))
    return out, end


def mask_of(running, name):
    """A set of signals, of /proc/PID/status."""
    for line in pathlib.Path(f"/proc/{running.pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1], 16)
    return 0


def has(mask, number):
    return mask >> (number - 1) & 1


def waits_to_write(running, descriptor):
    """Whether a thread waits in write() to this descriptor."""
    for thread in pathlib.Path(f"/proc/{running.pid}/task").iterdir():
        try:
            words = (thread / "syscall").read_text().split()
        except (OSError, ProcessLookupError):
            continue
        if len(words) > 2 and words[0] == str(WRITE) and int(words[1], 16) == descriptor:
            return True
    return False


def until(running, condition):
    """Waits for it; the program must go on meanwhile."""
    began = time.monotonic()
    while not condition():
        assert running.poll() is None, f"it ended by itself, with {running.returncode}"
        assert time.monotonic() - began < HANGS, "it does not come so far"
        time.sleep(0.001)


def interrupt(running):
    """Sends SIGINT and returns when it has been taken: of two that are pending, one would be lost."""
    running.send_signal(signal.SIGINT)
    until(running, lambda: not has(mask_of(running, "SigPnd") | mask_of(running, "ShdPnd"), signal.SIGINT))


def end_of(running):
    """Seconds from a SIGINT to the end."""
    sent = time.monotonic()
    running.send_signal(signal.SIGINT)
    code = running.wait(timeout=HANGS)
    took = time.monotonic() - sent
    assert code in (128 + signal.SIGINT, -signal.SIGINT), code
    assert took < PROMPT, f"it took {took:.2f} s"
    return took


class blocked:
    """A program one of whose outputs goes nowhere. It may fill a page of standard output; errors take nothing."""

    def __init__(self, command, descriptor):
        self.read, write = small_pipe(full=descriptor == ERR)
        outputs = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        outputs["stdout" if descriptor == OUT else "stderr"] = write
        self.running = subprocess.Popen([str(word) for word in command], **outputs)
        os.close(write)

    def __enter__(self):
        return self

    def has_said_something(self):
        return struct.unpack("i", fcntl.ioctl(self.read, termios.FIONREAD, bytes(4)))[0] > 0

    def __exit__(self, *_):
        self.running.kill()
        self.running.wait()
        os.close(self.read)


def twice(command, descriptor, has_begun, at_once):
    with blocked(command, descriptor) as program:
        running = program.running
        if descriptor == OUT:  # it waits from here on, whatever comes
            until(running, lambda: waits_to_write(running, descriptor))
        until(running, has_begun)
        assert has(mask_of(running, "SigCgt"), signal.SIGINT), "it looks after no signal"
        interrupt(running)
        time.sleep(SAME)
        if not at_once:
            until(running, lambda: waits_to_write(running, descriptor))
        return end_of(running)


def once(command, has_begun=None):
    with blocked(command, OUT) as program:
        running = program.running
        until(running, has_begun or program.has_said_something)
        assert not has(mask_of(running, "SigCgt"), signal.SIGINT), "it looks after signals: see to a second one"
        return end_of(running)


def main(programs):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where this runs in the background
    programs = pathlib.Path(programs)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rows, endless = folder / "rows.h5", folder / "endless.h5"
        subprocess.run([programs / "penstock-make-dataset", "rows", rows, "--rows", "500"], check=True, capture_output=True)
        train = [programs / "penstock-train", rows, *HOST, "--epochs"]
        model, state, out = folder / "model.h5", folder / "state.h5", folder / "out.h5"
        subprocess.run([*train, "1", "--checkpoint", model], check=True, capture_output=True)
        with h5py.File(rows) as file, h5py.File(endless, "w") as to:  # of which nothing is stored
            to.create_dataset("x", (1 << 31, *file["x"].shape[1:]), "f4", chunks=(1024, *file["x"].shape[1:]))

        def is_there(pattern):
            return lambda: list(folder.glob(pattern))

        lines = folder / "lines.h5"
        with h5py.File(lines, "w") as file:
            file["x"] = numpy.ones((512, 4), "f4")
            file["y"] = numpy.ones(512, "f4")
            file["label"] = numpy.arange(512, dtype="i4") % 2
        torch = [programs / "penstock-libtorch", lines, "--x", "/x", "--y", "/label", "--device", "host", "--epochs", "100000"]
        print("| program | signals | seconds to the end |\n|---|---|---|")
        for what, command, descriptor, begun in (
            ("own_model", [programs / "own_model", lines, "/x", "/y", 100000, "host", state], OUT, state.exists),
            ("penstock-libtorch", torch, OUT, lambda: True),
            ("penstock-train", [*train, "100000", "--checkpoint", state], OUT, state.exists),
            ("penstock-predict", [programs / "penstock-predict", model, endless, "-o", out, *HOST], ERR, is_there("out.h5.partial-*")),
            ("penstock-make-dataset", [programs / "penstock-make-dataset", "rows", folder / "new.h5", "--rows", 1 << 40, "--filter", "gzip:1"], ERR, is_there("new.h5.partial-*")),
        ):  # fmt: skip
            if not pathlib.Path(command[0]).exists():
                print(f"| {what} | it is not built | |")
                continue
            for at_once in True, False:
                took = twice(command, descriptor, begun, at_once)
                print(f"| {what} | two, {'one after the other' if at_once else 'the second when it waits'} | {took:.3f} |")
                for left in [*folder.glob("*.partial-*"), state]:
                    left.unlink(missing_ok=True)
        soaked = ["--device", "host", "--folder", folder, "--bytes", "200GB", "--file-bytes", "64MiB", "--budget", "64MiB"]
        for what, options, begun in (
            ("penstock-throughput", [rows, "--dataset", "/x", "--device", "host", "--repeat", 1000], None),
            ("penstock-soak-stream", soaked, is_there("penstock-soak-stream-*/packed.h5")),
        ):  # fmt: skip
            print(f"| {what} | one | {once([programs / what, *options], begun):.3f} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
