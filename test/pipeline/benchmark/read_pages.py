#!/usr/bin/env python3
"""Reads a file from the page cache again and again, as many processes at a stated rate, and does nothing with it: what a
consumer on the device loses where processors copy bytes beside it, whoever made them do so.

    read_pages.py rows.h5 --gb-per-second 24 --seconds 20 &
    penstock-throughput rows.h5 --dataset /x --batch-rows 32 --resident

Says at the end what rate it came to."""

import argparse
import mmap
import multiprocessing
import os
import time


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file")
    p.add_argument("--processes", type=int, default=6)
    p.add_argument("--gb-per-second", type=float, default=0, help="of all together; 0: as fast as they can")
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--block-bytes", type=int, default=1 << 20, help="of one read")
    p.add_argument("--blocks", type=int, default=3, help="places in memory that a process reads to in turn")
    return p.parse_args()


def read(options, process, start, counts):
    descriptor = os.open(options.file, os.O_RDONLY)
    size = os.fstat(descriptor).st_size
    memory = memoryview(mmap.mmap(-1, options.block_bytes * options.blocks))
    places = [memory[i * options.block_bytes : (i + 1) * options.block_bytes] for i in range(options.blocks)]
    each = options.gb_per_second * 1e9 / options.processes
    at, done, turn = size * process // options.processes, 0, 0
    start.wait()
    since = time.monotonic()
    while (passed := time.monotonic() - since) < options.seconds:
        if each and done > each * passed:
            time.sleep(done / each - passed)
            continue
        count = os.preadv(descriptor, [places[turn]], at)
        done += count
        turn = (turn + 1) % options.blocks
        at = (at + count) % size
    counts[process] = done / (time.monotonic() - since)


def main():
    options = arguments()
    start, counts = multiprocessing.Event(), multiprocessing.Array("d", options.processes)
    readers = [multiprocessing.Process(target=read, args=(options, n, start, counts)) for n in range(options.processes)]
    for one in readers:
        one.start()
    start.set()
    for one in readers:
        one.join()
    print(f"read {sum(counts) / 1e9:.1f} GB/s in {options.processes} processes")


if __name__ == "__main__":
    main()
