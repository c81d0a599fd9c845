# Made by client/unasync.py from dither/_async/device.py. Do not edit.
"""What a device does: contribute, and keep count."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dither._base import DEFAULT_CHUNK
from dither._documents import Budget, Contribution, Study, Trust
from dither._models import BatchProgress, BatchResult, DeviceLedger
from dither._sync.base import Base
from dither.device.numbers import Numeric, Value
from dither.device.table import Decimals


class Device(Base):
    """The methods about contributions."""

    def study(self, study: str) -> Study:
        """The description of a study.

        A device remembers the range, the relation and the local mechanism that it sees first and refuses
        to contribute (`StudyChanged`) should they ever differ.

        Privacy: costs nothing.

        Examples:
            >>> study = client.study("commute")
            >>> print(study.epsilon.max)
            5
        """
        return self._run(self._operations.study(study))

    def contribute(
        self,
        study: str,
        *,
        subject: str | int,
        value: Value | Mapping[str, Value],
        epsilon: Numeric | None = None,
        trust: Trust,
        attributes: Mapping[str, str] | None = None,
        check_spent: bool = True,
    ) -> Contribution:
        """Contribute one value.

        The same again is the same request again: it sends the same report, also after a crash, and the
        service counts it once. Another value needs `replace`.

        Privacy: costs the subject at most `epsilon`, what it has already spent in this study included.
        central: the service sees the value and spends the epsilon on its answers. local: the value does
        not leave the device; the whole epsilon is spent when the report arrives. public: no privacy.

        Args:
            study: The study's slug.
            subject: Whose value it is. A whole number is its decimal digits: 7 and "7" are one person.
            value: A number, or its text, taken exactly as it is written. In a study of vectors a sequence of
                these; in one of measures all by name, as {"income": 1200, "party": "red", "place": [0, 1]}.
            epsilon: The most that it may ever cost; rounded down to three significant digits. None for
                public only.
            trust: `central`, `local` or `public`.
            attributes: The subject's labels, one for each attribute of the study.
            check_spent: Ask what the subject has spent in this study before a report is drawn; False where
                no other device can have contributed.

        Raises:
            DeviceRefusal: refused here; nothing was sent.
            ProblemError: the service refused. A refused report stays in the ledger, and is sent again.
            TransportError: no answer. Call again with the same arguments.

        Examples:
            >>> for _ in range(2):
            ...     stored = client.contribute(
            ...         "commute", subject="ada", value=34, epsilon="0.5", trust="local"
            ...     )
            ...     stored.status
            'created'
            'unchanged'
        """
        flow = self._operations.contribute(
            "contribute", study, subject, value, epsilon, trust, check_spent, attributes
        )
        return self._run(flow)

    def replace(
        self,
        study: str,
        *,
        subject: str | int,
        value: Value | Mapping[str, Value],
        epsilon: Numeric | None = None,
        trust: Trust,
        attributes: Mapping[str, str] | None = None,
        check_spent: bool = True,
    ) -> Contribution:
        """Put another value in the place of the live one.

        Privacy: what was spent stays spent, and `epsilon` includes it: a new local report is randomized
        with what is left, so replacing one needs a larger epsilon than before.

        Args and Raises: see `contribute`.

        Examples:
            >>> _ = client.contribute("commute", subject="ada", value=34, epsilon="0.5", trust="local")
            >>> new = client.replace("commute", subject="ada", value=40, epsilon="0.8", trust="local")
            >>> new.status
            'replaced'
            >>> ledger = client.ledger()
            >>> [str(entry.noise_epsilon) for entry in ledger.entries]
            ['0.5', '0.3']
        """
        flow = self._operations.contribute(
            "replace", study, subject, value, epsilon, trust, check_spent, attributes
        )
        return self._run(flow)

    def withdraw(self, study: str, *, subject: str | int) -> None:
        """Delete a subject's contribution.

        Privacy: the value is deleted and what was not spent of its epsilon is free again; what was spent
        stays spent for ever. For a central value the device asks the service how much that was.

        Raises:
            ProblemError: 404 where the subject never contributed.

        Examples:
            >>> _ = client.contribute("commute", subject="ada", value=34, epsilon=1, trust="central")
            >>> client.withdraw("commute", subject="ada")
            >>> ledger = client.ledger()
            >>> ledger.totals
            {'ada': Decimal('0')}
        """
        self._run(self._operations.withdraw(study, subject))

    def contribute_many(
        self,
        study: str,
        records: Iterable[Any],
        *,
        epsilon: Numeric | None = None,
        trust: Trust | None = None,
        chunk: int = DEFAULT_CHUNK,
        check_spent: bool = True,
        on_progress: Callable[[BatchProgress], None] | None = None,
        ignore: Iterable[str] = (),
        decimals: Decimals | None = None,
    ) -> BatchResult:
        """Contribute the values of many subjects.

        Refused records do not sink the others. Where the load breaks off, start it again with the same
        records: what has arrived is `unchanged`, and no report is drawn twice.

        Privacy: each record costs its subject what `contribute` would.

        Args:
            study: The study's slug.
            records: `Record`s, dictionaries with the keys subject, value, epsilon and trust, or tuples in
                that order; or a data frame of pandas or polars, a table of pyarrow, or a `RecordFile`, with
                such columns. Labels are keys and columns named by the attributes. What is None, NaN or empty
                is not given; an unknown key is refused.
            epsilon: For records that give none.
            trust: For records that give none.
            chunk: Records in a request.
            check_spent: As in `contribute`: one question for each local subject.
            on_progress: Called after each chunk.
            ignore: Keys and columns that are no field, and are left out.
            decimals: `.` or `,`: what numbers that are text have before decimals, as in `RecordFile`; those
                of a `Record` are decimal text, with a point.

        Raises:
            InvalidRequest: columns are missing or no field, or a row is no record. Earlier chunks are stored.
            ProblemError: the service refused a whole chunk. Earlier chunks are stored.
            TransportError: no answer.

        Examples:
            >>> records = [Record("ada", 34, "0.5"), Record("bob", 51), Record("cyd", -1)]
            >>> load = client.contribute_many("commute", records, epsilon=1, trust="local")
            >>> [(result.status, result.code) for result in load.results]
            [('created', None), ('created', None), ('refused', 'invalid_request')]
        """
        flow = self._operations.contribute_many(
            study, records, epsilon, trust, chunk, check_spent, on_progress, ignore, decimals
        )
        return self._run(flow)

    def budget(self, subject: str | int) -> Budget:
        """A subject's lifetime budget, as the service keeps it.

        Privacy: costs nothing.

        Examples:
            >>> budget = client.budget("ada")
            >>> print(budget.epsilon.remaining)
            10
        """
        return self._run(self._operations.budget(subject))

    def ledger(self, subject: str | int | None = None) -> DeviceLedger:
        """Everything that this device gave away, or what it gave away for one subject. Sends nothing.

        Examples:
            >>> _ = client.contribute("commute", subject="ada", value=34, epsilon="0.5", trust="local")
            >>> ledger = client.ledger("ada")
            >>> [(entry.study, str(entry.epsilon)) for entry in ledger.entries]
            [('commute', '0.5')]
        """
        return self._run(self._operations.ledger(subject))
