"""What a release is made of, built and checked: `python -m tools.release DIST`.

Three wheels (server, SDK, research), the npm package of the browser client, and the list of the files that
the image is built from. What builds the wheels comes by its hash, from requirements-build.lock.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from email import message_from_string
from email.message import Message
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]

PROJECTS = {".": "app", "client": "client/dither", "research": "research/dither_research"}
"""Folder of each pyproject.toml to the package that its wheel carries."""

MIGRATIONS = ("migrations/", "app/_migrations/")
"""Where the migrations are in a checkout, and where in the server's wheel."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; exit with what it complains about where it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def tracked(*folders: str) -> set[str]:
    """The files of the commit under some folders, or all of them."""
    return set(run("git", "ls-files", "-z", "--", *folders).split("\0")) - {""}


# --------------------------------------------------------------------------------------------- build


def build_wheels(dist: Path) -> None:
    """Build the three wheels with the locked backend and nothing else of the index."""
    with tempfile.TemporaryDirectory() as directory:
        run(sys.executable, "-m", "venv", directory)
        pip = (Path(directory) / "bin" / "python", "-m", "pip", "-qq", "--disable-pip-version-check")
        run(*pip, "install", "--no-deps", "--require-hashes", "-r", "requirements-build.lock")
        run(
            *pip,
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "-w",
            dist,
            *map(ROOT.joinpath, PROJECTS),
        )


def build_npm(dist: Path) -> None:
    """Pack the browser client, which `make setup-browser` has built."""
    if shutil.which("npm") is None:
        sys.exit("npm is needed to pack client/js")
    run("npm", "pack", "--pack-destination", dist, cwd=ROOT / "client" / "js")


def ignored(path: str, patterns: list[str]) -> bool:
    """Whether .dockerignore leaves a path out: the last pattern that fits it or a folder above it decides."""
    out = False
    places = [path, *map(str, PurePosixPath(path).parents)]
    for pattern in patterns:
        wanted = pattern.removeprefix("!")
        if any(_fits(place, wanted) for place in places):
            out = not pattern.startswith("!")
    return out


def _fits(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatchcase(path.rpartition("/")[2], pattern.removeprefix("**/"))
    return path.count("/") == pattern.count("/") and fnmatchcase(path, pattern)


def image_context(root: Path) -> list[str]:
    """The files that the image's builder receives, as `.dockerignore` says."""
    lines = (root / ".dockerignore").read_text().splitlines()
    patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    kept = [entry for entry in root.iterdir() if not ignored(entry.name, patterns)]
    files = [file for entry in kept for file in ([entry] if entry.is_file() else entry.rglob("*"))]
    names = sorted(str(file.relative_to(root)) for file in files if file.is_file())
    return [name for name in names if not ignored(name, patterns)]


# -------------------------------------------------------------------------------------------- checks


def wheel_faults(wheel: Path, project: str, version: str, generator: str) -> list[str]:
    """What is wrong with a wheel: its metadata, what it lacks, what it should not carry."""
    package = PROJECTS[project]
    declared = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        (information,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        metadata = message_from_string(archive.read(f"{information}/METADATA").decode())
        made = message_from_string(archive.read(f"{information}/WHEEL").decode())
    faults = _metadata_faults(metadata, declared, version)
    if made["Generator"] != generator:
        faults.append(f"made by {made['Generator']}, not by {generator}")
    if f"{information}/licenses/LICENSE" not in names:
        faults.append("carries no license")
    wanted = {name.removeprefix(f"{project}/") for name in tracked(package)}
    if project == ".":
        wanted |= {name.replace(*MIGRATIONS, 1) for name in tracked("migrations")}
    built = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    data = f"{information.removesuffix('.dist-info')}.data/data"
    for folder, place in built["targets"]["wheel"].get("shared-data", {}).items():
        wanted |= {name.replace(folder, f"{data}/{place}", 1) for name in tracked(folder)}
    found = {name for name in names if not name.startswith(information)}
    faults += [f"lacks {name}" for name in sorted(wanted - found)]
    faults += [f"carries {name}" for name in sorted(found - wanted)]
    return [f"{wheel.name}: {fault}" for fault in faults]


def _metadata_faults(metadata: Message, declared: dict[str, object], version: str) -> list[str]:
    faults = [
        f"{field} is {metadata[field]}, not {wanted}"
        for field, wanted in (
            ("Name", declared["name"]),
            ("Version", version),
            ("Requires-Python", declared["requires-python"]),
            ("License-Expression", declared["license"]),
        )
        if metadata[field] != wanted
    ]
    ours = [one for one in metadata.get_all("Requires-Dist", []) if re.match(r"dither(-server)?\b(?!-)", one)]
    faults += [f"requires {one}" for one in ours if one.split(";")[0].strip().partition("==")[2] != version]
    return faults


def npm_faults(package: Path, version: str) -> list[str]:
    """What is wrong with the npm package."""
    with tarfile.open(package) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
        member = archive.extractfile("package/package.json")
        assert member is not None
        found = json.load(member)["version"]
    sources = {Path(name).stem for name in tracked("client/js/src")}
    wanted = {f"dist/{stem}{ending}" for stem in sources for ending in (".js", ".d.ts")} | {"package.json"}
    faults = [] if found == version else [f"Version is {found}, not {version}"]
    faults += [f"lacks {name}" for name in sorted(wanted - names)]
    faults += [f"carries {name}" for name in sorted(names - wanted - {"README.md", "LICENSE"})]
    return [f"{package.name}: {fault}" for fault in faults]


def context_faults(context: list[str]) -> list[str]:
    """Files that would get into the image and that no commit has: caches, keys, leftovers."""
    return [f"image context: carries {name}" for name in sorted(set(context) - tracked())]


def check(dist: Path) -> list[str]:
    """Everything that is wrong with what lies in `dist`."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    (pin,) = re.findall(r"^hatchling==(\S+)", (ROOT / "requirements-build.lock").read_text(), re.MULTILINE)
    faults = []
    for project in PROJECTS:
        name = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]["name"]
        wheel = dist / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        if wheel.exists():
            faults += wheel_faults(wheel, project, version, f"hatchling {pin}")
        else:
            faults.append(f"{wheel.name} was not made: is its version another one?")
    package = dist / f"dither-{version}.tgz"
    faults += npm_faults(package, version) if package.exists() else [f"{package.name} was not made"]
    return faults + context_faults((dist / "image-context.txt").read_text().splitlines())


def main() -> None:
    """Build everything into an empty DIST, check it, and write down its hashes."""
    dist = Path(sys.argv[1]).resolve()
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    build_wheels(dist)
    build_npm(dist)
    (dist / "image-context.txt").write_text("".join(f"{name}\n" for name in image_context(ROOT)))
    faults = check(dist)
    if faults:
        sys.exit("\n".join(faults))
    files = sorted(dist.iterdir())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
    (dist / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    print("\n".join(sums))


if __name__ == "__main__":
    main()
