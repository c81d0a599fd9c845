"""Make the installation of this version, at a release: `python -m tests.upgrades.make`.

Folder `tests/upgrades/VERSION`, which must not be there: the backup that `deploy/backup.sh` writes, what
the service answered before it, and the sources of service and SDK, which run in tests of later versions.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

from app.postgres.embedded import EmbeddedPostgres
from app.store import migrate
from tests.api.service import SUBJECT_KEY, Service, open_service
from tests.support.databases import scratch_directory
from tests.support.live import ROOT
from tests.upgrades import filling

HERE = Path(__file__).parent


async def _answered(service: Service) -> list[dict[str, Any]]:
    """What each question and each release is answered with, byte by byte."""
    requests = [
        filling.request(slug, question)
        for questions in (filling.QUESTIONS, filling.SINCE_1_0)
        for slug, asked in questions.items()
        for question in asked
    ]
    requests += [filling.request(slug, {}) for slug in ("numbers", "untilted", "secret", "gaussian")]
    for slug in filling.STUDIES:
        page = (await service.call("GET", f"/v1/studies/{slug}/releases?limit=200", "analyse")).json()
        requests += [("GET", f"/v1/releases/{item['id']}", {}) for item in page["items"]]
    requests.append(("GET", filling.PUBLICATION, {}))
    keyed = {"json": filling.KEYED, "headers": dict(filling.KEY)}
    requests.append(("POST", "/v1/studies/untilted/releases", keyed))
    kept = []
    for method, path, options in requests:
        response = await service.call(method, path, "analyse", **options)
        assert response.is_success, f"{method} {path} {options}: {response.text}"
        kept.append({"method": method, "path": path, **options, "body": response.text})
    return kept


async def _made(url: str) -> dict[str, Any]:
    await migrate.upgrade(url)
    async with open_service(url, **filling.SETTINGS) as service:
        await filling.fill(service)
        await _answered(service)
        rows = await service.rows()
        answers = await _answered(service)
        assert await service.rows() == rows, "reading made something"
        statements = {}
        for person in filling.PERSONS:
            response = await service.call("GET", f"/v1/subjects/{person}/budget", "admin")
            statements[person] = response.json()
        secrets = {"subject_key": SUBJECT_KEY, "tokens": service.tokens}
        settings = {"settings": dict(filling.SETTINGS)}
        return {**secrets, **settings, "rows": rows, "statements": statements, "answers": answers}


def _keep_sources(file: Path) -> None:
    """Write down the files of the commit that a service and a client run by."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "app", "client/dither", "migrations"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    with tarfile.open(file, "w:xz") as archive:
        for name in names.stdout.rstrip("\0").split("\0"):
            archive.add(ROOT / name, name)


def main() -> None:
    """Make the folder."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    folder = HERE / version
    if folder.exists():
        sys.exit(f"{folder} is there: an installation is never made again")
    with scratch_directory() as directory, EmbeddedPostgres(directory / "server") as server:
        made = asyncio.run(_made(server.url))
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": os.environ.get("HOME", "/"), "DITHER_DATABASE_URL": server.url}
        backup = subprocess.run(
            [ROOT / "deploy" / "backup.sh", directory],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        folder.mkdir()
        shutil.copyfile(backup.stdout.strip(), folder / "backup.dump")
    (folder / "installation.json").write_text(json.dumps(made, indent=1) + "\n")
    _keep_sources(folder / "sources.tar.xz")
    print(f"made {folder}")


if __name__ == "__main__":
    main()
