#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a speech model of a few megabytes, with random weights, as whisper.cpp reads it.

    tiny_model.py FILE
"""
import math
import random
import struct
import sys

VOCABULARY, WIDTH, AUDIO, TEXT, MELS = 51864, 64, 1500, 448, 80
F32, F16 = 0, 1


def attention(name):
    yield f"{name}_ln.weight", (WIDTH,)
    yield f"{name}_ln.bias", (WIDTH,)
    for part in ("query", "key", "value", "out"):
        yield f"{name}.{part}.weight", (WIDTH, WIDTH)
        if part != "key":
            yield f"{name}.{part}.bias", (WIDTH,)


def block(name, kinds):
    for kind in kinds:
        yield from attention(f"{name}.{kind}")
    yield f"{name}.mlp_ln.weight", (WIDTH,)
    yield f"{name}.mlp_ln.bias", (WIDTH,)
    yield f"{name}.mlp.0.weight", (WIDTH, 4 * WIDTH)
    yield f"{name}.mlp.0.bias", (4 * WIDTH,)
    yield f"{name}.mlp.2.weight", (4 * WIDTH, WIDTH)
    yield f"{name}.mlp.2.bias", (WIDTH,)


def tensors():
    yield "encoder.positional_embedding", (WIDTH, AUDIO)
    yield "encoder.conv1.weight", (3, MELS, WIDTH)
    yield "encoder.conv1.bias", (1, WIDTH)
    yield "encoder.conv2.weight", (3, WIDTH, WIDTH)
    yield "encoder.conv2.bias", (1, WIDTH)
    yield "encoder.ln_post.weight", (WIDTH,)
    yield "encoder.ln_post.bias", (WIDTH,)
    yield from block("encoder.blocks.0", ["attn"])
    yield "decoder.positional_embedding", (WIDTH, TEXT)
    yield "decoder.token_embedding.weight", (WIDTH, VOCABULARY)
    yield "decoder.ln.weight", (WIDTH,)
    yield "decoder.ln.bias", (WIDTH,)
    yield from block("decoder.blocks.0", ["attn", "cross_attn"])


def packed(name, shape, source):
    is_f32 = len(shape) == 1 or name.endswith(("bias", "positional_embedding"))
    values = [source.uniform(-0.1, 0.1) for _ in range(math.prod(shape))]
    head = struct.pack("<3i", len(shape), len(name), F32 if is_f32 else F16)
    return (head + struct.pack(f"<{len(shape)}i", *shape) + name.encode() +
            struct.pack(f"<{len(values)}{'f' if is_f32 else 'e'}", *values))


def main():
    source = random.Random(1)
    with open(sys.argv[1], "wb") as file:
        file.write(struct.pack("<12i", 0x67676d6c, VOCABULARY, AUDIO, WIDTH, 1, 1, TEXT, WIDTH, 1, 1,
                               MELS, F16))
        file.write(struct.pack("<2i", MELS, 201))
        file.write(struct.pack(f"<{MELS * 201}f", *[source.random() / 50 for _ in range(MELS * 201)]))
        file.write(struct.pack("<i", VOCABULARY))
        for token in range(VOCABULARY):
            word = f" {token or ''}".encode()  # whisper.cpp looks up the blank
            file.write(struct.pack("<i", len(word)) + word)
        for name, shape in tensors():
            file.write(packed(name, shape, source))


if __name__ == "__main__":
    main()
