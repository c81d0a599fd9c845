"""Known vulnerabilities of what the locks pin. `python -m tools.dependencies PIP_AUDIT LOCK...`."""

import json
import subprocess
import sys


def vulnerabilities(pip_audit: str, lock: str) -> list[str] | None:
    """One line for each known vulnerability; None where the database did not answer for the whole lock."""
    command = [
        pip_audit,
        "--disable-pip",
        "--require-hashes",
        "--progress-spinner",
        "off",
        "-f",
        "json",
        "-r",
        lock,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        print(done.stderr.strip()[-2000:], file=sys.stderr)
        return None
    skipped = [one["name"] for one in report["dependencies"] if "skip_reason" in one]
    if skipped or not report["dependencies"]:
        print(f"{lock}: no answer about {', '.join(skipped) or 'anything'}", file=sys.stderr)
        return None
    return [
        f"{lock}: {one['name']} {one['version']}: {known['id']}, mended in {known['fix_versions']}"
        for one in report["dependencies"]
        for known in one["vulns"]
    ]


def main() -> None:
    """Exit with 1 for a known vulnerability, and with 2 where the database does not answer."""
    pip_audit, *locks = sys.argv[1:]
    found: list[str] = []
    for lock in locks:
        try:
            answer = vulnerabilities(pip_audit, lock)
        except FileNotFoundError:
            print("pip-audit is not installed: pip install pip-audit", file=sys.stderr)
            sys.exit(2)
        if answer is None:
            print(
                f"{lock} was not audited: the database of vulnerabilities cannot be reached", file=sys.stderr
            )
            sys.exit(2)
        found += answer
    if found:
        sys.exit("\n".join(found))
    print(f"no known vulnerability in {', '.join(locks)}")


if __name__ == "__main__":
    main()
