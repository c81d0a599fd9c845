"""`make release`: what a release is made of, and what its checks refuse."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.live import ROOT
from tools import release, version

VERSION = "0.9.0"
GENERATOR = "hatchling 1.0"


# ------------------------------------------------------------------------------------------- wheels


def files_of(project: str) -> dict[str, str]:
    """A sound wheel's files, made by hand."""
    folder, package = f"{project}/", release.PROJECTS[project]
    files = {name.removeprefix(folder): "" for name in release.tracked(package)}
    if project == ".":
        files |= {
            name.replace("migrations/", "app/_migrations/", 1): "" for name in release.tracked("migrations")
        }
    name = {".": "dither-server", "client": "dither", "research": "dither-research"}[project]
    information = f"{name.replace('-', '_')}-{VERSION}.dist-info"
    if project == ".":
        data = information.replace(".dist-info", ".data/data/share/dither/citus")
        files |= {name.replace("deploy/citus", data, 1): "" for name in release.tracked("deploy/citus")}
    requires = {".": f"dither=={VERSION}", "client": "httpx", "research": f"dither-server=={VERSION}"}[
        project
    ]
    return files | {
        f"{information}/METADATA": f"Name: {name}\nVersion: {VERSION}\nRequires-Python: >=3.11\n"
        f"License-Expression: Apache-2.0\nRequires-Dist: {requires}\n",
        f"{information}/WHEEL": f"Generator: {GENERATOR}\n",
        f"{information}/RECORD": "",
        f"{information}/licenses/LICENSE": "",
    }


SCRIPT = f"dither_server-{VERSION}.data/data/share/dither/citus/distribute.sql"


def faults(folder: Path, project: str, files: dict[str, str]) -> list[str]:
    wheel = folder / "a.whl"
    with ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return release.wheel_faults(wheel, project, VERSION, GENERATOR)


@pytest.mark.parametrize("project", release.PROJECTS)
def test_a_sound_wheel_has_no_fault(tmp_path: Path, project: str) -> None:
    assert faults(tmp_path, project, files_of(project)) == []


@pytest.mark.parametrize(
    "more",
    ["app/tests/test_it.py", "app/core/__pycache__/grid.cpython-311.pyc", "app/key.pem", "tests/__init__.py"],
)
def test_what_no_commit_has_does_not_belong_in_a_wheel(tmp_path: Path, more: str) -> None:
    assert faults(tmp_path, ".", files_of(".") | {more: ""}) == [f"a.whl: carries {more}"]


@pytest.mark.parametrize("missing", ["app/core/grid.py", "app/_migrations/versions/0001_ledger.py", SCRIPT])
def test_a_wheel_lacks_neither_code_nor_migrations(tmp_path: Path, missing: str) -> None:
    files = files_of(".")
    del files[missing]
    assert faults(tmp_path, ".", files) == [f"a.whl: lacks {missing}"]


@pytest.mark.parametrize(
    ("project", "before", "after", "said"),
    [
        (".", f"Version: {VERSION}", "Version: 0.2.0", f"Version is 0.2.0, not {VERSION}"),
        (".", f"dither=={VERSION}", "dither==0.2.0", "requires dither==0.2.0"),
        (".", f"dither=={VERSION}", "dither", "requires dither"),
        ("research", f"server=={VERSION}", "server>=0.9.0", "requires dither-server>=0.9.0"),
        ("client", "Apache-2.0", "MIT", "License-Expression is MIT, not Apache-2.0"),
        ("client", GENERATOR, "hatchling 2.0", f"made by hatchling 2.0, not by {GENERATOR}"),
    ],
)
def test_metadata_of_another_version_or_backend_is_refused(
    tmp_path: Path, project: str, before: str, after: str, said: str
) -> None:
    files = {name: text.replace(before, after) for name, text in files_of(project).items()}
    assert faults(tmp_path, project, files) == [f"a.whl: {said}"]


# ------------------------------------------------------------------------------------- npm and image


def npm_package(folder: Path, *, version: str = VERSION, more: str | None = None) -> Path:
    stems = {Path(name).stem for name in release.tracked("client/js/src")}
    files = {f"dist/{stem}{ending}": b"" for stem in stems for ending in (".js", ".d.ts")}
    files["package.json"] = json.dumps({"version": version}).encode()
    if more:
        files[more] = b""
    package = folder / "a.tgz"
    with tarfile.open(package, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return package


def test_an_npm_package_is_the_built_client_of_the_same_version(tmp_path: Path) -> None:
    assert release.npm_faults(npm_package(tmp_path), VERSION) == []
    other = npm_package(tmp_path, version="0.2.0", more="test/wire.test.mjs")
    assert release.npm_faults(other, VERSION) == [
        f"a.tgz: Version is 0.2.0, not {VERSION}",
        "a.tgz: carries test/wire.test.mjs",
    ]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What stands beside the code on a maintainer's disk."""
    shutil.copy(ROOT / ".dockerignore", tmp_path)
    for name in (
        ".env",
        ".dither/admin.token",
        "README.md",
        "app/main.py",
        "app/__pycache__/main.pyc",
        "app/key.pem",
        "client/dither/__init__.py",
        "client/js/src/index.ts",
        "client/dither.egg-info/PKG-INFO",
        "tests/conftest.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def test_the_image_is_built_from_code_alone(checkout: Path) -> None:
    context = release.image_context(checkout)
    assert context == ["README.md", "app/key.pem", "app/main.py", "client/dither/__init__.py"]
    assert release.context_faults(context) == ["image context: carries app/key.pem"]


def test_a_package_is_the_same_at_every_build(tmp_path: Path, checkout: Path) -> None:
    for name in ("a", "b"):
        release.pack(tmp_path / f"{name}.tar.gz", checkout, ["README.md", "app/main.py"], "dither/")
        os.utime(checkout / "README.md", (0, 0))
    assert release.packed(tmp_path / "a.tar.gz") == ["dither/README.md", "dither/app/main.py"]
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()


def test_the_package_for_r_is_the_commit_s_of_the_same_version(tmp_path: Path) -> None:
    package, folder = tmp_path / "dither.tar.gz", ROOT / release.PACKAGE_R
    release.pack(package, folder, release.r_files(), "dither/")
    assert "DESCRIPTION" in release.r_files()
    ours = release.our_version()
    assert release.r_faults(package, ours) == []
    release.pack(package, folder, set(release.r_files()) - {"NAMESPACE"}, "dither/")
    assert release.r_faults(package, "2.0.0") == [
        f"dither.tar.gz: Version is {ours}, not 2.0.0",
        "dither.tar.gz: lacks dither/NAMESPACE",
    ]


def test_a_bill_of_materials_is_what_is_locked() -> None:
    lock = "a==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\nb==2 ; x \\\n    --hash=sha256:cc\n"

    def part(name: str, number: str, *hashes: str) -> dict[str, object]:
        links = [{"hashes": [{"content": one} for one in hashes]}, {"url": "elsewhere"}]
        return {"name": name, "version": number, "externalReferences": links}

    bill = {
        "metadata": {"component": {"version": VERSION}},
        "components": [part("a", "1", "bb", "aa"), part("b", "2", "cc")],
    }
    assert release.materials_faults(bill, lock, VERSION) == []
    bill["components"] = [part("a", "1", "aa"), part("c", "3")]
    assert release.materials_faults(bill, lock, "2.0.0") == [
        f"bill of materials: {fault}"
        for fault in (f"Version is {VERSION}, not 2.0.0", "lacks b", "carries c", "another a")
    ]


def test_a_tag_of_another_version_is_refused() -> None:
    assert release.tag_faults([f"v{VERSION}", "nightly"], VERSION) == []
    assert release.tag_faults(["v0.8.0", f"v{VERSION}"], VERSION) == [f"the tag v0.8.0 is not v{VERSION}"]


# --------------------------------------------------------------------------------------- all of it


def test_every_file_that_names_the_version_names_this_one() -> None:
    ours = release.our_version()
    lock = json.loads((ROOT / "client/js/package-lock.json").read_text())
    named = {
        "client": tomllib.loads((ROOT / "client/pyproject.toml").read_text())["project"]["version"],
        "research": tomllib.loads((ROOT / "research/pyproject.toml").read_text())["project"]["version"],
        "client/js": json.loads((ROOT / "client/js/package.json").read_text())["version"],
        "client/r": re.findall(r"^Version: (.+)$", (ROOT / "client/r/DESCRIPTION").read_text(), re.MULTILINE)[
            0
        ],
        "client/js lock": lock["version"],
        "client/js lock, itself": lock["packages"][""]["version"],
    }
    assert named == dict.fromkeys(named, ours)
    assert f"\nversion: {ours}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"export VERSION={ours} " in (ROOT / "docs/how-to/install.md").read_text()
    assert f"\n## [{ours}] - 20" in (ROOT / "CHANGELOG.md").read_text()


def test_people_read_of_every_version_what_is_new() -> None:
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    page = (ROOT / "docs" / "whats-new.md").read_text()
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == versions


def test_every_file_gets_another_version(tmp_path: Path) -> None:
    for name in (*version.FILES, *version.PAGES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    now = release.our_version()
    version.set_version(tmp_path, now, "77.0.1", "2030-01-31")
    for name in version.FILES:
        text = (tmp_path / name).read_text()
        assert text.replace("77.0.1", now) == (ROOT / name).read_text(), name
        assert "77.0.1" in text, name
    changes = (tmp_path / "CHANGELOG.md").read_text()
    assert "\n## [Unreleased]\n\n## [77.0.1] - 2030-01-31\n" in changes
    assert "\n## Unreleased\n\n## 77.0.1\n" in (tmp_path / "docs/whats-new.md").read_text()
    for given in (now, "1.0", "v1.0.0"):
        with pytest.raises(ValueError, match="is no version"):
            version.set_version(tmp_path, now, given, "2030-01-31")
    with pytest.raises(ValueError, match="does not name"):
        version.set_version(tmp_path, now, "78.0.0", "2030-01-31")


@pytest.mark.system
@pytest.mark.slow
def test_a_release_is_built_and_checked(tmp_path: Path) -> None:
    """Fetches the build backend by its hash, and takes the browser client that `make setup-browser` built."""
    built = shutil.which("npm") and (ROOT / "client/js/dist").exists()
    if not built and os.environ.get("DITHER_TEST_BROWSER") != "required":
        pytest.skip("the browser client is not built")
    command = [sys.executable, "-m", "tools.release", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ours = release.our_version()
    names = {line.split()[1] for line in done.stdout.splitlines()}
    wheels = {f"{name}-{ours}-py3-none-any.whl" for name in ("dither", "dither_research", "dither_server")}
    assert names == {
        *wheels,
        *(f"dither-{ours}{end}" for end in (".tgz", ".cdx.json", "-image.tar.gz")),
        f"dither_{ours}.tar.gz",
    }
    assert {"Dockerfile", "app/main.py"} <= set(
        release.packed(tmp_path / "dist" / f"dither-{ours}-image.tar.gz")
    )
    wheel = next((tmp_path / "dist").glob("dither_server*"))
    with ZipFile(wheel, "a") as archive:
        archive.writestr("app/left_over.py", "")
    assert release.check(tmp_path / "dist") == [f"{wheel.name}: carries app/left_over.py"]
