# SPDX-License-Identifier: Apache-2.0
"""Reads the constants, enumerations and structures of our own headers, with their comments. So the
protocol is documented from what the code is compiled from. It understands the C that those headers
have, and refuses the rest."""

import re
from dataclasses import dataclass, field

SCALARS = {"uint8_t": ("u8", 1), "int8_t": ("i8", 1), "uint16_t": ("u16", 2), "char": ("char", 1),
           "unsigned char": ("u8", 1), "uint32_t": ("u32", 4), "int32_t": ("i32", 4),
           "uint64_t": ("u64", 8), "int64_t": ("i64", 8)}
COMMENT = r"/\*.*?\*/"
DEFINE = re.compile(r"^#define (\w+)[ \t]+((?:[^\n\\/]|\\\n|/(?!\*))+)(?:/\*(.*?)\*/)?", re.M | re.S)
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.M | re.S)
ENUM = re.compile(r"^enum (\w+) \{\n(.*?)^\};", re.M | re.S)
MEMBER = re.compile(rf"(?:_Alignas\((?P<align>\w+)\)\s+)?(?P<type>struct \w+|unsigned char|\w+)\s+"
                    rf"(?P<names>[^;]+);[ \t]*(?P<comment>{COMMENT})?", re.S)
ENUMERATOR = re.compile(rf"(\w+)(?: = ([^,/]+))?,[ \t]*({COMMENT})?", re.S)


@dataclass
class Member:
    name: str
    type: str
    count: int
    offset: int
    comment: str

    @property
    def is_padding(self):
        return bool(re.fullmatch(r"(pad|reserved|unknown_)\d*", self.name))


@dataclass
class Struct:
    name: str
    size: int
    align: int
    members: list


@dataclass
class Headers:
    """What the headers that were read so far say."""
    constants: dict = field(default_factory=dict)   # name -> (expression, comment)
    enums: dict = field(default_factory=dict)       # name -> [(name, value, comment)]
    structs: dict = field(default_factory=dict)
    bodies: dict = field(default_factory=dict)      # name -> text, until its layout is asked for

    def read(self, text):
        for name, expression, comment in DEFINE.findall(text):
            self.constants[name] = (expression.strip(), plain(comment))
        for name, body in ENUM.findall(text):
            self.enums[name] = enumerators(self, body)
        self.bodies.update(STRUCT.findall(text))

    def struct(self, name):
        if name not in self.structs:
            if name not in self.bodies:
                raise ValueError(f"struct {name} is in none of the headers")
            self.structs[name] = lay_out(self, name, self.bodies[name])
        return self.structs[name]

    def value(self, expression):
        """The number that an expression of constants stands for."""
        text = re.sub(r"sizeof\(struct (\w+)\)", lambda m: str(self.struct(m[1]).size), expression)
        text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text).replace("\\\n", " ")
        text = re.sub(r"\b[A-Z]\w*\b", lambda m: f"({self.known(m[0])})", text)
        if not re.fullmatch(r"[\s0-9a-fA-Fx()+\-*/%<>&|~]+", text):
            raise ValueError(f"cannot work out '{expression}'")
        return int(eval(text.replace("/", "//"), {"__builtins__": {}}))  # digits and operators only

    def known(self, name):
        for members in self.enums.values():
            for member, value, _ in members:
                if member == name:
                    return value
        if name not in self.constants:
            raise ValueError(f"{name} is in none of the headers")
        return self.value(self.constants[name][0])


def plain(comment):
    """The text of a comment on one line."""
    text = re.sub(r"^/\*|\*/$", "", comment.strip())
    return " ".join(line.strip().lstrip("*").strip() for line in text.splitlines()).strip()


def enumerators(headers, body):
    found, following = [], 0
    for name, expression, comment in ENUMERATOR.findall(body):
        value = headers.value(expression) if expression else following
        found.append((name, value, plain(comment)))
        following = value + 1
    return found


def size_of(headers, ctype):
    """Bytes and alignment of one element."""
    if ctype.startswith("struct "):
        inner = headers.struct(ctype.removeprefix("struct "))
        return inner.size, inner.align
    if ctype not in SCALARS:
        raise ValueError(f"cannot tell the size of '{ctype}'")
    return SCALARS[ctype][1], SCALARS[ctype][1]


def up(offset, align):
    return (offset + align - 1) // align * align


def lay_out(headers, name, body):
    members, offset, widest = [], 0, 1
    body = re.sub(rf"^\s*{COMMENT}\n", "", body, flags=re.M | re.S).replace("_Atomic ", "")
    for found in MEMBER.finditer(body):
        size, align = size_of(headers, found["type"])
        if found["align"]:
            align = headers.value(found["align"])
        for declared in found["names"].split(","):
            member, _, length = declared.strip().partition("[")
            count = headers.value(length.rstrip("]")) if length else 1
            offset = up(offset, align)
            members.append(Member(member, found["type"], count, offset,
                                  plain(found["comment"] or "")))
            offset += size * count
        widest = max(widest, align)
    return Struct(name, up(offset, widest), widest, members)
