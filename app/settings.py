"""Settings: the environment variables `DITHER_*`, read once at the entry points and passed down."""

import base64
import binascii
import difflib
import os
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError as UnreadableSource

PREFIX = "DITHER_"

COMMAND_VARIABLES = frozenset({"DITHER_URL", "DITHER_TOKEN", "DITHER_HOST", "DITHER_PORT", "DITHER_WORKERS"})
"""Variables that belong to commands, not to the service."""

SECRETS_DIRECTORY = Path("/run/secrets")
"""Where container platforms mount secrets; a file `dither_subject_key` there counts as the variable."""

SUBJECT_KEY_BYTES = 32

SMALLEST_DELTA = Decimal("1e-12")

_DATABASE_SCHEME = re.compile(r"postgres(?:ql)?(?:\+\w+)?://")
_TLS_FILES = frozenset({"sslrootcert", "sslcert", "sslkey"})
_DATABASE_PARAMETERS = frozenset({"host", "port", "sslmode"}) | _TLS_FILES
_TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[1-9][0-9]{0,4})?")
_SECURE_URL = re.compile(r"https://[^/]|http://(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/]|\Z)")
_HEXADECIMAL = re.compile(r"(?:[0-9a-fA-F]{2})+\Z")


class SettingsError(Exception):
    """The environment does not describe a service; the message names variables, never their values."""


RoleName = Literal["contribute", "analyse", "admin", "observe"]


class OidcRole(BaseModel):
    """What one value of the role claim allows: one role, or several."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    role: RoleName | None = None
    roles: Annotated[list[RoleName], Field(min_length=1)] | None = None
    studies: Annotated[list[str], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if (self.role is None) is (self.roles is None):
            raise ValueError("needs a role, or roles")
        return self

    @property
    def names(self) -> Sequence[str]:
        """All of its roles."""
        return [self.role] if self.role is not None else self.roles or ()


class Settings(BaseSettings):
    """What an operator decides. Secrets have no default and do not show in a repr."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True, env_ignore_empty=True
    )

    database_url: SecretStr | None = Field(
        default=None,
        description="Any postgresql:// URL, PostgreSQL 15 or newer; `sslmode`, `sslrootcert`, `sslcert` and "
        "`sslkey` mean what they mean to libpq. Without it, the service starts an embedded PostgreSQL under "
        "the data directory.",
    )
    postgres_bin: Path | None = Field(
        default=None,
        description="Directory of PostgreSQL's programs, 15 to 18, such as /usr/lib/postgresql/17/bin: for "
        "`dither postgres`, backup and restore, and for the embedded server. Without it, those of the extra "
        "`embedded`, which are built without TLS.",
    )
    data_dir: Path | None = Field(
        default=None,
        description="Directory of the embedded database, of subject.key and of admin.token.",
    )
    subject_key: SecretStr | None = Field(
        default=None,
        description="Key of the HMAC that turns external ids into subjects: at least 32 bytes, hexadecimal "
        "or base64. Replicas must share it; without it no budget can be found again. "
        "Unless it is set, subject.key in the data directory is used.",
    )
    lifetime_epsilon: Annotated[Decimal, Field(gt=0, le=10**9, allow_inf_nan=False)] = Field(
        default=Decimal(10), description="Lifetime epsilon of a subject who has none set by an admin."
    )
    lifetime_gaussian: str = Field(
        default="0,0.00001",
        description="The second lifetime budget of a subject who has none set by an admin, for studies with "
        "Gaussian noise: an epsilon and a delta, separated by a comma, as `10,0.00001`. What a person can "
        "lose in all is then the sum of both epsilons, at that delta. Without it there is none, until an "
        "admin grants one.",
    )
    rate_limit_per_minute: int = Field(
        default=0, ge=0, description="Most requests a token may make in a minute; 0 turns the limit off."
    )
    max_body_bytes: int = Field(
        default=64 * 1024, ge=1024, description="Largest JSON document; a larger one is refused with 413."
    )
    max_batch_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=1024,
        description="Largest batch of contributions, after decompression; a larger one is refused with 413.",
    )
    request_timeout_seconds: float = Field(
        default=120.0,
        gt=0,
        le=86400,
        allow_inf_nan=False,
        description="Longest time from the first byte of a request to its answer, with a second more for "
        "each 64 KiB of its body. A body that is not there by then is refused with 408, an answer that is "
        "not ready with 503.",
    )
    work_at_once: int = Field(
        default=16,
        ge=1,
        le=1000,
        description="Most plans, answers and pages that one API process works on at a time; others wait.",
    )
    work_of_one_token: int = Field(
        default=4,
        ge=1,
        le=1000,
        description="Of these, and of the batches under way, most of one token; it waits for itself, not for "
        "others.",
    )
    work_patience_seconds: float = Field(
        default=10.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="How long a plan, an answer, a page or a batch waits for its place before it is refused "
        "with 503.",
    )
    oidc_issuer: str | None = Field(
        default=None,
        description="Issuer of an OpenID Connect provider whose JWTs (RS256, ES256) are taken as bearer "
        "tokens; exactly as in their claim `iss`. Without it, none is.",
    )
    oidc_audience: str | None = Field(
        default=None, description="What the claim `aud` of such a JWT must name. Required with an issuer."
    )
    oidc_jwks_url: str | None = Field(
        default=None,
        description="Where the provider's keys are; asked of its discovery document if not set.",
    )
    oidc_client_id: str | None = Field(
        default=None,
        description="What the provider calls this installation. With it, people sign in at the dashboard. "
        "Register `DITHER_PUBLIC_URL/dashboard/sign-in/back` there: authorization code flow with PKCE.",
    )
    oidc_client_secret: SecretStr | None = Field(
        default=None, description="Password of this installation at the provider; none for a public client."
    )
    oidc_role_claim: str = Field(
        default="roles",
        min_length=1,
        description="The claim that holds a person's roles or groups; dots lead into objects, as in "
        "`realm_access.roles`.",
    )
    oidc_roles: dict[str, OidcRole] = Field(
        default_factory=dict,
        description='What its values allow, as JSON: `{"dither-admins": {"role": "admin"}, "survey-team": '
        '{"roles": ["analyse", "contribute"], "studies": ["commute"]}}`. Required with an issuer. A person '
        "from whose claims no role follows is refused, and so is one with values that give other roles each.",
    )
    oidc_name_claim: str | None = Field(
        default=None,
        min_length=1,
        description="The claim that people are called by among the tokens and in the audit trail, such as "
        "`preferred_username`. Without it they are called by a digest, which says less of them.",
    )
    allow_unsafe_database: bool = Field(
        default=False,
        description="For tests only: also run on a PostgreSQL that has fsync, full_page_writes or "
        "synchronous_commit off. A crash of such a server forgets charges of answers that were read.",
    )
    database_pool_size: int = Field(
        default=10, ge=1, le=1000, description="Most database connections of one API process."
    )
    login_minutes: int = Field(
        default=480, ge=1, le=7 * 24 * 60, description="How long a login of the dashboard lasts."
    )
    idempotency_days: int = Field(
        default=30,
        ge=1,
        le=3650,
        description="How long the first response to an Idempotency-Key is kept; a retry after that is a new "
        "request.",
    )
    public_url: str | None = Field(
        default=None,
        description="Where people reach the service, such as https://dither.example.org. One-time links "
        "and the way back from signing in start with it, and forms are accepted from there only. Without it, "
        "the address of each request counts, and links are made only where that is this machine's own name "
        "or the very address that was reached: no link leads where a client's Host header says.",
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Origins of web pages whose scripts may contribute from a browser, separated by commas "
        "or spaces, for example `https://survey.example`. Without it, no page of another origin may.",
    )
    embed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Origins of web pages that may hold the page of a link in a frame, separated by commas "
        "or spaces, for example `https://school.example`. Without it, none may. No other page is framed.",
    )
    webhook_private_addresses: bool = Field(
        default=False,
        description="Let webhooks be at addresses that are not public, as in a private network, and at "
        "http:// URLs. An admin can then have the service send requests to machines that only it reaches.",
    )
    estimators: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Estimators of other installed distributions that may answer, separated by commas or "
        "spaces, or `all`: entry points `dither.estimators`, for example the papers' baselines of "
        "dither-research. Without it, only the service's own do.",
    )
    telemetry: bool = Field(
        default=False,
        description="Send spans of requests and of the steps of an answer by OTLP over HTTP, to where "
        "`OTEL_EXPORTER_OTLP_ENDPOINT` says. Takes the extra `telemetry`.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe log line that is written to standard error."
    )

    @field_validator("database_url")
    @classmethod
    def _is_postgresql(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return value
        if not _DATABASE_SCHEME.match(value.get_secret_value()):
            raise ValueError("must be a postgresql:// URL")
        try:
            address = urlsplit(value.get_secret_value())
            usable = address.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError("its port must be a number from 1 to 65535")
        parameters = dict(parse_qsl(address.query, keep_blank_values=True))
        if not parameters.keys() <= _DATABASE_PARAMETERS:
            known = ", ".join(sorted(_DATABASE_PARAMETERS))
            raise ValueError(f"the URL may have these parameters only: {known}")
        if parameters.get("sslmode", "prefer") not in _TLS_MODES:
            raise ValueError(f"sslmode must be one of {', '.join(_TLS_MODES)}")
        for name in sorted(_TLS_FILES & parameters.keys()):
            if not Path(parameters[name]).is_file():
                raise ValueError(f"{name} names no file")
        return value

    @field_validator("lifetime_gaussian")
    @classmethod
    def _is_an_epsilon_at_a_delta(cls, value: str) -> str:
        try:
            epsilon, delta = (Decimal(part) for part in value.split(","))
            fits = 0 <= epsilon <= 10**6 and SMALLEST_DELTA <= delta < 1
        except (InvalidOperation, ValueError):
            fits = False
        if not fits:
            raise ValueError("must be an epsilon and a delta between 0 and 1, separated by a comma")
        return value

    @property
    def lifetime_gaussian_parts(self) -> tuple[Decimal, Decimal]:
        """The second lifetime budget: an epsilon, and the delta at which it holds."""
        epsilon, delta = (Decimal(part) for part in self.lifetime_gaussian.split(","))
        return epsilon, delta

    @field_validator("subject_key")
    @classmethod
    def _is_a_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(_decode_key(value.get_secret_value())) < SUBJECT_KEY_BYTES:
            raise ValueError(f"must be at least {SUBJECT_KEY_BYTES} bytes, in hexadecimal or base64")
        return value

    @field_validator("public_url")
    @classmethod
    def _is_an_origin(cls, value: str | None) -> str | None:
        if value is not None and not _ORIGIN.fullmatch(value.rstrip("/").lower()):
            raise ValueError("must be http:// or https:// and a host, without a path")
        return value and value.rstrip("/").lower()

    @field_validator("cors_origins", "embed_origins", mode="before")
    @classmethod
    def _are_origins(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        origins = tuple(value.replace(",", " ").split())
        if not all(_ORIGIN.fullmatch(origin) for origin in origins):
            raise ValueError("must be origins as browsers send them: http or https, a host, perhaps a port")
        return origins

    @field_validator("estimators", mode="before")
    @classmethod
    def _are_names(cls, value: object) -> object:
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value

    @field_validator("oidc_issuer", "oidc_jwks_url")
    @classmethod
    def _is_secure(cls, value: str | None) -> str | None:
        if value is not None and not _SECURE_URL.match(value):
            raise ValueError("must be an https:// URL")
        return value

    @model_validator(mode="after")
    def _provider_is_complete(self) -> Self:
        if self.oidc_issuer is None:
            others = (
                *(self.oidc_audience, self.oidc_jwks_url, self.oidc_client_id, self.oidc_client_secret),
                self.oidc_name_claim,
            )
            if any(other is not None for other in others) or self.oidc_roles:
                raise ValueError("DITHER_OIDC_ISSUER is needed by the other DITHER_OIDC_ settings")
        elif self.oidc_audience is None or not self.oidc_roles:
            raise ValueError("DITHER_OIDC_ISSUER needs DITHER_OIDC_AUDIENCE and DITHER_OIDC_ROLES")
        elif self.oidc_client_id is None and self.oidc_client_secret is not None:
            raise ValueError("DITHER_OIDC_CLIENT_SECRET needs DITHER_OIDC_CLIENT_ID")
        return self

    @property
    def subject_key_bytes(self) -> bytes | None:
        """The subject key itself, None when it is not in the environment."""
        return None if self.subject_key is None else _decode_key(self.subject_key.get_secret_value())

    @classmethod
    def load(cls, environment: Mapping[str, str] | None = None) -> Self:
        """The settings of this process.

        Args:
            environment: For the check of names only; the process's own by default.

        Raises:
            SettingsError: a value is not admissible, or a `DITHER_*` variable does not exist. A
                misspelled budget that is silently ignored would be a broken promise.
        """
        _refuse_unknown(os.environ if environment is None else environment, cls.variables())
        try:
            if SECRETS_DIRECTORY.is_dir():
                return cls(_secrets_dir=SECRETS_DIRECTORY)
            return cls()
        except ValidationError as error:
            problems = (
                _problem(problem["loc"], problem["msg"])
                for problem in error.errors(include_input=False, include_url=False)
            )
            raise SettingsError("; ".join(problems)) from None
        except UnreadableSource as error:
            [name] = re.findall(r'field "(\w+)"', str(error)) or [""]
            raise SettingsError(f"{PREFIX}{name.upper()}: cannot be read as JSON") from None

    @classmethod
    def variables(cls) -> dict[str, str]:
        """Every environment variable with its description."""
        return {
            f"{PREFIX}{name.upper()}": field.description or "" for name, field in cls.model_fields.items()
        }


def plain_words(message: str) -> str:
    """What pydantic says of a value, without its own phrases.

    >>> plain_words("Input should be a valid integer, unable to parse string as an integer")
    'must be a valid integer'
    """
    message = message.removeprefix("Value error, ").replace("Input should be", "must be")
    return message.partition(", unable to parse")[0]


def _problem(location: tuple[int | str, ...], message: str) -> str:
    message = plain_words(message)
    if not location:
        return message
    return f"{PREFIX}{'.'.join(str(part) for part in location).upper()}: {message}"


def _refuse_unknown(environment: Mapping[str, str], known: Mapping[str, str]) -> None:
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known and name not in COMMAND_VARIABLES:
            near = difflib.get_close_matches(name, [*known, *COMMAND_VARIABLES], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise SettingsError(f"there is no setting {name}{hint}")


def _decode_key(text: str) -> bytes:
    """A key in hexadecimal, else in base64 of either alphabet; empty if it is neither."""
    text = text.strip()
    if _HEXADECIMAL.match(text):
        return bytes.fromhex(text)
    try:
        padded = text.translate(str.maketrans("-_", "+/")) + "=" * (-len(text) % 4)
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        return b""
