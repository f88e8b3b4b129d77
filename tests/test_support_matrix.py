"""The page that says what works on which GPU: every notebook has a row, and what a GPU lacks is named."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import support_data
from lanewise.kernels import async_pipelines, hgemm_fast, padding
from lanewise.machine import KB, from_name
from support_data import GPUS, Need, demanding, need_of, use_of
from tools.notebooks import ROOT, find_notebooks, find_pages
from tools.site import BUILT

T4, A100, H200 = (from_name(GPUS[gpu]) for gpu in ("T4", "A100", "H200"))
PAGE = BUILT / "book" / "support_matrix.html"


def use(folder: Path, *sources: str, tag: str = "") -> support_data.Use:
    """What a notebook of these cells uses."""
    cells = [new_code_cell(source, metadata={"tags": tag.split()}) for source in sources]
    path = folder / "trial.ipynb"
    nbformat.write(
        new_notebook(cells=[new_markdown_cell("from lanewise.kernels import sgemm"), *cells]), str(path)
    )
    return use_of(path)


def names(used: support_data.Use) -> set[str]:
    return {need.kernel for need in used.needs}


def test_every_notebook_has_a_row() -> None:
    assert support_data.notebooks(ROOT) == find_pages()


def test_notebooks_stand_in_reading_order(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "book").mkdir(exist_ok=True)
        (tmp_path / "book" / f"{name}.ipynb").touch()
    (tmp_path / "_toc.yml").write_text("root: book/c\nparts:\n  - chapters:\n      - file: book/b\n")
    assert [path.stem for path in support_data.in_reading_order(tmp_path)] == ["c", "b", "a"]
    assert sorted(support_data.in_reading_order(ROOT)) == support_data.notebooks(ROOT)


@pytest.mark.parametrize("path", find_notebooks(), ids=lambda path: path.stem)
def test_a_notebook_can_be_read_without_a_gpu_and_launched_on_the_recorded_one(path: Path) -> None:
    used = use_of(path)
    assert used.without_gpu() in {"all", "all but live times"}
    assert used.on(H200) in {"all", "launches nothing"}


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not built: run make book")
def test_the_built_page_names_every_notebook() -> None:
    table = PAGE.read_text().partition("<table")[2].partition("</table>")[0]
    assert len(re.findall(r"<tr", table)) == 1 + len(find_pages())


# What a notebook uses.


def test_a_kernel_that_is_named_counts_and_its_neighbours_do_not(tmp_path: Path) -> None:
    one = "from lanewise.kernels import padding as p\nsource(p.transpose_tiled)"
    assert names(use(tmp_path, one)) == {"transpose_tiled"}
    assert names(use(tmp_path, one.replace("p.", "q."))) == set()
    assert names(use(tmp_path, "from lanewise.kernels.padding import transpose_naive")) == {"transpose_naive"}
    assert names(use(tmp_path, "import lanewise.kernels.padding as q\nq.transpose_naive")) == {
        "transpose_naive"
    }


def test_a_module_that_is_passed_on_counts_whole(tmp_path: Path) -> None:
    whole = names(use(tmp_path, "from lanewise.kernels import padding\nf(padding)"))
    assert {"transpose_naive", "transpose_tiled", "transpose_padded"} <= whole


def test_kernels_of_shown_records_count(tmp_path: Path) -> None:
    assert "hgemm_fast" in names(use(tmp_path, 'lw.results.experiment("h200", "E-15")'))
    assert names(use(tmp_path, 'lw.results.experiment("h200", "E-99")')) == set()


def test_intrinsics_in_code_of_the_page_count(tmp_path: Path) -> None:
    used = use(tmp_path, "%pip list\nfrom lanewise import ptx\ndef f(a, b):\n    ptx.cp_async_4(a, 0, b, 0)")
    assert used.on(T4) == "none: `ptx.cp_async_4`: needs sm_80 (cp.async)"
    assert used.on(A100) == "all"


def test_live_times_need_a_gpu(tmp_path: Path) -> None:
    assert use(tmp_path, "x = 1").without_gpu() == "all"
    assert use(tmp_path, "x = 1", tag="times-gpu").without_gpu() == "all but live times"


# What a GPU lacks.


def test_a_t4_lacks_asynchronous_copies_and_large_tiles() -> None:
    staged = need_of(async_pipelines.pipelined_2)
    assert staged.instructions == ("cp.async",)
    assert (staged.lacking_on(T4), staged.lacking_on(A100)) == ("sm_80", "")
    fast = need_of(hgemm_fast.hgemm_fast)
    assert fast.lacking_on(T4) == "sm_80"
    assert fast.lacking_on(A100) == "192 KB of shared memory"
    assert fast.lacking_on(H200) == ""
    assert need_of(padding.transpose_tiled).lacking_on(T4) == ""


def test_what_is_lacking_is_named_or_counted(tmp_path: Path) -> None:
    few = use(tmp_path, "from lanewise.kernels import async_pipelines as a\na.direct, a.pipelined_2")
    assert few.on(T4) == "all but `pipelined_2`: needs sm_80 (cp.async)"
    many = use(tmp_path, "from lanewise.kernels import hgemm_stages as a, padding as p\na, p.transpose_naive")
    assert re.fullmatch(r"all but \d kernels: need sm_80 \(cp\.async, mma\.m16n8k16\.f16\)", many.on(T4))
    assert many.on(H200) == "all"


def test_the_limit_itself_can_be_had() -> None:
    def need(n_bytes: int) -> Need:
        return Need("k", "t", (7, 5), (), n_bytes)

    assert need(64 * KB).lacking_on(T4) == ""
    assert need(64 * KB + 1024).lacking_on(T4) == "65 KB of shared memory"


def test_the_list_of_demanding_kernels_holds_those_and_no_other() -> None:
    listed = {need.kernel for need in demanding()}
    assert {"pipelined_2", "hgemm_fast", "copy"} <= listed
    assert not {"transpose_tiled", "direct"} & listed


def test_every_recorded_topic_has_its_experiments_and_days() -> None:
    topics = support_data.recorded()["h200"]
    assert re.fullmatch(r"E-04, .*E-45 \(\d{4}-\d\d-\d\d\)", topics["padding"])
