"""Where batches come from: Penstock, a DataLoader over h5py, tensors that are on the device already. Each feed is an endless
iterator of (x, label) on the device, with batches of one size."""

import contextlib
import itertools

import h5py
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler

import penstock as ps


@contextlib.contextmanager
def penstock_loader(options, batch, fields=("x", "label")):
    """A loader of these fields, for torch's current stream."""
    places = {"x": options.dataset, "label": options.labels}
    source = ps.Source(**{name: (options.file, places[name]) for name in fields})
    if "label" in fields:
        source = source.astype(label="int64")
    order = ps.Shuffled(seed=1) if options.order == "shuffled" else ps.Sequential()
    memory = {"device_memory": options.device_memory, "pinned_memory": options.pinned_memory}
    device = "host" if options.device == "cpu" else options.device
    with ps.Loader(source, batch, order=order, device=device, last="drop", threads=options.threads, **memory) as loader:
        yield loader


@contextlib.contextmanager
def penstock_feed(options, batch):
    def batches(loader):
        for epoch in itertools.count():
            for rows in loader.epoch(epoch):
                yield rows.torch("x"), rows.torch("label")

    with penstock_loader(options, batch) as loader:
        yield batches(loader)


class Slices(Dataset):
    """Whole batches of neighbouring rows: the fastest way of reading HDF5 that is widely advised."""

    def __init__(self, file, dataset, labels):
        self.file, self.dataset, self.labels, self.opened = file, dataset, labels, None
        with h5py.File(file) as f:
            self.rows = f[dataset].shape[0]

    def __len__(self):
        return self.rows

    def __getitem__(self, rows):
        self.opened = self.opened or h5py.File(self.file)  # in each worker
        part = slice(rows[0], rows[-1] + 1)
        return torch.from_numpy(self.opened[self.dataset][part]), torch.from_numpy(self.opened[self.labels][part]).long()


@contextlib.contextmanager
def h5py_feed(options, batch):
    data = Slices(options.file, options.dataset, options.labels)
    how = {"num_workers": options.workers, "pin_memory": options.device != "cpu"}
    if options.workers:
        ahead = 4 if batch * options.columns * 4 < 32 << 20 else 2  # batches travel through /dev/shm
        how |= {"prefetch_factor": ahead, "persistent_workers": True}
    loader = DataLoader(data, sampler=BatchSampler(SequentialSampler(data), batch, True), batch_size=None, **how)

    def batches():
        while True:
            for x, label in loader:
                yield x.to(options.device, non_blocking=True), label.to(options.device, non_blocking=True)

    running = batches()
    yield running
    running.close()


class Resident:
    """The file's first rows, on the device."""

    def __init__(self, options):
        with h5py.File(options.file) as f:
            rows = min(options.resident_rows, f[options.dataset].shape[0])
            self.x = torch.from_numpy(f[options.dataset][:rows]).to(options.device)
            self.label = torch.from_numpy(f[options.labels][:rows]).long().to(options.device)

    @contextlib.contextmanager
    def feed(self, batch):
        def batches():
            while True:
                for first in range(0, len(self.x) - batch + 1, batch):
                    yield self.x[first : first + batch], self.label[first : first + batch]

        yield batches()
