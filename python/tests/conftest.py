"""Files of known values, written by h5py: what is compared with."""

import h5py
import numpy as np
import pytest


def image_of(rows):
    return (np.arange(rows * 12) % 251).astype(np.uint8).reshape(rows, 3, 4)


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """/x float32 [1000, 5], /image uint8 [1000, 3, 4], /label int64 [1000] = row."""
    path = tmp_path_factory.mktemp("small") / "small.h5"
    rows = 1000
    with h5py.File(path, "w") as f:
        x = np.random.default_rng(1).standard_normal((rows, 5)).astype(np.float32)
        f.create_dataset("x", data=x, chunks=(64, 5))
        f.create_dataset("image", data=image_of(rows), chunks=(100, 3, 4), compression="gzip")
        f.create_dataset("label", data=np.arange(rows))
    return path


@pytest.fixture
def source(small):
    import penstock as ps

    return ps.Source(x=f"{small}:/x", image=f"{small}:/image", label=f"{small}:/label")


@pytest.fixture
def make(source):
    """Makes a loader on the host with little memory; closes it in the end."""
    import penstock as ps

    loaders = []

    def make_loader(batch_size=64, of=source, **options):
        memory = {"device_memory": "8MiB", "pinned_memory": "4MiB", "host_memory": "64MiB"}
        loaders.append(ps.Loader(of, batch_size, **{"device": "host", **memory, **options}))
        return loaders[-1]

    yield make_loader
    for loader in loaders:
        loader.close()


@pytest.fixture
def labels_of():
    """The labels of a loop, joined."""

    def labels(batches):
        return np.concatenate([batch.numpy("label").copy() for batch in batches] or [np.empty(0, np.int64)])

    return labels
