"""Prints the numbers that `src/draw.rs` and `src/tail.rs` freeze, from the format's description alone.

Needs nothing but Python: python3 crates/adaparam-data/tests/golden_draws.py
"""

import hashlib
import math
import struct

MASK_32 = 0xFFFFFFFF
MASK_64 = 0xFFFFFFFFFFFFFFFF
TAIL_TRAIN, HIDDEN_DROPOUT = 1, 8


def chacha8_words(key):
    """The 32-bit words of ChaCha with 8 rounds, 64-bit block counter from 0, stream 0."""

    def rotate(word, by):
        return ((word << by) & MASK_32) | (word >> (32 - by))

    def quarter(w, a, b, c, d):
        for first, second, third, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            w[first] = (w[first] + w[second]) & MASK_32
            w[third] = rotate(w[third] ^ w[first], by)

    beginning = struct.unpack("<4I", b"expand 32-byte k") + struct.unpack("<8I", key)
    block = 0
    while True:
        state = [*beginning, block & MASK_32, block >> 32, 0, 0]
        w = list(state)
        for _ in range(4):
            for column in range(4):
                quarter(w, column, 4 + column, 8 + column, 12 + column)
            for start in range(4):
                quarter(w, start, 4 + (start + 1) % 4, 8 + (start + 2) % 4, 12 + (start + 3) % 4)
        yield from ((a + b) & MASK_32 for a, b in zip(w, state))
        block += 1


class Stream:
    def __init__(self, seed, purpose, counters):
        address = struct.pack("<QII", seed, purpose, len(counters))
        address += b"".join(struct.pack("<Q", counter) for counter in counters)
        self.words = chacha8_words(hashlib.sha256(b"adaparam draw 1" + address).digest())
        self.spare = None

    def next_u32(self):
        return next(self.words)

    def next_u64(self):
        low = self.next_u32()
        return low | self.next_u32() << 32

    def uniform(self):
        return (self.next_u64() >> 11) * 2.0**-53

    def normal(self):
        if self.spare is not None:
            spare, self.spare = self.spare, None
            return spare
        while True:
            u = 2.0 * self.uniform() - 1.0
            v = 2.0 * self.uniform() - 1.0
            square = u * u + v * v
            if 0.0 < square < 1.0:
                radius = math.sqrt(-2.0 * math.log(square) / square)
                self.spare = v * radius
                return u * radius

    def below(self, bound):
        excess = ((1 << 64) - bound) % bound
        while True:
            product = self.next_u64() * bound
            if product & MASK_64 >= excess:
                return product >> 64

    def permutation(self, length):
        order = list(range(length))
        for last in range(length - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def golden():
    return Stream(7, HIDDEN_DROPOUT, [1, 2, 3])


stream = golden()
print("next_u64   ", [hex(stream.next_u64()) for _ in range(3)])
stream = golden()
print("uniform    ", [stream.uniform() for _ in range(2)])
stream = golden()
print("uniform_f32", [stream.next_u32() >> 8 for _ in range(2)], "times 2**-24")
stream = golden()
print("normal     ", [stream.normal() for _ in range(4)])
print("permutation", golden().permutation(10))

stream = Stream(0, TAIL_TRAIN, [0])
for row in range(2):
    x1, x2, noise = stream.normal(), stream.normal(), stream.normal()
    a, b = 2.0 * x1, 3.0 * x2
    print("tail row", row, f32(x1), f32(x2), f32(a * a - (b * b) * (b * b) + noise))
