"""Kernels as source: the syntax tree of a function and the closed set of names that it can see.

A name resolves to one of: a number or tuple of numbers, a data type, a `Symbol` (a dotted path such as
`cuda.grid` that only the tracer's own tables give a meaning to), a `ConstantArray`, another `Function`, or a
`Forbidden` that is refused when the kernel uses it. Objects that a kernel refers to are looked at by their
type and never called.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import os
import textwrap
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any

import numpy as np

from lanewise.trace.refusals import UnsupportedConstruct


def place_in(filename: str, line: int | str) -> str:
    """A line for messages: `file:line`, or without the file where its name would only be a made-up one.

    Notebook cells have file names that are hashes, in a folder of the kernel process or in angle brackets.

    >>> place_in("lab.py", 5), place_in("/tmp/ipykernel_77/2398472398.py", 5), place_in("<stdin>", 5)
    ('lab.py:5', 'cell, line 5', 'line 5')
    """
    path = PurePath(filename)
    if filename.startswith("<ipython-input") or path.parent.name.startswith("ipykernel_"):
        return f"cell, line {line}"
    if filename.startswith("<") or (path.is_absolute() and not os.path.exists(filename)):
        return f"line {line}"
    return f"{path.name}:{line}"


@dataclass(frozen=True)
class Symbol:
    """A dotted name that the tracer may know, such as `cuda.shared.array`."""

    path: str


@dataclass(frozen=True)
class ConstantArray:
    """A NumPy array outside the kernel, which numba copies into constant memory."""

    array: np.ndarray


@dataclass(frozen=True)
class Forbidden:
    """Something outside the closed set; using it in a kernel is refused."""

    what: str


# An ellipsis where a value belongs: an exercise that is not done yet.
LEFT_OPEN = Forbidden("a ... that is still to be filled in")

_MODULES = {
    "numba": "numba",
    "numba.cuda": "cuda",
    "numba_cuda.numba.cuda": "cuda",
    "numba.cuda.cg": "cuda.cg",
    "numba.cuda.libdevice": "cuda.libdevice",
    "numba.types": "numba",
    "numba.core.types": "numba",
    "numba.cuda.types": "numba",
    "math": "math",
    "numpy": "numpy",
    "lanewise": "lanewise",
    "lanewise.ptx": "ptx",
}

TYPE_NAMES = {
    name: np.dtype(name)
    for name in (
        [
            "bool",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float16",
            "float32",
            "float64",
            "complex64",
            "complex128",
        ]
    )
}
TYPE_NAMES |= {"boolean": np.dtype(bool), "bool_": np.dtype(bool), "byte": np.dtype("uint8")}
TYPE_NAMES |= {"intp": np.dtype("int64"), "uintp": np.dtype("uint64"), "double": np.dtype("float64")}
TYPE_NAMES |= {"intc": np.dtype("int32"), "uintc": np.dtype("uint32"), "float_": np.dtype("float64")}

BUILTINS = frozenset(
    [
        "range",
        "len",
        "min",
        "max",
        "abs",
        "int",
        "float",
        "bool",
        "complex",
        "round",
        "enumerate",
        "zip",
        "pow",
        "divmod",
        "tuple",
        "print",
        "sum",
        "slice",
    ]
)


def symbol(path: str) -> Any:
    """A dotted path as the tracer sees it: data types of numba and NumPy become `numpy.dtype`."""
    head, _, last = path.rpartition(".")
    if head in ("numba", "numpy", "numba.types") and last in TYPE_NAMES:
        return TYPE_NAMES[last]
    aliases = {"numba.cuda": "cuda", "numba.types": "numba", "lanewise.ptx": "ptx"}
    return Symbol(aliases.get(path, path))


@dataclass(eq=False)
class Function:
    """A kernel or device function as source.

    `lookup` gives the entity of a name that is not a local variable, or raises KeyError.
    """

    name: str
    tree: ast.FunctionDef
    filename: str
    lookup: Callable[[str], Any] = field(repr=False)
    lines: Mapping[int, str] = field(repr=False)
    defaults: tuple[Any, ...] = ()

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        return tuple(argument.arg for argument in self.tree.args.args)

    @cached_property
    def local_names(self) -> frozenset[str]:
        """Names that the function assigns: its variables."""
        nodes = (node for node in ast.walk(self.tree) if isinstance(node, ast.Name))
        return frozenset(node.id for node in nodes if isinstance(node.ctx, ast.Store)) | frozenset(
            self.parameters
        )

    def where(self, node: ast.AST) -> str:
        """`file:line` of a node, for messages."""
        return place_in(self.filename, getattr(node, "lineno", "?"))

    def text_at(self, line: int) -> str:
        """The source text of a line, without its indentation."""
        return self.lines.get(line, "").strip()


def function_of(kernel: Any) -> Function:
    """Get the source of a `@cuda.jit` kernel, a plain function, or a `Function` as it is.

    Raises `UnsupportedConstruct` if there is no source or it is not a `def`.
    """
    if isinstance(kernel, Function):
        return kernel
    plain = _plain_function(kernel)
    if plain is None:
        launch = type(kernel).__name__ in ("_LaunchConfiguration", "_KernelConfiguration")
        way_out = (
            "give the kernel itself, with grid and block behind it: trace(kernel, grid, block, ...)."
            if launch
            else "give a function defined with def, or a cuda.jit kernel made of one."
        )
        raise UnsupportedConstruct(f"trace: got a {type(kernel).__name__}; {way_out}")
    return _from_live(plain)


def functions_in(text: str, filename: str = "<source>", prelude: str = "") -> dict[str, Function]:
    """Read the functions of a module's source text without running any of it.


    Imports from the closed set, assignments of number constants and function definitions are understood;
    whatever else the text has is left alone, and a kernel that needs it is refused. Use it to trace a
    stranger's code. `prelude` is source of your own that goes before, such as imports; lines are counted
    without it.

    >>> kernel = functions_in("def fill(out):\\n    out[0] = 1\\n")["fill"]
    >>> kernel.parameters
    ('out',)
    """
    try:
        tree = ast.parse(text, filename)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnsupportedConstruct(f"{filename}: the source does not parse: {error}.") from None
    lines = dict(enumerate(text.splitlines(), 1))
    names: dict[str, Any] = {}

    def lookup(name: str) -> Any:
        return names[name] if name in names else _builtin(name)

    for statement in (*ast.parse(prelude).body, *tree.body):
        if isinstance(statement, ast.FunctionDef):
            names[statement.name] = Function(statement.name, statement, filename, lookup, lines)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            names.update(_imported(statement))
        elif isinstance(statement, ast.Assign):
            value = _constant_expression(statement.value, names)
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    names[target.id] = value
    return {name: entity for name, entity in names.items() if isinstance(entity, Function)}


def _imported(statement: ast.Import | ast.ImportFrom) -> dict[str, Any]:
    if isinstance(statement, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: _module(
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
            for alias in statement.names
        }
    root = _module(statement.module or "")
    if isinstance(root, Forbidden) or statement.level:
        return {
            alias.asname or alias.name: Forbidden(f"a name of module {statement.module}")
            for alias in statement.names
        }
    return {alias.asname or alias.name: symbol(f"{root.path}.{alias.name}") for alias in statement.names}


def _module(name: str) -> Any:
    return Symbol(_MODULES[name]) if name in _MODULES else Forbidden(f"module {name}")


def _constant_expression(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Fold literals, tuples and arithmetic on small numbers; anything else stays forbidden."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        return node.value
    if isinstance(node, ast.Constant) and node.value is ...:
        return LEFT_OPEN
    if isinstance(node, ast.Tuple):
        return tuple(_constant_expression(element, names) for element in node.elts)
    if isinstance(node, ast.Name) and isinstance(
        names.get(node.id), (bool, int, float, tuple, np.dtype, Symbol)
    ):
        return names[node.id]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        root = names.get(node.value.id)
        if isinstance(root, Symbol):
            return symbol(f"{root.path}.{node.attr}")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _constant_expression(node.operand, names)
        if isinstance(value, (int, float)):
            return -value
    if isinstance(node, ast.BinOp):
        left, right = _constant_expression(node.left, names), _constant_expression(node.right, names)
        folded = fold(type(node.op).__name__, left, right)
        if folded is not None:
            return folded
    return Forbidden("a value that is not a number literal")


def fold(operator: str, left: Any, right: Any) -> int | float | None:
    """Arithmetic on two literals, as Python's own compiler does it; None where it would not."""
    if not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
        return None
    if max(abs(left), abs(right)) > 2**64:
        return None
    if operator in ("Add", "Sub", "Mult"):
        return {"Add": left + right, "Sub": left - right, "Mult": left * right}[operator]
    if operator in ("FloorDiv", "Mod") and right != 0:
        return left // right if operator == "FloorDiv" else left % right
    if operator == "Div" and right != 0:
        return left / right
    if (
        operator in ("LShift", "RShift")
        and isinstance(left, int)
        and isinstance(right, int)
        and 0 <= right < 64
    ):
        return left << right if operator == "LShift" else left >> right
    if operator == "Pow" and isinstance(left, int) and isinstance(right, int) and 0 <= right < 64:
        return int(left**right) if abs(left).bit_length() * right <= 64 else None
    return None


def _plain_function(value: Any) -> types.FunctionType | None:
    """The Python function behind a dispatcher of numba or its simulator, or the function itself."""
    if type(value) is types.FunctionType:
        return value
    if type(value).__module__.partition(".")[0] in ("numba", "numba_cuda"):
        for attribute in ("py_func", "fn"):
            inner = vars(value).get(attribute) if hasattr(value, "__dict__") else None
            if type(inner) is types.FunctionType:
                return inner
    return None


def _from_live(plain: types.FunctionType) -> Function:
    if plain.__name__ == "<lambda>":
        raise UnsupportedConstruct(
            f"{place_in(plain.__code__.co_filename, plain.__code__.co_firstlineno)}: a lambda; a kernel"
            " is defined with def."
        )
    try:
        source, first = inspect.getsourcelines(plain)
        tree = ast.parse(textwrap.dedent("".join(source)))
    except (OSError, TypeError, SyntaxError) as error:
        raise UnsupportedConstruct(
            f"{plain.__name__}: its source cannot be read ({error}). Define the kernel with def in a"
            " file or in a notebook cell; a lambda or a function typed at the plain prompt keeps no source."
        ) from None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise UnsupportedConstruct(f"{plain.__name__}: a kernel is defined with def; this one is not.")
    ast.increment_lineno(tree, first - 1)
    indent = len(source[0]) - len(source[0].lstrip())
    for node in ast.walk(tree):
        if hasattr(node, "col_offset"):
            node.col_offset += indent
    filename = plain.__code__.co_filename
    lines = dict(enumerate(linecache.getlines(filename), 1)) or dict(enumerate(source, first))
    defaults = tuple(entity_of(value) for value in plain.__defaults__ or ())
    return Function(definition.name, definition, filename, _lookup_of(plain), lines, defaults)


def _lookup_of(plain: types.FunctionType) -> Callable[[str], Any]:
    cells = dict(zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True))
    known: dict[str, Any] = {}

    def lookup(name: str) -> Any:
        if name not in known:
            if name in cells:
                known[name] = entity_of(cells[name].cell_contents)
            elif name in plain.__globals__:
                known[name] = entity_of(plain.__globals__[name])
            else:
                known[name] = _builtin(name)
        return known[name]

    return lookup


def _builtin(name: str) -> Any:
    if name in BUILTINS:
        return Symbol(f"builtins.{name}")
    if hasattr(builtins, name) and not name.startswith("_"):
        return Forbidden(f"the built-in {name}")
    raise KeyError(name)


def entity_of(value: Any, depth: int = 0) -> Any:
    """Classify an object that a kernel's name is bound to, by its type alone."""
    kind = type(value)
    if kind in (bool, int, float, complex, type(None)):
        return value
    if kind is Function:
        return value
    if value is ...:
        return LEFT_OPEN
    if kind is tuple and depth < 8:
        return tuple(entity_of(element, depth + 1) for element in value)
    if kind.__module__ == "numpy" and issubclass(kind, np.generic):
        return value if value.dtype.kind in "biufc" else Forbidden(f"a numpy.{kind.__name__}")
    if kind is types.ModuleType:
        return _module(str(vars(value).get("__name__")))
    if isinstance(value, np.dtype):
        return value
    if kind is np.ndarray:
        return ConstantArray(value)
    if kind is type or issubclass(kind, type):
        return _class_entity(value)
    return _object_entity(value)


def _class_entity(value: type) -> Any:
    module, name = str(value.__module__), value.__name__
    if issubclass(value, np.generic):
        return np.dtype(value)
    if module == "builtins" and name in BUILTINS:
        return Symbol(f"builtins.{name}")
    if module.startswith(("numba.cuda", "numba_cuda.numba.cuda")):
        return Symbol(f"cuda.{name}")
    return Forbidden(f"the class {name}")


def _object_entity(value: Any) -> Any:
    kind = type(value)
    plain = _plain_function(value)
    if plain is not None:
        module = str(plain.__module__)
        if module == "lanewise.ptx" or module.startswith("lanewise.ptx."):
            return Symbol(f"ptx.{plain.__name__}")
        if module.startswith(("numba.cuda", "numba_cuda.numba.cuda")):
            return Symbol(f"cuda.{plain.__name__}")
        options = vars(value).get("targetoptions") if hasattr(value, "__dict__") else None
        inline = options.get("inline") if type(options) is dict else None
        return DeviceFunction(plain, inline is True or inline == "always")
    if kind is types.BuiltinFunctionType and value.__module__ in ("math", "builtins"):
        name = value.__name__
        if value.__module__ == "math" or name in BUILTINS:
            return Symbol(f"{value.__module__}.{name}")
        return Forbidden(f"the built-in {name}")
    if isinstance(value, np.ufunc):
        return symbol(f"numpy.{value.__name__}")
    if kind.__module__.partition(".")[0] in ("numba", "numba_cuda"):
        return _numba_intrinsic(value) or _numba_type(value)
    return Forbidden(f"an object of type {kind.__name__}")


def _numba_intrinsic(value: Any) -> Symbol | None:
    """numba keeps an intrinsic's defining function; its module says whose it is."""
    defining = vars(value).get("_defn") if hasattr(value, "__dict__") else None
    if type(defining) is not types.FunctionType:
        return None
    module = str(defining.__module__)
    if module == "lanewise.ptx" or module.startswith("lanewise.ptx."):
        return Symbol(f"ptx.{defining.__name__}")
    return Symbol(f"cuda.{defining.__name__}") if module.startswith(("numba.cuda", "numba_cuda.")) else None


@dataclass(frozen=True)
class DeviceFunction:
    """A live function that a kernel calls; its source is read when it does.

    `inlined` says that numba copies its code to every call, shared arrays included.
    """

    plain: types.FunctionType
    inlined: bool = False


def _numba_type(value: Any) -> Any:
    """The NumPy form of a numba type such as `float32` or a record type; module-like objects of numba by
    name."""
    attributes = vars(value) if hasattr(value, "__dict__") else {}
    name = attributes.get("name")
    if isinstance(name, str) and name in TYPE_NAMES:
        return TYPE_NAMES[name]
    fields = attributes.get("fields")
    if isinstance(fields, Mapping):
        names = list(fields)
        formats = [_numba_type(fields[key].type) for key in names]
        if all(isinstance(entry, np.dtype) for entry in formats):
            offsets = [int(fields[key].offset) for key in names]
            return np.dtype(
                {"names": names, "formats": formats, "offsets": offsets, "itemsize": int(attributes["size"])}
            )
    return Forbidden(f"a numba object of type {type(value).__name__}")
