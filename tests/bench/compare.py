#!/usr/bin/env python3
"""Sets train_bench beside another program that prints the same JSON line, in alternation on the same machine.

Usage: compare.py WORKLOAD OURS PEER [--pairs 5]
  OURS and PEER are command lines; the workload is appended to each.
Example: compare.py rnn 'build/release/bin/train_bench --threads 2' 'venv/bin/python pytorch_train.py --threads 2'

Prints tokens per second of both (median), the ratio pair by pair (minimum, median, maximum), and peak memory.
"""
import argparse
import json
import shlex
import statistics
import subprocess


def measure(command, workload):
    output = subprocess.run(shlex.split(command) + [workload], check=True, capture_output=True, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload")
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("--pairs", type=int, default=5)
    args = parser.parse_args()
    ours, peer = [], []
    for _ in range(args.pairs):
        ours.append(measure(args.ours, args.workload))
        peer.append(measure(args.peer, args.workload))
    ratios = sorted(a["tokens_per_s"] / b["tokens_per_s"] for a, b in zip(ours, peer))
    for runs in (ours, peer):
        speed = statistics.median(run["tokens_per_s"] for run in runs)
        memory = max(run["peak_rss_mib"] for run in runs)
        print(f"{args.workload:12} {runs[0]['impl']:24} {speed:12,.0f} tokens/s {memory:8.1f} MiB")
    print(f"{args.workload:12} ratio: minimum {ratios[0]:.2f}, median {statistics.median(ratios):.2f}, "
          f"maximum {ratios[-1]:.2f} over {args.pairs} pairs")


if __name__ == "__main__":
    main()
