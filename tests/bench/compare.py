#!/usr/bin/env python3
"""Sets train_bench beside PyTorch and JAX: the same workloads, in alternation, on this machine.

Usage: compare.py [WORKLOAD ...] --peers PEER ... --peers-dir DIR [--threads 2] [--seconds 5] [--pairs 5]
  WORKLOAD  one of `train_bench --list`; all of them when none is named
  PEER      torch, torch-compile, torch-pscan, torch-bf16, jax, jax-assoc, jax-unroll8: a program of the peers' folder
            (pytorch_train.py, jax_train.py) and its options, as many as wanted: torch-compile-pscan

A round runs sgemm_bench, train_bench and each peer once. Prints for each workload:
  the machine's sgemm speed, and which share of it the workload's arithmetic reaches (flops_per_token);
  of each program the median of tokens per second and the largest peak memory of its process;
  for each peer our speed divided by its speed, round by round: smallest, median, largest; and our memory by its memory;
  a line with the ratio to the fastest of the peers that compute in fp32.
A peer that fails is reported and left out of the rounds that follow.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

PROGRAMS = {"torch": "pytorch_train.py", "jax": "jax_train.py"}
OPTIONS = {
    "torch": {"compile": ["--compile"], "bf16": ["--bf16"], "pscan": ["--scan", "pscan"]},
    "jax": {"assoc": ["--scan", "assoc"]},
}


class Failure(Exception):
    """A program that gave no result; the text says why."""


def flops_per_token(kind, vocabulary, steps, hidden, layers):
    """Floating-point operations of the textbook training step, for each token.

    6 for each weight that a token is multiplied with: 2 forward, 2 for the gradient of what comes in, 2 for the
    weight's own. The head counts, tied or not; the embedding is a look-up and does not. Attention: 12 T d a layer
    (scores and weighted sum, 4 forward and 8 backward), halved, since a step sees only those before it. Left out as
    small: biases, norms, gates, the convolution and the scan of ssm, the update.
    """
    gates = {"rnn": 1, "gru": 3, "lstm": 4}
    if kind in gates:
        layer = gates[kind] * 2 * hidden * hidden
    elif kind == "gpt":
        layer = 12 * hidden * hidden  # queries, keys, values, projection: 4; MLP: 8
    elif kind == "ssm":  # Mamba's defaults: twice as wide inside, 16 states, steps of rank hidden / 16
        inner, states, rank = 2 * hidden, 16, -(-hidden // 16)
        layer = hidden * 2 * inner + inner * (rank + 2 * states) + rank * inner + inner * hidden
    else:
        raise ValueError(f"no formula for a workload of kind {kind}")
    attention = 12 * steps * hidden / 2 * layers if kind == "gpt" else 0
    return 6 * (layers * layer + vocabulary * hidden) + attention


def peer_command(peer, args):
    """The command line of torch, jax-unroll8, ..., without the workload."""
    program, *parts = peer.split("-")
    if program not in PROGRAMS:
        sys.exit(f"compare.py: a peer is torch or jax with options: got {peer}")
    options = []
    for part in parts:
        unroll = re.fullmatch(r"unroll(\d+)", part) if program == "jax" else None
        if not unroll and part not in OPTIONS[program]:
            names = ", ".join([*OPTIONS[program], "unrollN"] if program == "jax" else OPTIONS[program])
            sys.exit(f"compare.py: the options of {program} are {names}: got {peer}")
        options += ["--unroll", unroll[1]] if unroll else OPTIONS[program][part]
    script = os.path.join(args.peers_dir, PROGRAMS[program])
    if program == "torch":
        return [args.python_torch, script, *options, "--threads", str(args.threads)]
    cpus = sorted(os.sched_getaffinity(0))[: args.threads]  # JAX takes all that it may have
    return ["taskset", "-c", ",".join(map(str, cpus)), args.python_jax, script, *options]


def measure(command):
    """The JSON line that a program prints last."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Failure(str(error)) from error
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise Failure((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    try:
        return json.loads(lines[-1])
    except json.JSONDecodeError as error:
        raise Failure(f"no JSON line: {lines[-1]}") from error


def list_workloads(train_bench):
    """name -> (kind, sizes), as train_bench --list prints them: `rnn rnn V=65 T=64 B=32 hidden=256 layers=1`."""
    workloads = {}
    for line in subprocess.run([train_bench, "--list"], check=True, capture_output=True, text=True).stdout.splitlines():
        name, kind, *sizes = line.split()
        workloads[name] = (kind, {key: int(value) for key, value in (size.split("=") for size in sizes)})
    return workloads


def run_rounds(workload, commands, pairs, record):
    """name -> its runs, one a round; a program that fails has none, and its name is in the second result."""
    runs, failures = {name: [] for name in commands}, {}
    for _ in range(pairs):
        for name, command in commands.items():
            if name in failures:
                continue
            try:
                runs[name].append(measure(command))
            except Failure as failure:
                failures[name] = str(failure)
            result = {"error": failures[name]} if name in failures else runs[name][-1]
            record({**result, "workload": workload, "program": name})
    return {name: of for name, of in runs.items() if name not in failures}, failures


def spread(values):
    return f"{min(values):6.2f} {statistics.median(values):6.2f} {max(values):6.2f}"


def report(workload, kind, sizes, runs, failures):
    def speed(name):
        return statistics.median(run["tokens_per_s"] for run in runs[name])

    def memory(name):
        return max(run["peak_rss_mib"] for run in runs[name])

    def ratios(peer):
        return [a["tokens_per_s"] / b["tokens_per_s"] for a, b in zip(runs["ours"], runs[peer])]

    print(f"{workload}: {kind} " + " ".join(f"{key}={value}" for key, value in sizes.items()))
    if "sgemm" in runs:
        flops = flops_per_token(kind, sizes["V"], sizes["T"], sizes["hidden"], sizes["layers"])
        sgemm = statistics.median(run["gflops"] for run in runs["sgemm"])
        print(f"  sgemm {sgemm:.0f} GFLOP/s, the step {flops / 1e6:.2f} MFLOP a token: ours is at "
              f"{speed('ours') * flops / sgemm / 1e7:.1f} % of it")
    print(f"  {'':20} {'tokens/s':>10} {'MiB':>7}   ours / peer: min, median, max   memory")
    for name in (name for name in runs if name != "sgemm"):
        line = f"  {name:20} {speed(name):10,.0f} {memory(name):7.0f}"
        if name != "ours":
            line += f"   {spread(ratios(name))}{'':12}{memory('ours') / memory(name):6.2f}"
        print(line)
    for name, reason in failures.items():
        print(f"  {name:20} failed: {reason}")
    fp32 = [name for name in runs if name not in ("sgemm", "ours") and "bf16" not in name]
    if fp32:
        best = max(fp32, key=speed)
        print(f"  ratio to the best fp32 peer, {best}: {statistics.median(ratios(best)):.2f}")
    print(flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--peers", nargs="+", default=["torch"], metavar="PEER")
    parser.add_argument("--peers-dir", default=".", metavar="DIR", help="where pytorch_train.py and jax_train.py are")
    parser.add_argument("--python-torch", default="python3", metavar="PATH", help="the interpreter that has PyTorch")
    parser.add_argument("--python-jax", default="python3", metavar="PATH", help="the interpreter that has JAX")
    parser.add_argument("--bin-dir", default="build/release/bin", metavar="DIR", help="where train_bench is")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5, help="of each run, after its warm-up")
    parser.add_argument("--pairs", type=int, default=5, help="rounds; fewer than five tell little")
    parser.add_argument("--json", metavar="FILE", help="append the line of every run to this file")
    args = parser.parse_args()
    if args.pairs < 1:
        parser.error("--pairs must be at least 1")
    if not os.path.exists(os.path.join(args.bin_dir, "train_bench")):
        parser.error(f"no train_bench in {args.bin_dir} (--bin-dir)")
    return args


def main():
    args = parse_arguments()
    train_bench = os.path.join(args.bin_dir, "train_bench")
    known = list_workloads(train_bench)
    for workload in args.workloads:
        if workload not in known:
            sys.exit(f"compare.py: a workload is one of {', '.join(known)}: got {workload}")
    threads, seconds = ["--threads", str(args.threads)], ["--seconds", str(args.seconds)]
    sgemm_bench = os.path.join(args.bin_dir, "sgemm_bench")
    programs = {"sgemm": [sgemm_bench, *threads], "ours": [train_bench, *threads, *seconds]}
    programs |= {peer: peer_command(peer, args) + seconds for peer in args.peers}

    def record(line):
        if args.json:
            with open(args.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    for workload in args.workloads or known:
        commands = {name: command + [workload] * (name != "sgemm") for name, command in programs.items()}
        runs, failures = run_rounds(workload, commands, args.pairs, record)
        if "ours" not in runs:
            sys.exit(f"compare.py: train_bench {workload} failed: {failures['ours']}")
        report(workload, *known[workload], runs, failures)


if __name__ == "__main__":
    main()
