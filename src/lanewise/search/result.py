"""The search itself, and its report."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lanewise.errors import InvalidAccess, InvalidLayout
from lanewise.indexmap import IndexMap
from lanewise.search.accesses import Pattern, TileAccess, TileShape, resolve
from lanewise.search.candidates import KINDS, Candidate, candidate_layouts, try_layout
from lanewise.text import count

BEST_SHOWN = 5


@dataclass(frozen=True, repr=False)
class LayoutSearch:
    """All candidates, best first: usable ones, fewest conflicts, fewest bytes, least index arithmetic.

    Print it for the report; index it by name for one candidate, as in `found["pad 8"]`.
    """

    tile: TileShape
    accesses: tuple[TileAccess, ...]
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The first candidate. Ask it `is_ideal` before calling it free of conflicts."""
        return self.candidates[0]

    @property
    def ideal(self) -> tuple[Candidate, ...]:
        """Those without any conflict, cheapest first."""
        return tuple(candidate for candidate in self.candidates if candidate.is_ideal)

    @property
    def illegal(self) -> tuple[Candidate, ...]:
        """Those that are misaligned, torn or not a permutation; each says why in `problem`."""
        return tuple(candidate for candidate in self.candidates if not candidate.is_legal)

    @property
    def pareto(self) -> tuple[Candidate, ...]:
        """One candidate for each trade of bytes against conflicts that no other beats in both."""
        front: list[Candidate] = []
        for candidate in self.candidates:
            if candidate.is_legal and (not front or candidate.n_bytes < front[-1].n_bytes):
                front.append(candidate)
        return tuple(front)

    def best_of(self, kind: str) -> Candidate | None:
        """The best usable candidate of a kind: "plain", "pad", "swizzle", "xor", "rotation" or "given".

        None if none can be used. Raises `InvalidLayout` for another kind.
        """
        if not isinstance(kind, str) or kind not in KINDS:
            raise InvalidLayout(f"search: {kind!r} is no kind of candidate. Use one of {', '.join(KINDS)}.")
        return next((found for found in self.candidates if found.kind == kind and found.is_legal), None)

    def __getitem__(self, name: str) -> Candidate:
        names = [candidate.name for candidate in self.candidates]
        if name in names:
            return self.candidates[names.index(name)]
        near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.3) or names[:3]
        raise InvalidLayout(
            f"search: {name!r} is not one of the {len(names)} candidates. Did you mean {', '.join(near)}?"
            " Add layouts of your own with also={name: layout}."
        )

    @property
    def verdict(self) -> str:
        """The answer in a few sentences: what serves every access, whether padding does, what is unknown."""
        sentences = self._answer()
        for access in self.accesses:
            if access.spec.not_modelled:
                sentences.append(f"{access.name} is checked for alignment only: its cost is not modelled.")
        return " ".join(sentences)

    def _answer(self) -> list[str]:
        n = len(self.accesses)
        who = {1: "the access", 2: "both accesses"}.get(n, f"all {n} accesses")
        if any(access.spec.not_modelled for access in self.accesses):
            who = "every access that is modelled"
        best, pad = self.best, self.best_of("pad")
        if not best.is_legal:
            return [f"No layout tried can be used. {best}."]
        if all(access.spec.not_modelled for access in self.accesses):
            return [f"{best.name} can be used; no access is modelled, so nothing was counted."]
        if not best.is_ideal:
            lost = count(best.excess, "wavefront")
            return [
                f"No layout tried serves {who} without conflicts. {best.name} comes nearest and loses {lost}."
            ]
        if best.kind == "plain":
            return [f"{best.name} serves {who} without conflicts: neither padding nor a swizzle is needed."]
        if pad is None or not pad.is_ideal:
            return [
                f"No padding serves {who} without conflicts.",
                f"{best.name} does, in {best.n_bytes:,} bytes.",
            ]
        also = f" {pad.name} does too, in {pad.n_bytes:,}." if pad is not best else ""
        return [f"{best.name} serves {who} without conflicts, in {best.n_bytes:,} bytes.{also}"]

    def __str__(self) -> str:
        parts = [
            f"{self.tile}, {self.tile.n_bytes:,} bytes without padding, for",
            *(f"  {access}" for access in self.accesses),
            "Wavefronts / fewest possible, of the dearest warp instruction:",
            "",
            *self._table(),
        ]
        hidden = len([candidate for candidate in self.ideal if candidate not in self._shown()])
        if hidden:
            parts.append(f"{hidden} more {'is' if hidden == 1 else 'are'} ideal.")
        if self.illegal:
            parts.append(f"{len(self.illegal)} of {len(self.candidates)} cannot be used:")
            parts += [f"  {line}" for line in self._reasons()]
        parts += ["", self.verdict]
        if self.best.is_legal:
            parts += ["", self.best.python().rstrip()]
        return "\n".join(parts)

    __repr__ = __str__  # so that a notebook shows the report

    def _shown(self) -> list[Candidate]:
        """The best candidates and, for comparison, the best padding, row-major and what the caller gave."""
        best = self.candidates[:BEST_SHOWN]
        given = [candidate for candidate in self.candidates if candidate.kind == "given"]
        shown: list[Candidate] = []
        for candidate in (*best, self.best_of("pad"), self.best_of("plain"), *given):
            if candidate and candidate.is_legal and candidate not in shown:
                shown.append(candidate)
        return shown

    def _table(self) -> list[str]:
        rows = [["layout", "bytes", *(access.name for access in self.accesses), ""]]
        for candidate in self._shown():
            counts = ["?" if each is None else str(each) for each in candidate.counts]
            rows.append([candidate.name, f"{candidate.n_bytes:,}", *counts, "ideal" * candidate.is_ideal])
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return [
            "  ".join(
                cell.ljust(width) if column == 0 or column == len(row) - 1 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]

    def _reasons(self) -> list[str]:
        """For each kind of layout and of problem: how many there are, and the first one."""
        groups: dict[tuple[str, str], list[Candidate]] = {}
        for bad in self.illegal:
            groups.setdefault((bad.kind, bad.problem.split(":")[0]), []).append(bad)
        largest_first = sorted(groups.items(), key=lambda item: -len(item[1]))
        return [f"{len(group)} of kind {kind}, e.g. {group[0]}" for (kind, _), group in largest_first]


def search_layouts(
    accesses: Sequence[Pattern],
    rows: int,
    cols: int,
    element_bytes: int = 4,
    also: Mapping[str, IndexMap] | None = None,
) -> LayoutSearch:
    """Try row-major, every padding, every swizzle and some rotations of a tile against all its accesses.

    Every padding: banks depend on the row pitch modulo 128 bytes, so the pads below 128 bytes stand for all.

    `rows`, `cols`: the tile in elements of `element_bytes`. `accesses`: what `along_rows`, `down_columns` and
    `matrix_loads` return, `TileAccess` values, or tuples (instruction, row, col). `also`: layouts of your own
    by name, ranked with the rest. The tile may start at any multiple of 16 bytes.

    >>> from lanewise.search import along_rows, down_columns
    >>> found = search_layouts([along_rows("st.shared.b32"), down_columns("ld.shared.b32")], rows=32, cols=32)
    >>> found.best.name, found.best_of("pad").name, found["row-major"].counts[1].worst
    ('Swizzle<5,0,5>', 'pad 1', 32)

    Raises `InvalidAccess` if an access leaves the tile, `UnknownInstruction` for other memory.
    """
    if not isinstance(accesses, Sequence) or isinstance(accesses, str) or not accesses:
        raise InvalidAccess(
            f"search_layouts: got {accesses!r} for accesses; give a list of at least one,"
            " e.g. [along_rows('st.shared.b32')]."
        )
    if also is not None and not isinstance(also, Mapping):
        raise InvalidLayout(f"search_layouts: got {also!r} for also; give layouts by name, {{name: layout}}.")
    tile = TileShape(rows, cols, element_bytes)
    resolved = tuple(resolve(pattern, tile) for pattern in accesses)
    tried = [*candidate_layouts(tile, resolved)]
    taken = {name for name, _, _ in tried} & set(also or {})
    if taken:
        raise InvalidLayout(f"search_layouts: {sorted(taken)} in also is tried anyway. Choose other names.")
    tried += [(name, "given", layout) for name, layout in (also or {}).items()]
    candidates = [try_layout(name, layout, tile, resolved, kind) for name, kind, layout in tried]
    candidates.sort(key=lambda c: (not c.is_legal, c.excess, c.n_bytes, KINDS.index(c.kind)))
    return LayoutSearch(tile, resolved, tuple(candidates))
