#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The names of the driver API that runtimes of CUDA 11.8 and later have in them
(runtime_names.txt). This driver has each of them in the version that such a runtime asks for. It
serves those that it served when the list was made. Needs no toolkit.

    tests/api/test_runtime_names.py
    tests/api/test_runtime_names.py --list 11.8=libcudart.so.11.0 13.0=libcudart.so.13    prints the list
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = pathlib.Path(__file__).resolve().parent / "runtime_names.txt"
sys.path.insert(0, str(ROOT / "tools/apigen"))

from parser import parse_folder  # noqa: E402  (found through the path above)

VARIANT = re.compile("_pt[ds][sz]$")


class Driver:
    def __init__(self):
        api, errors = parse_folder(ROOT / "api")
        if errors:
            sys.exit("\n".join(map(str, errors)))
        self.calls = {call.name: call for call in api.calls}
        self.versions = {}  # base name -> {lowest CUDA version: symbol}
        for line in (ROOT / "api/getprocaddress.tsv").read_text().splitlines():
            if not line.startswith("#"):
                name, flag, version, symbol = line.split("\t")
                if flag == "0":
                    self.versions.setdefault(name, {})[int(version)] = symbol

    def symbol_of(self, name, version):
        """What a runtime of that version finds, by cuGetProcAddress or as a symbol; None: nothing."""
        known = [v for v in self.versions.get(name, {}) if v <= version]
        return self.versions[name][max(known)] if known else VARIANT.sub("", name)

    def answer(self, name, version):
        call = self.calls.get(self.symbol_of(name, version))
        if call is None:
            return "missing"
        return "refused" if call.cls == "unsupported" else "served"


def number_of(release):
    major, minor = release.split(".")
    return int(major) * 1000 + int(minor) * 10


def print_list(driver, libraries):
    first = {}
    for release, path in (text.split("=", 1) for text in libraries):
        for name in re.findall(rb"\0(cu[A-Z]\w+)(?=\0)", pathlib.Path(path).read_bytes()):
            first.setdefault(name.decode(), release)
    for name, release in sorted(first.items()):
        print(name, release, driver.answer(name, number_of(release)))


def read_list():
    lines = [line.split() for line in LIST.read_text().splitlines() if not line.startswith("#")]
    return [(name, release, answer) for name, release, answer in lines]


def main():
    driver = Driver()
    if sys.argv[1:2] == ["--list"]:
        return print_list(driver, sys.argv[2:])
    names, wrong = read_list(), 0
    for name, release, wanted in names:
        # What a runtime asks for stays, whatever release the driver is of.
        for version in (number_of(release), max(number_of(release), 13000)):
            found = driver.answer(name, version)
            if found != wanted:
                print(f"{name}, for CUDA {version // 1000}.{version % 1000 // 10}: {found}, not {wanted}")
                wrong += 1
    print(f"{len(names)} names, {wrong} wrong")
    return 1 if wrong or len(names) < 400 else 0


if __name__ == "__main__":
    sys.exit(main())
