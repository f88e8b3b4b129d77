"""Random kernels: device functions, then phases that write, meet and read."""

from __future__ import annotations

from tests.generator.grammar import ACCUMULATORS, HEADER
from tests.generator.program import Program
from tests.generator.statements import Statements


class Writer(Statements):
    """Writes one program."""

    def program(self) -> Program:
        for kind in self.rng.sample("IF", self.rng.randrange(3)):
            self.device_function(kind)
        self.kernel()
        source = HEADER + "\n".join(self.lines) + "\n"
        return Program(self.seed, self.plain, source, self.grid, self.block)

    def device_function(self, kind: str) -> None:
        """A function of an integer and a float, with early returns of one type, that touches no memory."""
        name = "whole" if kind == "I" else "real"
        saved = self.ints, self.floats
        self.ints, self.floats, self.memory = ["p"], ["q"], False
        self.lines.append("")
        self.emit("@cuda.jit(device=True)")
        with self.indented(f"def {name}(p, q):"):
            template = "np.int64(I)" if kind == "I" else "np.float64(B)"
            with self.indented(f"if {self.condition(1)}:"):
                self.emit("return " + self.expand(template, 3))
            with self.indented(f"for k in range({self.rng.randrange(1, 4)}):"):
                self.loop_variables.append("k")
                with self.indented(f"if {self.condition(1)}:"):
                    self.emit("return " + self.expand(template, 3))
                self.loop_variables.pop()
            self.emit("return " + self.expand(template, 3))
        (self.ints, self.floats), self.memory = saved, True
        self.functions.append((name, kind))
        self.lines.append("")

    def kernel(self) -> None:
        names = ", ".join((*self.sources, "out_i", "out_f", "out_d", "sums", "n"))
        self.lines.append("")
        self.emit("@cuda.jit")
        with self.indented(f"def kernel({names}):"):
            self.prologue()
            for _ in range(self.rng.randrange(1, 3)):
                self.phase()
            self.shared = ""
            self.emit("cuda.syncthreads()")
            with self.indented(f"for k in range(t, {ACCUMULATORS}, {self.n_threads}):"):
                self.emit("cuda.atomic.add(sums, k // 4 * 4, m[k])")
            self.shared_accumulators = False
            if self.chance(0.3):
                with self.indented(f"if {self.condition(2)}:"):
                    self.emit("return")
                self.statements(2, 2)
            self.epilogue()

    def prologue(self) -> None:
        width, height = (*self.block, 1)[:2]
        self.emit(f"t = (cuda.threadIdx.z * {height} + cuda.threadIdx.y) * {width} + cuda.threadIdx.x")
        self.emit(f"i = (cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x) * {self.n_threads} + t")
        self.emit("gx, gy = cuda.grid(2)")
        self.emit(f"m = cuda.shared.array({ACCUMULATORS}, np.int64)")
        self.emit("p = cuda.local.array(4, np.int64)")
        self.emit("table = cuda.const.array_like(TABLE)")
        self.emit(f"s = cuda.shared.array({self.n_threads}, np.int64)")
        self.emit(
            f"w = cuda.shared.array(({self.n_threads}, 3), np.{'float64' if self.plain else 'float32'})"
        )
        casts = {"a": "int64", "b": "int64", "h": "int32", "u": "float32", "v": "float32"}
        for start, variable in enumerate((*self.ints, *self.floats)):
            self.emit(f"{variable} = np.{casts.get(variable, 'float64')}({start} - t % 7)")
        self.emit("c = t % 3 == 1")
        for slot in range(4):
            self.emit(f"p[{slot}] = t - {slot}")
        with self.indented(f"for k in range(t, {ACCUMULATORS}, {self.n_threads}):"):
            self.emit("m[k] = k")
        self.emit("cuda.syncthreads()")

    def epilogue(self) -> None:
        for slot, variable in enumerate(self.ints):
            self.emit(f"out_i[i, {slot}] = {variable}")
        for slot, variable in enumerate(self.floats):
            array = "out_f[i, {}]" if self.chance(0.5) else "out_d[{}, i]"
            self.emit(f"{array.format(slot)} = {variable}")

    def phase(self) -> None:
        """Write own slots, meet, read any slot, meet; sometimes in a loop that is the same for all threads."""
        if self.chance(0.3):
            variable = f"r{next(self.fresh)}"
            with self.indented(f"for {variable} in range({self.rng.choice(['2', '3', 'n'])}):"):
                self.loop_variables.append(variable)
                self.write_and_read()
                self.loop_variables.pop()
        else:
            self.write_and_read()

    def write_and_read(self) -> None:
        turn = self.rng.randrange(self.n_threads)
        self.own_slot = self.rng.choice(
            ["t", f"{self.n_threads - 1} - t", f"(t + {turn}) % {self.n_threads}"]
        )
        self.shared = "write"
        self.emit(f"s[{self.own_slot}] = {self.integer(2)}")
        for column in range(3):
            self.emit(f"w[{self.own_slot}, {column}] = {self.bounded(2)}")
        self.shared = "own"
        self.statements(self.rng.randrange(3), 2)
        self.emit("cuda.syncthreads()")
        self.shared = "read"
        self.statements(self.rng.randrange(1, 4), 3)
        if not self.plain and self.n_threads % 32 == 0 and self.chance(0.4):
            self.warp_operation()
        self.emit("cuda.syncthreads()")
        self.shared = ""

    def warp_operation(self) -> None:
        variable = self.rng.choice([*self.ints, *self.floats])
        source = {
            "shfl_xor_sync": str(self.rng.randrange(32)),
            "shfl_down_sync": str(self.rng.randrange(32)),
            "shfl_up_sync": str(self.rng.randrange(32)),
            "shfl_sync": f"({self.integer(1)}) % 32",
        }
        if self.chance(0.3):
            self.emit(f"a = np.int64(cuda.popc(cuda.ballot_sync(0xFFFFFFFF, {self.condition(1)})))")
        else:
            name = self.rng.choice(list(source))
            self.emit(f"{variable} = cuda.{name}(0xFFFFFFFF, {variable}, {source[name]})")
