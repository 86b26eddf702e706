# SPDX-License-Identifier: Apache-2.0
"""What the description of the API says, as plain data. parser.py fills it, check.py judges it,
emit_*.py turn it into C."""

from dataclasses import dataclass, field
from typing import Optional

CLASSES = ("local", "async", "sync", "manual", "unsupported")
KINDS = ("stream", "event", "module", "function", "allocation", "graph", "array", "texture",
         "link")
WORDS = {"in", "out", "inout", "nullable", "one", "string", "opaque", "count", "size", "user"}
SCALARS = {"u32": ("uint32_t", 4), "i32": ("int32_t", 4), "u64": ("uint64_t", 8),
           "i64": ("int64_t", 8), "f32": ("float", 4)}


class ApiError(Exception):
    """Something in the description is wrong; `where` is file:line."""

    def __init__(self, where, text):
        super().__init__(f"{where}: {text}")


@dataclass
class Param:
    """One parameter of an entry point. `words` are its annotations, such as {"out": ""}."""
    name: str
    type: str
    words: Optional[dict] = None
    where: str = ""

    @property
    def pointer(self):
        return self.type.endswith("*")

    @property
    def nullable(self):
        return self.words is not None and "nullable" in self.words


@dataclass
class Call:
    """One entry point of the driver API, and its per-thread variant if it has one."""
    name: str
    params: list
    where: str
    family: str
    cls: str = ""
    tags: dict = field(default_factory=dict)
    prose: str = ""

    @property
    def alias(self):
        return self.tags.get("alias")

    @property
    def variant(self):
        """The symbol for programs with a default stream a thread, or None."""
        for suffix in ("ptsz", "ptds"):
            if suffix in self.tags:
                return f"{self.name}_{suffix}"
        return None

    @property
    def symbols(self):
        return [self.name] + ([self.variant] if self.variant else [])

    @property
    def error(self):
        return self.tags.get("error", "CUDA_ERROR_NOT_SUPPORTED")


@dataclass
class Field:
    """One field of a wire command: a scalar, an array of scalars, a handle, bytes or a string."""
    name: str
    type: str
    where: str
    count: int = 1
    handle: Optional[str] = None
    new: bool = False
    maximum: int = 0
    placed: bool = False    # the sender writes it where it travels

    @property
    def trailing(self):
        return self.type in ("bytes", "string")


@dataclass
class Wire:
    """One command of the ring."""
    name: str
    sync: bool
    where: str
    fields: list = field(default_factory=list)
    reply: list = field(default_factory=list)
    prose: str = ""
    op: int = 0
    section: str = ""

    @property
    def scalars(self):
        return [f for f in self.fields if not f.trailing]

    @property
    def trailers(self):
        return [f for f in self.fields if f.trailing]

    @property
    def placed(self):
        """The bytes that the sender writes into the message itself, or None."""
        return next((f for f in self.fields if f.placed), None)

    @property
    def handles(self):
        """The fields that the server looks up before the command is served."""
        return [f for f in self.fields if f.handle and not f.new]

    @property
    def reply_scalars(self):
        return [f for f in self.reply if not f.trailing]

    @property
    def reply_bytes(self):
        return next((f for f in self.reply if f.trailing), None)


@dataclass
class Constant:
    """A number that both ends of the wire know by name."""
    name: str
    value: str
    where: str
    prose: str = ""
    section: str = ""


@dataclass
class Section:
    """A chapter of the commands in docs/protocol.md: what follows it, up to the next."""
    title: str
    prose: str = ""


@dataclass
class Api:
    folder: str = ""
    calls: list = field(default_factory=list)
    constants: list = field(default_factory=list)
    wires: list = field(default_factory=list)
    sections: list = field(default_factory=list)
    families: dict = field(default_factory=dict)    # file stem -> its first comment line
    ledger: dict = field(default_factory=dict)      # name -> number
    numbered: dict = field(default_factory=dict)    # name -> where the ledger says so
    ledger_file: str = ""
    symbols: dict = field(default_factory=dict)     # exported symbol -> where
    symbols_file: str = ""
    lookups: list = field(default_factory=list)     # (base name, flag, version, symbol, where)

    def call(self, name):
        return next((c for c in self.calls if c.name == name), None)
