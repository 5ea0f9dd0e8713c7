"""Feed a target: by coverage with atheris where it is installed, else by seeded mutation."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from tests.fuzz import mutate

Target = Callable[[bytes], None]


def mutations(
    target: Target,
    seeds: Sequence[bytes],
    random: Random,
    enough: Callable[[int], bool],
) -> int:
    """Feed mutations of the seeds until ``enough``; returns how many inputs were tried.

    Inputs that a target survived join the pool now and then, so that mutations add up.
    """
    pool, tried = list(seeds), 0
    for seed in seeds:
        target(seed)
    while not enough(tried):
        data = mutate.mutated(random, random.choice(pool))
        if random.random() < 0.02:
            data = mutate.noise(random)
        target(data)
        tried += 1
        if random.random() < 0.05 and len(data) < 4096:
            pool[len(seeds) + random.randrange(200) :] = [data]
    return tried


def has_atheris() -> bool:
    return importlib.util.find_spec("atheris") is not None


def by_coverage(name: str, seconds: int) -> None:
    """Hand over to atheris, which ends the process itself; a finding ends it with a traceback."""
    import atheris  # noqa: PLC0415  # optional

    with atheris.instrument_imports(include=["sink"]):
        targets = importlib.import_module("tests.fuzz.targets")
    target, seeds = targets.TARGETS[name]
    place = tempfile.mkdtemp(prefix="retire-fuzz-")
    for number, seed in enumerate(seeds()):
        (Path(place) / f"seed-{number}").write_bytes(seed)
    options = [f"-max_total_time={seconds}", "-max_len=4096", f"-artifact_prefix={place}/"]
    atheris.Setup([sys.argv[0], *options, place], target)
    atheris.Fuzz()


def main(name: str) -> None:
    """Run one target for some seconds."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.fuzz.{name}")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("atheris", "mutations"))
    arguments = parser.parse_args()
    engine = arguments.engine or ("atheris" if has_atheris() else "mutations")
    if engine == "atheris":
        by_coverage(name, arguments.seconds)
        return
    targets = importlib.import_module("tests.fuzz.targets")
    target, seeds = targets.TARGETS[name]
    end = time.monotonic() + arguments.seconds
    tried = mutations(target, seeds(), Random(arguments.seed), lambda _: time.monotonic() >= end)
    print(f"{name}: {tried} inputs by mutation, seed {arguments.seed}, nothing found")
