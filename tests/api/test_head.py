"""HEAD works where GET does, with the same status and headers and without a body."""

import pytest

from tests.api.service import Service


@pytest.mark.parametrize(
    "path",
    [
        "/health/live",
        "/v1/studies",
        "/v1/studies/{study}",
        "/v1/studies/nothing",
        "/openapi.json",
        "/v1/releases/x",
    ],
)
async def test_head_is_get_without_its_body(service: Service, study: str, path: str) -> None:
    path = path.format(study=study)
    whole = await service.call("GET", path, "analyse")
    head = await service.call("HEAD", path, "analyse")
    assert head.status_code == whole.status_code
    assert head.content == b""
    assert head.headers["content-type"] == whole.headers["content-type"]
    if "errors" not in whole.json():
        assert head.headers["content-length"] == str(len(whole.content))


async def test_head_asks_for_the_same_token_and_is_no_way_to_change_anything(
    service: Service, study: str
) -> None:
    assert (await service.call("HEAD", f"/v1/studies/{study}", None)).status_code == 401
    assert (await service.call("HEAD", f"/v1/studies/{study}/contributions", "contribute")).status_code == 405
