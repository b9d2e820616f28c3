"""The two providers that onboarding writes to, in the test's own memory, behind its ports.

They keep what they answered under its key, as the sandbox does. A test may decide answers and verdicts instead.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID, uuid4

import msgspec

from libs.contracts.customers import Business, CustomerStatus, ExternalBankAccount
from libs.providers.outcomes import (
    Absent,
    Accepted,
    Finding,
    NotSent,
    Outcome,
    Reason,
    Refused,
    Unknown,
)
from libs.providers.writing import Capabilities
from services.onboarding.models import PersonDetails, Verification
from services.onboarding.ports import (
    Closed,
    CoreCustomer,
    KnownPerson,
    LinkedAccount,
    OpenedAccount,
)
from tests.support.capabilities import FOR_EVER

AnswerT = TypeVar("AnswerT")
Kind = Literal["business", "person"]


@dataclass
class _Link:
    core_id: str
    number: tuple[str, str]
    is_open: bool = True


@dataclass
class FakeProviders:
    """Both providers. `answers` and `calls` are by the name of the port's method."""

    capabilities: Capabilities = FOR_EVER
    answers: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    """What sends and questions are answered, one after the other, in place of carrying them out."""
    calls: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    verdicts: defaultdict[str, list[CustomerStatus]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Of businesses (`business`) and persons (`person`), in the order in which they are verified; then approved."""
    loses_next_answer: bool = False
    """The next send is carried out, and its outcome is unknown."""
    records: Counter[tuple[Literal["identity", "core"], UUID]] = field(default_factory=Counter)
    """How many records each provider has of a business or person, by our id."""
    held: dict[UUID, Any] = field(default_factory=dict)
    """Outcomes by their keys."""
    identities: dict[str, Verification] = field(default_factory=dict)
    _open_customers: dict[str, bool] = field(default_factory=dict)
    _links: dict[str, _Link] = field(default_factory=dict)

    def verify_business(
        self, customer_id: UUID, business: Business, persons: Sequence[PersonDetails]
    ) -> FakeWrite[Verification]:
        return self._write("verify_business", lambda: self._verify("business", customer_id))

    def verify_person(
        self,
        person_id: UUID,
        customer_id: UUID,
        persons: Sequence[PersonDetails],
        number: int,
        business_identity_id: str,
    ) -> FakeWrite[Verification]:
        return self._write("verify_person", lambda: self._verify("person", person_id))

    def update_business(
        self, identity_id: str, changes: Mapping[str, Any]
    ) -> FakeWrite[Verification]:
        return self._write("update", lambda: self._update(identity_id))

    def update_person(self, known: KnownPerson, *_: object) -> FakeWrite[Verification]:
        return self._write("update", lambda: self._update(known.id))

    def cancel_business(self, identity_id: str) -> FakeWrite[Verification]:
        return self._write("cancel", lambda: self._cancel(identity_id))

    cancel_person = cancel_business

    async def current(
        self, identity_id: str, person_identity_ids: Sequence[str]
    ) -> list[Verification]:
        return [self.identities[each] for each in (identity_id, *person_identity_ids)]

    def create_business(self, customer_id: UUID, *_: object) -> FakeWrite[CoreCustomer]:
        return self._write("create_business", lambda: self._create(customer_id))

    def create_person(self, person_id: UUID, *_: object) -> FakeWrite[CoreCustomer]:
        return self._write("create_person", lambda: self._create(person_id))

    def change_business(self, core_id: str, *_: object) -> FakeWrite[CoreCustomer]:
        return self._write(
            "update_customer", lambda: self._of_open(core_id, lambda: CoreCustomer(core_id))
        )

    def change_person(self, known: KnownPerson, *_: object) -> FakeWrite[CoreCustomer]:
        return self.change_business(known.id)

    def close_business(self, core_id: str) -> FakeWrite[Closed]:
        return self._write("close_customer", lambda: self._close_customer(core_id))

    close_person = close_business

    def link_external_account(
        self, core_id: str, account: ExternalBankAccount
    ) -> FakeWrite[LinkedAccount]:
        number = (account.routing_number, account.account_number)
        return self._write("link_external_account", lambda: self._link(_Link(core_id, number)))

    def close_external_account(self, external_account_id: str) -> FakeWrite[Closed]:
        return self._write("close_external_account", lambda: self._close_link(external_account_id))

    def open_account(self, core_id: str, title: str) -> FakeWrite[OpenedAccount]:
        return self._write(
            "open_account",
            lambda: self._of_open(
                core_id, lambda: OpenedAccount(f"acc_{uuid4().hex}", "7000000001")
            ),
        )

    @property
    def open_customer_ids(self) -> list[str]:
        """Of the records that core banking has of businesses and persons, and that are not closed."""
        return [core_id for core_id, is_open in self._open_customers.items() if is_open]

    def says_now(self, identity_id: str, status: CustomerStatus) -> None:
        known = self.identities[identity_id]
        self.identities[identity_id] = msgspec.structs.replace(known, status=status)

    def _write(
        self, method: str, carry_out: Callable[[], Accepted[AnswerT] | Refused]
    ) -> FakeWrite[AnswerT]:
        return FakeWrite(self, method, carry_out, self.capabilities)

    def _verify(self, kind: Kind, our_id: UUID) -> Accepted[Verification]:
        given = self.verdicts[kind]
        status = given.pop(0) if given else CustomerStatus.APPROVED
        verification = Verification(f"idn_{uuid4().hex}", status, 1)
        self.identities[verification.identity_id] = verification
        self.records["identity", our_id] += 1
        return Accepted(verification)

    def _update(self, identity_id: str) -> Accepted[Verification] | Refused:
        known = self.identities.get(identity_id)
        if known is None:
            return _refused("not_found")
        if known.status is CustomerStatus.CANCELED:
            return _refused("customer_canceled")
        return Accepted(known)

    def _cancel(self, identity_id: str) -> Accepted[Verification] | Refused:
        known = self.identities.get(identity_id)
        if known is None:
            return _refused("not_found")
        if known.status is not CustomerStatus.CANCELED:
            known = msgspec.structs.replace(
                known, status=CustomerStatus.CANCELED, version=known.version + 1
            )
            self.identities[identity_id] = known
        return Accepted(known)

    def _create(self, our_id: UUID) -> Accepted[CoreCustomer]:
        customer = CoreCustomer(f"cus_{uuid4().hex}")
        self._open_customers[customer.core_id] = True
        self.records["core", our_id] += 1
        return Accepted(customer)

    def _close_customer(self, core_id: str) -> Accepted[Closed] | Refused:
        if core_id not in self._open_customers:
            return _refused("not_found")
        self._open_customers[core_id] = False
        return Accepted(Closed("closed"))

    def _link(self, link: _Link) -> Accepted[LinkedAccount] | Refused:
        if any(known == link for known in self._links.values()):
            return _refused("already_linked", Reason.ALREADY_LINKED)
        linked = LinkedAccount(f"ext_{uuid4().hex}")
        outcome = self._of_open(link.core_id, lambda: linked)
        if isinstance(outcome, Accepted):
            self._links[linked.external_account_id] = link
        return outcome

    def _close_link(self, external_account_id: str) -> Accepted[Closed] | Refused:
        link = self._links.get(external_account_id)
        if link is None:
            return _refused("not_found")
        self._links[external_account_id] = replace(link, is_open=False)
        return Accepted(Closed("closed"))

    def _of_open(self, core_id: str, answer: Callable[[], AnswerT]) -> Accepted[AnswerT] | Refused:
        match self._open_customers.get(core_id):
            case None:
                return _refused("not_found")
            case False:
                return _refused("customer_closed")
            case True:
                return Accepted(answer())


@dataclass
class FakeWrite(Generic[AnswerT]):
    """See `writing.ProviderWrite`."""

    providers: FakeProviders
    operation: str
    carry_out: Callable[[], Accepted[AnswerT] | Refused]
    capabilities: Capabilities
    finds_only_sends: bool = True

    async def send(self, key: UUID, deadline: float) -> Outcome[AnswerT]:
        self.providers.calls[self.operation].append("send")
        decided = self.providers.answers[self.operation]
        if decided:
            answer: Outcome[AnswerT] = decided.pop(0)
            return answer
        if deadline <= time.time():
            return NotSent("no_time")
        held = self.providers.held
        if key not in held:
            held[key] = self.carry_out()
        if self.providers.loses_next_answer:
            self.providers.loses_next_answer = False
            return Unknown("broken")
        outcome: Outcome[AnswerT] = held[key]
        return outcome

    async def find(self, key: UUID, deadline: float) -> Finding[AnswerT]:
        self.providers.calls[self.operation].append("find")
        decided = self.providers.answers[self.operation]
        if decided:
            answer: Finding[AnswerT] = decided.pop(0)
            return answer
        finding: Finding[AnswerT] = self.providers.held.get(key, Absent())
        return finding


def _refused(code: str, reason: Reason = Reason.PROVIDER_REFUSED) -> Refused:
    return Refused(reason, code, f"The bank says {code}.")
