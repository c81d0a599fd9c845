"""`Client` is made from `AsyncClient`, and is what the script makes of it."""

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import dither
import pytest

SCRIPT = Path(dither.__file__).parents[1] / "unasync.py"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("unasync", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_synchronous_methods_are_what_the_script_makes(script: ModuleType) -> None:
    made = script.twins()
    assert set(script.TWIN.glob("*.py")) == set(made)
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} has drifted: `make sdk`"


def test_nothing_asynchronous_is_left_in_the_twin(script: ModuleType) -> None:
    asynchronous = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    for path, text in script.twins().items():
        nodes = list(ast.walk(ast.parse(text)))
        assert not any(isinstance(node, asynchronous) for node in nodes), path.name
        assert "async" not in text.partition("\n")[2].lower(), path.name


def test_the_script_writes_a_twin_and_removes_what_has_no_source(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "SOURCE", tmp_path / "_async")
    monkeypatch.setattr(script, "TWIN", tmp_path / "_sync")
    for directory in (script.SOURCE, script.TWIN):
        directory.mkdir()
    (script.TWIN / "old.py").touch()
    (script.SOURCE / "new.py").write_text(
        "class AsyncThing:\n"
        "    async def __aenter__(self):\n"
        "        async for item in await self.items():\n"
        "            await self.aclose()\n"
    )
    script.main()
    [path] = script.TWIN.glob("*.py")
    assert path.read_text(encoding="utf-8") == script.NOTE.format(name="new.py") + (
        "class Thing:\n"
        "    def __enter__(self):\n"
        "        for item in self.items():\n"
        "            self.close()\n"
    )
