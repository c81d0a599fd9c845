"""Settings: what is accepted, what is refused, and that nothing secret is ever repeated."""

import base64
import os
from decimal import Decimal

import pytest

from app.settings import Settings, SettingsError

KEY = bytes(range(40))


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in [name for name in os.environ if name.startswith("DITHER_")]:
        monkeypatch.delenv(name)


def test_the_defaults_are_those_of_the_documentation():
    settings = Settings.load()
    assert settings.lifetime_epsilon == 10
    assert settings.rate_limit_per_minute == 0
    assert settings.max_body_bytes == 64 * 1024
    assert settings.max_batch_bytes == 256 * 1024 * 1024
    assert (settings.database_url, settings.subject_key_bytes, settings.data_dir) == (None, None, None)


@pytest.mark.parametrize(
    "text",
    [
        KEY.hex(),
        KEY.hex().upper(),
        base64.b64encode(KEY).decode(),
        base64.urlsafe_b64encode(KEY).decode().rstrip("="),
    ],
)
def test_a_key_is_read_in_every_usual_form(monkeypatch, text):
    monkeypatch.setenv("DITHER_SUBJECT_KEY", text)
    assert Settings.load().subject_key_bytes == KEY


def test_an_epsilon_keeps_every_digit(monkeypatch):
    monkeypatch.setenv("DITHER_LIFETIME_EPSILON", "0.1000001")
    assert Settings.load().lifetime_epsilon == Decimal("0.1000001")


PROVIDER = {
    "DITHER_OIDC_ISSUER": "https://id.example",
    "DITHER_OIDC_AUDIENCE": "dither",
    "DITHER_OIDC_ROLES": '{"team": {"role": "analyse", "studies": ["commute"]}}',
}


def test_a_provider_is_described_by_its_settings(monkeypatch):
    for name, value in PROVIDER.items():
        monkeypatch.setenv(name, value)
    found = Settings.load()
    assert (found.oidc_roles["team"].names, found.oidc_roles["team"].studies) == (["analyse"], ["commute"])
    assert found.oidc_name_claim is None
    assert (found.oidc_jwks_url, found.oidc_role_claim) == (None, "roles")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DITHER_OIDC_ISSUER", None),
        ("DITHER_OIDC_AUDIENCE", None),
        ("DITHER_OIDC_ROLES", None),
        ("DITHER_OIDC_ISSUER", "http://id.example"),
        ("DITHER_OIDC_JWKS_URL", "http://localhost.id.example/keys"),
        ("DITHER_OIDC_ROLES", "{"),
        ("DITHER_OIDC_ROLES", '{"team": {"role": "root"}}'),
        ("DITHER_OIDC_ROLES", '{"team": {"studies": ["x"]}}'),
        ("DITHER_OIDC_ROLES", '{"team": {"roles": []}}'),
        ("DITHER_OIDC_ROLES", '{"team": {"role": "analyse", "roles": ["admin"]}}'),
        ("DITHER_OIDC_ROLES", '{"team": {"role": "analyse", "studies": []}}'),
        ("DITHER_OIDC_ROLES", '{"team": {"role": "analyse", "study": "x"}}'),
    ],
)
def test_a_provider_that_is_described_badly_is_refused(monkeypatch, name, value):
    for known, good in PROVIDER.items():
        monkeypatch.setenv(known, good)
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=r"(?i)oidc_"):
        Settings.load()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@h/d",
        f"postgresql://h/d?sslmode=verify-full&sslrootcert={__file__}",
        "postgres://h/d",
        "postgresql+asyncpg://h/d?host=/tmp",
    ],
)
def test_any_postgresql_url_will_do(monkeypatch, url):
    monkeypatch.setenv("DITHER_DATABASE_URL", url)
    found = Settings.load().database_url
    assert found is not None
    assert found.get_secret_value() == url


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DITHER_SUBJECT_KEY", "hunter2"),
        ("DITHER_SUBJECT_KEY", "ab" * 31),
        ("DITHER_DATABASE_URL", "mysql://root:hunter2@host/name"),
        ("DITHER_DATABASE_URL", "postgresql://root@host/name?sslmode=hunter2"),
        ("DITHER_DATABASE_URL", "postgresql://root@host/name?surprise=hunter2"),
        ("DITHER_DATABASE_URL", "postgresql://root@host/name?sslmode=verify-full&sslrootcert=/hunter2.pem"),
        ("DITHER_DATABASE_URL", "postgresql://root:hunter2@host:99999/name"),
        ("DITHER_DATABASE_URL", "postgresql://root@host:hunter2/name"),
        ("DITHER_DATABASE_URL", "postgresql://root@host:0/hunter2"),
        ("DITHER_OIDC_ROLES", "{hunter2"),
        ("DITHER_LIFETIME_EPSILON", "NaN"),
        ("DITHER_LIFETIME_EPSILON", "0"),
        ("DITHER_LIFETIME_EPSILON", "Infinity"),
        ("DITHER_LIFETIME_GAUSSIAN", "10"),
        ("DITHER_LIFETIME_GAUSSIAN", "10,1.5"),
        ("DITHER_LIFETIME_GAUSSIAN", "10,0"),
        ("DITHER_LIFETIME_GAUSSIAN", "3,x"),
        ("DITHER_RATE_LIMIT_PER_MINUTE", "-1"),
        ("DITHER_LOG_LEVEL", "hunter2"),
    ],
)
def test_a_refusal_names_the_variable_and_never_its_value(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=name) as refusal:
        Settings.load()
    assert value not in str(refusal.value) or value in ("0", "1", "-1")
    assert "hunter2" not in str(refusal.value)
    assert "Value error" not in str(refusal.value)


def test_a_misspelled_setting_is_refused_and_the_right_one_named():
    with pytest.raises(SettingsError, match="did you mean DITHER_LIFETIME_EPSILON"):
        Settings.load({"DITHER_LIFETIME_EPSILN": "1"})


def test_variables_of_commands_are_no_settings():
    Settings.load({"DITHER_URL": "http://localhost", "DITHER_TOKEN": "t", "DITHER_PORT": "1", "OTHER": "x"})


def test_origins_are_separated_by_commas_or_spaces(monkeypatch):
    assert Settings.load().cors_origins == ()
    monkeypatch.setenv("DITHER_CORS_ORIGINS", "https://survey.example, http://localhost:8080 http://[::1]:80")
    found = Settings.load().cors_origins
    assert found == ("https://survey.example", "http://localhost:8080", "http://[::1]:80")


@pytest.mark.parametrize(
    "text",
    ["*", "null", "https://*.example", "https://survey.example/", "survey.example", "https://SURVEY.example"],
)
def test_what_no_browser_sends_as_an_origin_is_refused(monkeypatch, text):
    monkeypatch.setenv("DITHER_CORS_ORIGINS", text)
    with pytest.raises(SettingsError, match="DITHER_CORS_ORIGINS"):
        Settings.load()
