#!/usr/bin/env python3
"""Prints what train_speed.py measured as tables for a README: speed_table.py speed.json"""

import json
import sys


def rows_of(figures, key):
    """Lines of (label, {batch: figure}), in the order of their first figures."""
    lines = {}
    for figure in figures:
        lines.setdefault(key(figure), {})[figure["batch"]] = figure
    return lines


def table(head, lines, batches, unit, show):
    yield f"| {head}, {unit} | " + " | ".join(f"batch {batch}" for batch in batches) + " |"
    yield "|---" * (len(batches) + 1) + "|"
    for label, figures in lines.items():
        yield f"| {label} | " + " | ".join(show(figures[batch]) if batch in figures else "" for batch in batches) + " |"
    yield ""


def main():
    with open(sys.argv[1]) as file:
        results = json.load(file)
    figures = results["figures"]
    batches = sorted({figure["batch"] for figure in figures})
    trained = [figure for figure in figures if figure["what"] == "train"]
    iterated = [figure for figure in figures if figure["what"] == "iterate"]
    link = results.get("link_gigabytes_per_second")
    print(f"{results.get('device', 'host')}, torch {results['torch']}, {results['processors']} processors", end="")
    print(f", pinned copies of 64 MiB {link:.1f} GB/s\n" if link else "\n")
    lines = rows_of(trained, lambda f: f"{f['mode']}, {f['precision']}, {f['feed']}")
    million = lambda f: f"{f['rows_per_second'] / 1e6:.3f}"  # noqa: E731
    print("\n".join(table("training step and feed", lines, batches, "million rows/s", million)))
    gigabytes = lambda f: f"{f['gigabytes_per_second']:.1f}"  # noqa: E731
    print("\n".join(table("iteration alone", rows_of(iterated, lambda f: "Penstock"), batches, "GB/s", gigabytes)))


if __name__ == "__main__":
    main()
