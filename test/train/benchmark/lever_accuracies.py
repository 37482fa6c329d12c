#!/usr/bin/env python3
"""Trains on Fashion-MNIST with each lever by itself, and prints what came of it as a table: accuracy, memory, speed.

    lever_accuracies.py PROGRAMS fashion-mnist.h5 [--device cuda:0] [--epochs 12] [--json FILE]

PROGRAMS holds penstock-train; the file is made by `penstock-make-dataset fashion-mnist`. All runs have one seed, but for
those of float32 with other seeds, which show how far accuracies lie apart by chance. Levers that do not change the
arithmetic must give the bits of the run without them: their losses are compared digit by digit. Ends with 1 where they differ, or
where an accuracy is further from that of float32 than --noise, or below --least."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

# A name, the options, and the run whose bits it must have.
levers = [
    ("float32", [], None),
    ("float32, seed 2", ["--seed", "2"], None),
    ("float32, seed 3", ["--seed", "3"], None),
    ("tf32", ["--precision", "tf32"], None),
    ("bf16", ["--precision", "bf16"], None),
    ("fp16", ["--precision", "fp16"], None),
    ("activations computed again", ["--recompute", "2"], "float32"),
    ("moments on the host", ["--offload", "optimizer"], "float32"),
    ("activations on the host", ["--offload", "activations"], "float32"),
    ("steps of 4 batches of 64", ["--batch-rows", "64", "--accumulate", "4"], None),
    ("steps of 32 batches of 8", ["--batch-rows", "8", "--accumulate", "32"], None),
    ("bf16, every lever", ["--precision", "bf16", "--recompute", "2", "--offload", "optimizer,activations", "--batch-rows", "64", "--accumulate", "4"], None),
]  # fmt: skip


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs")
    p.add_argument("file")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--device-memory", default="32MiB")
    p.add_argument("--epochs", default="12")
    p.add_argument("--hidden", default="512,256,128")
    p.add_argument("--threads", default="0", help="on the host")
    p.add_argument("--only", help="names of the table, with ; between them")
    p.add_argument("--noise", type=float, default=0.006, help="accuracies may be so far apart")
    p.add_argument("--least", type=float, default=0, help="no accuracy may be lower")
    p.add_argument("--json", help="file of the results")
    return p.parse_args()


def train(o, options, result):
    """What penstock-train writes as JSON, or its error."""
    command = [f"{o.programs}/penstock-train", o.file, "--hidden", o.hidden, "--epochs", o.epochs, "--schedule", "cosine", "--device", o.device]
    command += ["--device-memory", o.device_memory, "--threads", o.threads, "--json", result, *options]
    if "--seed" not in options:
        command += ["--seed", "1"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1]
    with open(result) as file:
        return json.load(file)


def stage_bytes(shown):
    """Device memory of the stage: the pipeline's rings take what is left of the budget."""
    return sum(item["bytes"] for item in shown["plan"]["items"] if item["kind"] == "device" and item["name"].startswith("train"))


def main():
    o = arguments()
    only = o.only.split(";") if o.only else [name for name, _, _ in levers]
    runs, failed = {}, False
    print(f"| lever | test accuracy | loss of the last epoch | train memory, MiB | million rows/s | |\n|---|---|---|---|---|---|")
    for name, options, same_as in levers:
        if name not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            shown = train(o, options, os.path.join(folder, "run.json"))
        if isinstance(shown, str):
            failed = True
            print(f"| {name} | | | | | {shown} |", flush=True)
            continue
        runs[name] = shown
        losses = [epoch["loss"] for epoch in shown["epochs"]]
        remark, base = "", runs.get(same_as or "float32")
        if same_as and base:
            same = losses == [epoch["loss"] for epoch in base["epochs"]] and shown["test_accuracy"] == base["test_accuracy"]
            remark, failed = ("the same bits" if same else "OTHER BITS"), failed or not same
        elif base and abs(shown["test_accuracy"] - base["test_accuracy"]) > o.noise:
            remark, failed = "FAR FROM float32", True
        if shown["test_accuracy"] < o.least:
            remark, failed = f"{remark} BELOW {o.least}".strip(), True
        speed = sorted(epoch["rows_per_s"] for epoch in shown["epochs"])[len(losses) // 2] / 1e6
        print(f"| {name} | {shown['test_accuracy']:.4f} | {losses[-1]:.6f} | {stage_bytes(shown) / 2**20:.1f} | {speed:.2f} | {remark} |", flush=True)
    if o.json:
        with open(o.json, "w") as out:
            json.dump(runs, out, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
