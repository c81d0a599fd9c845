"""A migration that was released is never edited: installations have run it.

Compares the work tree's migrations with those of every tag. `python -m tools.migrations [ROOT]`.
"""

import subprocess
import sys
from pathlib import Path

FOLDER = "migrations/versions"


def git(root: Path, *arguments: str) -> str:
    """What git prints; CalledProcessError where it fails."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def released(root: Path, tag: str) -> dict[str, str]:
    """Blob of every migration of a tagged release, by its path."""
    listed = git(root, "ls-tree", "-r", tag, "--", FOLDER).splitlines()
    return {path: fields.split()[2] for fields, path in (line.split("\t") for line in listed)}


def faults(root: Path) -> list[str]:
    """One line for each released migration that is not in the work tree as it was released."""
    found = []
    for tag in git(root, "tag").splitlines():
        for path, blob in released(root, tag).items():
            if not (root / path).is_file():
                found.append(f"{path} of {tag} is missing")
            elif git(root, "hash-object", path) != blob:
                found.append(f"{path} of {tag} was edited")
    return found


def main() -> None:
    """Exit with 1 for an edited migration, with 2 where there is no history to compare with."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    try:
        if git(root, "rev-parse", "--is-shallow-repository") == "true":
            sys.exit("a shallow clone may lack tags: git fetch --unshallow --tags")
        found = faults(root)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"cannot read the history: {getattr(error, 'stderr', None) or error}", file=sys.stderr)
        sys.exit(2)
    if found:
        sys.exit("\n".join(found))
    print(f"{len(git(root, 'tag').splitlines())} tagged releases, no migration of them edited")


if __name__ == "__main__":
    main()
