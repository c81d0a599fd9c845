"""`dither contribute` with files as people have them, against the real service."""

import json

import pytest

from tests.support.live import LiveService
from tests.support.real_files import FILES, PEOPLE

pytestmark = pytest.mark.system


def test_files_as_people_have_them_are_loaded_or_refused(dither, live_server, tmp_path):
    service: LiveService = live_server()
    asked = {"DITHER_URL": service.base_url, "DITHER_TOKEN": service.admin_token}
    made = dither("study", "create", "commute", "--lower", "0", "--upper", "120", **asked)
    assert made.status == 0, made.errors
    token = dither("token", "create", "app", "--role", "contribute", **asked).output.strip()
    asked["DITHER_TOKEN"] = token
    load = ("--trust", "central", "--directory", str(tmp_path / "device"), "--json")
    loaded = False
    for name, (make, refusal) in FILES.items():
        path = tmp_path / name
        path.write_bytes(make())
        done = dither("contribute", "commute", str(path), *load, **asked)
        if refusal:
            assert (done.status, done.output) == (1, "")
            assert all(part in done.errors for part in refusal), done.errors
            assert len(done.errors.strip().splitlines()) == 1
            continue
        assert done.status == 0, (name, done.errors)
        counts = json.loads(done.output)
        # The same people with the same numbers in every file: the first one brings them, the others nothing.
        key = "unchanged" if loaded else "created"
        assert counts[key] == len(PEOPLE), (name, counts)
        loaded = True
