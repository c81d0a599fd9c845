"""What a release is made of, built and checked: `python -m tools.release DIST`.

Three wheels (server, SDK, research), the npm package of the browser client, the package for R, the context
that the image is built from (`docker build - < FILE`), and a bill of materials (CycloneDX): what the image
installs of others.
What builds comes by its hash, from requirements-build.lock and requirements-release.lock.
"""

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from email import message_from_string
from email.message import Message
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]

PROJECTS = {".": "app", "client": "client/dither", "research": "research/dither_research"}
"""Folder of each pyproject.toml to the package that its wheel carries."""

PACKAGE_R = "client/r"
"""Folder of the package for R, which is packed as it is."""

MIGRATIONS = ("migrations/", "app/_migrations/")
"""Where the migrations are in a checkout, and where in the server's wheel."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; exit with what it complains about where it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def our_version() -> str:
    """The version of the service, which all parts share."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def tracked(*folders: str) -> set[str]:
    """The files of the commit under some folders, or all of them."""
    return set(run("git", "ls-files", "-z", "--", *folders).split("\0")) - {""}


# --------------------------------------------------------------------------------------------- build


@contextmanager
def environment(lock: str) -> Iterator[Path]:
    """The programs of a fresh environment, which has what a lock says."""
    with tempfile.TemporaryDirectory() as directory:
        programs = Path(directory) / "bin"
        run(sys.executable, "-m", "venv", directory)
        pip = (programs / "python", "-m", "pip", "-qq", "--disable-pip-version-check")
        run(*pip, "install", "--no-compile", "--no-deps", "--require-hashes", "-r", lock)
        yield programs


def build_wheels(dist: Path) -> None:
    """Build the three wheels with the locked backend and nothing else of the index."""
    with environment("requirements-build.lock") as programs:
        run(
            *(programs / "python", "-m", "pip", "-qq", "--disable-pip-version-check", "wheel"),
            *("--no-deps", "--no-build-isolation", "--no-index", "-w", dist),
            *map(ROOT.joinpath, PROJECTS),
        )


def build_materials(dist: Path, version: str) -> None:
    """Write down what the image installs of others, with hashes, as CycloneDX: the same at every build."""
    with environment("requirements-release.lock") as programs:
        run(
            *(programs / "cyclonedx-py", "requirements", "requirements.lock"),
            *("--pyproject", "pyproject.toml", "--output-reproducible"),
            *("-o", dist / f"dither-{version}.cdx.json"),
        )


def build_npm(dist: Path) -> None:
    """Pack the browser client, which `make setup-browser` has built."""
    if shutil.which("npm") is None:
        sys.exit("npm is needed to pack client/js")
    run("npm", "pack", "--pack-destination", dist, cwd=ROOT / "client" / "js")


def r_files() -> list[str]:
    """The files of the package for R, in its folder."""
    return [name.removeprefix(f"{PACKAGE_R}/") for name in tracked(PACKAGE_R)]


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


def pack(file: Path, folder: Path, names: Iterable[str], place: str = "") -> None:
    """Pack files of a folder, the same at every build."""
    with (
        file.open("wb") as made,
        gzip.GzipFile("", "wb", fileobj=made, mtime=0) as smaller,
        tarfile.open(fileobj=smaller, mode="w") as archive,
    ):
        for name in sorted(names):
            member = archive.gettarinfo(folder / name, place + name)
            member.uid = member.gid = member.mtime = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.mode & 0o100 else 0o644
            with (folder / name).open("rb") as content:
                archive.addfile(member, content)


def packed(file: Path) -> list[str]:
    """The names of the files in a package."""
    with tarfile.open(file) as archive:
        return archive.getnames()


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


def r_faults(package: Path, version: str) -> list[str]:
    """What is wrong with the package for R."""
    with tarfile.open(package) as archive:
        member = archive.extractfile("dither/DESCRIPTION")
        assert member is not None
        found = message_from_string(member.read().decode())["Version"]
    faults = [] if found == version else [f"Version is {found}, not {version}"]
    names, wanted = set(packed(package)), {f"dither/{name}" for name in r_files()}
    faults += [f"lacks {name}" for name in sorted(wanted - names)]
    faults += [f"carries {name}" for name in sorted(names - wanted)]
    return [f"{package.name}: {fault}" for fault in faults]


def context_faults(context: list[str]) -> list[str]:
    """Files that would get into the image and that no commit has: caches, keys, leftovers."""
    return [f"image context: carries {name}" for name in sorted(set(context) - tracked())]


def materials_faults(bill: Mapping[str, Any], lock: str, version: str) -> list[str]:
    """What is wrong with the bill of materials: another version, or not what is locked, with its hashes."""
    root = bill["metadata"]["component"]
    faults = [] if root["version"] == version else [f"Version is {root['version']}, not {version}"]
    entries = re.findall(r"^([a-z0-9._-]+)==(\S+)(.*?)(?=^[a-z0-9]|\Z)", lock, re.MULTILINE | re.DOTALL)
    locked = {name: (number, set(re.findall(r"sha256:(\w+)", rest))) for name, number, rest in entries}
    found = {
        one["name"]: (
            one["version"],
            {hash_["content"] for link in one["externalReferences"] for hash_ in link.get("hashes", ())},
        )
        for one in bill["components"]
    }
    faults += [f"lacks {name}" for name in sorted(locked.keys() - found.keys())]
    faults += [f"carries {name}" for name in sorted(found.keys() - locked.keys())]
    faults += [f"another {name}" for name in sorted(locked.keys() & found) if locked[name] != found[name]]
    return [f"bill of materials: {fault}" for fault in faults]


def tag_faults(tags: Iterable[str], version: str) -> list[str]:
    """Tags of versions on this commit that name another one."""
    return [
        f"the tag {tag} is not v{version}" for tag in sorted(tags) if tag[:1] == "v" and tag != f"v{version}"
    ]


def check(dist: Path) -> list[str]:
    """Everything that is wrong with what lies in `dist`."""
    version = our_version()
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
    faults += r_faults(dist / f"dither_{version}.tar.gz", version)
    faults += context_faults(packed(dist / f"dither-{version}-image.tar.gz"))
    bill = json.loads((dist / f"dither-{version}.cdx.json").read_text())
    faults += materials_faults(bill, (ROOT / "requirements.lock").read_text(), version)
    return faults + tag_faults(run("git", "tag", "--points-at", "HEAD").split(), version)


def main() -> None:
    """Build everything into an empty DIST, check it, and write down its hashes."""
    dist = Path(sys.argv[1]).resolve()
    version = our_version()
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    build_wheels(dist)
    build_npm(dist)
    build_materials(dist, version)
    pack(dist / f"dither_{version}.tar.gz", ROOT / PACKAGE_R, r_files(), "dither/")
    pack(dist / f"dither-{version}-image.tar.gz", ROOT, [*image_context(ROOT), "Dockerfile"])
    faults = check(dist)
    if faults:
        sys.exit("\n".join(faults))
    files = sorted(dist.iterdir())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
    (dist / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    print("\n".join(sums))


if __name__ == "__main__":
    main()
