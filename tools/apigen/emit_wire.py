# SPDX-License-Identifier: Apache-2.0
"""wire_calls.h and wire_calls.c: packing and bounds-checked unpacking of the ring's commands."""

import hashlib

import emit_protocol
from ctext import comment, declare, head, header, wrap
from layout import layout_message, layout_reply
from model import KINDS, SCALARS

COMMENT = """\
/*
 * wire_X() sends. Async: the caller holds channel_lock(). Sync: it does not, and waits for the
 * answer; in a reply the caller sets pointer and capacity of a bytes field, which comes back cut to
 * the capacity. What is longer than its maximum gives CUDA_ERROR_INVALID_VALUE, a server that is
 * gone CUDA_ERROR_MPS_RPC_FAILURE.
 *
 * A field that is "placed" the caller writes itself, where the function says, and then sends the
 * command with channel_commit().
 *
 * decode_X() checks every bound of a message that a peer wrote: false when it is malformed.
 * Pointers in the result point into the message.
 *
 * start_X_reply() zeroes an answer, and gives its bytes field the place where it will be sent from;
 * encode_X_reply() writes the rest, and returns the size.
 */

"""

HELPERS = """\
static inline uint32_t padded(uint32_t size)
{
    return (size + 7) & ~7u;
}

/* Leaves room for a trailing field, with zeroes for its padding; returns what is behind it. */
static inline unsigned char *skip(unsigned char *at, uint32_t size)
{
    at += padded(size);
    if (size > 0)
        memset(at - 8, 0, 8);
    return at;
}

/* Appends a trailing field. */
static inline unsigned char *put(unsigned char *at, const void *bytes, uint32_t size)
{
    unsigned char *behind = skip(at, size);

    if (size > 0)
        memcpy(at, bytes, size);
    return behind;
}

/* What is left of a message that is being read. Once `broken`, it stays so. */
struct reader {
    const unsigned char *at;
    size_t left;
    bool broken;
};

static const void *take(struct reader *reader, uint32_t size, uint32_t maximum)
{
    const unsigned char *at = reader->at;

    if (reader->broken || size > maximum || padded(size) > reader->left) {
        reader->broken = true;
        return NULL;
    }
    reader->at += padded(size);
    reader->left -= padded(size);
    return at;
}

/* A string must be one: exactly one NUL, at its end. */
static const char *take_string(struct reader *reader, uint32_t size, uint32_t maximum)
{
    const char *text = take(reader, size, maximum);

    if (text && (size == 0 || memchr(text, 0, size) != text + size - 1))
        reader->broken = true;
    return reader->broken ? NULL : text;
}

/* Nothing may follow the last field but the ring's own padding. */
static bool read_to_end(const struct reader *reader)
{
    return !reader->broken && reader->left < RING_ALIGNMENT;
}
"""


def emit(api):
    return {"wire_calls.h": emit_header(api), "wire_calls.c": emit_source(api)}


def api_hash(api):
    """Both ends must have been built from the same description, its numbers, layouts and constants.
    The layouts of what they share beside the commands have to be the same, too."""
    text = []
    for wire in sorted(api.wires, key=lambda w: w.op):
        text.append(f"{wire.op} {wire.name} {wire.sync}")
        for layout in (layout_message(wire), layout_reply(wire)):
            text.append(repr(layout.members))
        text.extend(f"{f.name} {f.type} {f.handle} {f.new} {f.maximum}"
                    for f in wire.fields + wire.reply)
    text.extend(f"{c.name} {c.value}" for c in api.constants)
    text.extend(emit_protocol.agreement(api))
    return int.from_bytes(hashlib.sha256("\n".join(text).encode()).digest()[:8], "big")


def emit_header(api):
    body = comment("What both ends compare before they talk (struct hello).")
    body += f"#define WIRE_API_HASH 0x{api_hash(api):016x}ull\n\n"
    for constant in api.constants:
        body += comment(constant.prose) + f"#define {constant.name} {constant.value}\n\n"
    body += comment("Kinds of handles; also their type in base/handles.h.")
    body += "enum wire_handle {\n" + "".join(
        f"    WIRE_{kind.upper()} = {i},\n" for i, kind in enumerate(KINDS, 1)) + "};\n\n"
    body += "enum wire_op {\n" + "".join(
        f"    WIRE_{w.name} = {w.op},\n" for w in sorted(api.wires, key=lambda w: w.op)) + "};\n\n"
    body += comment("The name of a command, or NULL.")
    body += "const char *wire_op_name(uint32_t op);\n\n"
    body += COMMENT
    body += "\n".join(declarations(w) for w in api.wires)
    return header(["<stdbool.h>", "<stddef.h>", "<stdint.h>", '"channel.h"',
                                   '"cuda_result.h"'], body)


def declarations(wire):
    text = comment(f"{wire.name}: {wire.prose}")
    text += request_struct(wire)
    if wire.reply:
        text += reply_struct(wire)
    text += sender_prototype(wire, ");") + "\n"
    text += decoder_prototype(wire, ");") + "\n"
    if wire.reply:
        text += reply_decoder_prototype(wire, ");") + "\n"
        text += reply_start_prototype(wire, ");") + "\n"
        text += reply_encoder_prototype(wire, ");") + "\n"
    return text


def request_struct(wire):
    text = f"struct wire_{wire.name} {{\n"
    for field in wire.fields:
        if field.type == "string":
            text += f"    const char *{field.name};\n"
        elif field.type == "bytes":
            note = ", placed" if field.placed else ""
            text += f"    const void *{field.name};\n    uint32_t {field.name}_size;"
            text += f" /* at most {field.maximum}{note} */\n"
        else:
            note = f" /* {'new ' if field.new else ''}{field.handle} */" if field.handle else ""
            text += f"    {member(field)};{note}\n"
    return text + "};\n"


def member(field):
    name = field.name + (f"[{field.count}]" if field.count > 1 else "")
    return declare(SCALARS[field.type][0], name)


def reply_struct(wire):
    text = f"struct wire_{wire.name}_reply {{\n"
    for field in wire.reply:
        if field.trailing:
            text += (f"    void *{field.name};\n    uint32_t {field.name}_capacity;"
                     f" /* {field.maximum} is always enough */\n    uint32_t {field.name}_size;\n")
        else:
            text += f"    {member(field)};\n"
    return text + "};\n"


def sender_prototype(wire, end=")"):
    items = ["struct channel *channel", f"const struct wire_{wire.name} *in"]
    if wire.reply:
        items.append(f"struct wire_{wire.name}_reply *ret_out")
    if wire.placed:
        items.append(f"void **ret_{wire.placed.name}")
    return wrap(f"CUresult wire_{wire.name}(", items, end)


def decoder_prototype(wire, end=")"):
    return wrap(f"bool decode_{wire.name}(", ["const void *data", "size_t size",
                                             f"struct wire_{wire.name} *ret_in"], end)


def reply_decoder_prototype(wire, end=")"):
    return wrap(f"bool decode_{wire.name}_reply(",
                ["const void *data", "size_t size", f"struct wire_{wire.name}_reply *ret_out"], end)


def reply_start_prototype(wire, end=")"):
    return wrap(f"void start_{wire.name}_reply(",
                ["void *buffer", f"struct wire_{wire.name}_reply *ret_out"], end)


def reply_encoder_prototype(wire, end=")"):
    return wrap(f"uint32_t encode_{wire.name}_reply(",
                ["void *buffer", f"const struct wire_{wire.name}_reply *out"], end)


def emit_source(api):
    text = head('"wire_calls.h"', "", "<string.h>") + HELPERS
    text += "\nstatic const char *const op_names[] = {\n" + "".join(
        f'    [WIRE_{w.name}] = "{w.name}",\n' for w in sorted(api.wires, key=lambda w: w.op))
    text += ("};\n\nconst char *wire_op_name(uint32_t op)\n{\n"
             "    return op < sizeof(op_names) / sizeof(op_names[0]) ? op_names[op] : NULL;\n}\n")
    for wire in api.wires:
        text += "\n" + definitions(wire)
    return text


def definitions(wire):
    parts = [message_struct(wire), send_function(wire)]
    if wire.sync and wire.reply:
        parts += [reply_message_struct(wire), reply_decoder(wire), reply_start(wire),
                  reply_encoder(wire)]
    if wire.sync:
        parts.append(call_function(wire))
    parts.append(decoder(wire))
    return "\n".join(parts)


def message_struct(wire):
    laid = layout_message(wire)
    text = f"struct message_{wire.name} {{\n    struct ring_message header;\n"
    return text + members(laid) + asserted(f"message_{wire.name}", laid)


def reply_message_struct(wire):
    laid = layout_reply(wire)
    return f"struct reply_{wire.name} {{\n" + members(laid) + asserted(f"reply_{wire.name}", laid)


def members(laid):
    """Padding is always an array, so that memset() can take it."""
    text = ""
    for ctype, name, count in laid.members:
        array = f"[{count}]" if count > 1 or name.startswith("pad") else ""
        text += f"    {ctype} {name}{array};\n"
    return text


def asserted(name, laid):
    return f"}};\n_Static_assert(sizeof(struct {name}) == {laid.fixed}, \"no hidden padding\");\n"


def send_function(wire):
    """Packs one command into the ring. For an async command this is the whole of wire_*()."""
    name = wire.name
    if wire.sync:
        text = wrap(f"static CUresult send_{name}(", ["struct channel *channel", "int slot",
                                                      f"const struct wire_{name} *in"], ")\n{\n")
        slot = "slot"
    else:
        text = sender_prototype(wire) + "\n{\n"
        slot = "CHANNEL_NO_SLOT"
    text += f"    struct message_{name} *message;\n"
    size = "(uint32_t)sizeof(*message)"
    for field in wire.trailers:
        if field.type == "string":
            text += f"    size_t {field.name}_size = strlen(in->{field.name}) + 1;\n"
        else:
            text += f"    uint32_t {field.name}_size = in->{field.name}_size;\n"
    text += "\n"
    for field in wire.trailers:
        text += (f"    if ({field.name}_size > {field.maximum})\n"
                 "        return CUDA_ERROR_INVALID_VALUE;\n")
        cast = "(uint32_t)" if field.type == "string" else ""
        size += f" + padded({cast}{field.name}_size)"
    if wire.trailers:
        text += f"    uint32_t size = {size};\n\n"
        size = "size"
    text += (f"    message = (void *)channel_reserve(channel, {size});\n"
             "    if (!message)\n        return channel_failure(channel);\n"
             f"    message->header.kind = channel_kind(WIRE_{name}, {slot});\n")
    text += store(layout_message(wire), wire.fields, "message", "in")
    if wire.trailers:
        text += trailing_puts(wire.trailers)
    if not wire.placed:
        text += "    channel_commit(channel);\n"
    return text + "    return CUDA_SUCCESS;\n}\n"


def trailing_puts(trailers):
    text = ""
    at = "(unsigned char *)(message + 1)"
    for number, field in enumerate(trailers):
        cast = "(uint32_t)" if field.type == "string" else ""
        keep = ""
        if number + 1 < len(trailers):
            keep = "unsigned char *at = " if number == 0 else "at = "
        if field.placed:
            text += f"    *ret_{field.name} = {at};\n    skip({at}, {field.name}_size);\n"
        else:
            text += f"    {keep}put({at}, in->{field.name}, {cast}{field.name}_size);\n"
        at = "at"
    return text


def store(laid, fields, to, source):
    """Assigns every member of a message: scalars, arrays, sizes, padding."""
    sizes = {f"{f.name}_size": f for f in fields if f.trailing}
    text = ""
    for _, name, count in laid.members:
        if name.startswith("pad"):
            text += f"    memset({to}->{name}, 0, sizeof({to}->{name}));\n"
        elif name in sizes:
            cast = "(uint32_t)" if sizes[name].type == "string" else ""
            text += f"    {to}->{name} = {cast}{name};\n"
        elif count > 1:
            text += f"    memcpy({to}->{name}, {source}->{name}, sizeof({to}->{name}));\n"
        else:
            text += f"    {to}->{name} = {source}->{name};\n"
    return text


def call_function(wire):
    name = wire.name
    text = sender_prototype(wire) + "\n{\n    const void *data = NULL;\n    uint32_t size = 0;\n"
    text += ("    int slot = channel_reply_begin(channel);\n\n"
             "    if (slot == CHANNEL_NO_SLOT)\n        return channel_failure(channel);\n"
             "    channel_lock(channel);\n"
             f"    CUresult result = send_{name}(channel, slot, in);\n"
             "    channel_unlock(channel);\n"
             "    if (result == CUDA_SUCCESS)\n"
             "        result = channel_reply_wait(channel, slot, &data, &size);\n")
    if wire.reply:
        text += (f"    if ((result == CUDA_SUCCESS || size > 0) &&\n"
                 f"        !decode_{name}_reply(data, size, ret_out) && result == CUDA_SUCCESS)\n"
                 "        result = CUDA_ERROR_MPS_RPC_FAILURE;\n")
    return text + "    channel_reply_end(channel, slot);\n    return result;\n}\n"


def decoder(wire):
    name = wire.name
    text = decoder_prototype(wire) + f"\n{{\n    const struct message_{name} *message = data;\n\n"
    text += "    if (size < sizeof(*message))\n        return false;\n"
    text += load(wire.scalars, "ret_in")
    text += reader_start()
    for field in wire.trailers:
        function = "take_string" if field.type == "string" else "take"
        text += (f"    ret_in->{field.name} = {function}(&reader, message->{field.name}_size, "
                 f"{field.maximum});\n")
        if field.type == "bytes":
            text += f"    ret_in->{field.name}_size = message->{field.name}_size;\n"
    return text + "    return read_to_end(&reader);\n}\n"


def reader_start():
    return ("    struct reader reader = {(const unsigned char *)(message + 1), "
            "size - sizeof(*message), false};\n")


def load(scalars, to):
    text = ""
    for field in scalars:
        if field.count > 1:
            text += (f"    memcpy({to}->{field.name}, message->{field.name}, "
                     f"sizeof({to}->{field.name}));\n")
        else:
            text += f"    {to}->{field.name} = message->{field.name};\n"
    return text


def reply_decoder(wire):
    name, data = wire.name, wire.reply_bytes
    text = reply_decoder_prototype(wire)
    text += f"\n{{\n    const struct reply_{name} *message = data;\n\n"
    text += "    if (size < sizeof(*message))\n        return false;\n"
    text += load(wire.reply_scalars, "ret_out")
    text += reader_start()
    if data:
        text += (f"    uint32_t {data.name}_size = message->{data.name}_size;\n"
                 f"    const void *{data.name} = "
                 f"take(&reader, {data.name}_size, {data.maximum});\n\n"
                 f"    if ({data.name}_size > ret_out->{data.name}_capacity)\n"
                 f"        {data.name}_size = ret_out->{data.name}_capacity;\n"
                 f"    if ({data.name} && {data.name}_size > 0)\n"
                 f"        memcpy(ret_out->{data.name}, {data.name}, {data.name}_size);\n"
                 f"    ret_out->{data.name}_size = {data.name}_size;\n")
    return text + "    return read_to_end(&reader);\n}\n"


def reply_start(wire):
    """Zeroes the answer and points its bytes field at the place behind the fixed part."""
    name, data = wire.name, wire.reply_bytes
    text = reply_start_prototype(wire) + "\n{\n    memset(ret_out, 0, sizeof(*ret_out));\n"
    if data:
        text += (f"    ret_out->{data.name} = (struct reply_{name} *)buffer + 1;\n"
                 f"    ret_out->{data.name}_capacity = {data.maximum};\n")
    else:
        text += "    (void)buffer;\n"
    return text + "}\n"


def reply_encoder(wire):
    name, data = wire.name, wire.reply_bytes
    text = reply_encoder_prototype(wire) + f"\n{{\n    struct reply_{name} *message = buffer;\n"
    if data:
        text += (f"    uint32_t {data.name}_size = out->{data.name}_size;\n\n"
                 f"    if ({data.name}_size > {data.maximum})\n"
                 f"        {data.name}_size = {data.maximum};\n")
    else:
        text += "\n"
    text += store(layout_reply(wire), wire.reply, "message", "out")
    if data:
        text += (f"    memset((unsigned char *)(message + 1) + {data.name}_size, 0,\n"
                 f"        padded({data.name}_size) - {data.name}_size);\n"
                 f"    return (uint32_t)sizeof(*message) + padded({data.name}_size);\n}}\n")
    else:
        text += "    return (uint32_t)sizeof(*message);\n}\n"
    return text
