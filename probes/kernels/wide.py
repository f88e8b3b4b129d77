"""What lanewise.ptx's wide accesses mean to numba: one vector access of LLVM, aligned to its width."""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.cuda import cgutils
from numba.cuda.extending import intrinsic, overload

from lanewise import ptx


def teach_numba_wide_accesses() -> None:
    """Let numba compile kernels that call lanewise.ptx.load2, load4, store2 and store4."""

    @overload(ptx.load2, strict=False)  # the annotations differ, which numba minds
    def load2(array: Any, index: Any) -> Any:
        return lambda array, index: _load_pair(array, index)

    @overload(ptx.load4, strict=False)
    def load4(array: Any, index: Any) -> Any:
        return lambda array, index: _load_four(array, index)

    @overload(ptx.store4, strict=False)
    def store4(array: Any, index: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        return lambda array, index, a, b, c, d: _store_four(array, index, a, b, c, d)


def _vector_pointer(context: Any, builder: Any, signature: Any, args: Any, n: int) -> tuple[Any, int]:
    """A pointer to `n` elements, and its alignment in bytes."""
    array_type, index_type = signature.args[:2]
    array = context.make_array(array_type)(context, builder, args[0])
    if isinstance(index_type, types.BaseTuple):
        pairs = list(zip(cgutils.unpack_tuple(builder, args[1]), index_type, strict=True))
    else:
        pairs = [(args[1], index_type)]
    indices = [context.cast(builder, value, kind, types.intp) for value, kind in pairs]
    element = cgutils.get_item_pointer(context, builder, array_type, array, indices)
    vector = ir.VectorType(context.get_data_type(array_type.dtype), n)
    return builder.bitcast(element, vector.as_pointer()), n * array_type.dtype.bitwidth // 8


def _loading(n: int) -> Any:
    def load(typing_context: Any, array: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer, width = _vector_pointer(context, builder, signature, args, n)
            vector = builder.load(pointer)
            vector.align = width
            lanes = [builder.extract_element(vector, ir.IntType(32)(i)) for i in range(n)]
            return context.make_tuple(builder, signature.return_type, lanes)

        return types.UniTuple(array.dtype, n)(array, index), generate

    return load


@intrinsic
def _load_pair(typing_context: Any, array: Any, index: Any) -> Any:
    return _loading(2)(typing_context, array, index)


@intrinsic
def _load_four(typing_context: Any, array: Any, index: Any) -> Any:
    return _loading(4)(typing_context, array, index)


@intrinsic
def _store_four(typing_context: Any, array: Any, index: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, width = _vector_pointer(context, builder, signature, args, 4)
        vector = ir.Constant(pointer.type.pointee, ir.Undefined)
        for i, (value, kind) in enumerate(zip(args[2:], signature.args[2:], strict=True)):
            cast = context.cast(builder, value, kind, array.dtype)
            vector = builder.insert_element(vector, cast, ir.IntType(32)(i))
        builder.store(vector, pointer).align = width
        return context.get_dummy_value()

    return types.void(array, index, a, b, c, d), generate
