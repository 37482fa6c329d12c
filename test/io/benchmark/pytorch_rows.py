#!/usr/bin/env python3
"""What bars.py compares with: PyTorch's DataLoader over h5py, whole batches as slices, pinned, copied to the device.

Usage: pytorch_rows.py FILE DATASET DEVICE BATCH_ROWS WORKERS[,WORKERS...]
Prints a line of JSON for each number of workers: the rate of the second epoch (workers are started in the first), and
the sum of all 32-bit words modulo 2^32.
"""
import json
import sys
import time

import h5py
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler


class Slices(Dataset):
    def __init__(self, path, name):
        self.path, self.name, self.data = path, name, None
        with h5py.File(path, "r") as f:
            self.rows = len(f[name])

    def __len__(self):
        return self.rows

    def __getitem__(self, rows):
        if self.data is None:  # each worker opens the file for itself
            self.data = h5py.File(self.path, "r")[self.name]
        return torch.from_numpy(self.data[rows[0] : rows[-1] + 1])


def epoch(loader, device):
    cuda = device.startswith("cuda")
    total = torch.zeros((), dtype=torch.int64, device=device)
    rows = 0
    start = time.perf_counter()
    for batch in loader:
        batch = batch.to(device, non_blocking=True)
        total += batch.view(torch.int32).sum(dtype=torch.int64)
        rows += len(batch)
    if cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start, rows, int(total) % 2**32


if __name__ == "__main__":
    path, name, device, batch_rows = *sys.argv[1:4], int(sys.argv[4])
    slices = Slices(path, name)
    with h5py.File(path, "r") as f:
        row_bytes = f[name][0].nbytes
    for workers in map(int, sys.argv[5].split(",")):
        loader = DataLoader(slices, sampler=BatchSampler(SequentialSampler(slices), batch_rows, False), batch_size=None,
                            num_workers=workers, pin_memory=device.startswith("cuda"), persistent_workers=workers > 0,
                            prefetch_factor=4 if workers else None)
        epoch(loader, device)
        seconds, rows, checksum = epoch(loader, device)
        del loader
        print(json.dumps({"workers": workers, "gb_per_s": rows * row_bytes / seconds / 1e9, "checksum": f"{checksum:08x}"}), flush=True)
