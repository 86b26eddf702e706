# SPDX-License-Identifier: Apache-2.0
"""server_dispatch.[ch]: from a message to serve_X(), with its handles looked up."""

from ctext import comment, head, header, wrap

OFFERED = """\
struct session;
struct stream;
struct event;
struct module;
struct function;
struct allocation;
struct graph;
struct array;
struct texture;
struct link;

/* What the session offers to the dispatcher, besides session_lookup(). */

/* Logs which argument of which call was not a handle. */
void session_no_handle(struct session *session, const char *call, const char *argument,
                       uint64_t handle);

/* An asynchronous command failed on its own. */
void session_async_failed(struct session *session, const char *call, CUresult status);

/* Answers a synchronous command; false when the client named a slot that does not exist. */
bool session_reply(struct session *session, int slot, CUresult status, const void *data,
                   uint32_t size);

/* Does what a message asks for. False when it is malformed, and then the session must end. */
bool server_dispatch(struct session *session, const struct ring_message *message);

/* One function a command, each in the file of its family. Handles come looked up, in the order of
 * the fields; a `new` one is for serve_*() to put into the session's table. */

"""

HELPERS = """\
static CUresult no_handle(struct session *session, const char *call, const char *argument,
                          uint64_t handle)
{
    session_no_handle(session, call, argument, handle);
    return CUDA_ERROR_INVALID_HANDLE;
}

static bool finish_async(struct session *session, const char *call, CUresult status)
{
    if (status != CUDA_SUCCESS)
        session_async_failed(session, call, status);
    return true;
}

static bool answer(struct session *session, const struct ring_message *message, CUresult status,
                   const void *data, uint32_t size)
{
    return session_reply(session, channel_kind_slot(message->kind), status, data, size);
}

"""

TAIL = """\
bool server_dispatch(struct session *session, const struct ring_message *message)
{
    uint32_t op = channel_kind_op(message->kind);

    if (op >= sizeof(rows) / sizeof(rows[0]) || !rows[op].dispatch)
        return false;
    if (channel_kind_has_slot(message->kind) != rows[op].answers)
        return false;
    return rows[op].dispatch(session, message);
}
"""


def emit(api):
    body = OFFERED + "".join(prototype(w) + "\n" for w in api.wires)
    source = head('"server_dispatch.h"', '"session.h"') + HELPERS
    source += "\n".join(dispatcher(w) for w in api.wires)
    source += "\n" + comment("A row a command: who does it, and whether it answers.")
    source += ("static const struct {\n    bool (*dispatch)(struct session *session, "
               "const struct ring_message *message);\n    bool answers;\n} rows[] = {\n")
    for wire in sorted(api.wires, key=lambda w: w.op):
        gap = "\n        " if len(wire.name) > 30 else " "
        source += (f"    [WIRE_{wire.name}] ={gap}"
                   f"{{dispatch_{wire.name}, {str(wire.sync).lower()}}},\n")
    source += "};\n\n" + TAIL
    includes = ["<stdbool.h>", '"wire_calls.h"']
    return {"server_dispatch.h": header(includes, body),
            "server_dispatch.c": source}


def prototype(wire):
    items = ["struct session *session", f"const struct wire_{wire.name} *in"]
    items += [f"struct {f.handle} *{f.name}" for f in wire.handles]
    if wire.reply:
        items.append(f"struct wire_{wire.name}_reply *ret_out")
    return wrap(f"CUresult serve_{wire.name}(", items, ");")


def dispatcher(wire):
    name = wire.name
    text = wrap(f"static bool dispatch_{name}(", ["struct session *session",
                "const struct ring_message *message"], ")") + "\n{\n"
    text += f"    struct wire_{name} in;\n    CUresult status;\n"
    if wire.reply:
        text += (f"    struct wire_{name}_reply out;\n"
                 "    _Alignas(8) unsigned char buffer[REPLY_DATA_MAX];\n")
    text += f"\n    if (!decode_{name}(message, message->size, &in))\n        return false;\n"
    if wire.reply:
        text += f"    start_{name}_reply(buffer, &out);\n"
    for field in wire.handles:
        text += wrap(f"    struct {field.handle} *{field.name} = session_lookup(",
                     ["session", f"WIRE_{field.handle.upper()}", f"in.{field.name}"], ");") + "\n"
    return text + serve(wire) + finish(wire) + "}\n"


def serve(wire):
    """The first handle that is missing decides the answer."""
    args = ["session", "&in"] + [f.name for f in wire.handles] + (["&out"] if wire.reply else [])
    call = wrap(f"status = serve_{wire.name}(", args, ");", 90)
    if not wire.handles:
        return "    " + call.replace("\n", "\n    ") + "\n"
    text, test = "", "    if"
    for field in wire.handles:
        refuse = wrap("status = no_handle(", ["session", f'"{wire.name}"', f'"{field.name}"',
                                              f"in.{field.name}"], ");", 90)
        text += f"{test} (!{field.name})\n        " + refuse.replace("\n", "\n        ") + "\n"
        test = "    else if"
    return text + "    else\n        " + call.replace("\n", "\n        ") + "\n"


def finish(wire):
    if not wire.sync:
        return f'    return finish_async(session, "{wire.name}", status);\n'
    if not wire.reply:
        return "    return answer(session, message, status, NULL, 0);\n"
    return (f"    uint32_t size = encode_{wire.name}_reply(buffer, &out);\n"
            "    return answer(session, message, status, buffer, size);\n")
