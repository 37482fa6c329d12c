"""Batches as torch's tensors: on the host, and on a GPU where there is one."""

import subprocess
import sys

import h5py
import numpy as np
import pytest

import penstock as ps

torch = pytest.importorskip("torch", reason="torch is not installed")

needs_gpu = pytest.mark.skipif(
    not (ps.has_cuda and torch.cuda.is_available()), reason="needs a CUDA device, torch with CUDA and Penstock with CUDA"
)
DEVICES = ["host", pytest.param("cuda:0", marks=needs_gpu)]


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_are_the_rows_themselves(make, device, small):
    batch = next(make(device=device).epoch(0))
    x, label = batch.torch("x"), torch.from_dlpack(batch["label"])
    assert (x.dtype, tuple(x.shape), x.is_contiguous()) == (torch.float32, (64, 5), True)
    assert str(x.device) == batch["x"].device
    assert batch.torch("x").data_ptr() == x.data_ptr()
    assert label.tolist() == list(range(64))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "uint8", "int32", "int64"])
def test_types_are_torch_s(make, source, device, dtype):
    loader = make(of=source.astype(label=getattr(torch, dtype)), device=device)
    label = next(loader.epoch(0)).torch("label")
    assert label.dtype == getattr(torch, dtype)
    assert label.cpu().double().tolist() == list(range(64))


@pytest.mark.parametrize("code", ["u2", "u4", "u8"])
def test_types_that_this_torch_lacks_are_named(make, tmp_path, code):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.arange(9, dtype=code)
    name = np.dtype(code).name
    batch = next(make(of=ps.Source(v=f"{tmp_path}/a.h5:/v")).epoch(0))
    try:
        torch.from_dlpack(np.arange(9, dtype=code))
        known = True
    except (RuntimeError, BufferError):
        known = False
    if known:
        assert batch.torch("v").tolist() == list(range(9))
    else:
        with pytest.raises(TypeError, match=f"no {name}, the type of field 'v'.*astype"):
            batch.torch("v")
        again = next(make(of=ps.Source(v=f"{tmp_path}/a.h5:/v").astype(v=torch.int64)).epoch(0))
        assert again.torch("v").tolist() == list(range(9))


def test_other_errors_are_not_taken_for_a_type_that_torch_lacks(make, tmp_path, monkeypatch):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.arange(9, dtype="u2")
    batch = next(make(of=ps.Source(v=f"{tmp_path}/a.h5:/v")).epoch(0))

    def fails(device):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(ps._batch, "torch_stream", fails)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        batch.torch("v")


@pytest.mark.parametrize("device", DEVICES)
def test_a_model_trains_on_batches(make, source, device):
    loader = make(50, of=source.astype(label="float32"), order=ps.Shuffled(seed=1), device=device)
    model = torch.nn.Linear(5, 1).to("cpu" if device == "host" else device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    rows = 0
    for epoch in range(3):
        for batch in loader.epoch(epoch):
            loss = ((model(batch.torch("x"))[:, 0] - batch.torch("label") / 1000) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rows += batch.rows
    assert rows == 3000 and torch.isfinite(loss)


@pytest.mark.parametrize("device", DEVICES)
def test_a_tensor_outlives_the_loop_and_the_loader(make, device):
    loader = make(device=device)
    for batch in loader.epoch(0):
        label = batch.torch("label")
    loader.close()
    del batch, loader
    assert label.tolist() == list(range(960, 1000))


class Labels(torch.utils.data.IterableDataset):
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return (batch.torch("label") for batch in self.loader.epoch(0))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads
@pytest.mark.parametrize(
    ("context", "error", "sentence"),
    [("fork", ps.ForkError, "belongs to process"), ("spawn", TypeError, "Worker processes are not needed")],
)
def test_a_dataloader_s_workers_are_refused_by_name(make, context, error, sentence):
    rows = Labels(make())
    with pytest.raises(error, match=sentence):
        next(iter(torch.utils.data.DataLoader(rows, batch_size=None, num_workers=1, multiprocessing_context=context)))
    whole = torch.cat([label.clone() for label in torch.utils.data.DataLoader(rows, batch_size=None)])
    assert whole.tolist() == list(range(1000))  # without workers it takes the loader as it is


RANK = """
import sys, torch, penstock as ps
rank, place, store = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.distributed.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
loader = ps.Loader(ps.Source(label=place), 64, order=ps.Shuffled(seed=1), device="host", last="pad")
print(len(loader), *(row for batch in loader.epoch(0) for row in batch.row_ids()))
torch.distributed.destroy_process_group()
"""


@pytest.mark.skipif(
    not (torch.distributed.is_available() and getattr(torch.distributed, "is_gloo_available", lambda: True)()), reason="this torch has no gloo"
)
def test_ranks_are_those_of_torch_distributed(small, tmp_path):
    def start(rank):
        command = [sys.executable, "-c", RANK, str(rank), f"{small}:/label", str(tmp_path / "store")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    outputs = [process.communicate(timeout=120)[0].split() for process in [start(0), start(1)]]
    assert outputs[0][0] == outputs[1][0]
    assert sorted(int(row) for output in outputs for row in output[1:]) == list(range(1000))


@needs_gpu
def test_batches_are_used_on_torch_s_current_stream(make, labels_of):
    loader, expected = make(order=ps.Shuffled(seed=1), device="cuda:0"), labels_of(make(order=ps.Shuffled(seed=1)).epoch(0))
    side = torch.cuda.Stream()
    for stream in (torch.cuda.default_stream(), side):
        with torch.cuda.stream(stream):
            sums = [batch.torch("label") * 2 for batch in loader.epoch(0)]
            found = torch.cat(sums).cpu().numpy()
        np.testing.assert_array_equal(found, expected * 2)


@needs_gpu
def test_a_stream_can_change_within_a_loop(make):
    loader = make(device="cuda:0")
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    found = []
    for batch in loader.epoch(0):
        with torch.cuda.stream(streams[batch.index % 2]):
            found.append(batch.torch("label") + 0)
    torch.cuda.synchronize()
    assert torch.cat(found).tolist() == list(range(1000))


@needs_gpu
def test_rows_on_a_gpu_are_no_numpy_arrays(make):
    with pytest.raises(TypeError, match="on cuda:0"):
        next(make(device="cuda:0").epoch(0)).numpy("x")


def test_a_gpu_that_is_left_open_is_asked_of_torch(make, monkeypatch):
    for name, answer in (("is_available", True), ("is_initialized", True), ("current_device", 97)):
        monkeypatch.setattr(torch.cuda, name, lambda answer=answer: answer)
    monkeypatch.setattr(ps._options._core, "has_cuda", True)  # 97 is a device that nobody has
    for device in ("cuda", "auto", torch.device("cuda")):
        with pytest.raises(ps.DeviceError, match="there is no device cuda:97"):
            make(device=device)
    assert make(device="cpu").device == "host"
