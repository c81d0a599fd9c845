"""What an analyst does: look for studies, plan, ask, and publish."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Unpack

from dither import _questions as asking
from dither._answers import Release, Series
from dither._async.base import AsyncBase
from dither._calls import (
    Labels,
    Shares,
    Where,
    asked,
    between_labels,
    by_bins,
    by_shares,
    exact_text,
    given,
    key_or_new,
    moment_text,
    publication_path,
    release_path,
    schedule_path,
    study_path,
)
from dither._documents import Publication, Schedule, Study
from dither._plans import Plan, Plans
from dither._wire import Document, Parameter
from dither.device.numbers import Numeric


class AsyncAnalyst(AsyncBase):
    """The methods about studies and their releases."""

    def studies(self, *, series: str | None = None, page_size: int = 100) -> AsyncIterator[Study]:
        """The studies that the token may see, fetched page by page.

        Privacy: costs nothing.

        Args:
            series: Only those of this series.
            page_size: How many are fetched at once.

        Examples:
            >>> [study.slug async for study in analyst.studies() if study.dimension > 1]
            ['places', 'household']
        """
        return self._pages(Study, "/v1/studies", page_size, series=series)

    async def plan(
        self,
        study: str,
        *,
        statistic: str = "mean",
        where: Where | None = None,
        fresh: bool = False,
        **parameters: Parameter,
    ) -> Plan:
        """What stands for a question, what the next release would cost and how accurate it would be.

        Privacy: costs nothing, and looks at no raw data.

        Args:
            study: The study's slug.
            statistic: What would be asked.
            where: Of whom, as {"region": "north"}; None for all people.
            fresh: Plan a release with noise of its own.
            **parameters: The question's parameters, for example `share`, `epsilon`, `tilt` or
                `expected_size`.

        Examples:
            >>> plan = await analyst.plan("commute")
            >>> best = min(plan.estimators, key=lambda row: row.predicted_error)
            >>> print(best.estimator, best.predicted_error, best.epsilon_max)
            adpm 0.75 0.25
        """
        question = asked({"statistic": statistic, "where": where, **parameters})
        if fresh is not False:
            question["fresh"] = fresh
        return await self._run(self._calls.read(Plan, f"{study_path(study)}/plan", question))

    async def plan_several(self, study: str, questions: Sequence[Mapping[str, Document]]) -> Plans:
        """The plans of several questions, and what all of them would cost together.

        Privacy: costs nothing. What is read off one answer is paid once.

        Args:
            study: The study's slug.
            questions: The parameters of each, with `statistic`.

        Examples:
            >>> plans = await analyst.plan_several("commute", [{"statistic": "mean"}, {"statistic": "sum"}])
            >>> plans.epsilon_max == plans.questions[0].epsilon_max
            True
        """
        document = {"questions": questions}
        return await self._run(self._calls.call(Plans, "POST", f"{study_path(study)}/plan", document))

    async def mean(
        self, study: str, *, standardize: Shares | None = None, **parameters: Unpack[asking.Mean]
    ) -> Release:
        """The mean: the best release for this question so far.

        Privacy: the first to ask this question makes a release, and contributors pay what its `epsilon_max`
        says at most. From then on answers come back and cost nothing, unless a larger `share` is asked for.

        Args:
            study: The study's slug.
            where: Of whom, as {"region": "north"}: people with other labels pay nothing. None for all.
            standardize: The share of each label in the population, as {"region": {"north": .4, "south": .6}}:
                it costs no more. Several attributes are raked.
            **parameters: `by="region"` answers for each label besides, each person charged for the own label
                only, and `simultaneous=True` adds intervals that hold for all labels at once;
                `range="found"` finds the range of the values first, with a part of the price.

        Examples:
            >>> first, second = await analyst.mean("commute"), await analyst.mean("commute")
            >>> first == second
            True
        """
        return await self._statistic(study, "mean", by_shares(standardize) | parameters)

    async def sum(self, study: str, **parameters: Unpack[asking.Sum]) -> Release:
        """The sum of the values of all who contributed, where their number is public.

        Privacy: read off the release of the mean of the same question: after that it costs nothing more.

        Examples:
            >>> mean, total = await analyst.mean("commute"), await analyst.sum("commute")
            >>> mean.id == total.id
            True
        """
        return await self._statistic(study, "sum", parameters)

    async def variance(self, study: str, **parameters: Unpack[asking.Variance]) -> Release:
        """The variance of the values, in the data's unit squared.

        Privacy: as `sum`; where the number of people is secret, variance and sd share a release of their own.

        Examples:
            >>> variance, sd = await analyst.variance("commute"), await analyst.sd("commute")
            >>> variance.id == sd.id
            True
        """
        return await self._statistic(study, "variance", parameters)

    async def sd(self, study: str, **parameters: Unpack[asking.Variance]) -> Release:
        """The standard deviation of the values.

        Privacy: as `variance`, off the same release.

        Examples:
            >>> mean, sd = await analyst.mean("commute"), await analyst.sd("commute")
            >>> mean.id == sd.id
            True
        """
        return await self._statistic(study, "sd", parameters)

    async def difference(
        self, study: str, *, between: Labels, **parameters: Unpack[asking.Difference]
    ) -> Release:
        """The mean of the people with a label less that of the people with another one.

        Privacy: read off the release by labels, as `mean` with `by` makes it: after that it costs nothing.

        Args:
            study: The study's slug.
            between: An attribute and two of its labels, as {"region": ["north", "south"]}.
            where, **parameters: As for `mean`, `where` by other attributes.

        Examples:
            >>> means = await analyst.mean("commute", by="region")
            >>> found = await analyst.difference("commute", between={"region": ["north", "south"]})
            >>> found.id == means.id
            True
        """
        question = {"of": "mean", **between_labels(between), **parameters}
        return await self._statistic(study, "difference", question)

    async def histogram(
        self,
        study: str,
        *,
        edges: str | Sequence[Numeric] | None = None,
        bins: int | None = None,
        **parameters: Unpack[asking.Histogram],
    ) -> Release:
        """Which part of the people lies in each bin: the best release for this question so far.

        Privacy: as `mean`. `distribution` with the same bins is read off the same release.

        Args:
            study: The study's slug.
            edges: Where bins begin and end; what they leave of the range are bins of their own.
            bins: The number of equal bins over the range, in place of edges.
            where, **parameters: As for `mean`.

        Examples:
            >>> found = await analyst.histogram("commute", edges=[30, 60])
            >>> [(one.lower, one.upper, one.share) for one in found.bins]
            [(0.0, 30.0, 0.4), (30.0, 60.0, 0.5), (60.0, 120.0, 0.1)]
        """
        return await self._statistic(study, "histogram", by_bins(edges, bins) | parameters)

    async def shares(self, study: str, **parameters: Unpack[asking.Histogram]) -> Release:
        """Which part of the people made each choice: the best release for this question so far.

        Privacy: as `mean`.

        Args:
            study: The study's slug; it asks for a choice, or for one among its measures.
            where, **parameters: As for `mean`.

        Examples:
            >>> found = await analyst.shares("party")
            >>> [(one.choice, one.share) for one in found.choices]
            [('red', 0.5), ('green', 0.3), ('blue', 0.2)]
        """
        return await self._statistic(study, "shares", parameters)

    async def distribution(
        self,
        study: str,
        *,
        edges: str | Sequence[Numeric] | None = None,
        bins: int | None = None,
        **parameters: Unpack[asking.Histogram],
    ) -> Release:
        """Which part of the people lies below the end of each bin, never falling, with a band.

        Privacy: read off the release of the histogram with the same bins: after that it costs nothing more.

        Args:
            study, edges, bins, where, **parameters: As for `histogram`.

        Examples:
            >>> found = await analyst.distribution("commute", edges=[30, 60])
            >>> [(one.upper, one.share) for one in found.bins]
            [(30.0, 0.4), (60.0, 0.9), (120.0, 1.0)]
        """
        return await self._statistic(study, "distribution", by_bins(edges, bins) | parameters)

    async def quantile(self, study: str, q: Numeric, **parameters: Unpack[asking.Quantile]) -> Release:
        """The value at or below which a part `q` of the people lies.

        Privacy: as `mean`; value and interval are read off noisy counts.

        Args:
            study: The study's slug.
            q: Above 0 and below 1, at most six decimals.
            where: As for `mean`.
            **parameters: `for_="estimate"` makes the value nearer and its interval wider; `by="region"`
                answers for each label, with 2/3 of the price.

        Examples:
            >>> found = await analyst.quantile("commute", 0.9)
            >>> print(found.estimate, found.interval.lower, found.interval.upper)
            58.0 51.0 66.0
        """
        return await self._statistic(study, "quantile", {"q": exact_text("q", q)} | parameters)

    async def median(self, study: str, **parameters: Unpack[asking.Quantile]) -> Release:
        """The value at or below which half of the people lie.

        Privacy: as `quantile`, of which it is the one at 0.5: both are one release.

        Examples:
            >>> median = await analyst.median("commute")
            >>> print(median.estimate)
            58.0
        """
        return await self._statistic(study, "median", parameters)

    async def count(self, study: str, **parameters: Unpack[asking.Count]) -> Release:
        """The number of people: that of now where it is public, else with noise; also `by` an attribute.

        Privacy: where it is public it costs nothing; where it is secret as `mean`.

        Examples:
            >>> print((await analyst.count("commute", where={"region": "north"})).estimate)
            400.0
        """
        return await self._statistic(study, "count", parameters)

    async def covariance(
        self, study: str, first: str, second: str, **parameters: Unpack[asking.Covariance]
    ) -> Release:
        """The covariance of two of the numbers of a study: the best release for this question so far.

        Privacy: costs what the means of both numbers cost together, or what one mean does where the number of
            people is secret; their products cost nothing more, nor does `by`, which answers for each label.

        Examples:
            >>> print((await analyst.covariance("household", "income", "age")).estimate)
            120.0
        """
        return await self._statistic(study, "covariance", {"measures": f"{first},{second}"} | parameters)

    async def correlation(
        self, study: str, first: str, second: str, **parameters: Unpack[asking.Covariance]
    ) -> Release:
        """The correlation of two numbers, and in `lines` either on the other.

        Privacy: as `covariance`.

        Examples:
            >>> print((await analyst.correlation("household", "income", "age")).estimate)
            0.5
        """
        return await self._statistic(study, "correlation", {"measures": f"{first},{second}"} | parameters)

    async def table(
        self, study: str, first: str, second: str, **parameters: Unpack[asking.Covariance]
    ) -> Release:
        """Two choices of people: `cells`, and the `p_value` of their independence.

        Privacy: as `shares`.

        Examples:
            >>> print((await analyst.table("household", "party", "sex")).cells[0].share)
            0.3
        """
        return await self._statistic(study, "table", {"measures": f"{first},{second}"} | parameters)

    async def regression(
        self, study: str, of: str, on: str, **parameters: Unpack[asking.Regression]
    ) -> Release:
        """The line of one number on another: `slope`, `intercept`, `r_squared`, `band`; `prediction` at `at`.

        Privacy: free after their `correlation`, else as `covariance`.

        Examples:
            >>> print((await analyst.regression("household", of="income", on="age")).slope.estimate)
            2.0
        """
        return await self._statistic(study, "regression", {"of": of, "on": on} | parameters)

    async def describe(self, study: str, **parameters: Unpack[asking.Quantile]) -> Release:
        """Count, mean, standard deviation and quartiles: one release with one price.

        Privacy: as `mean`; mean and standard deviation have two fifths of the price, each quartile a fifth.

        Args:
            study: The study's slug.
            where, **parameters: As for `quantile`.

        Examples:
            >>> found = await analyst.describe("commute")
            >>> print(found.count.estimate, found.mean.estimate, found.sd.estimate)
            400.0 32.0 12.0
            >>> [one.estimate for one in found.quartiles]
            [22.0, 31.0, 40.0]
        """
        return await self._statistic(study, "describe", parameters)

    async def change(self, study: str, **parameters: Unpack[asking.Change]) -> Series:
        """The mean of a study less that of the one before it in its series, off what is published.

        Privacy: costs nothing.

        Examples:
            >>> print((await analyst.change("commute")).in_words)
            0.31 (0.05 to 0.57) since mood-1 (95% interval)
        """
        return await self._series(study, "change", parameters)

    async def trend(self, study: str, **parameters: Unpack[asking.Change]) -> Series:
        """The slope, per study, of the line through the means of a series up to this study.

        Privacy: costs nothing.

        Examples:
            >>> print((await analyst.trend("commute")).estimate)
            0.31
        """
        return await self._series(study, "trend", parameters)

    async def _series(self, study: str, statistic: str, parameters: Mapping[str, object]) -> Series:
        path = f"{study_path(study)}/statistics/{statistic}"
        return await self._run(self._calls.read(Series, path, asked(parameters)))

    async def _statistic(self, study: str, statistic: str, parameters: Mapping[str, object]) -> Release:
        path = f"{study_path(study)}/statistics/{statistic}"
        return await self._run(self._calls.read(Release, path, asked(parameters)))

    async def release(
        self,
        study: str,
        *,
        statistic: str = "mean",
        where: Where | None = None,
        idempotency_key: str | None = None,
        allow_worse: bool = False,
        fresh: bool = False,
        **parameters: Parameter,
    ) -> Release:
        """Ask for more of each epsilon: a release that sharpens the one before it.

        The share is what the question takes in all; without one it is the last share and the default one.
        Where all people have given that much, the release that stands is returned, for nothing.

        Privacy: every new release costs contributors what its `epsilon_max` says at most. Tries of one call
        share one Idempotency-Key, so a lost answer is sent again, not paid for again.

        Args:
            study: The study's slug.
            statistic: What is asked.
            where: Of whom, as {"region": "north"}; None for all people.
            idempotency_key: A key of your own, to make calls of different runs one. None: a random one.
            allow_worse: Make it also where it is no gain, or says nothing.
            fresh: Make an answer with noise of its own, at the full price of the share.
            **parameters: The question's parameters, for example `estimator`, `share`, `epsilon` or
                `tilt`.

        Raises:
            NoGain: most cannot pay any more, or it would be far worse than the best; nothing was spent.
            SaysNothing: its interval is predicted to be the whole range; nothing was spent.

        Examples:
            >>> release = await analyst.release("commute", estimator="adpm", share="0.5")
            >>> print(release.parameters["share"])
            0.5
        """
        path = f"{study_path(study)}/releases"
        question = asked({"statistic": statistic, "where": where, **parameters})
        if allow_worse is not False:
            question["allow_worse"] = allow_worse
        if fresh is not False:
            question["fresh"] = fresh
        key = key_or_new("idempotency_key", idempotency_key)
        return await self._run(self._calls.call(Release, "POST", path, question, key=key))

    async def find_release(self, release: str, *, level: float | None = None) -> Release:
        """A release, by its id, its intervals at a level: 0.8, 0.9 or 0.99; 0.95 if not given.

        Privacy: costs nothing; it is published.

        Examples:
            >>> made = await analyst.release("commute")
            >>> found = await analyst.find_release(made.id)
            >>> found.estimate == made.estimate
            True
        """
        query = {} if level is None else {"level": level}
        return await self._run(self._calls.read(Release, release_path(release), query))

    def releases(self, study: str, *, page_size: int = 100) -> AsyncIterator[Release]:
        """A study's releases, newest first, fetched page by page.

        Privacy: costs nothing; they are published.

        Examples:
            >>> _ = await analyst.release("commute")
            >>> [release.estimate async for release in analyst.releases("commute")]
            [32.0]
        """
        return self._pages(Release, f"{study_path(study)}/releases", page_size)

    def schedules(self, study: str, *, page_size: int = 100) -> AsyncIterator[Schedule]:
        """The schedules of a study.

        Privacy: costs nothing.

        Examples:
            >>> [one.every async for one in analyst.schedules("commute")]
            []
        """
        return self._pages(Schedule, f"{study_path(study)}/schedules", page_size)

    async def find_schedule(self, study: str, schedule: str) -> Schedule:
        """A schedule, by its id.

        Privacy: costs nothing.

        Examples:
            >>> made = await admin.create_schedule("commute", {}, every="day", until=1, quota=1)
            >>> (await analyst.find_schedule("commute", made.id)).until
            Decimal('1')
        """
        return await self._run(self._calls.read(Schedule, schedule_path(study, schedule)))

    async def publish(
        self,
        study: str,
        releases: Sequence[str],
        *,
        title: str,
        slug: str | None = None,
        replace: bool = False,
        expires_at: datetime | None = None,
        frames: Sequence[str] | None = None,
    ) -> Publication:
        """Let everyone read answers. A new one is sent once.

        Privacy: costs nothing.

        Args:
            study, releases, title: Which answers, by their ids, and what people read above them.
            slug: Its address. None: a new one.
            replace: Put it in the place of what is there.
            expires_at: When it ends, with a time zone.
            frames: Origins that may frame it.

        Examples:
            >>> release = await analyst.release("commute")
            >>> (await analyst.publish("commute", [release.id], title="Ways", slug="ways")).url
            'https://dither.example/p/ways'
        """
        document = given(
            releases=list(releases),
            title=title,
            slug=None if replace else slug,
            expires_at=moment_text("expires_at", expires_at),
            frames=frames,
        )
        path = publication_path(study, slug or "") if replace else f"{study_path(study)}/publications"
        method = "PUT" if replace else "POST"
        return await self._run(self._calls.call(Publication, method, path, document, repeatable=replace))

    def publications(self, study: str, *, page_size: int = 100) -> AsyncIterator[Publication]:
        """What was published of a study.

        Privacy: costs nothing.

        Examples:
            >>> [one.slug async for one in analyst.publications("commute")]
            []
        """
        return self._pages(Publication, f"{study_path(study)}/publications", page_size)

    async def withdraw_publication(self, study: str, publication: str) -> None:
        """Take a publication back, for good.

        Privacy: costs nothing.

        Examples:
            >>> release = await analyst.release("commute")
            >>> _ = await analyst.publish("commute", [release.id], title="Ways", slug="ways")
            >>> await analyst.withdraw_publication("commute", "ways")
        """
        await self._run(self._calls.send("DELETE", publication_path(study, publication)))
