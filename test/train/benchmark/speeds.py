#!/usr/bin/env python3
"""How fast a multilayer perceptron (1024-1024-1024-10, AdamW) trains, streamed and shuffled from an HDF5 file in the page
cache; beside it Penstock's own step on rows that are on the device, PyTorch, and an ideal reader.

    speeds.py PROGRAMS rows.h5 --out FOLDER                            # five windows of 2 s: about 7 minutes
    speeds.py PROGRAMS rows.h5 --out FOLDER --seconds 0.5              # short
    speeds.py PROGRAMS rows.h5 --out FOLDER --parts limit,pytorch --stream-limit PATH --pytorch PATH --python PYTHON

PROGRAMS holds penstock-train and penstock-benchmark-train. The file is made by `penstock-make-dataset rows rows.h5 --rows
2097152 --columns 1024`. Parts: streamed, resident, limit (stream_limit FILE, a program that prints `limit N GB/s`) and
pytorch (pytorch_train.py). Figures go to FOLDER/speeds.json, written anew with each: a call for other parts, or other
batches, adds to what is there. speed_table.py FOLDER/speeds.json prints them as a table."""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

precisions = {"float32": "fp32", "tf32": "tf32", "bf16": "bf16"}  # and what PyTorch's script calls them
row_bytes = 4096  # that these widths are made for
fastest_gb_per_s = 50  # of a file in the page cache: windows need no more passes than that


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")  # noqa: E731
    numbers = lambda text: [int(number) for number in text.split(",")]  # noqa: E731
    p.add_argument("programs")
    p.add_argument("file")
    p.add_argument("--out", required=True, help="folder of the results")
    p.add_argument("--dataset", default="/x")
    p.add_argument("--labels", default="/label")
    p.add_argument("--batch", type=numbers, default=[256, 1024, 4096, 16384])
    p.add_argument("--precision", type=words, default=list(precisions), help="of float32,tf32,bf16")
    p.add_argument("--parts", type=words, default=["resident", "streamed"], help="of limit,resident,streamed,pytorch")
    p.add_argument("--windows", type=int, default=5, help="of which the median is taken")
    p.add_argument("--seconds", type=float, default=2.0, help="of a window, at least")
    p.add_argument("--stream-limit", help="the ideal reader's program")
    p.add_argument("--pytorch", help="pytorch_train.py")
    p.add_argument("--python", default=sys.executable, help="a Python with PyTorch and h5py")
    p.add_argument("--pytorch-rows", type=int, default=2097152)
    p.add_argument("--workers", type=numbers, default=[8], help="of the DataLoader; each number is measured")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--device-memory", default="4GiB")
    p.add_argument("--pinned-memory", default="1GiB")
    p.add_argument("--host-memory", default="4GiB")
    return p.parse_args()


class failed(Exception):
    pass


def run(*command, each=lambda line: None):
    """What a program prints; `each` gets its lines as they come."""
    lines = []
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        for line in child.stdout:
            lines.append(line)
            each(line)
    if child.returncode != 0:
        raise failed(f"{os.path.basename(str(command[0]))} ended with {child.returncode}: {''.join(lines[-3:]).strip()}")
    return "".join(lines)


class Results:
    """speeds.json: a list of figures for each part, one for each batch, precision and kind."""

    def __init__(self, path):
        self.path, self.values = path, {}
        if os.path.exists(path):
            with open(path) as file:
                self.values = json.load(file)

    def add(self, part, rate, windows=(), **where):
        figure = {**where, "gb_per_s": rate, "windows": list(windows)}
        others = [other for other in self.values.get(part, []) if any(other.get(name) != value for name, value in where.items())]
        self.values[part] = [*others, figure]
        shown = f", {min(windows):.2f} to {max(windows):.2f} in {len(windows)} windows" if windows else ""
        print(f"{part:9}", *where.values(), f"{rate:.2f} GB/s{shown}", flush=True)
        self.write()

    def set(self, name, value):
        self.values[name] = value
        self.write()

    def write(self):
        with open(self.path + ".partial", "w") as out:
            json.dump(self.values, out, indent=1)
        os.replace(self.path + ".partial", self.path)

    def resident(self, batch, precision):
        found = [f for f in self.values.get("resident", []) if (f["batch"], f["precision"]) == (batch, precision)]
        return found[0]["gb_per_s"] if found else None


def measure_resident(o, batch, precision, results):
    text = run(f"{o.programs}/penstock-benchmark-train", "--rows", batch, "--precision", precision, "--seconds", o.seconds)
    micros = re.search(r"rows: ([\d.]+) us a step \(median of \d+; ([\d.]+) to ([\d.]+)\)", text)
    rates = [batch * row_bytes / float(each) / 1e3 for each in micros.groups()]
    results.add("resident", rates[0], rates[1:], batch=batch, precision=precision)


def windows_of(epochs, seconds):
    """GB/s of groups of epochs in a row that last `seconds` at least; the first epoch loads kernels and is left out."""
    rates, rows, spent = [], 0, 0
    for epoch in epochs[1:]:
        rows, spent = rows + epoch["rows_per_s"] * epoch["seconds"], spent + epoch["seconds"]
        if spent >= seconds:
            rates.append(rows * row_bytes / spent / 1e9)
            rows, spent = 0, 0
    return rates


def train(o, batch, precision, passes):
    result = os.path.join(o.out, "run.json")
    run(f"{o.programs}/penstock-train", o.file, "--x", o.dataset, "--y", o.labels, "--hidden", "1024,1024", "--epochs", passes,
        "--batch-rows", batch, "--precision", precision, "--no-normalise", "--device", o.device, "--device-memory", o.device_memory,
        "--pinned-memory", o.pinned_memory, "--host-memory", o.host_memory, "--json", result)  # fmt: skip
    with open(result) as file:
        shown = json.load(file)
    os.remove(result)
    return shown


def measure_streamed(o, batch, precision, results):
    """As many passes over the file as the windows are expected to take, of the speed of the step alone or of two passes."""
    file_bytes = os.path.getsize(o.file)
    expected = results.resident(batch, precision)
    if expected is None:
        expected = file_bytes / train(o, batch, precision, 2)["epochs"][1]["seconds"] / 1e9
    passes = 1 + o.windows * math.ceil(1.1 * o.seconds * min(expected, fastest_gb_per_s) * 1e9 / file_bytes)
    shown = train(o, batch, precision, passes)
    results.set("device", shown["device"])
    rates = windows_of(shown["epochs"], o.seconds)[: o.windows]
    if not rates:
        raise failed(f"no window of {o.seconds} s came together in {passes} epochs")
    results.add("streamed", statistics.median(rates), rates, batch=batch, precision=precision)


def measure_limit(o, results):
    """Measured before and after what it limits: the better one counts."""
    rate = float(re.search(r"limit ([\d.]+) GB/s", run(o.stream_limit, o.file)).group(1))
    results.add("limit", rate, run=len(results.values.get("limit", [])) + 1)


def measure_pytorch(o, results):
    """All kinds, precisions and batches in one process for each number of workers, which may be ended at any time: its
    figures are kept as they come."""
    names = {name: ours for ours, name in precisions.items()}
    form = re.compile(r"(incore|graph|h5slice)\s+(\w+) batch\s+(\d+):\s+\d+ rows/s\s+([\d.]+) GB/s")
    for workers in o.workers:

        def keep(line):
            if found := form.match(line):
                kind, precision, batch, rate = found.groups()
                results.add("pytorch", float(rate), kind=kind, batch=int(batch), precision=names[precision], workers=workers)

        run(o.python, o.pytorch, o.file, o.dataset.lstrip("/"), "--batch", ",".join(map(str, o.batch)), "--rows", o.pytorch_rows, "--workers",
            workers, each=keep)  # fmt: skip


def main():
    o = arguments()
    os.makedirs(o.out, exist_ok=True)
    results = Results(os.path.join(o.out, "speeds.json"))
    if {"streamed", "resident"} & set(o.parts):
        results.set("settings", {"windows": o.windows, "seconds": o.seconds, "processors": len(os.sched_getaffinity(0))})
    wanted = {"limit": o.stream_limit, "pytorch": o.pytorch}
    for part, program in wanted.items():
        if part in o.parts and not program:
            sys.exit(f"the part {part} needs its program: --help shows how it is named")
    with open(o.file, "rb") as file:  # into the page cache
        while file.read(1 << 24):
            pass
    since, failures = time.monotonic(), 0
    measures = {"resident": measure_resident, "streamed": measure_streamed}
    limit = [(measure_limit, ())] if "limit" in o.parts else []
    tasks = [(measures[part], (batch, precision)) for batch in o.batch for precision in o.precision for part in measures if part in o.parts]
    tasks += [(measure_pytorch, ())] if "pytorch" in o.parts else []
    tasks = [*limit, *tasks, *limit] if tasks else limit
    for measure, where in tasks:
        try:
            measure(o, *where, results)
        except (failed, OSError) as e:
            failures += 1
            print(f"{measure.__name__}{where}: {e}", file=sys.stderr, flush=True)
    print(f"{time.monotonic() - since:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
