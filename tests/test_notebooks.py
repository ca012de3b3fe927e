"""The notebooks run from top to bottom on small sets, and are kept with what they show on large ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)

SMALL = "3000"


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_four() -> None:
    assert [path.stem for path in sorted(FOLDER.glob("*.ipynb"))] == [
        "01_first_reconciliation",
        "02_range_mixes",
        "03_bytes_and_rounds",
        "04_anatomy_of_a_sync",
    ]


@NOTEBOOKS
def test_it_runs_on_small_sets(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEGVEC_NOTEBOOK_N", SMALL)
    notebook = nbformat.read(path, as_version=4)
    for cell in code(notebook):
        cell.outputs = []
    resources = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    shown = [output.output_type for cell in code(notebook) for output in cell.outputs]
    assert "display_data" in shown or "execute_result" in shown
    assert "error" not in shown
    warned = [output.text for cell in code(notebook) for output in cell.outputs if output.get("name") == "stderr"]
    assert [text for text in warned if not text.startswith("compiling negvec's kernels")] == []


@NOTEBOOKS
def test_it_is_kept_with_its_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = code(notebook)
    assert [cell.execution_count for cell in cells] == [*range(1, 1 + len(cells))], "run from top to bottom"
    outputs = [output for cell in cells for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert all(output.output_type != "error" and output.get("name") != "stderr" for output in outputs)
    assert all(cell.outputs for cell in cells if cell.source.rstrip().endswith(")") and "print(" in cell.source)


@NOTEBOOKS
def test_there_is_prose_between_the_cells(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")
    prose = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
    assert prose > 150
