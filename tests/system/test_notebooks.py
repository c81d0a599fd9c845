"""The notebooks of the documentation run."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from docs.generate import NOTEBOOKS
from tests.conftest import LiveServer

pytestmark = [
    pytest.mark.system,
    # Jupyter's own: it says that a kernel on this machine talks to it in plain text.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning", "ignore::UserWarning"),
]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_its_first_cell_to_its_last(
    path: Path, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = live_server()
    monkeypatch.setenv("DITHER_URL", service.base_url)
    monkeypatch.setenv("DITHER_TOKEN", service.admin_token)
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.delenv("DITHER_DATABASE_URL", raising=False)
    notebook = nbformat.read(path, as_version=4)
    expected = [len(cell.get("outputs", ())) for cell in notebook.cells]
    # A kernel may send what one cell prints in pieces: one output, wherever it was cut.
    here = {"metadata": {"path": os.getcwd()}}
    NotebookClient(notebook, timeout=120, coalesce_streams=True, resources=here).execute()
    assert [len(cell.get("outputs", ())) for cell in notebook.cells] == expected
