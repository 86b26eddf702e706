# SPDX-License-Identifier: Apache-2.0
"""docs/protocol.md, from the prose in api/protocol.md.in, the structures in our headers and the
commands in wire.api. Also C that holds the offsets in it against the compiler's.

A line of the prose that is one of these stands for a table:

    {{constants HEADER NAME ...}}     numbers
    {{enum HEADER NAME}}              the values of an enumeration
    {{struct HEADER NAME}}            the layout of a structure
    {{handles}}                       the kinds of handles
    {{commands}}                      every command, by sections
"""

import re
from pathlib import Path

from cheader import SCALARS as C_SCALARS
from cheader import Headers
from ctext import head
from layout import align, layout_message, layout_reply
from model import KINDS, SCALARS, ApiError

TEMPLATE = "protocol.md.in"
DIRECTIVE = re.compile(r"^\{\{(\w+)(?: (.*))?\}\}$")


class Page:
    """The page while it is made."""

    def __init__(self, api):
        self.api, self.folder = api, Path(api.folder)
        self.lines = (self.folder / TEMPLATE).read_text().splitlines()
        self.headers, self.files, self.structs = Headers(), [], []
        for _, words in self.directives():
            if words:
                self.read(words[0])

    def directives(self):
        """What stands for a table, and its words, in order."""
        found = map(DIRECTIVE.match, self.lines)
        return [(one[1], (one[2] or "").split()) for one in found if one]

    def read(self, name):
        if name not in self.files:
            self.files.append(name)
            self.headers.read((self.folder / name).read_text())

    def text(self):
        made = []
        for number, line in enumerate(self.lines, 1):
            found = DIRECTIVE.match(line)
            try:
                made += self.table(found[1], (found[2] or "").split()) if found else [line]
            except ValueError as error:
                raise ApiError(f"{TEMPLATE}:{number}", str(error)) from error
        return "\n".join(made) + "\n"

    def table(self, what, words):
        if what == "constants":
            return self.constants(words[1:])
        if what == "enum":
            return self.enum(words[1])
        if what == "struct":
            return self.struct(words[1])
        if what == "handles":
            return [f"| {number} | {kind} |" for number, kind in enumerate(KINDS, 1)]
        if what == "commands":
            return commands(self.api)
        raise ValueError(f"there is no {{{{{what}}}}}")

    def constants(self, names):
        rows = ["| name | value | |", "|---|---|---|"]
        for name in names:
            value = self.headers.known(name)
            rows.append(f"| `{name}` | {number_text(value)} | {self.headers.constants[name][1]} |")
        return rows

    def enum(self, name):
        if name not in self.headers.enums:
            raise ValueError(f"enum {name} is in none of the headers")
        rows = ["| value | name | |", "|---|---|---|"]
        for member, value, comment in self.headers.enums[name]:
            documented(f"enum {name}", member, comment)
            rows.append(f"| {value} | `{member}` | {comment} |")
        return rows

    def struct(self, name):
        struct = self.headers.struct(name)
        self.structs.append(struct)
        rows = [f"`struct {name}`, {struct.size} bytes:", "", "| offset | field | type | |",
                "|---|---|---|---|"]
        for member in struct.members:
            if not member.is_padding:
                documented(f"struct {name}", member.name, member.comment)
                rows.append(f"| {member.offset} | `{member.name}` | {type_text(member)} "
                            f"| {member.comment} |")
        return rows


def documented(where, name, comment):
    if not comment:
        raise ValueError(f"{where}: {name} has no comment")


def number_text(value):
    return f"{value:#x}" if value > 0xffffff else str(value)


def type_text(member):
    name = C_SCALARS.get(member.type, (f"`{member.type}`",))[0]
    return name + (f"[{member.count}]" if member.count > 1 else "")


# ---- commands ----

def commands(api):
    lines = []
    for section in api.sections:
        lines += [f"### {section.title}", ""]
        lines += [section.prose, ""] if section.prose else []
        for constant in (c for c in api.constants if c.section == section.title):
            lines += [f"`{constant.name}` = {constant.value}: {constant.prose}", ""]
        for wire in (w for w in api.wires if w.section == section.title):
            lines += command(wire)
    return lines[:-1]


def command(wire):
    lines = [f"#### {wire.name}", "", f"Number {wire.op}, {'sync' if wire.sync else 'async'}. "
             f"{wire.prose}", "", "| offset | field | type |", "|---|---|---|"]
    lines += field_rows(layout_message(wire), wire.fields)
    if wire.reply:
        lines += ["", "| offset in the reply | field | type |", "|---|---|---|"]
        lines += field_rows(layout_reply(wire), wire.reply)
    return lines + [""]


def field_rows(layout, fields):
    """Fixed fields with their offsets, in the order of the message, and then what follows them."""
    by_name, offset = {field.name: field for field in fields}, layout.start
    for ctype, name, count in layout.members:
        if name in by_name:
            yield f"| {offset} | `{name}` | {field_type(by_name[name])} |"
        elif name.endswith("_size"):
            yield f"| {offset} | `{name}` | u32 |"
        offset += count * next(size for c, size in SCALARS.values() if c == ctype)
    trailing = [field for field in fields if field.trailing]
    for number, field in enumerate(trailing):
        where = f"{align(layout.fixed, 8)}" if number == 0 else "behind that"
        yield f"| {where} | `{field.name}` | {field_type(field)} |"


def field_type(field):
    if field.trailing:
        return f"{field.type}, at most {field.maximum} bytes"
    if field.handle:
        return f"u64, {'new ' if field.new else ''}{field.handle} handle"
    return field.type + (f"[{field.count}]" if field.count > 1 else "")


# ---- what both ends must agree on ----

def agreement(api):
    """The numbers and layouts on the page, a line each, without the words about them."""
    made = Page(api)
    headers, lines = made.headers, []
    for what, words in made.directives():
        if what == "constants":
            lines += [f"{name} {headers.known(name)}" for name in words[1:]]
        elif what == "enum":
            lines += [f"{name} {value}" for name, value, _ in headers.enums[words[1]]]
        elif what == "struct":
            struct = headers.struct(words[1])
            lines += [f"{struct.name} {m.offset} {m.name} {m.type} {m.count}"
                      for m in struct.members]
    return lines


# ---- the two outputs ----

def page(api):
    return Page(api).text()


def emit_layout(api):
    """Compiles only if the offsets on the page are the compiler's."""
    made = Page(api)
    made.text()
    text = head("<assert.h>", "<stddef.h>", "",
                *sorted(f'"{Path(name).name}"' for name in made.files))
    for struct in made.structs:
        text += f'static_assert(sizeof(struct {struct.name}) == {struct.size}, "size");\n'
        for member in struct.members:
            text += (f"static_assert(offsetof(struct {struct.name}, {member.name}) == "
                     f'{member.offset}, "offset");\n')
    return {"protocol_layout.c": text}
