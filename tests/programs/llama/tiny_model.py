#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a language model of a megabyte, with random weights, as a GGUF file that llama.cpp reads.

    tiny_model.py FILE
"""
import random
import struct
import sys

WIDTH, LAYERS, HEADS, INNER, CONTEXT = 256, 2, 4, 512, 256
F32, Q8_0 = 0, 8
UINT32, FLOAT32, STRING, ARRAY, INT32 = 4, 6, 8, 9, 5
TOKENS = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + ["\u2581"]
TYPES = [2, 3, 3] + [6] * 256 + [1]


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def key(name, kind, packed):
    return text(name) + struct.pack("<I", kind) + packed


def number(name, value):
    return key(name, UINT32, struct.pack("<I", value))


def array(name, kind, items):
    return key(name, ARRAY, struct.pack("<IQ", kind, len(items)) + b"".join(items))


def metadata():
    return [
        key("general.architecture", STRING, text("llama")), key("general.name", STRING, text("tiny")),
        number("llama.context_length", CONTEXT), number("llama.embedding_length", WIDTH),
        number("llama.block_count", LAYERS), number("llama.feed_forward_length", INNER),
        number("llama.attention.head_count", HEADS), number("llama.attention.head_count_kv", HEADS),
        number("llama.rope.dimension_count", WIDTH // HEADS),
        key("llama.attention.layer_norm_rms_epsilon", FLOAT32, struct.pack("<f", 1e-5)),
        key("tokenizer.ggml.model", STRING, text("llama")),
        array("tokenizer.ggml.tokens", STRING, [text(token) for token in TOKENS]),
        array("tokenizer.ggml.scores", FLOAT32, [struct.pack("<f", 0)] * len(TOKENS)),
        array("tokenizer.ggml.token_type", INT32, [struct.pack("<i", kind) for kind in TYPES]),
        number("tokenizer.ggml.bos_token_id", 1), number("tokenizer.ggml.eos_token_id", 2),
        number("tokenizer.ggml.unknown_token_id", 0),
    ]


def shapes():
    yield "token_embd", (WIDTH, len(TOKENS))
    yield "output_norm", (WIDTH,)
    yield "output", (WIDTH, len(TOKENS))
    for layer in range(LAYERS):
        for name, shape in [("attn_norm", (WIDTH,)), ("attn_q", (WIDTH, WIDTH)),
                            ("attn_k", (WIDTH, WIDTH)), ("attn_v", (WIDTH, WIDTH)),
                            ("attn_output", (WIDTH, WIDTH)), ("ffn_norm", (WIDTH,)),
                            ("ffn_gate", (WIDTH, INNER)), ("ffn_up", (WIDTH, INNER)),
                            ("ffn_down", (INNER, WIDTH))]:
            yield f"blk.{layer}.{name}", shape


def quantized(shape, source):
    """Blocks of a scale and 32 bytes."""
    scale = struct.pack("<e", 0.001)
    return b"".join(scale + source.randbytes(32) for _ in range(shape[0] * shape[1] // 32))


def main():
    source, infos, data = random.Random(1), [], b""
    for name, shape in shapes():
        kind = F32 if len(shape) == 1 else Q8_0
        infos.append(text(name + ".weight") + struct.pack("<I", len(shape)) +
                     struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, len(data)))
        data += struct.pack("<f", 1) * shape[0] if kind == F32 else quantized(shape, source)
        data += bytes(-len(data) % 32)
    keys = metadata()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(keys)) + b"".join(keys + infos)
    with open(sys.argv[1], "wb") as file:
        file.write(head + bytes(-len(head) % 32) + data)


if __name__ == "__main__":
    main()
