"""Streams HDF5 datasets that are larger than memory to a GPU, within a fixed number of bytes.

    import penstock as ps

    source = ps.Source(image="shards/*.h5:/images", label="shards/*.h5:/labels").astype(image="float32")
    loader = ps.Loader(source, batch_size=256, order=ps.Shuffled(seed=42), device="cuda:0", device_memory="512MiB")
    for epoch in range(10):
        for batch in loader.epoch(epoch):
            loss = step(batch.torch("image"), batch.torch("label"))
    print(loader.report())

The same code runs on the host, where there is no GPU: device="host".
"""

from ._batch import Batch, Field
from ._core import has_cuda
from ._errors import (
    BudgetError,
    ClosedError,
    DataError,
    DeviceError,
    ForkError,
    GivenBackError,
    PenstockError,
    PipelineError,
)
from ._inspect import Dataset, inspect
from ._loader import Loader, RowPlace
from ._map import Block
from ._order import Balanced, Random, Sequential, Shuffled, Weighted
from ._report import Plan, Price, Report, price
from ._run import Epoch
from ._source import Source, mixed

__version__ = "0.1.0"

__all__ = [
    "Balanced",
    "Batch",
    "Block",
    "BudgetError",
    "ClosedError",
    "DataError",
    "Dataset",
    "DeviceError",
    "Epoch",
    "Field",
    "ForkError",
    "GivenBackError",
    "Loader",
    "PenstockError",
    "PipelineError",
    "Plan",
    "Price",
    "Random",
    "Report",
    "RowPlace",
    "Sequential",
    "Shuffled",
    "Source",
    "Weighted",
    "has_cuda",
    "inspect",
    "mixed",
    "price",
]

for _name in __all__:  # what is printed and pickled is penstock.DataError, wherever it is written
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
