# SPDX-License-Identifier: Apache-2.0
"""Reads api/*.api, the ledger and the two lists of symbols. The format is in api/README.md."""

import re
from pathlib import Path

from model import CLASSES, KINDS, SCALARS, WORDS, Api, ApiError, Call, Constant, Field, \
    Param, Section, Wire

PROTOTYPE = re.compile(r"CUresult (\w+)\((.*)\)$")
WIRE = re.compile(r"wire (\w+) (async|sync)$")
SECTION = re.compile(r"section (\S.*)$")
CONSTANT = re.compile(r"constant (\w+) (\w+)$")
FIELD = re.compile(r"    (reply )?(\w+): (.*)$")
OPS = 128  # CHANNEL_OPS in src/wire/channel.h: numbers of wire commands are below
GRAPHICS = re.compile(r"cu(GL|EGL|VDPAU|Graphics(GL|EGL|VDPAU|ResourceGetMappedEgl))")
PARAM_NOTE = re.compile(r"    (\w+): (.*)$")


def parse_folder(folder):
    """The whole description; collects every error before it gives up."""
    api, errors = Api(str(folder)), []
    for path in sorted(Path(folder).glob("*.api")):
        for stanza in stanzas(path, api):
            try:
                parse_stanza(api, path, stanza)
            except ApiError as error:
                errors.append(error)
    read_ledger(api, Path(folder) / "opcodes.lock", errors)
    read_symbols(api, sorted(Path(folder).glob("symbols-*.txt"))[-1])
    read_lookups(api, Path(folder) / "getprocaddress.tsv")
    return api, errors


def stanzas(path, api):
    """Groups of (line number, line): a line that begins at the margin, and those indented below.
    The comment that a file begins with says what the family is."""
    group, title, begun = [], [], False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("#"):
            if not begun and "SPDX" not in line:
                title.append(line.lstrip("#").strip())
            continue
        begun = begun or bool(line.strip())
        if line and not line[0].isspace() and group:
            yield group
            group = []
        if line.strip():
            group.append((number, line.rstrip()))
    if group:
        yield group
    api.families[path.stem] = " ".join(title).strip() or path.stem


def parse_stanza(api, path, lines):
    where = f"{path.name}:{lines[0][0]}"
    head, rest = join_head(lines)
    match = PROTOTYPE.match(head)
    if match:
        api.calls.append(parse_call(match, path, where, rest))
        return
    match = SECTION.match(head)
    if match:
        api.sections.append(Section(match.group(1), " ".join(line.strip() for _, line in rest)))
        return
    section = api.sections[-1].title if api.sections else ""
    match = WIRE.match(head)
    if match:
        api.wires.append(parse_wire(match, path, where, rest))
        api.wires[-1].section = section
        return
    match = CONSTANT.match(head)
    if match:
        prose = " ".join(line.strip() for _, line in rest)
        api.constants.append(Constant(match.group(1), match.group(2), where, prose, section))
        return
    raise ApiError(where, f"neither a prototype nor a wire command: {head}")


def join_head(lines):
    """A prototype may go on over several lines, until its parenthesis closes."""
    head, used = lines[0][1], 1
    while head.count("(") > head.count(")") and used < len(lines):
        head += " " + lines[used][1].strip()
        used += 1
    return head, lines[used:]


def parse_call(match, path, where, rest):
    call = Call(match.group(1), parse_params(match.group(2), where), where, path.stem)
    if not rest:
        raise ApiError(where, f"{call.name}: no class and no prose")
    parse_tags(call, f"{path.name}:{rest[0][0]}", rest[0][1].split())
    by_name = {p.name: p for p in call.params}
    prose = []
    for number, line in rest[1:]:
        note = PARAM_NOTE.match(line)
        if note and not prose and note.group(1) in by_name:
            param = by_name[note.group(1)]
            param.where = f"{path.name}:{number}"
            param.words = parse_words(note.group(2))
        elif note and not prose and set(parse_words(note.group(2))) <= WORDS:
            raise ApiError(f"{path.name}:{number}",
                           f"{call.name}: no parameter is called {note.group(1)}")
        else:
            prose.append(line.strip())
    call.prose = " ".join(prose)
    return call


def parse_params(text, where):
    if text.strip() in ("", "void"):
        return []
    params = []
    for part in text.split(","):
        match = re.match(r"^(.*?[\s*])(\w+)$", part.strip())
        if not match:
            raise ApiError(where, f"cannot read the parameter '{part.strip()}'")
        params.append(Param(match.group(2), re.sub(r"\s*\*", " *", match.group(1)).strip()
                            .replace("* *", "**").replace("* *", "**"), where=where))
    return params


def parse_words(text):
    words = {}
    for word in text.split():
        key, _, value = word.partition("=")
        words[key] = value
    return words


def parse_tags(call, where, words):
    if words[0] in CLASSES:
        call.cls = words.pop(0)
    elif not words[0].startswith("alias="):
        raise ApiError(where, f"{call.name}: '{words[0]}' is no class "
                              f"({', '.join(CLASSES)}) and no alias=")
    call.tags = parse_words(" ".join(words))


def parse_wire(match, path, where, rest):
    wire = Wire(match.group(1), match.group(2) == "sync", where)
    prose = []
    for number, line in rest:
        found = FIELD.match(line)
        if found and not prose:
            field = parse_field(found.group(2), found.group(3), f"{path.name}:{number}")
            (wire.reply if found.group(1) else wire.fields).append(field)
        else:
            prose.append(line.strip())
    wire.prose = " ".join(prose)
    return wire


def parse_field(name, text, where):
    words = text.split()
    new = words[0] == "new"
    if new:
        words.pop(0)
    kind = words[0] if words else ""
    if kind in KINDS:
        return Field(name, "u64", where, handle=kind, new=new)
    array = re.match(r"(\w+)\[(\d+)\]$", kind)
    if array and array.group(1) in SCALARS:
        return Field(name, array.group(1), where, count=int(array.group(2)))
    if kind in SCALARS and len(words) == 1:
        return Field(name, kind, where)
    if kind in ("bytes", "string"):
        placed = words[3:] == ["placed"]
        if len(words) != 3 + placed or words[1] != "max" or not words[2].isdigit():
            raise ApiError(where, f"{name}: {kind} without a length; write '{kind} max N'")
        return Field(name, kind, where, maximum=int(words[2]), placed=placed)
    raise ApiError(where, f"{name}: unknown type '{text}'")


def read_ledger(api, path, errors):
    api.ledger_file = path.name
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        op, name = line.split()
        where = f"{path.name}:{number}"
        if not 0 < int(op) < OPS:
            errors.append(ApiError(where, f"number {op} is not below {OPS}, as CHANNEL_OPS in "
                                          "src/wire/channel.h demands; raise both"))
        if int(op) in api.ledger.values():
            errors.append(ApiError(where, f"number {op} is given out twice"))
        if name in api.ledger:
            errors.append(ApiError(where, f"{name} has two numbers"))
        api.ledger[name] = int(op)
        api.numbered[name] = where


def read_symbols(api, path):
    api.symbols_file = path.name
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.strip():
            api.symbols[line.strip()] = f"{path.name}:{number}"


def read_lookups(api, path):
    """Rows of the graphics APIs are left out: what we do not export is not found."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            name, flag, version, symbol = line.split("\t")
            if GRAPHICS.match(name):
                continue
            api.lookups.append((name, int(flag), int(version), symbol, f"{path.name}:{number}"))
