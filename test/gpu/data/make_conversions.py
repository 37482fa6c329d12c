#!/usr/bin/python3
"""Writes conversions.inc: element conversions with their expected bits, worked out with exact fractions and numpy.

The rules are those of gather_arithmetic. Rounding is done here on fractions and, where numpy has the same rule, checked against it.
"""
import struct
import sys
from fractions import Fraction

import numpy as np

INTEGERS = {"int8": (8, True), "uint8": (8, False), "int16": (16, True), "uint16": (16, False), "int32": (32, True),
            "uint32": (32, False), "int64": (64, True), "uint64": (64, False)}
# bits of the fraction, bits of the exponent
FLOATS = {"float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11)}
TARGETS = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"]
NAN, INF, NEGATIVE_INF, NEGATIVE_ZERO = "nan", "inf", "-inf", "-0"


def encode(value, name):
    """The bits of `value`, rounded to nearest even."""
    fraction_bits, exponent_bits = FLOATS[name]
    sign_bit = 1 << (fraction_bits + exponent_bits)
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    if value == NAN:
        return infinity | (1 << (fraction_bits - 1))
    if value in (INF, NEGATIVE_INF):
        return infinity | (sign_bit if value == NEGATIVE_INF else 0)
    if value == NEGATIVE_ZERO:
        return sign_bit
    sign = sign_bit if value < 0 else 0
    value = abs(value)
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = 1 - bias
    while value >= Fraction(2) ** (exponent + 1):
        exponent += 1
    scaled = value / Fraction(2) ** (exponent - fraction_bits)
    units = scaled.numerator // scaled.denominator
    rest = scaled - units
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and units % 2 == 1):
        units += 1
    # `units` carries into the exponent by itself.
    bits = units + ((exponent + bias - 1) << fraction_bits) if units else 0
    return sign | min(bits, infinity)


def decode(bits, name):
    if name in INTEGERS:
        width, signed = INTEGERS[name]
        return Fraction(bits - (1 << width) if signed and bits >> (width - 1) else bits)
    fraction_bits, exponent_bits = FLOATS[name]
    negative = bits >> (fraction_bits + exponent_bits)
    exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1)
    fraction = bits & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return NAN if fraction else (NEGATIVE_INF if negative else INF)
    if exponent == 0 and fraction == 0 and negative:
        return NEGATIVE_ZERO
    if exponent == 0:
        value = Fraction(fraction) * Fraction(2) ** (1 - bias - fraction_bits)
    else:
        value = Fraction((1 << fraction_bits) | fraction) * Fraction(2) ** (exponent - bias - fraction_bits)
    return -value if negative else value


def size(name):
    return INTEGERS[name][0] if name in INTEGERS else sum(FLOATS[name]) + 1


def cast(value, source, target):
    """The bits of a plain cast."""
    if target in FLOATS:
        if source in INTEGERS and target in ("float16", "bfloat16"):
            middle = "float64" if size(source) == 64 else "float32"
            value = decode(encode(value, middle), middle)
        return encode(value, target)
    width, signed = INTEGERS[target]
    if source in INTEGERS:
        return int(value) & ((1 << width) - 1)
    lowest, highest = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    if value in (NAN, NEGATIVE_ZERO):
        return 0
    if value in (INF, NEGATIVE_INF):
        return (highest if value == INF else lowest) & ((1 << width) - 1)
    whole = abs(value).numerator // abs(value).denominator
    whole = -whole if value < 0 else whole
    return max(lowest, min(highest, whole)) & ((1 << width) - 1)


def affine(value, source, target, scale, shift):
    exceeds_float32 = [size(name) == 64 or (name in INTEGERS and size(name) == 32) for name in (source, target)]
    work = "float64" if any(exceeds_float32) else "float32"
    dtype = np.float64 if work == "float64" else np.float32
    code = "<d" if work == "float64" else "<f"
    x = struct.unpack(code, encode(value, work).to_bytes(size(work) // 8, "little"))[0]
    with np.errstate(all="ignore"):
        y = dtype(x) * dtype(scale)
        y = y + dtype(shift)
    bits = int.from_bytes(y.astype(dtype).tobytes(), "little")
    return cast(decode(bits, work), work, target)


def inputs(source):
    if source in INTEGERS:
        width, signed = INTEGERS[source]
        lowest, highest = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        wanted = [0, 1, -1, 2, 100, -100, 127, 128, 200, 255, 256, 2047, 2049, -2051, 65504, 65519, 65520, 16777217, 16777219,
                  -16777217, 33685505, 2147483583, 4294967295, 9007199254740993, 72340172838076675, lowest, highest]
        values = sorted({v for v in wanted if lowest <= v <= highest})
        return [v & ((1 << width) - 1) for v in values]
    F = Fraction
    wanted = [NAN, INF, NEGATIVE_INF, NEGATIVE_ZERO, F(0), F(1), F(-1), F(1, 3), F(-2, 3), F(5, 2), F(-7, 2), F(255), F(256),
              F(511, 2), F(-1, 2), F(2049), F(2051), F(65504), F(65519), F(65520), F(-65536),
              F(2) ** 31, F(2) ** 31 - 1, -F(2) ** 31 - 1, F(2) ** 63, -F(2) ** 63 * 3, F(10) ** 30,
              F(2) ** -24, F(2) ** -25, F(2) ** -25 * 3, F(2) ** -25 * F(10001, 10000), F(3, 2) ** 1 * F(2) ** -20, F(2) ** -14 - F(2) ** -25,
              F(2) ** -126, F(2) ** -133, F(2) ** -134, F(2) ** -149, F(2) ** -150 * 3,
              1 + F(2) ** -11, 1 + F(2) ** -11 + F(2) ** -40, 1 + F(2) ** -8, 1 + F(2) ** -8 + F(2) ** -40, 1 + F(2) ** -24 + F(2) ** -50,
              F(2) ** 127 * (2 - F(2) ** -8), F(2) ** 127 * (2 - F(2) ** -24)]
    bits = []
    for value in wanted:
        b = encode(value, source)
        if b not in bits:
            bits.append(b)
    return bits


def check_against_numpy(source, target, bits, expected):
    """Where numpy has the same rule: no bfloat16, no integers out of a float."""
    if "bfloat16" in (source, target) or (source in FLOATS and target in INTEGERS):
        return
    if size(source) == 64 and source in INTEGERS and target == "float16":
        return
    array = np.array(bits, f"<u{size(source) // 8}").view(source)
    with np.errstate(all="ignore"):
        out = array.astype(target)
    for one, other, want in zip(out, out.view(f"u{size(target) // 8}"), expected):
        same = int(other) == want or (target in FLOATS and np.isnan(one) and decode(want, target) == NAN)
        assert same, (source, target, one, hex(int(other)), hex(want))


def main():
    lines = ["// Written by make_conversions.py: from, to, scale, shift, bits of the inputs, bits that must come out.\n"]
    for source in list(INTEGERS) + list(FLOATS):
        for target in TARGETS:
            bits = inputs(source)
            values = [decode(b, source) for b in bits]
            if source != target:
                expected = [cast(v, source, target) for v in values]
                check_against_numpy(source, target, bits, expected)
                lines.append(line(source, target, 1, 0, bits, expected))
            scale, shift = 1 / 3, -0.1  # neither exact, so that a fused product and sum would show
            expected = [affine(v, source, target, scale, shift) for v in values]
            lines.append(line(source, target, scale, shift, bits, expected))
    sys.stdout.writelines(lines)


def line(source, target, scale, shift, bits, expected):
    def numbers(values):
        return ",".join(hex(v) + "u" for v in values)
    return f"{{type::{source},type::{target},{scale!r},{shift!r},{{{numbers(bits)}}},{{{numbers(expected)}}}}},\n"


if __name__ == "__main__":
    main()
