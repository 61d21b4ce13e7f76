"""``python -m verif.formal``: prove the properties; the exit code says whether all of them hold."""

import argparse
import json
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from verif.formal import registry, table
from verif.formal.run import run_numbered

_FIRST = ("exhaustive", "class")
"""Engines whose properties start first: they take longest."""


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m verif.formal", description=__doc__.split(": ")[1])
    parser.add_argument("units", nargs="*", metavar="UNIT", help="units whose properties are proved (default: all)")
    parser.add_argument("--quick", action="store_true", help="only the properties of the quick tier")
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="properties at a time (default 2)"
    )
    parser.add_argument("-o", dest="folder", default="build/formal", help="folder for netlists, logs and waveforms")
    parser.add_argument("--table", metavar="FILE", help="write the table of results; only with all properties")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="what held in an earlier run in this folder, and has not changed, is not proved again",
    )
    parser.add_argument("--list", action="store_true", help="list the properties and stop")
    return parser


def main():
    parser = _arguments()
    options = parser.parse_args()
    try:
        chosen = (tuple(options.units), options.quick)
        properties = registry.properties(*chosen)
    except ValueError as error:
        parser.error(str(error))
    if options.jobs < 1:
        parser.error(f"--jobs must be an integer from 1, not {options.jobs}")
    if options.table and (options.units or options.quick):
        parser.error("--table needs all properties: leave out the units and --quick")
    if options.list:
        for prop in properties:
            print(f"{prop.name} [{prop.block.__name__}: {table.sizes_text(prop.sizes)}; {prop.engine}]")
        return 0
    if not properties:  # of the units that are named, each has some
        print(f"formal: no property of {', '.join(options.units)} is in the quick tier: leave out --quick")
        return 0
    try:
        folder = Path(options.folder).resolve()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        parser.error(f"cannot write to the folder {options.folder!r}: {getattr(error, 'strerror', None) or error}")
    results = {}
    order = sorted(range(len(properties)), key=lambda index: properties[index].engine not in _FIRST)
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(options.jobs, mp_context=context) as pool,
        tqdm(total=len(order), desc="formal", unit="property", disable=None) as bar,
    ):
        futures = {pool.submit(run_numbered, index, chosen, folder, options.keep): index for index in order}
        try:
            for future in as_completed(futures):
                index = futures[future]
                prop, result = properties[index], future.result()
                results[index] = result
                text = f"{prop.name} [{prop.block.__name__}]: {result.verdict}, {result.seconds:.0f} s"
                bar.write(text, file=sys.stdout)
                sys.stdout.flush()
                bar.update()
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    entries = [(properties[index], results[index]) for index in sorted(results)]
    _save(folder / "results.json", entries)
    if options.table:
        Path(options.table).write_text(table.document(entries))
    failed = [(prop, result) for prop, result in entries if result.holds is not True]
    for prop, result in failed:
        print(f"NOT PROVED: {prop.name} [{prop.block.__name__}]: {result.verdict}")
    print(f"formal: {len(entries)} properties, {len(entries) - len(failed)} hold, {len(failed)} do not or are unknown")
    return 1 if failed or not entries else 0


def _save(path, entries):
    rows = [
        {
            "property": prop.name,
            "block": prop.block.__name__,
            "sizes": prop.sizes,
            "engine": prop.engine,
            **asdict(result),
        }
        for prop, result in entries
    ]
    path.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
