"""The benchmark runs, here on the host and for a moment: every feed and figure is there."""

import json
import pathlib
import subprocess
import sys

import pytest

BENCHMARK = pathlib.Path(__file__).parents[1] / "benchmark"


def start(program, *arguments):
    return subprocess.run([sys.executable, BENCHMARK / program, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def run(program, *arguments):
    done = start(program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_training_speed_is_measured_with_every_feed(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    file, results = tmp_path / "rows.h5", tmp_path / "speed.json"
    small = ["--make", 2000, "--columns", 32, "--batch", "64,256", "--seconds", 0.01, "--repeat", 2, "--workers", 1]
    memory = ["--device-memory", "16MiB", "--pinned-memory", "16MiB"]
    run("train_speed.py", file, *small, *memory, "--device", "cpu", "--modes", "eager,graph", "--precision", "fp32", "--json", results)
    figures = json.loads(results.read_text())["figures"]
    assert [(f["what"], f["batch"], f.get("feed")) for f in figures] == [
        ("iterate", 64, None),
        ("iterate", 256, None),
        *[("train", batch, feed) for batch in (64, 256) for feed in ("resident", "penstock", "h5py")],
    ]
    assert all(len(f["windows"]) == 2 and f["rows_per_second"] > 0 for f in figures)
    tables = run("speed_table.py", results)
    assert "| eager, fp32, penstock | " in tables and "| Penstock | " in tables


def test_words_that_nobody_knows_and_batches_that_do_not_fit_are_named(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    for option, word in {"--modes": "jit", "--batch": "0"}.items():
        done = start("train_speed.py", tmp_path / "rows.h5", option, word)
        assert done.returncode == 2 and f"argument {option}: " in done.stderr and f"'{word}'" in done.stderr
    few = [tmp_path / "rows.h5", "--make", 100, "--columns", 8, "--device", "cpu", "--parts", "iterate"]
    moment = ["--seconds", 0.01, "--repeat", 1, "--device-memory", "16MiB", "--pinned-memory", "16MiB"]
    done = start("train_speed.py", *few, *moment, "--batch", "64,128")
    assert "batches of 128 rows are left out: the file has 100 rows" in done.stderr and "batch     64" in done.stdout
    done = start("train_speed.py", *few, *moment, "--batch", "64", "--resident-rows", 32)
    assert "batches of 64 rows are left out: --resident-rows is 32" in done.stderr and "batch " not in done.stdout
