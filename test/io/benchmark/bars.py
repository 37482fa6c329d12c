#!/usr/bin/env python3
"""Measures io's bars on a machine with a GPU and many processors, and prints one table.

Usage: bars.py PROGRAMS [--work FOLDER] [--device cuda] [--gib 2] [--memory-gib 2] [--plugins FOLDER] [--only gzip,...]

PROGRAMS/bin holds penstock-throughput and penstock-direct-limit, PROGRAMS/lib their libraries where the machine lacks
them; decode_rate, which measures libdeflate and unshuffle on all processors, lies in bin or anchors. This Python has h5py,
NumPy and PyTorch. --plugins: the folder with libh5lz4.so (of the package hdf5plugin), for h5py. The files take 6 times
--gib and twice --memory-gib on --work's disk.

A ratio is given only where both sides read every row: their checksums equal that of the rows that were written.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
table = []


class unmeasured(Exception):
    pass


def add(name, penstock, other, bar, note):
    ratio = penstock / other
    table.append((name, f"{penstock:.2f}", f"{other:.2f}", f"{ratio:.2f}", f"{bar:.2f}", "met" if ratio >= bar else "MISSED", note))


def run(command, env=None, group=None):
    def join():
        if group:
            with open(os.path.join(group, "cgroup.procs"), "w") as f:
                f.write(str(os.getpid()))

    done = subprocess.run(command, env=env, preexec_fn=join, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise unmeasured(f"{os.path.basename(command[0])} {' '.join(command[1:3])}: status {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


class bars:
    def __init__(self, o):
        self.o, self.work = o, o.work
        self.native = {**os.environ, "LD_LIBRARY_PATH": f"{os.path.abspath(o.programs)}/lib:/usr/local/cuda/lib64"}
        self.native.pop("HDF5_PLUGIN_PATH", None)
        self.python = {**os.environ, "HDF5_PLUGIN_PATH": o.plugins or "/nonexistent"}

    def program(self, name):
        for folder in ("bin", "anchors", "."):
            path = os.path.join(self.o.programs, folder, name)
            if os.access(path, os.X_OK):
                return path
        raise unmeasured(f"{name} is not in {self.o.programs}")

    def make(self, gib, *kinds, folder=None):
        missing = [k for k in kinds if not self.is_made(k, gib, folder)]
        if missing:
            run([sys.executable, f"{here}/make_rows.py", folder or self.work, str(gib), ",".join(missing)], self.python)

    def is_made(self, kind, gib, folder):
        return os.path.exists(os.path.join(folder or self.work, kind + ".json")) and self.written(kind, folder)["gib"] == gib

    def written(self, kind, folder=None):
        with open(os.path.join(folder or self.work, kind + ".json")) as f:
            return json.load(f)

    def file(self, kind, folder=None):
        return os.path.join(folder or self.work, kind + ".h5")

    def into_page_cache(self, kind):
        with open(self.file(kind), "rb") as f:
            while f.read(1 << 24):
                pass

    def penstock(self, kind, device, *more, order="sequential", folder=None, group=None):
        """GB/s of penstock-throughput, where its checksum is that of the rows that were written."""
        result = os.path.join(self.work, "result.json")
        out = run([self.program("penstock-throughput"), self.file(kind, folder), "--dataset", "/x", "--device", device, "--order", order,
                   "--batch-rows", str(self.o.batch_rows), "--json", result, "--report", *more], self.native, group)
        print(out, flush=True)
        with open(result) as f:
            figure = json.load(f)["runs"][0]
        wanted = self.written(kind, folder)["checksum"]
        if figure["checksum"] != wanted:
            raise unmeasured(f"Penstock's checksum of {kind} is {figure['checksum']}, but the rows that were written have {wanted}")
        return figure["gb_per_s"]

    def pytorch(self, kind):
        """GB/s at the best number of workers."""
        best = (0, 0)
        for line in run([sys.executable, f"{here}/pytorch_rows.py", self.file(kind), "x", "cpu" if self.o.device == "host" else self.o.device, str(self.o.batch_rows), self.o.workers], self.python).splitlines():
            print("PyTorch", kind, line, flush=True)
            figure = json.loads(line)
            wanted = self.written(kind)["checksum"][-8:]
            if figure["checksum"] != wanted:
                raise unmeasured(f"PyTorch's checksum of {kind} is {figure['checksum']}, but the rows that were written have {wanted}")
            best = max(best, (figure["gb_per_s"], figure["workers"]))
        return best

    def decode_rate(self):
        rates = re.findall(r"libdeflate\+unshuf\s+threads\s+(\d+): ([\d.]+) GB/s", run([self.program("decode_rate")], self.native))
        return max((float(rate), int(threads)) for threads, rate in rates if int(threads) > 1 or len(rates) == 1)

    def gzip(self):
        self.make(self.o.gib, "gzip")
        self.into_page_cache("gzip")
        before = self.decode_rate()
        device, host = self.penstock("gzip", self.o.device), self.penstock("gzip", "host")
        rate, threads = max(before, self.decode_rate())
        note = f"libdeflate and unshuffle on {threads} threads, the better of two"
        add(f"gzip-4 after shuffle, to {self.o.device}", device, rate, 0.85, note)
        add("gzip-4 after shuffle, to the host", host, rate, 0.85, note)

    def against_pytorch(self, kind):
        self.make(self.o.gib, kind)
        self.into_page_cache(kind)
        penstock = self.penstock(kind, self.o.device)
        rate, workers = self.pytorch(kind)
        add(f"{kind} after shuffle, to {self.o.device}", penstock, rate, 4, f"PyTorch and h5py, best with {workers} workers")

    def lzf(self):
        self.against_pytorch("lzf")

    def lz4(self):
        if not self.o.plugins:
            raise unmeasured("--plugins is not given")
        self.against_pytorch("lz4")

    def split(self):
        self.make(self.o.gib, "whole", "split")
        for kind in ("whole", "split"):
            self.into_page_cache(kind)
        whole, split = [], []
        for figures, kind in ((whole, "whole"), (split, "split"), (whole, "whole"), (split, "split")):
            figures.append(self.penstock(kind, self.o.device))
        add("chunks of 64 x 256", max(split), max(whole), 2 / 3, "chunks of 256 x 1024, whole rows; the better of two each")

    def cold(self):
        limit = int(self.o.memory_gib * 2**30)
        folder = os.path.join(self.work, "cold")
        os.makedirs(folder, exist_ok=True)
        self.make(2 * self.o.memory_gib, "whole", folder=folder)
        group, note = limited_group(limit)
        path = self.file("whole", folder)

        def forget():
            with open(path, "rb") as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

        def direct():
            forget()
            figure = json.loads(run([self.program("penstock-direct-limit"), path], self.native, group))
            print("O_DIRECT", figure, flush=True)
            return figure["gb_per_s"]

        try:
            before, rates = direct(), {}
            for order in ("sequential", "shuffled"):
                forget()
                rates[order] = self.penstock("whole", self.o.device, "--around-page-cache", "--epochs", "1", order=order, folder=folder, group=group)
            best = max(before, direct())
            for order, rate in rates.items():
                add(f"cold file of twice the memory, {order}", rate, best, 0.9, f"O_DIRECT reads, the better of two; {note}")
        finally:
            if group:
                os.rmdir(group)


def limited_group(limit_bytes):
    """A control group that may take so much memory, and a note; none, with the reason, where none can be made."""
    name = f"penstock-bars-{os.getpid()}"
    tries = (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"))
    reason = "no control groups"
    for parent, limit in tries:
        if not os.path.exists(os.path.join(parent, "cgroup.procs")):
            continue
        group = os.path.join(parent, name)
        try:
            if limit == "memory.max":
                with open(os.path.join(parent, "cgroup.subtree_control"), "w") as f:
                    f.write("+memory")
            os.mkdir(group)
            with open(os.path.join(group, limit), "w") as f:
                f.write(str(limit_bytes))
            return group, f"{limit_bytes / 2**30:g} GiB allowed"
        except OSError as e:
            reason = f"{e.filename or group}: {e.strerror}"
            if os.path.isdir(group):
                os.rmdir(group)
    return None, f"MEMORY NOT LIMITED ({reason})"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs")
    p.add_argument("--work", help="where files are written; a temporary folder, removed at the end, where none is given")
    p.add_argument("--device", default="cuda")
    p.add_argument("--gib", type=float, default=2, help="float32 bytes of each file in the page cache")
    p.add_argument("--memory-gib", type=float, default=2, help="memory allowed for the cold file, which has twice that")
    p.add_argument("--plugins", help="folder of h5py's filter plugins")
    p.add_argument("--batch-rows", type=int, default=4096)
    p.add_argument("--workers", default="8,12,15", help="PyTorch's numbers of workers")
    p.add_argument("--only", default="gzip,lzf,lz4,split,cold")
    o = p.parse_args()
    kept = o.work
    o.work = os.path.abspath(o.work) if o.work else tempfile.mkdtemp(prefix="penstock-bars-")
    os.makedirs(o.work, exist_ok=True)
    all_bars = bars(o)
    start = time.time()
    try:
        for name in o.only.split(","):
            try:
                getattr(all_bars, name)()
            except unmeasured as e:
                table.append((name, "-", "-", "-", "-", "NOT MEASURED", str(e)))
            print(f"# {name}: {time.time() - start:.0f} s since the start", flush=True)
    finally:
        if not kept:
            shutil.rmtree(o.work, ignore_errors=True)
    print("\n| what | Penstock, GB/s | beside it | ratio | bar | | beside it: |\n|---|---|---|---|---|---|---|")
    for row in table:
        print("| " + " | ".join(row) + " |")
    return 0 if all(row[5] == "met" for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
