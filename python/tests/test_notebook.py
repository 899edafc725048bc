"""In a notebook: the progress line in the place of the one before, and the page of a report."""

from __future__ import annotations

import sys
from typing import Any

import pytest

nbclient: Any = pytest.importorskip("nbclient")
nbformat: Any = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

# Each line that is shown, not the last one alone.
WATCH = """
import knee
from knee import _measurement
lines = []
class Watched(_measurement._NotebookProgress):
    def show(self, line):
        lines.append(line)
        super().show(line)
_measurement._NotebookProgress = Watched
"""


@pytest.mark.filterwarnings("ignore")
def test_notebook_shows_progress_and_page(url: str) -> None:
    run = f"report = knee.run({url!r}, vusers=1, duration=0.5, interval='100ms', no_save=True)"
    cells = [WATCH, run, "report", "lines", f"(await knee.run_async({url!r}, requests=2)).outcomes"]
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    client = nbclient.NotebookClient(notebook, timeout=60)
    client.create_kernel_manager()
    # This Python, wherever the kernel of that name has another.
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    _, progress, page, lines, awaited = (cell.outputs for cell in notebook.cells)
    # The line is gone at the end, and takes the place of one output.
    assert [output.data for output in progress] == [{"text/plain": ""}]
    assert page[0].data["text/html"].startswith("<iframe srcdoc=")
    assert "p50" in lines[0].data["text/plain"] and "vusers=1" in lines[0].data["text/plain"]
    assert awaited[-1].data["text/plain"] == "Record(ok=2)"
