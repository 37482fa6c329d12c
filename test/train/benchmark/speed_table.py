#!/usr/bin/env python3
"""Prints what speeds.py measured as a table for a README, with the bars that it is held against: speed_table.py speeds.json

A bar is met where Penstock, streamed, reaches the smaller of 0.97 times PyTorch's `graph` (rows on the GPU, whole step a
CUDA graph) and 0.85 times the ideal reader, at batch 256 of 1.5 times `graph` (float32: 1.3); 8 times PyTorch fed by h5py
(bf16 at 16384: 15), or `graph`, where that is less; and 0.95 times its own step on rows that are on the device, where that
is below 0.85 times the ideal reader. Where PyTorch was not measured, 0.85 times the ideal reader is enough, and less leaves
it open."""

import json
import sys


class Figures:
    def __init__(self, values):
        self.values = values
        self.limit = max((figure["gb_per_s"] for figure in values.get("limit", [])), default=None)

    def rate(self, part, batch, precision, **more):
        """The best of those that fit, in GB/s; None where there is none."""
        wanted = {"batch": batch, "precision": precision, **more}
        found = [f["gb_per_s"] for f in self.values.get(part, []) if all(f.get(name) == value for name, value in wanted.items())]
        return max(found, default=None)


def bars(figures, batch, precision, streamed):
    """Pairs of a name and what must be reached, as far as what was measured decides it."""
    graph = figures.rate("pytorch", batch, precision, kind="graph")
    fed = figures.rate("pytorch", batch, precision, kind="h5slice")
    resident, limit = figures.rate("resident", batch, precision), figures.limit
    if graph and limit:
        ahead = (1.3 if precision == "float32" else 1.5) if batch == 256 else 0.97
        yield "graph", min(ahead * graph, 0.85 * limit)
    elif limit and streamed >= 0.85 * limit:
        yield "graph", 0.85 * limit
    if graph and fed:
        times = 15 if (batch, precision) == (16384, "bf16") else 8
        yield "h5py", times * fed if times == 15 else min(times * fed, graph)
    if resident and limit and resident < 0.85 * limit:
        yield "own step", 0.95 * resident


def cell(rate):
    return "" if rate is None else f"{rate:.1f}"


def verdict(streamed, wanted):
    missed = [f"{name} ({least:.1f})" for name, least in wanted if streamed < least]
    return "missed: " + ", ".join(missed) if missed else "met" if wanted else ""


def main():
    with open(sys.argv[1]) as file:
        values = json.load(file)
    if "streamed" not in values:
        sys.exit(f"{sys.argv[1]} has no figures of streamed rows yet")
    figures, settings = Figures(values), values["settings"]
    limit = f", an ideal reader {figures.limit:.1f} GB/s" if figures.limit else ""
    print(f"{values.get('device', '')}, {settings['processors']} processors, medians of {settings['windows']} windows of at least {settings['seconds']:g} s{limit}\n")
    print("| batch rows | precision | Penstock, streamed | its own step, rows on the device | PyTorch `graph` | PyTorch eager | PyTorch fed by h5py | bars |")
    print("|---|---|---|---|---|---|---|---|")
    all_met = True
    for figure in sorted(values.get("streamed", []), key=lambda f: f["batch"]):
        batch, precision, streamed = figure["batch"], figure["precision"], figure["gb_per_s"]
        beside = [figures.rate("resident", batch, precision)]
        beside += [figures.rate("pytorch", batch, precision, kind=kind) for kind in ("graph", "incore", "h5slice")]
        result = verdict(streamed, list(bars(figures, batch, precision, streamed)))
        all_met = all_met and not result.startswith("missed")
        print(f"| {batch} | {precision} | {streamed:.1f} | " + " | ".join(map(cell, beside)) + f" | {result} |")
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
