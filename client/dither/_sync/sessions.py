# Made by client/unasync.py from dither/_async/sessions.py. Do not edit.
"""Sessions: taking part in them, looking at them, and running them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from dither._calls import exact, exact_points, given, key_or_new, session_path, study_path
from dither._documents import Depth, Mode, Protocol, Session, Threshold
from dither._models import Participation
from dither._sync.base import Base
from dither.device.numbers import Numeric, Value


class Sessions(Base):
    """The methods about sessions."""

    def participate(
        self,
        session: str | Session,
        *,
        subject: str,
        value: Value,
        on_progress: Callable[[Participation], None] | None = None,
    ) -> Participation:
        """Take part in a session: answer every round in which this person is asked.

        Blocks until the last of them is answered or the session is finished, which can take as long as the
        session does. Where it breaks off, call it again with the same arguments: what was drawn is sent
        again, and nothing is drawn twice. An answer that comes too late is no error.

        The session's description is remembered at first sight. A service that changes it, asks for more
        than it states, or asks another question in a round that was asked before, gets no answer.

        Privacy: costs the subject at most the session's `epsilon_total`, which the ledger and the own limit
        count from the first moment. Every answer is randomized on this device and is epsilon-differentially
        private by itself; when nothing more will be drawn, what was not given is free again.

        Args:
            session: The session, or its id.
            subject: Whose value it is.
            value: A number, or its text; for kmeans a sequence of them.
            on_progress: Called after each answer.

        Raises:
            DeviceRefusal: refused here; nothing was sent for it.
            ProblemError: the service refused.
            TransportError: no answer. Call again with the same arguments.

        Examples:
            >>> part = client.participate("s1", subject="ada", value=34)
            >>> part.rounds, str(part.epsilon)
            ((1, 2), '1')
            >>> ledger = client.ledger("ada")
            >>> [(entry.session, str(entry.counted)) for entry in ledger.sessions]
            [('s1', '1')]
        """
        return self._run(self._operations.sessions.participate(session, subject, value, on_progress))

    def session(self, session: str) -> Session:
        """The description of a session, with its result when it is finished.

        A device remembers the description that it sees first, and refuses any other (`SessionChanged`).

        Privacy: costs nothing.

        Examples:
            >>> session = client.session("s1")
            >>> print(session.protocol, session.rounds, session.epsilon_total)
            minimum 2 1
        """
        return self._run(self._operations.sessions.session(session))

    def sessions(self, study: str, *, page_size: int = 100) -> Iterator[Session]:
        """A study's sessions, newest first, fetched page by page.

        Privacy: costs nothing.

        Examples:
            >>> [session.id for session in client.sessions("commute") if session.state == "open"]
            ['s1']
        """
        return self._pages(Session, f"{study_path(study)}/sessions", page_size)

    def create_session(
        self,
        study: str,
        *,
        protocol: Protocol,
        epsilon: Numeric,
        participants: int | None = None,
        mode: Mode | None = None,
        threshold: Threshold | None = None,
        rounds: int | Depth | None = None,
        alpha: Numeric | None = None,
        quantile: Numeric | None = None,
        answers_per_round: int | Literal["any"] | None = None,
        round_seconds: Numeric | None = None,
        deadline_seconds: Numeric | None = None,
        clusters: int | None = None,
        centres: Sequence[Sequence[Numeric]] | None = None,
    ) -> Session:
        """Open a session; takes an admin's token. What is None is left to the service.

        Privacy: costs nothing by itself; each person who takes part pays at most `epsilon`.

        Args:
            study: The study's slug.
            protocol: What is looked for.
            epsilon: All that taking part costs a person.
            participants: People who are expected; needed but for kmeans.
            mode: How each epsilon is used.
            threshold: When answers are believed.
            rounds: Their number, or what it is derived from.
            alpha: Lower bound on the fatness of the tail.
            quantile: The fraction that is looked for.
            answers_per_round: How many close a round; "any": only time or an admin closes it.
            round_seconds, deadline_seconds: Until a round closes, and the session ends.
            clusters, centres: kmeans: how many, and the first ones, which must not depend on a value.

        Examples:
            >>> opened = admin.create_session("commute", protocol="maximum", epsilon=1, participants=2)
            >>> opened.state, opened.round
            ('open', 1)
        """
        document = given(
            protocol=protocol,
            epsilon=exact("epsilon", epsilon),
            participants=participants,
            mode=mode,
            threshold=threshold,
            rounds=rounds,
            alpha=exact("alpha", alpha),
            quantile=exact("quantile", quantile),
            answers_per_round=answers_per_round,
            round_seconds=exact("round_seconds", round_seconds),
            deadline_seconds=exact("deadline_seconds", deadline_seconds),
            clusters=clusters,
            centres=exact_points("centres", centres),
        )
        if answers_per_round == "any":
            document["answers_per_round"] = None
        path = f"{study_path(study)}/sessions"
        return self._run(self._calls.call(Session, "POST", path, document, key=key_or_new("key", None)))

    def close_round(self, session: str, round: int) -> Session:
        """Close a round, if it is still open; takes an admin's token.

        Privacy: costs nothing.

        Examples:
            >>> session = admin.close_round("s1", 1)
            >>> session.round
            2
        """
        path = f"{session_path(session)}/close-round"
        return self._run(self._calls.call(Session, "POST", path, {"round": round}))

    def finish_session(self, session: str) -> Session:
        """End a session now, with an estimate from what there is; takes an admin's token.

        Privacy: costs nothing; what participants did not spend of their epsilon is free again.

        Examples:
            >>> session = admin.finish_session("s1")
            >>> session.state
            'finished'
        """
        return self._run(self._calls.call(Session, "POST", f"{session_path(session)}/finish", {}))
