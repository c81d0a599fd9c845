# Made by client/models.py. Do not edit.
"""Studies, budgets, sessions, tokens and links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from dither._tables import Shown

Depth = Literal["lower_alpha", "unknown_alpha"]
"""What the number of rounds is derived from."""

EventType = Literal["released", "budget_low", "session_closed", "study_closed", "schedule_refused"]
"""What a webhook can learn."""

Every = Literal["day", "week", "month"]
"""How often a question is asked."""

InvitationKind = Literal["open", "single"]
"""For whom a link is."""

InvitationState = Literal["valid", "expired", "revoked"]
"""Whether its links take answers."""

Mode = Literal["budget_split", "user_split"]
"""How a person's epsilon is used."""

Protocol = Literal["minimum", "maximum", "quantile", "kmeans"]
"""What a session looks for."""

PublicationState = Literal["shown", "expired", "withdrawn"]
"""Whether everyone can read it."""

Relation = Literal["replace_one", "add_remove_one"]
"""What two neighboring datasets differ in."""

Role = Literal["contribute", "analyse", "admin", "observe"]
"""What a token may do. No role includes another one."""

SessionState = Literal["open", "finished"]
"""Life of a session."""

Threshold = Literal["paper", "hoeffding", "exact_binomial"]
"""When answers are believed."""

Trust = Literal["central", "local", "public"]
"""Whom a contributor trusts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonRange:
    """The least and the largest admissible personal epsilon."""

    min: Decimal
    max: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One of the things that a study asks for.

    Attributes:
        lower: Lower end of the range; of a choice the number of the first one.
        upper: Upper end of the range; of a choice the number of the last one.
        step: Values are kept to the nearest multiple of this above lower; None for a choice.
        choices: What people choose one of; empty for a number.
        dimension: Coordinates of a value, each of them in the range; 1 for a number.
    """

    lower: Decimal
    upper: Decimal
    step: float | None = None
    choices: tuple[str, ...] = ()
    dimension: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportingRange:
    """Where devices of local people report; values outside count as its nearer end.

    Attributes:
        start: Of it [grid steps]. Reports inside it state start/zoom.
        zoom: How often it fits into the range.
        outside_at_most: Part of those who answered its searches that lies outside, in 95 of 100 cases.
        searches: For its lower and its upper end.
    """

    lower: float
    upper: float
    start: int
    zoom: int
    outside_at_most: float
    searches: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyText:
    """A study in another language: a title and a description where it has its own, and names by names."""

    title: str | None = None
    description: str | None = None
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study(Shown):
    """A study.

    Attributes:
        slug: Its address.
        title: The question, for people.
        description: More about it.
        series: The series that it belongs to; None without.
        lower: Lower end of the range, in the data's unit.
        upper: Upper end of the range.
        step: Values are kept to the nearest multiple of this above lower; None for choices, and for several
            measures, each of which has its own.
        relation: What the guarantee compares: the number of people is public with replace_one, secret with
            add_remove_one.
        trust: Whom contributors may trust.
        epsilons: The only admissible personal epsilons, in their order; empty where all in the range are.
        default_share: Part of each personal epsilon that a release uses by default.
        tilt: How far the mean of those who ask for little privacy may differ from the others', as a part of
            the range, for questions that do not say.
        noise: Of answers; privacy is counted in epsilon, or in mu^2.
        delta: At which epsilons hold with Gaussian noise; 0 with Laplace noise.
        dimension: Coordinates of a value, each of them in the range; 1 for a number.
        local_mechanism: Randomizer for local reports; `choice` where there are choices: randomized response
            or unary encoding.
        attributes: Names and labels, in their order.
        choices: What people choose one of, in their order; the range is that of their numbers. Empty where
            values are numbers.
        measures: The numbers and choices that it asks each person for, in their order; lower and upper of a
            study of several are then 0 and 1. Empty where a person gives one value without another name.
        reporting_range: Where devices of local people report; None: in the whole range.
        texts: What it says in other languages, by their codes; empty where it has no other.
        state: Open, closed to contributions, or, with stored answers only, archived or retired.
        warnings: What new people cannot offer: more than their lifetime budget, or with Gaussian noise
            anything where no budget for it was granted.
    """

    slug: str
    title: str = ""
    description: str = ""
    series: str | None = None
    lower: Decimal
    upper: Decimal
    step: float | None = None
    relation: str
    trust: tuple[str, ...]
    epsilon: EpsilonRange
    epsilons: tuple[Decimal, ...] = ()
    default_share: Decimal | None = None
    tilt: Decimal | None = None
    noise: str = "laplace"
    delta: Decimal = Decimal(0)
    dimension: int = 1
    local_mechanism: str | None = None
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    choices: tuple[str, ...] = ()
    measures: Mapping[str, Measure] = field(default_factory=dict, hash=False)
    reporting_range: ReportingRange | None = None
    texts: Mapping[str, StudyText] = field(default_factory=dict, hash=False)
    state: str | None = None
    created_at: datetime | None = None
    warnings: tuple[str, ...] = ()
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """A stored contribution.

    `epsilon` is the one that holds: the offered one rounded down to three significant digits. `mu2` is what
    it reserves in a study with Gaussian noise, None in others. `epsilon_used_at_most` is what the default
    question would charge at this moment, in steps from the study's default share to 1: privacy for free.

    Attributes:
        status: Whether it was new, there already, or took another one's place.
    """

    study: str
    subject: str
    trust: str
    epsilon: Decimal | None = None
    mu2: Decimal | None = None
    epsilon_used_at_most: Decimal | None = None
    status: Literal["created", "unchanged", "replaced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """A lifetime budget.

    `reserved` is held by contributions and sessions; `spent` is the part of it that is gone.
    """

    total: Decimal
    reserved: Decimal
    spent: Decimal
    remaining: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianAmounts:
    """A lifetime budget for studies with Gaussian noise: mu^2, and what that is as an epsilon at a delta.

    Attributes:
        mu2: What is reserved and spent; it adds up exactly.
        epsilon: The same as epsilons at `delta`, rounded up; they do not add up.
    """

    mu2: Amounts
    epsilon: Amounts
    delta: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a person can lose in all: (epsilon, delta)."""

    epsilon: Decimal
    delta: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySpending:
    """What one study holds of a person's budget.

    Attributes:
        state: Of the study; an archived one has freed what it did not spend.
        live: False once withdrawn: what was spent stays.
        epsilon: What is reserved, once the study is archived what was spent; with Gaussian noise at the
            study's delta.
        mu2: What is reserved with Gaussian noise; None with Laplace noise.
        contributed_on: The day (UTC) of the first contribution; None from before days were kept.
        attributes: The labels that are held of the person.
    """

    study: str
    state: str | None = None
    trust: str | None = None
    live: bool = False
    epsilon: Decimal | None = None
    spent: Decimal
    mu2: Decimal | None = None
    mu2_spent: Decimal | None = None
    contributed_on: date | None = None
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpending:
    """What taking part in one session holds of a person's budget.

    Attributes:
        protocol: What was sent: in `kmeans` a noisy value and categories, else yes or no.
        epsilon: What is reserved; once the session has finished, what was spent.
    """

    session: str
    study: str
    protocol: str | None = None
    epsilon: Decimal
    spent: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Shown):
    """One person's statement.

    Attributes:
        epsilon: For studies with Laplace noise, and for sessions.
        gaussian: For studies with Gaussian noise; None where no such budget was granted.
        in_all: What the person can lose in all, by both budgets.
    """

    subject: str
    epsilon: Amounts
    gaussian: GaussianAmounts | None = None
    in_all: Promise | None = None
    studies: tuple[StudySpending, ...] = ()
    sessions: tuple[SessionSpending, ...] = ()
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account(Shown):
    """One person's account in a list.

    Attributes:
        subject: Digest of the external id: all that the database knows.
        gaussian: None where no such budget was granted.
    """

    subject: str
    epsilon: Amounts
    gaussian: GaussianAmounts | None = None
    in_all: Promise
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """What was added to every lifetime budget.

    Attributes:
        new_people: Lifetime budget of a person who is new from now on; of Gaussian noise at `delta`.
        delta: Above 0: the budgets for Gaussian noise were raised, and epsilons are read at it.
    """

    epsilon: Decimal
    at_most: Decimal | None = None
    new_people: Decimal
    delta: Decimal = Decimal(0)
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a token may use of each study: a share of every person's epsilon within the period."""

    share: Decimal
    period_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token without its secret.

    Attributes:
        roles: All that it has, of which `role` is the first: it may do what one of them may.
        studies: Slugs it is limited to; None: all.
        subject: Digest of the one person it acts for.
        expires_at: From then on it is refused; None: never.
        last_used_on: The last day (UTC) on which it was used.
        quota: What it may use of each study; None without a limit.
        by_provider: Whether it stands for an identity of the OIDC provider.
    """

    id: str
    name: str
    role: Role
    roles: tuple[Role, ...] = ()
    studies: tuple[str, ...] | None = None
    subject: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    created_at: datetime
    last_used_on: date | None = None
    quota: Quota | None = None
    by_provider: bool = False
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken(Token):
    """A token with its secret, which is shown this once."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """What a token used of one study, in its quota's period or, without a quota, ever.

    Attributes:
        used: The most that its releases took of any person's epsilon, together.
    """

    study: str
    releases: int
    used: Decimal
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """An invitation without its links.

    Attributes:
        limit: Answers that it takes.
        used: Answers that came by it; None where the number of people is secret.
    """

    id: str
    study: str
    kind: InvitationKind
    name: str
    limit: int
    used: int | None = None
    state: InvitationState
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInvitation:
    """A new invitation with its links, which are shown this once; only an open one can be shown again.

    Attributes:
        urls: An open link, or single ones in the order of `subjects`.
    """

    id: str
    urls: tuple[str, ...] = field(repr=False)
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook without its secret.

    Attributes:
        waiting: Events that it has not taken yet; they are tried again.
        given_up: Events that it did not take in four days.
    """

    id: str
    url: str
    events: tuple[EventType, ...]
    created_at: datetime
    waiting: int
    given_up: int
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhook(Webhook):
    """A webhook with its secret, which is shown this once.

    Attributes:
        secret: `whsec_` and 32 bytes in base64: what events are signed with.
    """

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule.

    Attributes:
        share: What it takes of each epsilon every time.
        token_id: The token whose quota this is, and who asks in the ledger. No one bears it.
        due_at: When it is asked next; None: it has ended.
        answered: How many times it was answered.
        asked_at: When it was asked last.
        release: Its last answer.
        refusal: Code of what it was refused for the last time; None: it was answered.
    """

    id: str
    study: str
    question: Mapping[str, object]
    every: str
    starts_at: datetime
    share: Decimal
    newcomers: bool
    until: Decimal | None = None
    quota: Decimal
    token_id: str
    created_at: datetime
    due_at: datetime | None = None
    answered: int
    asked_at: datetime | None = None
    release: str | None = None
    refusal: str | None = None
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A publication.

    Attributes:
        url: Where everyone reads it; None where no one knows the address.
    """

    slug: str
    url: str | None = None
    study: str
    title: str
    releases: tuple[str, ...]
    frames: tuple[str, ...]
    state: PublicationState
    created_at: datetime
    changed_at: datetime
    expires_at: datetime | None = None
    withdrawn_at: datetime | None = None
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Where it may lie, in the data's unit; a quantile lies in it with probability 95 %."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session. `estimate`, `interval` and `error` of a search come once it has finished.

    `mode`, `threshold` and `quantile` are those of a search; `dimension`, `clusters`, `report_epsilon`,
    `central_epsilon_per_round`, `centres` and `initial_centres` those of kmeans.

    Attributes:
        mode: Whether a person answers every round, or one round with all of the epsilon.
        threshold: From how many yes answers are believed.
        dimension: Coordinates of a value.
        clusters: Centres.
        round: The open one; None once finished.
        answers: In the open round so far.
        epsilon_total: What taking part reserves, and can ever cost.
        report_epsilon: What the report beside a person's first answer costs, out of epsilon_total.
        central_epsilon_per_round: What a round costs a person whose central contribution takes part; with
            Gaussian noise at the study's delta, where rounds add up in mu^2.
        answers_per_person: Rounds in which a person answers, at most.
        participants: How many people are expected.
        quantile: The fraction that is looked for.
        answers_per_round: How many close a round; None where none do.
        round_seconds: After which a round closes; None where it does not.
        deadline: When the session ends.
        lower: Of the study's range.
        grid_bits: The range has 2^grid_bits steps.
        assignment_key: For user_split: from it a device computes its round; hexadecimal.
        path: The closed rounds.
        centres: As they stand, in the data's unit.
        estimate: In the data's unit.
    """

    id: str
    study: str
    protocol: str
    mode: str | None = None
    threshold: str | None = None
    dimension: int = 1
    clusters: int | None = None
    state: SessionState
    rounds: int
    round: int | None = None
    answers: int | None = None
    epsilon_per_answer: Decimal
    epsilon_total: Decimal
    report_epsilon: Decimal | None = None
    central_epsilon_per_round: Decimal | None = None
    answers_per_person: int
    participants: int | None = None
    quantile: Decimal | None = None
    answers_per_round: int | None = None
    round_seconds: float | None = None
    deadline: datetime | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None
    lower: Decimal
    upper: Decimal
    grid_bits: int
    assignment_key: str | None = field(default=None, repr=False)
    path: tuple[Mapping[str, object], ...] = field(default=(), repr=False)
    centres: tuple[tuple[float, ...], ...] | None = field(default=None, repr=False)
    initial_centres: tuple[tuple[float, ...], ...] | None = field(default=None, repr=False)
    estimate: float | None = None
    interval: Bounds | None = None
    error: Mapping[str, object] | None = None
    raw: Mapping[str, object] = field(repr=False, compare=False)
