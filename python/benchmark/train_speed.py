#!/usr/bin/env python3
"""How fast a PyTorch model trains on an HDF5 file: fed by penstock.Loader, by DataLoader and h5py, and by tensors that are on
the GPU already; and how fast Penstock's batches come where nothing else is done.

    train_speed.py rows.h5 --make 2097152 --json speed.json      # 8 GiB of float32 rows of 4 KiB, then all figures

A figure is the median of --repeat windows of at least --seconds each, within one loop that goes on over epochs; the device is
waited for at both ends of a window. Windows of resident rows and of Penstock's take turns. All figures are of one process, and the JSON is written anew with each."""

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
import time

import h5py
import numpy as np
import torch

import feeds
import penstock as ps
import steps


def add_words(parser, option, known, default=None):
    """An option that takes some of these words; without `default`, all are."""

    def some(text):
        for word in text.split(","):
            if word not in known:
                raise argparse.ArgumentTypeError(f"'{word}' is not among {', '.join(known)}")
        return text.split(",")

    parser.add_argument(option, type=some, default=default or known, help=f"of {','.join(known)}")


def sizes(text):
    numbers = [int(number) for number in text.split(",")]
    if min(numbers) < 1:
        raise ValueError
    return numbers


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file")
    p.add_argument("--dataset", default="/x")
    p.add_argument("--labels", default="/label")
    p.add_argument("--make", type=int, default=0, metavar="ROWS", help="make the file first, where it is not there")
    p.add_argument("--columns", type=int, default=1024, help="of the file that is made")
    p.add_argument("--batch", type=sizes, default=[256, 1024, 4096, 16384])
    add_words(p, "--parts", ["iterate", "train"])
    add_words(p, "--modes", ["eager", "compile", "graph"])
    add_words(p, "--feeds", ["resident", "penstock", "h5py"])
    add_words(p, "--precision", ["fp32", "tf32", "bf16"], default=["tf32"])
    p.add_argument("--order", choices=["sequential", "shuffled"], default="sequential", help="of Penstock's rows")
    p.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    p.add_argument("--device-memory", default="512MiB")
    p.add_argument("--pinned-memory", default="512MiB")
    p.add_argument("--threads", type=int, default=0, help="of Penstock, that read and decode; 0: chosen")
    p.add_argument("--workers", type=int, default=max(1, len(os.sched_getaffinity(0)) - 1), help="of the DataLoader")
    p.add_argument("--resident-rows", type=int, default=262144)
    p.add_argument("--repeat", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--json", help="the file of results")
    return p.parse_args()


def make_file(path, rows, columns):
    """Rows in chunks of 1 MiB, one random block again and again: how values repeat has no effect without compression."""
    block = max(1, min(rows, (1 << 20) // (4 * columns)))
    values = np.random.default_rng(1).standard_normal((block, columns), dtype="f4")
    with h5py.File(path + ".partial", "w") as f:
        x = f.create_dataset("x", (rows, columns), "f4", chunks=(block, columns))
        for first in range(0, rows, block):
            x[first : first + block] = values[: rows - first]
        f["label"] = np.arange(rows) % 10
    os.rename(path + ".partial", path)


def synchronize(options):
    if options.device != "cpu":
        torch.cuda.synchronize()


def windows(options, feeds, use):
    """Rows/s of each window, by feed; `use` takes a batch. Feeds take turns, so that what changes meanwhile (clocks, neighbours
    on the machine) is the same for all. A loader that waits for its turn has read ahead, and rests."""

    def window(batches, seconds):
        rows, since = 0, time.perf_counter()
        while rows == 0 or time.perf_counter() - since < seconds:
            batch = next(batches)
            use(*batch)
            rows += len(batch[0])
            del batch  # its rows are free for the next ones
        synchronize(options)
        return rows / (time.perf_counter() - since)

    for batches in feeds.values():
        window(batches, 0.3 * options.seconds)  # the first batches wait for files, kernels and compilers
    turns = [{name: window(batches, options.seconds) for name, batches in feeds.items()} for _ in range(options.repeat)]
    return {name: [turn[name] for turn in turns] for name in feeds}


def link_speed(options):
    """GB/s of copies of 64 MiB from pinned memory."""
    if options.device == "cpu":
        return None
    host, device = torch.empty(1 << 26, dtype=torch.uint8, pin_memory=True), torch.empty(1 << 26, dtype=torch.uint8, device=options.device)
    rates = []
    for _ in range(options.repeat + 1):
        torch.cuda.synchronize()
        since = time.perf_counter()
        for _ in range(16):
            device.copy_(host, non_blocking=True)
        torch.cuda.synchronize()
        rates.append(16 * host.numel() / (time.perf_counter() - since) / 1e9)
    return statistics.median(rates[1:])


class Results:
    def __init__(self, options):
        self.options = options
        self.row_bytes = 4 * options.columns
        self.values = {"torch": torch.__version__, "penstock": ps.__version__, "processors": len(os.sched_getaffinity(0))}
        self.values |= {"options": {k: v for k, v in vars(options).items() if k != "json"}, "figures": [], "failures": []}
        if options.device != "cpu":
            self.values["device"] = torch.cuda.get_device_name(options.device)

    def add(self, what, batch, rates, **more):
        rate = statistics.median(rates)
        speed = rate * self.row_bytes / 1e9
        figure = {"what": what, "batch": batch, **more, "rows_per_second": rate, "gigabytes_per_second": speed, "windows": rates}
        self.values["figures"].append(figure)
        name = " ".join([what, *more.values()])
        print(f"{name:32} batch {batch:6} {rate:14.0f} rows/s {speed:8.2f} GB/s", flush=True)
        self.write()

    def fail(self, error, **where):
        self.values["failures"].append({**where, "error": str(error)})
        self.write()
        print(*where.values(), f"failed: {str(error).strip().splitlines()[0]}", file=sys.stderr)

    def write(self):
        if not self.options.json:
            return
        with open(self.options.json + ".partial", "w") as out:
            json.dump(self.values, out, indent=1)
        os.replace(self.options.json + ".partial", self.options.json)


def iterate(options, batch, results):
    """Penstock's batches, taken as tensors, and nothing done with them: x alone, as penstock-throughput reads it."""

    def batches(loader):
        epoch = 0
        while True:
            for rows in loader.epoch(epoch):
                yield (rows.torch("x"),)
            epoch += 1

    with feeds.penstock_loader(options, batch, fields=("x",)) as loader:
        rates = windows(options, {"penstock": batches(loader)}, lambda x: None)
        results.add("iterate", batch, rates["penstock"])


def train(options, resident, precision, mode, batch, results):
    steps.set_precision(precision)
    step = steps.make(mode, options, precision, batch)
    makers = {
        "resident": lambda: resident.feed(batch),
        "penstock": lambda: feeds.penstock_feed(options, batch),
        "h5py": lambda: feeds.h5py_feed(options, batch),
    }
    # The DataLoader by itself: its workers would go on beside the others.
    for group in (["resident", "penstock"], ["h5py"]):
        names = [feed for feed in options.feeds if feed in group]
        try:
            with contextlib.ExitStack() as opened:
                rates = windows(options, {name: opened.enter_context(makers[name]()) for name in names}, step)
        except RuntimeError as e:
            if "h5py" not in names and mode != "compile":
                raise
            # Workers that are killed, mostly for a small /dev/shm, or a machine where torch.compile finds no compiler: the
            # other figures are worth having.
            for feed in names:
                results.fail(e, feed=feed, mode=mode, batch=batch)
            continue
        if names and not math.isfinite(step.loss.item()):
            raise SystemExit(f"the loss is {step.loss.item()} after training on {' and '.join(names)}")
        for feed in names:
            results.add("train", batch, rates[feed], feed=feed, mode=mode, precision=precision)


def main():
    options = arguments()
    if options.make and not os.path.exists(options.file):
        make_file(options.file, options.make, options.columns)
    with h5py.File(options.file) as f:
        rows, options.columns = f[options.dataset].shape
        options.classes = int(f[options.labels][:].max()) + 1
    most = min(rows, options.resident_rows)
    fitting = [batch for batch in options.batch if batch <= most]
    for batch in options.batch:
        if batch > most:
            what = f"the file has {rows} rows" if rows == most else f"--resident-rows is {most}"
            print(f"batches of {batch} rows are left out: {what}", file=sys.stderr)
    modes = [mode for mode in options.modes if mode != "graph" or options.device != "cpu"]
    if options.device == "cpu":
        print("there is no CUDA device: on the host, without CUDA graphs", file=sys.stderr)
    else:
        torch.cuda.set_device(options.device)
    results = Results(options)
    results.values["link_gigabytes_per_second"] = link_speed(options)
    if "iterate" in options.parts:
        for batch in fitting:
            iterate(options, batch, results)
    if "train" in options.parts:
        resident = feeds.Resident(options)
        for precision in options.precision:
            for mode in modes:
                for batch in fitting:
                    train(options, resident, precision, mode, batch, results)
    results.write()


if __name__ == "__main__":
    main()
