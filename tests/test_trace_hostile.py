"""Kernels written to reach out of the tracer: each is refused, or ended, and nothing outside happens.

Every source is given as text and goes through `functions_in`, so nothing of it is ever executed by the test
either.
"""

from __future__ import annotations

import builtins
import os
import re
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from lanewise.errors import Error
from lanewise.trace import KernelLimit, UnsupportedConstruct, functions_in, trace

HEAD = "import math\nimport numpy as np\nfrom numba import cuda, float32, int32\n"

# name: (text outside the kernel, body, what the refusal mentions)
REFUSED = {
    "import_in_body": ("", "import os", "an import"),
    "import_from_in_body": ("", "from os import system", "an import"),
    "dunder_import": ("", "__import__('os')", "__import__"),
    "os_outside": ("import os", "os.system('touch /tmp/owned')", "module os"),
    "os_from_outside": ("from os import system", "system('touch /tmp/owned')", "a name of module os"),
    "subprocess_alias": ("import subprocess as np2", "np2.run('ls')", "module subprocess"),
    "shadowed_numpy": ("import os as np", "np.system('ls')", "module os"),
    "shadowed_cuda": ("from os import path as cuda", "cuda.exists('/')", "a name of module os"),
    "star_import": ("from os import *", "system('ls')", "unknown name system"),
    "numpy_submodule": ("", "np.ctypeslib.load_library('libc', '/')", "numpy.ctypeslib.load_library"),
    "numpy_load": ("", "np.load('/etc/passwd')", "numpy.load"),
    "numpy_fromfile": ("", "np.fromfile('/etc/passwd')", "numpy.fromfile"),
    "numpy_save": ("", "np.save('/tmp/owned', out)", "numpy.save"),
    "math_dunder": ("", "math.__loader__", "private attribute __loader__"),
    "array_dunder": ("", "out.__class__", "private attribute __class__"),
    "dunder_walk": ("", "().__class__.__bases__[0].__subclasses__()", "private attribute __subclasses__"),
    "tuple_class": ("", "x = (1, 2).__class__", "private attribute __class__"),
    "number_class": ("", "x = (1).__class__", "private attribute __class__"),
    "string_format": ("", "x = '{0.__class__}'.format(out)", "attribute format of a string"),
    "string_percent": ("", "x = '%s' % out", "a string where a number is needed"),
    "fstring": ("", "x = f'{out.__class__}'", "an f-string"),
    "array_method": ("", "out.tofile('/tmp/owned')", "array attribute tofile"),
    "array_base": ("", "x = out.base", "array attribute base"),
    "array_ctypes": ("", "x = out.ctypes.data", "array attribute ctypes"),
    "array_data": ("", "x = out.data", "array attribute data"),
    "eval": ("", "eval('1')", "the built-in eval"),
    "exec": ("", "exec('x = 1')", "the built-in exec"),
    "compile": ("", "compile('1', '', 'eval')", "the built-in compile"),
    "open": ("", "open('/etc/passwd')", "the built-in open"),
    "getattr": ("", "getattr(out, 'base')", "the built-in getattr"),
    "setattr": ("", "setattr(out, 'shape', (1,))", "the built-in setattr"),
    "globals": ("", "globals()", "the built-in globals"),
    "vars": ("", "vars(math)", "the built-in vars"),
    "type": ("", "type(out)", "the built-in type"),
    "input": ("", "input()", "the built-in input"),
    "print": ("", "print(out[0])", "print is not supported"),
    "breakpoint": ("", "breakpoint()", "the built-in breakpoint"),
    "lambda": ("", "f = lambda: 1", "a lambda"),
    "nested_function": ("", "def g():\n        pass", "a function inside a kernel"),
    "class": ("", "class A:\n        pass", "a class"),
    "comprehension": ("", "x = [i for i in range(10**9)]", "a list comprehension"),
    "generator": ("", "x = sum(i for i in range(9))", "a generator expression"),
    "global_statement": ("", "global HEAD", "global"),
    "try_except": ("", "try:\n        out[0] = 1\n    except Exception:\n        pass", "try"),
    "raise": ("", "raise SystemExit", "raise"),
    "with": ("", "with out:\n        pass", "with"),
    "delete": ("", "del out", "del"),
    "assert": ("", "assert False", "assert"),
    "walrus": ("", "x = (y := 1)", "an assignment inside an expression"),
    "yield": ("", "yield 1", "yield"),
    "set_attribute": ("", "out.shape = (1,)", "assigning to an attribute"),
    "patch_cuda": ("", "cuda.grid = 1", "assigning to an attribute"),
    "ellipsis": ("", "x = out[...]", "a ellipsis literal"),
    "bytes": ("", "x = b'abc'", "a bytes literal"),
    "huge_literal": ("", f"x = {10**40}", "more than 64 bits"),
    "huge_power_literal": ("", "x = 10 ** 10 ** 10 ** 10", None),
    "huge_shift_literal": ("", "x = 1 << 10 ** 9", None),
    "giant_shared": ("", "x = cuda.shared.array(10 ** 12, float32)", "an array extent of 1000000000000"),
    "giant_shared_2": ("", "x = cuda.shared.array((16000000, 16000000), float32)", "shared memory"),
    "giant_local": ("", "x = cuda.local.array(16000000, float32)", "a local array of shape"),
    "negative_shape": ("", "x = cuda.shared.array(-1, float32)", "an array extent of -1"),
    "object_dtype": ("", "x = cuda.shared.array(4, object)", "object"),
    "string_dtype": ("", "x = cuda.shared.array(4, 'O')", "this data type"),
    "runtime_shape": ("", "x = cuda.shared.array(n, float32)", "an array shape that is not constant"),
    "host_call": ("", "cuda.to_device(out)", "cuda.to_device"),
    "host_copy": ("", "out.copy_to_host()", "array attribute copy_to_host"),
    "launch_kernel": ("def other(out):\n    out[0] = 1", "other[1, 1](out)", "an index into a function"),
    "decorator_call": ("", "cuda.jit(out)", "cuda.jit"),
    "recursion": ("def loop(x):\n    return loop(x)", "loop(1)", "call chain"),
    "mutual_recursion": ("def f(x):\n    return g(x)\ndef g(x):\n    return f(x)", "f(1)", "call chain"),
    "star_arguments": ("def f(*a):\n    return 1", "f(1)", "the signature of f"),
    "double_star": ("", "cuda.grid(**n)", r"\*\* in a call"),
    "bad_keyword": ("", "cuda.syncthreads(evil=1)", "cuda.syncthreads with these arguments"),
    "computed_global": ("X = open('/etc/passwd')", "x = X", "not a number literal"),
    "computed_call": ("X = __import__('os').getpid()", "x = X", "not a number literal"),
    "dead_code": ("", "if n > 10 ** 6:\n        open('/etc/passwd')", "the built-in open"),
    "after_return": ("", "if n > 10 ** 6:\n        return\n    eval('1')", "the built-in eval"),
    "in_condition": ("", "x = 1 if n > 0 else eval('1')", "the built-in eval"),
    "in_and": ("", "x = n < 0 and exec('1')", "the built-in exec"),
    "match": ("", "match n:\n        case 1:\n            pass", "match"),
    "async_for": ("", "x = 1\n    for i in out.flat:\n        pass", "array attribute flat"),
    "starred_call": ("", "cuda.grid(*out)", "unpacking"),
    "format_field": ("", "x = out['{0.__class__}']", "a string as an array index"),
    "libdevice": ("", "cuda.libdevice.acosf(1.0)", "cuda.libdevice.acosf"),
}


def kernel_of(outside: str, body: str) -> Any:
    return functions_in(f"{HEAD}{outside}\n\ndef kernel(out, n):\n    {body}\n", "hostile.py")["kernel"]


def refusal(name: str) -> str:
    outside, body, _ = REFUSED[name]
    with pytest.raises(Error) as caught:
        trace(kernel_of(outside, body), 1, 32, np.zeros(32), 1)
    return str(caught.value)


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_with_its_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, attribute in ((os, "system"), (subprocess, "Popen"), (builtins, "open"), (builtins, "eval")):
        monkeypatch.setattr(module, attribute, _trap)
    expected = REFUSED[name][2]
    if expected is None:
        outside, body, _ = REFUSED[name]
        started = time.monotonic()
        trace(kernel_of(outside, body), 1, 32, np.zeros(32), 1)
        assert time.monotonic() - started < 5
        return
    message = refusal(name)
    monkeypatch.undo()
    assert re.search(expected, message), message
    if "shared memory:" not in message:
        assert re.match(r"hostile\.py:\d+: ", message), message


def _trap(*arguments: Any, **options: Any) -> None:
    raise AssertionError(f"the tracer reached {arguments}")


def test_there_are_at_least_forty() -> None:
    assert len(REFUSED) >= 40


def test_refusals_name_the_way_out_and_the_line() -> None:
    message = refusal("comprehension")
    assert message == (
        "hostile.py:7: a list comprehension is not supported in a traced kernel. Write a for loop.\n"
        "    x = [i for i in range(10**9)]"
    )


ENDLESS = {
    "while_true": "while True:\n        n = n + 1",
    "for_huge": "for i in range(10 ** 18):\n        n = n + 1",
    "spin_lock": "while cuda.atomic.cas(out, 0, 0, 1) != 0:\n        pass",
    "nested": "for i in range(10 ** 9):\n        for j in range(10 ** 9):\n            n = i + j",
    "continue_forever": "while True:\n        continue",
    "shrinking": "while n > 0:\n        n = n * 2 % 7",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_loops_are_ended(name: str) -> None:
    with pytest.raises(
        KernelLimit,
        match=r"hostile\.py:\d+: the kernel ran steps=2,000 statements, the limit, without coming",
    ):
        trace(kernel_of("", ENDLESS[name]), 1, 32, np.ones(32, np.int64), 1, steps=2000)


def test_time_is_limited_too() -> None:
    with pytest.raises(KernelLimit, match=r"for more than seconds=0\.05"):
        trace(kernel_of("", ENDLESS["while_true"]), 1, 32, np.zeros(32), 1, seconds=0.05)


def test_writes_stay_inside_the_array() -> None:
    """A neighbouring view of the same memory is out of reach: bounds are those of the array that was
    passed."""
    memory = np.zeros(64)
    body = "out[n + cuda.threadIdx.x] = 1\n    out[-40 - cuda.threadIdx.x] = 1\n    out[2 ** 62] = 1"
    t = trace(kernel_of("", body), 1, 32, memory[16:48], 40)
    assert not memory.any()
    assert [hazard.kind for hazard in t.hazards] == ["out_of_bounds"] * 3


def test_numbers_do_not_grow() -> None:
    out = np.zeros(1, np.int64)
    trace(kernel_of("", "x = 3\n    for i in range(10000):\n        x = x * x\n    out[0] = x"), 1, 1, out, 1)
    expected = np.int64(3)
    with np.errstate(over="ignore"):
        for _ in range(10000):
            expected = expected * expected
    assert out[0] == expected


def test_deep_nesting_ends_in_an_error_not_a_crash() -> None:
    deep = "x = " + "(" * 60 + "n" + " + 1)" * 60
    trace(kernel_of("", deep), 1, 32, np.zeros(32), 1)
    for text in ("x = n" + " + n" * 600, "x = " + "-" * 5000 + "n", "x = n" + " + n" * 50_000):
        with pytest.raises(Error):
            trace(kernel_of("", text), 1, 32, np.zeros(32), 1)


def test_source_that_does_not_parse() -> None:
    with pytest.raises(UnsupportedConstruct, match=r"bad\.py: the source does not parse"):
        functions_in("def f(:", "bad.py")


def test_importing_and_tracing_does_not_load_numba() -> None:
    code = (
        "import sys, numpy as np\nfrom lanewise.trace import trace, functions_in\n"
        "k = functions_in('from numba import cuda\\ndef k(o):\\n    o[cuda.grid(1)] = 1\\n')['k']\n"
        "trace(k, 1, 32, np.zeros(32))\nassert 'numba' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


@pytest.mark.parametrize(
    ("filename", "place"),
    [
        ("/tmp/ipykernel_4711/2398472398.py", "cell, line"),
        ("<ipython-input-3-1f2e3d4c5b6a>", "cell, line"),
        ("/nowhere/at/all.py", "line"),
        ("<stdin>", "line"),
        ("lab.py", "lab.py:"),
        (__file__, "test_trace_hostile.py:"),
    ],
)
def test_made_up_file_names_are_not_shown(filename: str, place: str) -> None:
    body = "from numba import cuda\ndef kernel(a):\n    {}\n"
    refused = functions_in(body.format("a[0] = sorted(a)"), filename)["kernel"]
    with pytest.raises(UnsupportedConstruct, match=rf"^{place} ?3: "):
        trace(refused, 1, 32, np.zeros(32))
    uncounted = functions_in(body.format("cuda.atomic.max(a, 0, 1)"), filename)["kernel"]
    t = trace(uncounted, 1, 32, np.zeros(1, np.int64))
    assert re.match(rf"{place} ?3: red\.global", t.unmodelled[0])
