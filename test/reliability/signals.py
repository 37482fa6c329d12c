"""What the scripts that send signals share: a program is held while it is looked at, so that how it must end is known."""

import os
import pathlib
import re
import signal
import time

PROMPT = 2.0  # seconds, on a machine that nobody else wants


def allowed():
    """Seconds from a signal to the end, where so many processes want each processor."""
    return PROMPT * max(1, os.getloadavg()[0] / os.cpu_count())


def is_held(running):
    try:
        return pathlib.Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZ"
    except OSError:
        return True


def handles(running, number):
    """Whether the program looks after the signal itself. Before it could, and when it is done, it does not."""
    try:
        status = pathlib.Path(f"/proc/{running.pid}/status").read_text()
    except OSError:
        return False
    found = re.search(r"SigCgt:\s*([0-9a-f]+)", status)
    return bool(found and int(found.group(1), 16) >> (number - 1) & 1)


def send(running, number):
    """Sends a signal, and gives the exit code that it has to end with, unless it is done by then."""
    running.send_signal(signal.SIGSTOP)
    while not is_held(running):
        time.sleep(0.001)
    handled = handles(running, number)
    running.send_signal(number)
    running.send_signal(signal.SIGCONT)
    return 128 + number if handled else -number
