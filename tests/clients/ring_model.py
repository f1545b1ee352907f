#!/usr/bin/env python3
"""Writes a model that llama.cpp runs, small on disk and slow enough to be measured.

    ring_model.py FILE.gguf

Its vocabulary is a ring of words, and each is followed by the next one: the rows of the output matrix are
random vectors, and a token's embedding is the row of its successor. The layers in between are zeros, which
cost a hole in the file and the full time of multiplying them: a token takes some 10 ms on one core, and the
text is known in advance.

In the ring there are characters of several tokens (bytes), as in the vocabularies of real models: their
token events are fewer than their tokens. `<think>` begins a reasoning, and leads into the ring.

The format is GGUF 3: a head of keys and values, a table of tensors, the tensors at multiples of 32 bytes.
"""
import random
import struct
import sys

WIDTH, LAYERS, FEED, HEADS, CONTEXT = 512, 8, 2048, 8, 4096
UNKNOWN, NORMAL, CONTROL, USER, BYTE = 2, 1, 3, 4, 6      # token types
FIRST_BYTE = 3
RING = "the sea is calm and grey a gull cries over small boats that wait for wind near our caf é then 🌊".split()
THOUGHT = ["<think>", "▁let", "▁me", "▁see", "</think>"]
TEMPLATE = ("{%- for message in messages -%}"
            "{%- if message.reasoning_content -%}<think>{{ message.reasoning_content }}</think>{%- endif -%}"
            "{{ message.content }}"
            "{%- endfor -%}"
            "{%- if add_generation_prompt and enable_thinking -%}<think>{%- endif -%}")


def vocabulary():
    """(texts, types, successor of each that is not the first of the ring)"""
    texts = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % byte for byte in range(256)]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256

    def add(text, kind=NORMAL):
        texts.append(text)
        types.append(kind)
        return len(texts) - 1

    ring = []
    for word in RING:
        if word.isascii():
            ring.append(add("▁" + word))
        else:
            ring += [FIRST_BYTE + byte for byte in word.encode()]
    thought = [add(text, USER if text.startswith("<") else NORMAL) for text in THOUGHT]
    follows = dict(zip(ring, ring[1:] + ring[:1])) | dict(zip(thought, thought[1:] + ring[:1]))
    for token in range(len(texts)):
        follows.setdefault(token, ring[0])
    assert len(ring) == len(set(ring)), "a token with two successors"
    return texts, types, follows


def string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


# A value's type number, and how it is written.
KINDS = {"u32": (4, lambda v: struct.pack("<I", v)), "i32": (5, lambda v: struct.pack("<i", v)),
         "f32": (6, lambda v: struct.pack("<f", v)), "text": (8, string)}


def pair(key, kind, value):
    number, write = KINDS[kind]
    if isinstance(value, list):
        return string(key) + struct.pack("<IIQ", 9, number, len(value)) + b"".join(map(write, value))
    return string(key) + struct.pack("<I", number) + write(value)


def pairs(texts, types):
    return [pair("general.architecture", "text", "llama"),
            pair("general.name", "text", "a ring of words"),
            pair("llama.context_length", "u32", CONTEXT),
            pair("llama.embedding_length", "u32", WIDTH),
            pair("llama.block_count", "u32", LAYERS),
            pair("llama.feed_forward_length", "u32", FEED),
            pair("llama.attention.head_count", "u32", HEADS),
            pair("llama.attention.layer_norm_rms_epsilon", "f32", 1e-5),
            pair("llama.rope.dimension_count", "u32", WIDTH // HEADS),
            pair("tokenizer.ggml.model", "text", "llama"),
            pair("tokenizer.ggml.tokens", "text", texts),
            pair("tokenizer.ggml.scores", "f32", [-float(i) for i in range(len(texts))]),
            pair("tokenizer.ggml.token_type", "i32", types),
            pair("tokenizer.ggml.bos_token_id", "u32", 1),
            pair("tokenizer.ggml.eos_token_id", "u32", 2),
            pair("tokenizer.ggml.unknown_token_id", "u32", 0),
            pair("tokenizer.chat_template", "text", TEMPLATE)]


def tensors(follows):
    """(name, shape, its numbers or None for zeros)"""
    draw = random.Random(1)
    rows = [[draw.choice((-1.0, 1.0)) for _ in range(WIDTH)] for _ in follows]
    embedding = [rows[follows[token]] for token in range(len(follows))]
    ones = [[1.0] * WIDTH]
    yield "token_embd.weight", (WIDTH, len(follows)), embedding
    yield "output_norm.weight", (WIDTH,), ones
    yield "output.weight", (WIDTH, len(follows)), rows
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            yield "blk.%d.%s.weight" % (layer, name), (WIDTH,), ones
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield "blk.%d.%s.weight" % (layer, name), (WIDTH, WIDTH), None
        for name, shape in (("ffn_gate", (WIDTH, FEED)), ("ffn_up", (WIDTH, FEED)), ("ffn_down", (FEED, WIDTH))):
            yield "blk.%d.%s.weight" % (layer, name), shape, None


def aligned(offset):
    return (offset + 31) // 32 * 32


def write(path):
    texts, types, follows = vocabulary()
    table, places, end = b"", [], 0
    for name, shape, rows in tensors(follows):
        table += string(name) + struct.pack("<I", len(shape)) + struct.pack("<%dQ" % len(shape), *shape)
        table += struct.pack("<IQ", 0, end)                 # 0: f32
        places.append((end, rows))
        size = 4
        for length in shape:
            size *= length
        end = aligned(end + size)
    metadata = pairs(texts, types)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(places), len(metadata)) + b"".join(metadata) + table
    begin = aligned(len(head))
    with open(path, "wb") as file:
        file.write(head)
        for place, rows in places:
            if rows is None:
                continue
            file.seek(begin + place)
            for row in rows:
                file.write(struct.pack("<%df" % len(row), *row))
        file.truncate(begin + end)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(sys.argv[1])
