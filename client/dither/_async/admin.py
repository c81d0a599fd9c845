"""What an admin does: studies, tokens and lifetime budgets."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime

from dither._async.base import AsyncBase
from dither._calls import (
    asked_for,
    exact,
    exact_list,
    given,
    invitation_path,
    key_or_new,
    moment_text,
    quoted,
    schedule_path,
    study_path,
    token_path,
    webhook_path,
)
from dither._documents import (
    Account,
    Budget,
    EventType,
    Every,
    Invitation,
    InvitationKind,
    NewInvitation,
    NewToken,
    NewWebhook,
    Quota,
    Raise,
    Relation,
    Role,
    Schedule,
    Study,
    Token,
    TokenUsage,
    Trust,
    Webhook,
)
from dither._errors import InvalidRequest
from dither._orders import subject_text
from dither._wire import Document, Parameter
from dither.device.numbers import Numeric


class AsyncAdmin(AsyncBase):
    """The methods that take an admin's token."""

    async def create_study(
        self,
        slug: str,
        *,
        lower: Numeric | None = None,
        upper: Numeric | None = None,
        choices: Sequence[str] | None = None,
        measures: Mapping[str, Mapping[str, Numeric | Sequence[str]]] | None = None,
        title: str | None = None,
        description: str | None = None,
        series: str | None = None,
        relation: Relation | None = None,
        trust: Sequence[Trust] | None = None,
        epsilon_min: Numeric | None = None,
        epsilon_max: Numeric | None = None,
        epsilons: Sequence[Numeric] | None = None,
        default_share: Numeric | None = None,
        tilt: Numeric | None = None,
        noise: str | None = None,
        delta: Numeric | None = None,
        dimension: int | None = None,
        local_mechanism: str | None = None,
        attributes: Mapping[str, Sequence[str]] | None = None,
        texts: Mapping[str, Document] | None = None,
    ) -> Study:
        """Make a study. What answers depend on is fixed from then on. What is None is left to the service.

        Privacy: costs nothing.

        Args:
            slug: Its address.
            lower, upper: Range of a value.
            choices: In place of a range: what people choose one of.
            measures: In place of a range: what each person gives, by name, as
                {"income": {"lower": 0, "upper": 9000}, "party": {"choices": ["red", "green"]}}.
            title, description, texts: The question, for people; in other languages.
            series: Slug of a series, as the weeks of a survey are.
            relation: What is protected: a value, or also whether a person is there.
            trust: Accepted trust tags.
            epsilon_min, epsilon_max, epsilons: Personal epsilons, as a range or a list.
            default_share: Part of each that a release uses.
            tilt: How far means may differ by privacy, as a part of the range.
            noise, delta: laplace, counted in epsilon, or gaussian, in mu^2, whose epsilons hold at delta.
            dimension: Coordinates of a value.
            local_mechanism: What devices randomize with.
            attributes: What contributions say of their owners: names and labels.

        Examples:
            >>> study = await admin.create_study("steps", lower=0, upper=50_000, trust=["local"])
            >>> print(study.slug, study.upper, study.state)
            steps 50000 open
            >>> (await admin.create_study("party", choices=["red", "green", "blue"])).choices
            ('red', 'green', 'blue')
        """
        document = given(
            slug=slug,
            lower=exact("lower", lower),
            upper=exact("upper", upper),
            choices=choices,
            measures=asked_for(measures),
            title=title,
            description=description,
            series=series,
            relation=relation,
            trust=trust,
            epsilon=given(min=exact("epsilon_min", epsilon_min), max=exact("epsilon_max", epsilon_max))
            or None,
            epsilons=exact_list("epsilons", epsilons),
            default_share=exact("default_share", default_share),
            tilt=exact("tilt", tilt),
            noise=noise,
            delta=exact("delta", delta),
            dimension=dimension,
            local_mechanism=local_mechanism,
            attributes=attributes,
            texts=texts,
        )
        return await self._run(self._calls.call(Study, "POST", "/v1/studies", document, repeatable=False))

    async def edit_study(
        self,
        study: str,
        *,
        reason: str,
        title: str | None = None,
        description: str | None = None,
        texts: Mapping[str, Document] | None = None,
    ) -> Study:
        """Change what is said of a study, for people; what is None stays.

        Privacy: costs nothing, and answers do not depend on it.

        Args:
            study: Which one.
            reason: For the audit trail.
            title, description: The question, and more about it, which may be empty.
            texts: Both, and labels, by language: {"de": {"labels": {"red": "rot"}}}; None forgets one.

        Examples:
            >>> study = await admin.edit_study("commute", title="How far is it?", reason="a typo")
            >>> study.title
            'How far is it?'
        """
        document = given(title=title, description=description, texts=texts, reason=reason)
        return await self._run(self._calls.call(Study, "PATCH", study_path(study), document))

    async def close_study(self, study: str) -> Study:
        """Take no more contributions; questions are still answered.

        Privacy: costs nothing.

        Examples:
            >>> study = await admin.close_study("commute")
            >>> study.state
            'closed'
        """
        return await self._run(self._calls.call(Study, "POST", f"{study_path(study)}/close"))

    async def narrow_study(self, study: str, *, lower: str, upper: str) -> Study:
        """Fix, for good, where devices of local people report: between what two finished searches found.

        Privacy: costs nothing.

        Examples:
            >>> study = await admin.narrow_study("commute", lower="s1", upper="s2")
            >>> study.reporting_range.zoom
            10
        """
        path = f"{study_path(study)}/reporting-range"
        return await self._run(self._calls.call(Study, "POST", path, {"lower": lower, "upper": upper}))

    async def archive_study(self, study: str, *, reason: str) -> Study:
        """End a study for good: no contribution, no new question, no session.

        Privacy: costs nothing; what people reserved in the study and have not spent is free again.

        Examples:
            >>> study = await admin.archive_study("commute", reason="the week is over")
            >>> study.state
            'archived'
        """
        path, document = f"{study_path(study)}/archive", {"reason": reason}
        return await self._run(self._calls.call(Study, "POST", path, document))

    async def retire_study(self, study: str) -> Study:
        """Give stored answers only, for good: no contribution, no new question, no session.

        Privacy: costs nothing; what people reserved in the study stays reserved.

        Examples:
            >>> study = await admin.retire_study("commute")
            >>> study.state
            'retired'
        """
        return await self._run(self._calls.call(Study, "POST", f"{study_path(study)}/retire"))

    async def invite(
        self,
        study: str,
        *,
        kind: InvitationKind,
        count: int | None = None,
        subjects: Sequence[str] | None = None,
        limit: int | None = None,
        name: str | None = None,
        expires_at: datetime | None = None,
    ) -> NewInvitation:
        """Make links by which people answer a study on a page of the service, without an app.

        The links are in this answer and nowhere else. It is sent once.

        Privacy: costs nothing by itself. What an open link promises holds for each answer, not each person.

        Args:
            study: What people answer.
            kind: "open": one link for all; "single": one for each person.
            count, subjects: How many single links, or external ids of the people.
            limit: Answers that an open link takes.
            name: What to call it.
            expires_at: From then on they take no answer. None: never.

        Examples:
            >>> made = await admin.invite("commute", kind="single", count=2, name="by mail")
            >>> len(made.urls)
            2
        """
        document = given(
            kind=kind,
            count=count,
            subjects=subjects,
            limit=limit,
            name=name,
            expires_at=moment_text("expires_at", expires_at),
        )
        path = f"{study_path(study)}/invitations"
        return await self._run(self._calls.call(NewInvitation, "POST", path, document, repeatable=False))

    def invitations(self, study: str, *, page_size: int = 100) -> AsyncIterator[Invitation]:
        """The invitations of a study without their links, fetched page by page.

        Privacy: costs nothing.

        Examples:
            >>> _ = await admin.invite("commute", kind="open", limit=200)
            >>> [(one.kind, one.limit, one.used) async for one in admin.invitations("commute")]
            [('open', 200, 0)]
        """
        return self._pages(Invitation, f"{study_path(study)}/invitations", page_size)

    async def invitation(self, study: str, invitation: str) -> Invitation:
        """An invitation, by its id.

        Privacy: costs nothing.

        Examples:
            >>> made = await admin.invite("commute", kind="open")
            >>> (await admin.invitation("commute", made.id)).state
            'valid'
        """
        return await self._run(self._calls.read(Invitation, invitation_path(study, invitation)))

    async def revoke_invitation(self, study: str, invitation: str) -> None:
        """Take no more answers by an invitation; receipts stay good. Doing it again changes nothing.

        Privacy: costs nothing.

        Examples:
            >>> made = await admin.invite("commute", kind="open")
            >>> await admin.revoke_invitation("commute", made.id)
        """
        await self._run(self._calls.send("DELETE", invitation_path(study, invitation)))

    async def create_token(
        self,
        name: str,
        *,
        role: Role | None = None,
        roles: Sequence[Role] | None = None,
        studies: Sequence[str] | None = None,
        subject: str | None = None,
        expires_at: datetime | None = None,
    ) -> NewToken:
        """Make a bearer token. Its secret is in this answer and nowhere else.

        It is sent once: where no answer comes, a token may have been made.

        Privacy: costs nothing.

        Args:
            name: What to call it.
            role, roles: What it may do.
            studies: Slugs it is limited to; None: all.
            subject: The one person it acts for; role contribute alone.
            expires_at: From then on it is refused. None: never.

        Examples:
            >>> made = await admin.create_token("survey app", role="contribute", studies=["commute"])
            >>> made.role, made.studies, made.token
            ('contribute', ('commute',), 'dither_1')
        """
        until = moment_text("expires_at", expires_at)
        document = given(
            name=name, role=role, roles=roles, studies=studies, subject=subject, expires_at=until
        )
        path = "/v1/admin/tokens"
        return await self._run(self._calls.call(NewToken, "POST", path, document, repeatable=False))

    def tokens(self, *, page_size: int = 100) -> AsyncIterator[Token]:
        """All tokens without their secrets, fetched page by page.

        Privacy: costs nothing.

        Examples:
            >>> _ = await admin.create_token("survey app", role="contribute")
            >>> [token.name async for token in admin.tokens()]
            ['survey app']
        """
        return self._pages(Token, "/v1/admin/tokens", page_size)

    async def find_token(self, token: str) -> Token:
        """A token, by its id.

        Privacy: costs nothing.

        Examples:
            >>> made = await admin.create_token("survey app", role="contribute")
            >>> found = await admin.find_token(made.id)
            >>> found.name
            'survey app'
        """
        return await self._run(self._calls.read(Token, token_path(token)))

    async def revoke_token(self, token: str) -> None:
        """Refuse a token from now on. Doing it again changes nothing.

        Privacy: costs nothing.

        Examples:
            >>> made = await admin.create_token("survey app", role="contribute")
            >>> await admin.revoke_token(made.id)
        """
        await self._run(self._calls.send("DELETE", token_path(token)))

    async def rotate_token(self, token: str, *, grace_seconds: int = 0) -> NewToken:
        """Give a token another secret. Its id, limits and quota stay.

        It is sent once: where no answer comes, the secret may have changed.

        Privacy: costs nothing.

        Args:
            token: Its id.
            grace_seconds: How long the old secret stays valid.

        Examples:
            >>> made = await admin.create_token("survey app", role="contribute")
            >>> rotated = await admin.rotate_token(made.id, grace_seconds=3600)
            >>> rotated.id == made.id, rotated.token
            (True, 'dither_2')
        """
        path, document = f"{token_path(token)}/rotate", {"grace_seconds": grace_seconds}
        return await self._run(self._calls.call(NewToken, "POST", path, document, repeatable=False))

    async def create_webhook(self, url: str, *, events: Sequence[EventType]) -> NewWebhook:
        """Have an address told what happens, by the Standard Webhooks scheme. Its secret is in this answer.

        It is sent once: where no answer comes, a webhook may have been made.

        Privacy: costs nothing; no event says anything about people.

        Args:
            url: Where events are sent by POST: https://.
            events: Which ones, of `EventType`.

        Examples:
            >>> made = await admin.create_webhook("https://bot.example/dither", events=["released"])
            >>> made.events, made.secret[:6]
            (('released',), 'whsec_')
        """
        document = {"url": url, "events": list(events)}
        path = "/v1/admin/webhooks"
        return await self._run(self._calls.call(NewWebhook, "POST", path, document, repeatable=False))

    def webhooks(self, *, page_size: int = 100) -> AsyncIterator[Webhook]:
        """All webhooks without their secrets, fetched page by page.

        Privacy: costs nothing.

        Examples:
            >>> _ = await admin.create_webhook("https://bot.example/dither", events=["released"])
            >>> [(one.url, one.waiting) async for one in admin.webhooks()]
            [('https://bot.example/dither', 0)]
        """
        return self._pages(Webhook, "/v1/admin/webhooks", page_size)

    async def find_webhook(self, webhook: str) -> Webhook:
        """A webhook, by its id.

        Privacy: costs nothing.

        Examples:
            >>> made = await admin.create_webhook("https://bot.example/dither", events=["released"])
            >>> (await admin.find_webhook(made.id)).given_up
            0
        """
        return await self._run(self._calls.read(Webhook, webhook_path(webhook)))

    async def delete_webhook(self, webhook: str) -> None:
        """Have an address told nothing any more, nor what it was not told yet.

        Privacy: costs nothing.

        Examples:
            >>> made = await admin.create_webhook("https://bot.example/dither", events=["released"])
            >>> await admin.delete_webhook(made.id)
        """
        await self._run(self._calls.send("DELETE", webhook_path(webhook)))

    async def create_schedule(
        self,
        study: str,
        question: Mapping[str, Parameter],
        *,
        every: Every,
        quota: Numeric,
        newcomers: bool = False,
        until: Numeric | None = None,
        starts_at: datetime | None = None,
    ) -> Schedule:
        """Have a question asked every day, week or month. It is sent once.

        Privacy: each answer costs what `release` would; all of them together at most `quota` of an epsilon.

        Args:
            study: The study's slug.
            question: As `release` takes it, with the share of each time.
            every: How often.
            quota: The most that all of them may take of any person's epsilon.
            newcomers: Ask those alone who came since.
            until: Or ask until it has taken this in all.
            starts_at: The first time. None: now.

        Examples:
            >>> question = {"statistic": "mean", "share": "0.1"}
            >>> made = await admin.create_schedule("commute", question, every="week", newcomers=True, quota=5)
            >>> made.newcomers, made.answered
            (True, 0)
        """
        document = given(
            question={
                name: exact(name, one) if isinstance(one, float) else one for name, one in question.items()
            },
            every=every,
            quota=exact("quota", quota),
            newcomers=newcomers,
            until=exact("until", until),
            starts_at=moment_text("starts_at", starts_at),
        )
        path = f"{study_path(study)}/schedules"
        return await self._run(self._calls.call(Schedule, "POST", path, document, repeatable=False))

    async def delete_schedule(self, study: str, schedule: str) -> None:
        """Ask no more by a schedule. Its answers stay.

        Privacy: costs nothing.

        Examples:
            >>> made = await admin.create_schedule("commute", {}, every="day", until=1, quota=1)
            >>> await admin.delete_schedule("commute", made.id)
        """
        await self._run(self._calls.send("DELETE", schedule_path(study, schedule)))

    async def set_quota(self, token: str, *, share: Numeric, period_seconds: int) -> Quota:
        """Limit what an analyst's token may use of each study. What it used already counts.

        Privacy: costs nothing; it limits what releases of this token may cost.

        Args:
            token: Its id.
            share, period_seconds: The most of anyone's epsilon in a study, in any such period.

        Examples:
            >>> made = await admin.create_token("desk", role="analyse")
            >>> quota = await admin.set_quota(made.id, share="0.2", period_seconds=86_400)
            >>> print(quota.share)
            0.2
        """
        document = {"share": exact("share", share), "period_seconds": period_seconds}
        return await self._run(self._calls.call(Quota, "PUT", f"{token_path(token)}/quota", document))

    async def lift_quota(self, token: str) -> None:
        """Lift a token's quota. Doing it again changes nothing.

        Privacy: costs nothing by itself; people's own budgets still hold.

        Examples:
            >>> made = await admin.create_token("desk", role="analyse")
            >>> await admin.lift_quota(made.id)
        """
        await self._run(self._calls.send("DELETE", f"{token_path(token)}/quota"))

    def token_usage(self, token: str, *, page_size: int = 100) -> AsyncIterator[TokenUsage]:
        """What a token used of each study, in its quota's period or, without a quota, ever.

        Privacy: costs nothing.

        Examples:
            >>> made = await admin.create_token("desk", role="analyse")
            >>> [(usage.study, usage.releases, str(usage.used)) async for usage in admin.token_usage(made.id)]
            [('commute', 1, '0.1')]
        """
        return self._pages(TokenUsage, f"{token_path(token)}/usage", page_size)

    async def set_budget(
        self,
        subject: str | int,
        *,
        epsilon: Numeric,
        reason: str,
        gaussian: tuple[Numeric, Numeric] | None = None,
    ) -> Budget:
        """Set a subject's lifetime budget; never below what is reserved.

        Privacy: what may be spent on this subject from now on.

        Args:
            subject: Whose.
            epsilon: The new lifetime epsilon.
            reason: For the audit trail.
            gaussian: The one for studies with Gaussian noise, an epsilon and a delta. None: as it is.

        Examples:
            >>> budget = await admin.set_budget("ada", epsilon=20, reason="asked for more")
            >>> print(budget.epsilon.total)
            20
        """
        both = exact_list("gaussian", gaussian)
        if both is not None and len(both) != 2:
            raise InvalidRequest("gaussian", "must be an epsilon and a delta, as (3, 1e-6)")
        own = both and {"epsilon": both[0], "delta": both[1]}
        document = given(epsilon=exact("epsilon", epsilon), gaussian=own, reason=reason)
        path = f"/v1/admin/subjects/{quoted(subject_text(subject))}/budget"
        return await self._run(self._calls.call(Budget, "PUT", path, document))

    async def raise_budgets(
        self,
        *,
        epsilon: Numeric,
        reason: str,
        at_most: Numeric | None = None,
        delta: Numeric | None = None,
        key: str | None = None,
    ) -> Raise:
        """Add to every lifetime budget; people who are new start with the raised one. Cannot be undone.

        Privacy: what may be spent on every person. What a person can lose is the sum of what was granted.

        Args:
            epsilon: What to add.
            reason: For the audit trail.
            at_most: Budgets are raised up to this; those above it stay as they are.
            delta: Raise the budgets for Gaussian noise, by the mu^2 that epsilon is at this delta.
            key: Idempotency-Key: with the same one nothing is raised again. None: a new one for this call.

        Examples:
            >>> made = await admin.raise_budgets(epsilon="0.5", reason="another year")
            >>> print(made.new_people)
            10.5
        """
        document = given(
            epsilon=exact("epsilon", epsilon),
            at_most=exact("at_most", at_most),
            delta=exact("delta", delta),
            reason=reason,
        )
        path = "/v1/admin/budgets/raise"
        return await self._run(self._calls.call(Raise, "POST", path, document, key=key_or_new("key", key)))

    def budgets(self, *, page_size: int = 100) -> AsyncIterator[Account]:
        """All lifetime budgets, fetched page by page. People are known by digests only.

        Privacy: costs nothing.

        Examples:
            >>> _ = await client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
            >>> [str(account.epsilon.remaining) async for account in admin.budgets()]
            ['9']
        """
        return self._pages(Account, "/v1/admin/budgets", page_size)
