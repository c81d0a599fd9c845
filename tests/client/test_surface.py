"""The package's surface: what it exports, how it is documented, what it needs, how large it is."""

import ast
import asyncio
import doctest
import inspect
import io
import pkgutil
import re
import sys
import tomllib
import zipfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import dither
import pytest
from dither import AsyncClient, Client, DitherError
from dither._device import _SURELY_NOT_HELD

from app.web.problems import KINDS
from tests.client.conftest import IMPATIENT
from tests.client.service import FakeService

PACKAGE = Path(dither.__file__).parent
MODULES = sorted(info.name for info in pkgutil.iter_modules([str(PACKAGE)]))
PUBLIC = [getattr(dither, name) for name in dither.__all__ if inspect.isclass(getattr(dither, name))]


def methods(kind: type) -> dict[str, Any]:
    found = [item for base in reversed(kind.__mro__[:-1]) for item in vars(base).items()]
    return {name: member for name, member in found if not name.startswith("_")}


def test_all_is_sorted_and_complete() -> None:
    names = [
        name
        for name, member in vars(dither).items()
        if (not name.startswith("_") and not inspect.ismodule(member)) or name == "__version__"
    ]
    assert sorted(names) == dither.__all__


def test_modules_are_private_and_names_are_not() -> None:
    assert all(name.startswith("_") for name in MODULES if name != "device")
    assert {member.__module__ for member in PUBLIC} == {"dither"}


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    assert project["version"] == dither.__version__
    assert [requirement.split(">")[0] for requirement in project["dependencies"]] == ["httpx"]


def _extras() -> list[str]:
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    return [item for extra in project["optional-dependencies"].values() for item in extra]


def test_nothing_is_imported_but_httpx_and_the_standard_library() -> None:
    imported = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                imported.add(str(node.module).partition(".")[0])
    optional = {extra.partition(">")[0] for extra in _extras()}
    assert (
        imported - sys.stdlib_module_names
        == {"httpx", "dither"} | optional
        == {*("httpx", "dither", "matplotlib", "openpyxl", "pandas", "pyarrow")}
    )
    assert "random" not in imported


def test_the_distribution_is_small_and_typed() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in [*PACKAGE.rglob("*"), PACKAGE.parent / "README.md", PACKAGE.parent / "LICENSE"]:
            if path.is_file() and "__pycache__" not in path.parts:
                wheel.write(path, path.relative_to(PACKAGE.parent))
        assert "dither/py.typed" in wheel.namelist()
    assert len(buffer.getvalue()) < 166_450, "source that a device can read, and the tables of reports"


def test_both_clients_have_the_same_methods() -> None:
    theirs = methods(AsyncClient)
    theirs["close"] = theirs.pop("aclose")
    assert set(dir(Client)) >= {"create_study", "create_token", "set_budget", "create_session", "release"}
    assert methods(Client).keys() == theirs.keys()
    for name, method in methods(Client).items():
        ours, mirror = inspect.signature(method), inspect.signature(theirs[name])
        assert ours.parameters == mirror.parameters, name
    ours = inspect.signature(Client).replace(return_annotation=None)
    mirror = inspect.signature(AsyncClient).replace(return_annotation=None)
    assert [p.replace(annotation=None) for p in ours.parameters.values()] == [
        p.replace(annotation=None) for p in mirror.parameters.values()
    ]


def test_errors_have_one_root_and_stand_in_the_tree() -> None:
    errors = [kind for kind in PUBLIC if issubclass(kind, Exception)]
    assert all(issubclass(kind, DitherError) for kind in errors)
    tree = str(inspect.getdoc(import_module("dither._errors")))
    drawn = {
        line.strip("│├└─ ").split()[0]: line.index(line.strip("│├└─ "))
        for line in tree.splitlines()
        if "─" in line
    }
    assert drawn.keys() | {"DitherError"} == {kind.__name__ for kind in errors}
    for kind in errors:
        if kind is not DitherError:
            depth = len([base for base in kind.__mro__ if issubclass(base, DitherError)]) - 1
            assert drawn[kind.__name__] == 4 * depth, kind
    codes = [kind.code for kind in errors if kind is not dither.ProblemError]
    assert len(set(codes)) == len(codes)


def test_every_request_says_what_it_costs() -> None:
    for name, method in methods(Client).items():
        assert name in ("close", "ledger") or "Privacy:" in str(method.__doc__), name


# -- doctests

README = (PACKAGE.parent / "README.md").read_text(encoding="utf-8")


def documented() -> dict[str, str]:
    """Texts with examples."""
    texts = {"package": str(dither.__doc__), "README": README.replace("```", "\n")}
    texts |= {kind.__name__: str(inspect.getdoc(kind)) for kind in (Client, AsyncClient)}
    return texts | {f"Client.{name}": str(method.__doc__) for name, method in methods(Client).items()}


def test_everything_public_has_an_example_or_is_explained_in_the_readme() -> None:
    assert [name for name, text in documented().items() if ">>>" not in text] == []
    explained = {kind.__name__ for kind in PUBLIC if f"`{kind.__name__}`" in README} | set(documented())
    assert {kind.__name__ for kind in PUBLIC} <= explained


@pytest.mark.parametrize("name", list(documented()))
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = FakeService()
    common: dict[str, Any] = {"transport": service.transport, "retry": IMPATIENT}
    client = Client("https://dither.example", "device", directory=tmp_path / "a", **common)
    analyst = Client("https://dither.example", "analyst", **common)
    with client, analyst:
        names = {key: getattr(dither, key) for key in dither.__all__}
        names |= {"client": client, "analyst": analyst, "admin": analyst, "asyncio": asyncio}
        names |= {"service": service.transport, "path": tmp_path / "b"}
        if name == "README":  # it shows what people write, without a transport
            for kind in (Client, AsyncClient):
                monkeypatch.setattr(dither, kind.__name__, partial(kind, **common))
        text = inspect.cleandoc(documented()[name])
        test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
    assert test.examples


def test_examples_of_private_modules_run() -> None:
    results = [
        doctest.testmod(import_module(f"dither.{name}"))
        for name in ("device.numbers", "device.gaussian", "device.shapes", "device.response")
    ]
    assert sum(result.attempted for result in results) > 4
    assert sum(result.failed for result in results) == 0


def test_both_clients_know_which_refusals_say_that_nothing_is_held():
    held = {cls.code for cls, kind in KINDS.items() if kind.surely_not_held}
    script = (Path(__file__).parents[2] / "client" / "js" / "src" / "decisions.ts").read_text()
    listed = re.search(r"SURELY_NOT_HELD = new Set\(\[(.*?)\]\)", script, re.DOTALL)
    assert listed is not None
    assert held == _SURELY_NOT_HELD == set(re.findall(r'"(\w+)"', listed[1]))
