"""Matrices of adapters that tests and tests/golden/models/make_adapters.py both know, by their names."""
import math
import zlib


def numbers(name, count):
    phase = zlib.crc32(name.encode()) % 1000
    return [0.3 * math.sin(phase + 0.7 * i + 0.01 * i * i) for i in range(count)]
