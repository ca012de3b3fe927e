"""Memory by its address: how a kernel reaches many arrays of one table.

numba takes no list of arrays whose length is free; a table of their addresses it takes. Whoever hands a kernel such a
table keeps the arrays alive until the kernel returns. Everything here is inlined into its callers.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

Address: TypeAlias = Any  # an int64

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


@intrinsic
def word_at(typing: Any, address: Any) -> Any:
    """The uint64 at an address that is a multiple of eight."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], _I64.as_pointer()))

    return types.uint64(types.int64), generate


@intrinsic
def put_word(typing: Any, address: Any, word: Any) -> Any:
    """Write the uint64 to an address that is a multiple of eight."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[1], builder.inttoptr(arguments[0], _I64.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), generate


@intrinsic
def prefetch(typing: Any, address: Any) -> Any:
    """Have the line of memory at an address brought into the cache, without waiting for it; any address will do."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _I8.as_pointer()
        form = ir.FunctionType(ir.VoidType(), [pointer, _I32, _I32, _I32])
        fetch = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0i8")
        read, keep, of_data = ir.Constant(_I32, 0), ir.Constant(_I32, 3), ir.Constant(_I32, 1)
        builder.call(fetch, [builder.inttoptr(arguments[0], pointer), read, keep, of_data])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def move_bytes(typing: Any, to: Any, start: Any, length: Any) -> Any:
    """Copy `length` bytes from address `start` to address `to`; the two may overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, source = (builder.inttoptr(address, _I8.as_pointer()) for address in arguments[:2])
        cgutils.raw_memmove(builder, target, source, arguments[2], 1, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def address_of(typing: Any, array: Any) -> Any:
    """Where the first byte of an array lies."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, _I64)

    return types.int64(array), generate
