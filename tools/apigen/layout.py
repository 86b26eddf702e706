# SPDX-License-Identifier: Apache-2.0
"""Where each field of a wire command lies.

A message is the ring's header, then every scalar in the order of the description, naturally
aligned. Then come a 32 bit size for each trailing field, and padding to 8. Behind that are the
trailing fields themselves, each padded to 8. A reply is the same without the header. Padding is
named, so that it can be zero."""

from dataclasses import dataclass

from model import SCALARS

HEADER = 8                # struct ring_message
MESSAGE_MAX = 65536       # CHANNEL_MESSAGE_MAX
REPLY_MAX = 8192 - 16     # REPLY_DATA_MAX


@dataclass
class Layout:
    start: int            # bytes of the header before the first member
    members: list         # (C type, name, count) in order, padding included
    fixed: int            # bytes of the fixed part
    maximum: int          # bytes of the longest message


def align(offset, to):
    return (offset + to - 1) // to * to


def layout(start, scalars, trailers):
    members, offset, pads = [], start, 0

    def pad_to(boundary):
        nonlocal offset, pads
        missing = align(offset, boundary) - offset
        if missing:
            members.append(("uint32_t", f"pad{pads}", missing // 4))
            pads += 1
            offset += missing

    for field in scalars:
        ctype, size = SCALARS[field.type]
        pad_to(size)
        members.append((ctype, field.name, field.count))
        offset += size * field.count
    for field in trailers:
        pad_to(4)
        members.append(("uint32_t", f"{field.name}_size", 1))
        offset += 4
    pad_to(8)
    longest = offset + sum(align(f.maximum, 8) for f in trailers)
    return Layout(start, members, offset, align(longest, 16))


def layout_message(wire):
    return layout(HEADER, wire.scalars, wire.trailers)


def layout_reply(wire):
    return layout(0, wire.reply_scalars, [wire.reply_bytes] if wire.reply_bytes else [])
