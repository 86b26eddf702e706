#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the description of the driver API (api/) into C. See README.md.

    apigen.py check API                 only looks for errors
    apigen.py emit GROUP API OUT        writes the files of one group into the folder OUT
    apigen.py coverage API              prints docs/api-coverage.md
    apigen.py protocol API              prints docs/protocol.md
"""

import sys
from pathlib import Path

import check
import emit_dispatch
import emit_docs
import emit_entry
import emit_models
import emit_protocol
import emit_tables
import emit_wire
from model import ApiError
from parser import parse_folder

GROUPS = {
    "cuda": (emit_tables.emit_cuda,),
    "wire": (emit_wire.emit,),
    **{model: (emit_models.prototypes_of(model),) for model in emit_models.MODELS},
    "client": (emit_entry.emit_client, emit_models.emit_client, emit_tables.emit_passthrough,
               emit_tables.emit_entry_points),
    "server": (emit_dispatch.emit,),
    "driver": (emit_tables.emit_driver,),
    "softgpu": (emit_entry.emit_soft, emit_models.emit_soft, emit_tables.emit_entry_points),
    "map": (emit_tables.emit_map,),
    "protocol": (emit_protocol.emit_layout,),
}


def load(folder):
    """The description, or the end of the program with every error in it."""
    api, errors = parse_folder(folder)
    errors += check.check(api)
    for error in errors:
        print(error, file=sys.stderr)
    if errors:
        sys.exit(f"{len(errors)} error{'s' if len(errors) > 1 else ''} in the description")
    return api


def protocol(folder):
    """The page, or the end of the program."""
    try:
        return emit_protocol.page(load(folder))
    except ApiError as error:
        sys.exit(str(error))


def emit(group, folder, out):
    api = load(folder)
    Path(out).mkdir(parents=True, exist_ok=True)
    for emitter in GROUPS[group]:
        for name, text in emitter(api).items():
            (Path(out) / name).write_text(text)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "check":
        load(arguments[1])
    elif len(arguments) == 4 and arguments[0] == "emit" and arguments[1] in GROUPS:
        emit(*arguments[1:])
    elif len(arguments) == 2 and arguments[0] == "coverage":
        sys.stdout.write(emit_docs.coverage(load(arguments[1])))
    elif len(arguments) == 2 and arguments[0] == "protocol":
        sys.stdout.write(protocol(arguments[1]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
