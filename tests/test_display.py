"""Tables and sentences of a page."""

import numpy as np
import pytest

from lanewise.access import WarpAccess
from lanewise.display import InvalidTable, compare, say, source, table

ROWS = [
    {"read": "`a|b`", "wavefronts": 1, "excess": np.int64(0), "fused": True, "note": None},
    {"read": "x", "wavefronts": 1024, "excess": None, "fused": False, "note": "32-way"},
]


def test_markdown_has_a_rule_escapes_bars_and_sets_numbers_to_the_right() -> None:
    assert table(ROWS)._repr_markdown_().splitlines() == [
        "| read | wavefronts | excess | fused | note |",
        "| :--- | ---: | ---: | :--- | :--- |",
        "| `a\\|b` | 1 | 0 | yes |  |",
        "| x | 1,024 |  | no | 32-way |",
    ]


def test_plain_text_is_aligned() -> None:
    assert repr(table(ROWS)).splitlines() == [
        "read   wavefronts  excess  fused  note",
        "`a|b`           1       0  yes",
        "x           1,024          no     32-way",
    ]


def test_numbers_written_as_text_are_set_to_the_right_too() -> None:
    rows = [
        {"cycles": "28.0", "share": "50%", "grid": "1 x 2"},
        {"cycles": "1,024.5", "share": "5%", "grid": "3"},
    ]
    assert table(rows).numeric == (True, True, False)


def test_sentence_shows_as_it_is() -> None:
    assert say("**32** wavefronts")._repr_markdown_() == repr(say("**32** wavefronts")) == "**32** wavefronts"


def test_bad_rows_are_refused() -> None:
    with pytest.raises(InvalidTable, match="got no rows"):
        table([])
    with pytest.raises(InvalidTable, match=r"row 1 has headers \('b',\), row 0 has \('a',\)"):
        table([{"a": 1}, {"b": 1}])


def test_source_of_a_kernel_is_its_own_text() -> None:
    class Dispatcher:
        py_func = staticmethod(test_sentence_shows_as_it_is)

    shown = source(Dispatcher())._repr_markdown_()  # type: ignore[arg-type]
    assert shown.startswith("```python\ndef test_sentence_shows_as_it_is() -> None:\n    assert say(")
    assert shown.endswith("\n```")


def test_costs_of_accesses_side_by_side() -> None:
    accesses = {
        "stride 1": WarpAccess.from_formula("ld.global.b32", lambda lane: 4 * lane),
        "stride 2": WarpAccess.from_formula("ld.global.b32", lambda lane: 8 * lane),
    }
    shown = compare(accesses, "sectors", "lines", label="load")
    assert repr(shown).splitlines() == [
        "load      sectors  lines",
        "stride 1        4      1",
        "stride 2        8      2",
    ]
