"""What numba-cuda makes of the declared intrinsics. Everything that is specific to that compiler is here.

`register()` gives every declared function a type rule and code: vector accesses become LLVM loads and stores
that are aligned to their width, everything else inline PTX. Works with numba-cuda 0.22 to 0.30.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from llvmlite import ir
from numba.cuda.core.targetconfig import ConfigStack
from numba.cuda.cudaimpl import lower
from numba.cuda.typing.templates import AbstractTemplate, infer, infer_global

from lanewise.ptx.declare import (
    DECLARED,
    Address,
    Assembly,
    Constant,
    Element,
    Intrinsic,
    Loose,
    Lowering,
    Registers,
    SharedAddress,
    VectorLoad,
    VectorStore,
)
from lanewise.ptx.operands import Array, Given, Number, WrongOperand, check

# numba's own annotations know little of numba.cuda, whose modules are found at run time.
cuda: Any = import_module("numba.cuda")
cgutils: Any = import_module("numba.cuda.cgutils")
driver: Any = import_module("numba.cuda.cudadrv.driver")
types: Any = import_module("numba.cuda.types")

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_KINDS = {"uint32": (types.uint32, "r"), "float32": (types.float32, "f")}
_SHARED, _GLOBAL = 3, 1  # address spaces of NVPTX


def register() -> None:
    """Teach numba-cuda every declared intrinsic."""
    for declared in DECLARED.values():
        literal = any(
            isinstance(operand, Constant)
            for _, lowering in declared.lowerings
            if isinstance(lowering, Assembly)
            for operand in lowering.operands
        )
        template = type(
            f"_Template_{declared.name}",
            (_Template,),
            {"key": declared.function, "declared": declared, "prefer_literal": literal, "_lowered": {}},
        )
        infer(template)
        infer_global(declared.function, types.Function(template))


def _capability() -> tuple[int, int]:
    """The compute capability that numba-cuda is compiling for."""
    found = ConfigStack.top_or_none().compute_capability
    return (int(found[0]), int(found[1]))


class _Template(AbstractTemplate):  # type: ignore[misc]
    """The type rule of one intrinsic, and the way to its code. One code serves every compute capability."""

    declared: Intrinsic
    _lowered: dict[Any, Callable[..., Any]]

    def generic(self, args: Any, kws: Any) -> Any:
        self.declared.require(_capability())
        if kws:
            raise WrongOperand(f"lanewise.ptx.{self.declared.name}: takes no arguments by name.")
        check(self.declared, tuple(_described(arg) for arg in args))
        signature = _result(self.declared.lowering, args)(*args)
        if signature.args not in self._lowered:
            self._lowered[signature.args] = code = _code_of(self.declared)
            lower(code, *signature.args)(code)
        return signature

    def get_impl_key(self, signature: Any) -> Any:
        return self._lowered[signature.args]


def _code_of(declared: Intrinsic) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        lowering = declared.lowering_for(_capability())
        return _GENERATORS[type(lowering)](lowering, context, builder, signature, values)

    return generate


def _described(kind: Any) -> Given:
    """A numba type as `lanewise.ptx.operands` speaks of it."""
    if isinstance(kind, types.Array):
        return Array(str(kind.dtype), kind.dtype.bitwidth // 8, kind.ndim)
    if isinstance(kind, types.BaseTuple):
        return tuple(_described(part) for part in kind)
    if isinstance(kind, types.IntegerLiteral):
        return Number(str(kind.literal_type), kind.literal_value)
    if isinstance(kind, types.Number | types.Boolean):
        return Number(str(kind))
    return str(kind)


def _result(lowering: Lowering, args: tuple[Any, ...]) -> Any:
    """The type that a call gives."""
    if isinstance(lowering, SharedAddress):
        return types.uint32
    if isinstance(lowering, VectorStore):
        return types.void
    if isinstance(lowering, VectorLoad):
        return _one_or_tuple(args[0].dtype, lowering.n)
    if isinstance(lowering.results, Registers):
        return _one_or_tuple(_KINDS[lowering.results.kind][0], lowering.results.n)
    return types.void if lowering.results is None else args[0].dtype


def _one_or_tuple(kind: Any, n: int) -> Any:
    return kind if n == 1 else types.UniTuple(kind, n)


# -- addresses -------------------------------------------------------------------------------------


def _indices(context: Any, builder: Any, index: Any, kind: Any, width: Any) -> list[Any]:
    """The parts of an index, cast to `width`."""
    pairs = (
        zip(cgutils.unpack_tuple(builder, index), kind, strict=True)
        if isinstance(kind, types.BaseTuple)
        else [(index, kind)]
    )
    return [context.cast(builder, part, part_kind, width) for part, part_kind in pairs]


def _element_pointer(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    """A pointer to the element that an array and an index name."""
    array = context.make_array(kinds[0])(context, builder, values[0])
    indices = _indices(context, builder, values[1], kinds[1], types.intp)
    return cgutils.get_item_pointer(context, builder, kinds[0], array, indices)


def _global_address(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    pointer = _element_pointer(context, builder, kinds, values)
    there = builder.addrspacecast(pointer, pointer.type.pointee.as_pointer(_GLOBAL))
    return builder.ptrtoint(there, _I64)


def _shared_address(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    """The address in the shared window, in 32-bit arithmetic from the first."""
    array = context.make_array(kinds[0])(context, builder, values[0])
    start = builder.addrspacecast(array.data, array.data.type.pointee.as_pointer(_SHARED))
    address = builder.ptrtoint(start, _I32)
    strides = cgutils.unpack_tuple(builder, array.strides, kinds[0].ndim)
    for index, stride in zip(
        _indices(context, builder, values[1], kinds[1], types.int32), strides, strict=True
    ):
        address = builder.add(address, builder.mul(index, builder.trunc(stride, _I32)))
    return address


# -- code ------------------------------------------------------------------------------------------


def _vector_of(dtype: Any, n: int) -> Any:
    """Small elements go as whole words: 8 two-byte elements are then one access, not two."""
    bits = n * dtype.bitwidth
    if dtype.bitwidth < 32 and bits >= 64:
        return ir.VectorType(_I32, bits // 32)
    return ir.VectorType(ir.IntType(dtype.bitwidth), n)


def _load(lowering: VectorLoad, context: Any, builder: Any, signature: Any, values: Any) -> Any:
    array, n = signature.args[0], lowering.n
    element = context.get_data_type(array.dtype)
    pointer = _element_pointer(context, builder, signature.args, values)
    wide = _vector_of(array.dtype, n) if n > 1 else element
    pointer = builder.bitcast(pointer, wide.as_pointer())
    if lowering.constant:
        pointer = builder.addrspacecast(pointer, wide.as_pointer(_GLOBAL))
    loaded = builder.load(pointer)
    loaded.align = n * array.dtype.bitwidth // 8
    if lowering.constant:
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    model = context.data_model_manager[array.dtype]
    if n == 1:
        return model.from_data(builder, loaded)
    parts = [
        model.from_data(builder, builder.bitcast(bits, element))
        for bits in _elements(builder, loaded, array.dtype.bitwidth, n)
    ]
    return context.make_tuple(builder, signature.return_type, parts)


def _elements(builder: Any, vector: Any, n_bits: int, n: int) -> list[Any]:
    """The `n` elements of a vector as integers of `n_bits`.

    Small ones are shifted out of their words: if the whole vector were cast to one of halves, LLVM would load
    that, in two pieces.
    """
    per_word = n // vector.type.count
    words = [builder.extract_element(vector, _I32(i)) for i in range(vector.type.count)]
    return [
        builder.trunc(builder.lshr(word, _I32(n_bits * i)), ir.IntType(n_bits)) if per_word > 1 else word
        for word in words
        for i in range(per_word)
    ]


def _store(lowering: VectorStore, context: Any, builder: Any, signature: Any, values: Any) -> Any:
    array, n = signature.args[0], lowering.n
    given = list(zip(values[2:], signature.args[2:], strict=True))
    if len(given) == 1 and isinstance(given[0][1], types.BaseTuple):
        given = list(zip(cgutils.unpack_tuple(builder, given[0][0]), given[0][1], strict=True))
    model = context.data_model_manager[array.dtype]
    bits = ir.IntType(array.dtype.bitwidth)
    parts = [
        builder.bitcast(model.as_data(builder, context.cast(builder, value, kind, array.dtype)), bits)
        for value, kind in given
    ]
    wide = _vector_of(array.dtype, n)
    pointer = _element_pointer(context, builder, signature.args, values)
    stored = builder.store(_joined(builder, parts, wide), builder.bitcast(pointer, wide.as_pointer()))
    stored.align = n * array.dtype.bitwidth // 8
    return context.get_dummy_value()


def _joined(builder: Any, parts: list[Any], wide: Any) -> Any:
    """The vector of type `wide` that holds these integers: undoes `_elements`."""
    per_word = len(parts) // wide.count
    vector = ir.Constant(wide, ir.Undefined)
    for i in range(wide.count):
        word = parts[per_word * i]
        if per_word > 1:
            word = builder.zext(word, _I32)
            for k in range(1, per_word):
                high = builder.zext(parts[per_word * i + k], _I32)
                word = builder.or_(word, builder.shl(high, _I32(parts[0].type.width * k)))
        vector = builder.insert_element(vector, word, _I32(i))
    return vector


def _address(lowering: SharedAddress, context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return _shared_address(context, builder, signature.args, values)


def _constraint(dtype: Any) -> tuple[str, str]:
    """The register class and the PTX type of a 32- or 64-bit number."""
    wide = dtype.bitwidth == 64
    if isinstance(dtype, types.Float):
        return ("d" if wide else "f"), f"b{dtype.bitwidth}"
    return ("l" if wide else "r"), f"b{dtype.bitwidth}"


def _assemble(lowering: Assembly, context: Any, builder: Any, signature: Any, values: Any) -> Any:
    inputs: list[tuple[str, str, Any]] = []  # operand, register class, value
    names: dict[str, str] = {}
    place, dtype = 0, None

    def take(kind_name: str, name: str, value: Any, kind: Any) -> None:
        target, register_class = _KINDS[kind_name]
        inputs.append((name, register_class, context.cast(builder, value, kind, target)))

    for operand in lowering.operands:
        kind, value = signature.args[place], values[place]
        match operand:
            case Address(name, space, _):
                dtype, both = kind.dtype, slice(place, place + 2)
                find = _shared_address if space == "shared" else _global_address
                address = find(context, builder, signature.args[both], values[both])
                inputs.append((name, "r" if space == "shared" else "l", address))
                place += 2
            case Registers(name, wanted, _):
                if isinstance(kind, types.BaseTuple):
                    for part, part_kind in zip(cgutils.unpack_tuple(builder, value), kind, strict=True):
                        take(wanted, name, part, part_kind)
                else:
                    take(wanted, name, value, kind)
                place += 1
            case Loose(name, wanted, n):
                for i in range(n):
                    take(wanted, name, values[place + i], signature.args[place + i])
                place += n
            case Element(name):
                register_class, names[f"{name}.type"] = _constraint(dtype)
                inputs.append((name, register_class, context.cast(builder, value, kind, dtype)))
                place += 1
            case Constant(name):
                names[name] = str(kind.literal_value)
                place += 1

    outputs = _outputs(lowering, context, dtype, names)
    registers = [(name, i) for i, name in enumerate([*outputs[0], *(name for name, _, _ in inputs)])]
    for name in dict.fromkeys(name for name, _ in registers):
        mine = [f"${i}" for other, i in registers if other == name]
        names |= {name: ", ".join(mine), **{f"{name}.{i}": one for i, one in enumerate(mine)}}
    text = re.sub(r"<([\w.]+)>", lambda match: names[match[1]], lowering.text)
    constraints = [*(f"={one}" for one in outputs[1]), *(one for _, one, _ in inputs)]
    if lowering.effects:
        constraints.append("~{memory}")
    call = _call(builder, lowering, text, ",".join(constraints), outputs[2], [one for _, _, one in inputs])
    if len(outputs[2]) <= 1:
        return call if outputs[2] else context.get_dummy_value()
    parts = [builder.extract_value(call, i) for i in range(len(outputs[2]))]
    return context.make_tuple(builder, signature.return_type, parts)


def _outputs(
    lowering: Assembly, context: Any, dtype: Any, names: dict[str, str]
) -> tuple[list[str], list[str], list[Any]]:
    """Per output register: the operand's name, the register class, the LLVM type."""
    result = lowering.results
    if result is None:
        return [], [], []
    if isinstance(result, Element):
        register_class, names[f"{result.name}.type"] = _constraint(dtype)
        return [result.name], [register_class], [context.get_value_type(dtype)]
    kind, register_class = _KINDS[result.kind]
    n = result.n
    return [result.name] * n, [register_class] * n, [context.get_value_type(kind)] * n


def _call(
    builder: Any, lowering: Assembly, text: str, constraints: str, outputs: list[Any], inputs: list[Any]
) -> Any:
    given = (
        ir.VoidType() if not outputs else outputs[0] if len(outputs) == 1 else ir.LiteralStructType(outputs)
    )
    function = ir.FunctionType(given, [value.type for value in inputs])
    assembly = ir.InlineAsm(function, text, constraints, side_effect=lowering.effects)
    call = builder.call(assembly, inputs)
    call.attributes.add("nounwind")
    if not lowering.effects:
        call.attributes.add("readnone")
    if lowering.together:
        call.attributes.add("convergent")
    return call


_GENERATORS: dict[type, Callable[..., Any]] = {
    VectorLoad: _load,
    VectorStore: _store,
    SharedAddress: _address,
    Assembly: _assemble,
}


# -- launches --------------------------------------------------------------------------------------


def allow_dynamic_shared(kernel: Any, n_bytes: int, arguments: tuple[Any, ...]) -> str:
    """Raise the limit of every compiled version of a kernel; says what is wrong, or nothing."""
    if not hasattr(kernel, "overloads"):
        return f"got a {type(kernel).__name__}; it takes a cuda.jit kernel."
    if not cuda.is_available():
        return "there is no GPU here. Trace the kernel with dynamic_shared_bytes instead."
    if arguments:
        kernel.compile(tuple(kernel.typeof_pyval(argument) for argument in arguments))
    if not kernel.overloads:
        return "the kernel is not compiled yet. Give the arguments of the launch too, or launch it once."
    device = cuda.get_current_device()
    functions = [version._codelibrary.get_cufunc() for version in kernel.overloads.values()]
    static = max(function.attrs.shared for function in functions)
    most = device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN - static
    if n_bytes > most:
        name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
        return (
            f"{n_bytes:,} bytes; a block on this {name} has {most:,} bytes of dynamic shared memory beside"
            f" {static:,} static ones. Use smaller tiles or fewer stages."
        )
    for function in functions:
        _set_limit(function, n_bytes, device)
    return ""


def _set_limit(function: Any, n_bytes: int, device: Any) -> None:
    attribute = driver.binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    if hasattr(function, "kernel"):  # newer numba-cuda: a kernel of the library interface
        driver.driver.cuKernelSetAttribute(attribute, n_bytes, function.handle, device.id)
    else:
        driver.driver.cuFuncSetAttribute(function.handle, attribute, n_bytes)
