"""The programs in the documents run as they stand, but for the device."""

import pathlib
import re

import h5py
import numpy as np
import pytest

import penstock as ps

FOLDER = pathlib.Path(__file__).parents[1]


def blocks(text):
    """Python's blocks of code that read rows with Penstock."""
    return [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "ps.Loader" in block]


def programs():
    readmes = [blocks((FOLDER / place).read_text()) for place in ("README.md", "../README.md")]
    lines = (ps.__doc__ or "").split("\n\n", 1)[1].splitlines()
    indented = "\n".join(line[4:] for line in lines if line.startswith("    "))
    assert [len(found) for found in readmes] == [1, 1]
    return {"python": readmes[0][0], "root": readmes[1][0], "docstring": indented.replace("shards/*.h5", "train.h5")}


@pytest.mark.parametrize("which", ["python", "root", "docstring"])
def test_the_program_of_the_documents_runs(which, tmp_path, monkeypatch, capsys):
    if not (FOLDER / "../README.md").exists():
        pytest.skip("needs the repository's README.md")
    pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.chdir(tmp_path)
    with h5py.File("train.h5", "w") as f:
        f["images"], f["labels"] = np.zeros((1000, 3, 4), np.uint8), np.arange(1000)
    program = programs()[which]
    assert 'device="cuda:0"' in program
    seen = []

    def step(image, label):
        seen.append((image.dtype, tuple(image.shape[1:]), label.tolist()))

    exec(compile(program.replace('"cuda:0"', '"host"'), which, "exec"), {"step": step})
    assert {str(dtype) for dtype, _, _ in seen} == {"torch.float32"} and {shape for _, shape, _ in seen} == {(3, 4)}
    assert sorted(label for _, _, labels in seen for label in labels) == sorted(list(range(1000)) * 10)
    assert which == "root" or "bottleneck" in capsys.readouterr().out
