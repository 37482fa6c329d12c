"""What the scripts that disturb penstock-train share: its command line, a data file, and what a checkpoint holds."""

import os
import pathlib
import subprocess

import h5py

EPOCHS = 6
CHUNK = 500  # rows, where they are stored anew


class training:
    def __init__(self, programs, folder, rows):
        self.programs = pathlib.Path(programs)
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "rows.h5"
        subprocess.run(
            [self.programs / "penstock-make-dataset", "rows", self.data, "--rows", str(rows), "--columns", "64"],
            check=True, capture_output=True,
        )  # fmt: skip

    def store(self):
        """Stores the data anew, in chunks of CHUNK rows whose damage is told: gzip ends in a checksum, and fletcher32 is one. So is that of headers
        and indices, as libhdf5 writes them since 1.8 where it may."""
        with h5py.File(self.data) as file:
            x, label = file["x"][:], file["label"][:]
        with h5py.File(self.data, "w", libver="latest") as file:
            file.create_dataset("x", data=x, chunks=(CHUNK, x.shape[1]), compression="gzip", compression_opts=1)
            file.create_dataset("label", data=label, chunks=(CHUNK,), fletcher32=True)

    def start(self, checkpoint, data=None, before=None, more=(), **environment):
        """Starts a run, from its checkpoint where there is one; `before` is called in the new process first."""
        command = [
            self.programs / "penstock-train", data or self.data, "--hidden", "64", "--batch-rows", "64", "--epochs",
            str(EPOCHS), "--device", "host", "--threads", "2", "--checkpoint", checkpoint, *more,
        ]  # fmt: skip
        if checkpoint.exists():
            command.append("--resume")
        # Signals that the test ignores are ignored there: without SIGXFSZ a file that may not grow is an error of write().
        return subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            restore_signals=False, preexec_fn=before, env={**os.environ, **environment},
        )  # fmt: skip


def state_of(checkpoint):
    """Every dataset of a checkpoint, as bytes."""
    found = {}
    with h5py.File(checkpoint) as file:
        file.visititems(lambda name, item: found.update({name: item[()].tobytes()}) if hasattr(item, "dtype") else None)
    return found
