# SPDX-License-Identifier: Apache-2.0
"""Refuses an incomplete or contradictory description. Every rule names file and line."""

from emit_models import MODELS
from model import WORDS, ApiError
from layout import MESSAGE_MAX, REPLY_MAX, layout_message, layout_reply

TAGS = {"early", "alias", "soft", "driver", "ptsz", "ptds", "error", "lock", *MODELS}
LENGTHS = {"one", "string", "opaque", "count", "size", "user"}


def check(api):
    """Every error of the description, in no particular order."""
    errors = []
    for rule in (wire_rules, call_rules, symbol_rules, lookup_rules):
        errors.extend(rule(api))
    return errors


def duplicates(things):
    seen = {}
    for thing in things:
        if thing.name in seen:
            yield ApiError(thing.where, f"{thing.name} is already described at {seen[thing.name]}")
        seen[thing.name] = thing.where


def wire_rules(api):
    yield from duplicates(api.wires)
    yield from duplicates(api.constants)
    names = {w.name for w in api.wires}
    for wire in api.wires:
        yield from one_wire(api, wire)
    for name in api.ledger:
        if name not in names:
            yield ApiError(api.numbered[name], f"{name} has a number but is not described; a "
                                               "retired command keeps its stanza")


def one_wire(api, wire):
    if not wire.prose:
        yield ApiError(wire.where, f"{wire.name}: no prose; say in a sentence what it does")
    if not wire.section:
        yield ApiError(wire.where, f"{wire.name}: stands in no section")
    if wire.name not in api.ledger:
        number = max(api.ledger.values(), default=0) + 1
        yield ApiError(wire.where, f"{wire.name} has no number; append to {api.ledger_file}: "
                                   f"{number} {wire.name}")
    wire.op = api.ledger.get(wire.name, 0)
    if wire.reply and not wire.sync:
        yield ApiError(wire.where, f"{wire.name}: an async command has no reply")
    if sum(1 for f in wire.reply if f.trailing) > 1:
        yield ApiError(wire.where, f"{wire.name}: a reply has at most one bytes field")
    if wire.placed and (wire.sync or wire.placed is not wire.fields[-1] or
                        wire.placed.type != "bytes"):
        yield ApiError(wire.where, f"{wire.name}: only the last bytes of an async command can be "
                                   "placed")
    for name in {f.name for f in wire.fields if sum(g.name == f.name for g in wire.fields) > 1}:
        yield ApiError(wire.where, f"{wire.name}: two fields are called {name}")
    if layout_message(wire).maximum > MESSAGE_MAX:
        yield ApiError(wire.where, f"{wire.name}: can be longer than {MESSAGE_MAX} bytes")
    if layout_reply(wire).maximum > REPLY_MAX:
        yield ApiError(wire.where, f"{wire.name}: its reply can be longer than {REPLY_MAX} bytes")


def call_rules(api):
    yield from duplicates(api.calls)
    for call in api.calls:
        yield from tag_rules(api, call)
        if not call.prose:
            yield ApiError(call.where, f"{call.name}: no prose; say in a sentence what it does")
        if call.cls not in ("unsupported", "") or ("soft" in call.tags and not call.alias):
            for param in call.params:
                yield from pointer_rules(call, param)


def tag_rules(api, call):
    for tag in call.tags:
        if tag not in TAGS:
            yield ApiError(call.where, f"{call.name}: unknown tag '{tag}'")
    if call.tags.get("driver", "required") not in ("required", "optional"):
        yield ApiError(call.where, f"{call.name}: driver is 'required' or 'optional'")
    if call.alias:
        target = api.call(call.alias)
        if not target or target.alias:
            yield ApiError(call.where, f"{call.name}: its alias {call.alias} is not described")
        elif [p.type for p in target.params] != [p.type for p in call.params]:
            yield ApiError(call.where, f"{call.name}: {call.alias} has other parameters")
    if call.cls == "unsupported" and "early" in call.tags:
        yield ApiError(call.where, f"{call.name}: early, but unsupported")
    if "lock" in call.tags and "soft" not in call.tags:
        yield ApiError(call.where, f"{call.name}: lock, but the software GPU does not carry it")
    for model in MODELS:
        if model in call.tags and (call.alias or call.cls == "unsupported"
                                   or "soft" not in call.tags):
            yield ApiError(call.where, f"{call.name}: {model}, but client and software GPU do not "
                                       "both carry it")


def pointer_rules(call, param):
    if not param.pointer:
        return
    if param.words is None:
        yield ApiError(call.where, f"{call.name}: {param.name} is a pointer without a length; "
                                   "say in, out or inout, and how much it points to")
        return
    for word in param.words:
        if word not in WORDS:
            yield ApiError(param.where, f"{call.name}: {param.name}: unknown word '{word}'")
    if not {"in", "out", "inout", "user"} & set(param.words):
        yield ApiError(param.where, f"{call.name}: {param.name}: neither in, out nor inout")
    if not LENGTHS & set(param.words):
        yield ApiError(param.where, f"{call.name}: {param.name} is a pointer without a length")
    for word in ("count", "size"):
        length = param.words.get(word)
        if length and not length.isdigit() and length.lstrip("*") not in \
                {p.name for p in call.params}:
            yield ApiError(param.where,
                           f"{call.name}: {param.name}: {word}={length} is no parameter")


def symbol_rules(api):
    described = {}
    for call in api.calls:
        for symbol in call.symbols:
            described[symbol] = call.where
    for symbol, where in api.symbols.items():
        if symbol not in described:
            yield ApiError(where, f"{symbol} is exported but described nowhere")
    for symbol, where in described.items():
        if symbol not in api.symbols:
            yield ApiError(where, f"{symbol} is described but not in {api.symbols_file}")


def lookup_rules(api):
    for name, _, _, symbol, where in api.lookups:
        if symbol not in api.symbols:
            yield ApiError(where, f"{name} leads to {symbol}, which is not exported")
