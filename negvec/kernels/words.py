"""Bytes as machine words: the few operations that kernels need and Python's operators don't give.

An id is read as four little-endian uint64 words, as it lies in memory. Its sum uses the words as they are; its order
(ids compare as unsigned bytes) uses them byte-swapped. Offsets into byte arrays need no alignment.
Everything here is inlined into its callers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from negvec.kernels._jit import Column, Word, device

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _address(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(data, _I8.as_pointer()), [offset])


@intrinsic
def byte_swap(typing: Any, word: Any) -> Any:
    """The uint64 with its eight bytes in reverse order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def byte_swap32(typing: Any, word: Any) -> Any:
    """The uint32 with its four bytes in reverse order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint32(types.uint32), generate


@intrinsic
def add32(typing: Any, left: Any, right: Any) -> Any:
    """Sum mod 2^32. (numba's own `+` widens two uint32 to 64 bits.)"""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.add(*arguments)

    return types.uint32(types.uint32, types.uint32), generate


@intrinsic
def rotate_right32(typing: Any, word: Any, count: Any) -> Any:
    """The uint32 rotated right by `count` bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        form = ir.FunctionType(_I32, [_I32, _I32, _I32])
        rotate = builder.module.declare_intrinsic("llvm.fshr", [_I32], form)
        return builder.call(rotate, [arguments[0], arguments[0], builder.trunc(arguments[1], _I32)])

    return types.uint32(types.uint32, types.int64), generate


@intrinsic
def load_word(typing: Any, source: Any, offset: Any) -> Any:
    """The eight bytes of `source` at byte `offset`, as a little-endian uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        word = builder.load(builder.bitcast(address, _I64.as_pointer()))
        word.align = 1
        return word

    return types.uint64(source, types.int64), generate


@intrinsic
def store_word(typing: Any, target: Any, offset: Any, word: Any) -> Any:
    """Write `word` to the eight bytes of `target` at byte `offset`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(arguments[2], builder.bitcast(address, _I64.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, types.uint64), generate


@intrinsic
def copy_bytes(typing: Any, target: Any, at: Any, source: Any, offset: Any, length: Any) -> Any:
    """Copy `length` bytes of `source` from byte `offset` on to `target` from byte `at` on; both of any dtype."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        start = _address(context, builder, signature.args[2], arguments[2], arguments[3])
        cgutils.raw_memcpy(builder, to, start, arguments[4], 1, align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@device
def varint_size(value: Word) -> int:
    """Bytes of the varint of `value`."""
    size = 1
    value >>= np.uint64(7)
    while value:
        size += 1
        value >>= np.uint64(7)
    return size


@device
def id_before(ids: Column, row: int, word0: Word, word1: Word, word2: Word, word3: Word) -> bool:
    """Whether id `row` of the (n, 4) uint64 matrix is less, as unsigned bytes, than the byte-swapped words."""
    word = byte_swap(ids[row, 0])
    if word != word0:
        return word < word0
    word = byte_swap(ids[row, 1])
    if word != word1:
        return word < word1
    word = byte_swap(ids[row, 2])
    if word != word2:
        return word < word2
    return byte_swap(ids[row, 3]) < word3


@device
def compare_ids(ids: Any, left: int, right: int) -> int:
    """-1, 0 or 1 as id `left` is before, equal to or after id `right`."""
    for k in range(4):
        a, b = ids[left, k], ids[right, k]
        if a != b:
            return -1 if byte_swap(a) < byte_swap(b) else 1
    return 0


@device
def copy_row(target: Any, to: int, source: Any, row: int) -> None:
    """Copy an id from one (n, 4) matrix to another. (Assigning array rows takes numba a second more to compile.)"""
    for k in range(4):
        target[to, k] = source[row, k]


@device
def same_item(left_at: Any, left_ids: Any, left: int, right_at: Any, right_ids: Any, right: int) -> bool:
    """Whether item `left` of some columns, or a bound, is item `right` of others."""
    return (
        left_at[left] == right_at[right]
        and left_ids[left, 0] == right_ids[right, 0]
        and left_ids[left, 1] == right_ids[right, 1]
        and left_ids[left, 2] == right_ids[right, 2]
        and left_ids[left, 3] == right_ids[right, 3]
    )
