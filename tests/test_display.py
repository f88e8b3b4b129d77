"""Tables and sentences of a page."""

import numpy as np
import pytest

from lanewise.access import WarpAccess
from lanewise.display import InvalidTable, NoSource, compare, say, source, table

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
    for rows, named in (([3], "row 0 is 3"), ("ab", "row 0 is 'a'"), (None, "row 0 is None")):
        with pytest.raises(InvalidTable, match=rf"{named}\. Give each row as {{header: value}}"):
            table(rows)  # type: ignore[arg-type]


def test_columns_that_no_cost_has_are_refused() -> None:
    shared = WarpAccess.from_formula("ld.shared.b32", lambda lane: 4 * lane)
    in_global = WarpAccess.from_formula("ld.global.b32", lambda lane: 4 * lane)
    with pytest.raises(
        InvalidTable, match=r"ld\.global\.b32 of 'b' has no column 'wavefronts'; it has bytes_moved, "
    ):
        compare({"a": shared, "b": in_global})
    with pytest.raises(
        InvalidTable, match=r"has no column 'bytes'; it has fused, degree, excess, ideal, .*wavefronts\."
    ):
        compare({"a": shared}, "bytes")
    with pytest.raises(InvalidTable, match=r"'a' is 3\. Give a WarpAccess"):
        compare({"a": 3})  # type: ignore[dict-item]
    with pytest.raises(InvalidTable, match="Give the accesses by name"):
        compare([shared])  # type: ignore[arg-type]


def test_a_function_in_no_file_has_no_source_to_show() -> None:
    for function in (len, None, eval("lambda lane: lane")):
        with pytest.raises(NoSource, match=r"is in no file\. Give a function defined in a module or cell"):
            source(function)  # type: ignore[arg-type]


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
