"""What a command loads before it does anything, and what it prints where no person looks."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from app.cli.tree import COMMANDS, build
from docs.generate import commands

HEAVY = {"clarabel", "fastapi", "httpx", "matplotlib", "numpy", "pydantic", "scipy", "sqlalchemy", "uvicorn"}

OVER_HTTP = HEAVY - {"httpx", "pydantic"}
"""What commands that talk HTTP do without."""

LOADED = """
import json, sys
from app.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
"""


def loaded(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], []])
def test_help_and_version_load_no_command(arguments: list[str]) -> None:
    modules = loaded(*arguments)
    assert modules & HEAVY == set()
    assert not {name for name in modules if name.startswith("dither_research")}


@pytest.mark.long
@pytest.mark.parametrize("command", ["mean", "plan", "releases", "contribute", "budget", "study", "token"])
def test_a_command_that_talks_http_loads_no_mathematics(command: str) -> None:
    modules = loaded(command, "--help")
    assert "httpx" in modules, "the control: it was loaded"
    assert modules & OVER_HTTP == set()


@pytest.mark.long
def test_the_service_starts_without_what_few_answers_need() -> None:
    """They load SciPy's parts when they are asked for."""
    code = "import sys, app.main, app.cli.serve; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert {"numpy", "scipy"} <= modules, "the control: its estimators were loaded"
    assert modules & {"clarabel", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special"} == set()


def test_the_list_of_commands_says_what_their_help_says() -> None:
    found = typer.main.get_command(build())
    helps = {name: command.help or "" for name, command in found.commands.items()}  # type: ignore[attr-defined]
    first = {name: " ".join(text.partition("\n\n")[0].split()) for name, text in helps.items()}
    assert {name: command.summary for name, command in COMMANDS.items()} == first


@pytest.mark.long
def test_bash_completes_with_what_the_command_installs(tmp_path: Path) -> None:
    """The script of --show-completion, in a shell."""
    bash, dither = shutil.which("bash"), Path(sys.executable).with_name("dither")
    assert bash
    # Which shell it is, the command finds out by its parent, which is none here.
    env = {"PATH": f"{dither.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    undetected = {**env, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = subprocess.run(
        [dither, "--show-completion", "bash"], capture_output=True, text=True, check=True, env=undetected
    ).stdout
    ask = f"""{shown}
COMP_WORDS=(dither study cr); COMP_CWORD=2
$(complete -p dither | sed -E 's/.*-F ([^ ]+) .*/\\1/') dither
echo "${{COMPREPLY[@]}}"
"""
    done = subprocess.run([bash, "-c", ask], capture_output=True, text=True, env=env)
    assert done.stdout.split() == ["create"], done.stderr


@pytest.mark.long
def test_what_is_piped_is_not_broken(dither) -> None:
    """Neither messages nor usage errors, at the width that a pipe has not."""
    long = "x" * 300
    failed = dither("mean", "commute", "--url", f"http://127.0.0.1:9/{long}", "--token", "a", width=80)
    assert failed.status == 1
    assert long in failed.errors
    [line] = failed.errors.splitlines()
    assert "--url" in line
    usage = dither("mean", "commute", "--url", "nonsense", width=80)
    assert usage.status == 2
    said = (
        "Invalid value for '--url': must be an address such as http://127.0.0.1:8000 (--url, or DITHER_URL)"
    )
    assert said in usage.errors.splitlines()[-1]


def test_a_command_that_is_interrupted_while_it_loads_shows_no_traceback() -> None:
    code = (
        "import app.cli.tree, os, signal, sys\n"
        "app.cli.tree.build = lambda loaded: os.kill(os.getpid(), signal.SIGINT)\n"
        "from app.cli import main\n"
        "main(['size'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_help_names_what_is_taken_as_people_write_it() -> None:
    types = re.compile(r"<(str|int|float|bool|list|file|path|%)|\{|\[\[|\d\.0\)")
    assert types.search("--url <str>"), "the control"
    for path, text in commands():
        usage = text.partition("\n\n")[0]
        assert not types.search(usage), path
        assert not types.search(re.sub(r"`[^`]*`", "", text)), path
    assert "dither token create [OPTIONS] NAME\n" in dict(commands())["dither token create"]
    assert "dither study create [OPTIONS] [SLUG]\n" in dict(commands())["dither study create"]
    assert "dither restore-check [OPTIONS] FILE...\n" in dict(commands())["dither restore-check"]
    assert "--role contribute|analyse|admin|observe\n" in dict(commands())["dither token create"]
    assert "--relation replace_one|add_remove_one\n" in dict(commands())["dither size"]


def test_help_of_groups_on_a_terminal_shows_no_types() -> None:
    """A terminal's help has a column for them."""
    for group in (), ("token",), ("budget",), ("audit",):
        screen, line = os.openpty()
        command = [sys.executable, "-m", "app.cli", *group, "-h"]
        with os.fdopen(screen, "rb", buffering=0) as shown:
            subprocess.run(command, stdout=line, stderr=line, env={**os.environ, "TERM": "dumb"}, check=True)
            os.close(line)
            text = shown.read(100_000).decode()
        assert "Show this message and exit." in text, group
        assert "╭" in text, "the control: the help of a terminal"
        assert "bool" not in text, group


@pytest.mark.parametrize(
    ("variable", "value", "option"), [("DITHER_PORT", "abc", "--port"), ("DITHER_WORKERS", "0", "--workers")]
)
def test_a_refused_value_of_the_environment_names_its_variable(
    dither, variable: str, value: str, option: str
) -> None:
    refused = dither("serve", option, value)
    assert f"Invalid value for '{option}': must be" in refused.errors
    refused = dither("serve", **{variable: value})
    assert refused.status == 2
    assert f"Invalid value for '{variable}': must be" in refused.errors
    assert option not in refused.errors
