#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs scenes of a fleet on this machine, with Funnel's packages in clean systems:
tests/fleet/run.py [--work FOLDER] [--packages FOLDER] [SCENE...]

Without names all run; `--list` names them. Each leaves SCENE.log in the work folder. They need root, a
mirror of Debian, and for some scenes one of Ubuntu; they change nothing outside of the work folder.
"""
import argparse
import importlib
import pathlib
import subprocess
import sys

import fleet


def scenes():
    return sorted(path.stem[6:] for path in fleet.HERE.glob("scene_*.py"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", default=fleet.ROOT / "build-fleet", type=pathlib.Path)
    parser.add_argument("--packages", type=pathlib.Path, help="built already; not of this tree")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("scene", nargs="*")
    options = parser.parse_args()
    if options.list:
        print("\n".join(scenes()))
        return 0
    missing = fleet.why_not()
    if missing:
        print(missing, file=sys.stderr)
        return 77
    fleet.given_packages = options.packages and options.packages.resolve()
    failed = []
    for name in options.scene or scenes():
        scene = fleet.Scene(options.work, name)
        try:
            importlib.import_module(f"scene_{name}").run(scene)
            scene.say(f"passed  {name}")
        except (fleet.Failed, subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            failed.append(name)
            scene.say(f"FAILED  {name}: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
