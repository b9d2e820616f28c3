"""Providers whose answers each test decides; of what it says nothing they accept everything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from libs.contracts.customers import Business, CustomerStatus, ExternalBankAccount
from libs.providers.outcomes import Absent, Accepted, Finding, NotSent, Outcome
from libs.providers.writing import Capabilities
from services.onboarding.models import PersonDetails, Verification
from services.onboarding.ports import Closed, CoreCustomer, LinkedAccount, OpenedAccount
from tests.support.capabilities import FOR_EVER

AnswerT = TypeVar("AnswerT")


@dataclass
class ScriptedWrite(Generic[AnswerT]):
    """Answers sends and questions one after the other, then accepts; notes which came."""

    accepted: AnswerT
    answers: list[Any] = field(default_factory=list)
    capabilities: Capabilities = FOR_EVER
    operation: str = "scripted"
    calls: list[str] = field(default_factory=list)

    async def send(self, key: UUID, deadline: float) -> Outcome[AnswerT]:
        self.calls.append("send")
        answer: Any = self.answers.pop(0) if self.answers else Accepted(self.accepted)
        assert not isinstance(answer, Absent)
        result: Outcome[AnswerT] = answer
        return result

    async def find(self, key: UUID, deadline: float) -> Finding[AnswerT]:
        self.calls.append("find")
        answer: Any = self.answers.pop(0) if self.answers else Absent()
        assert not isinstance(answer, NotSent)
        result: Finding[AnswerT] = answer
        return result


@dataclass
class ScriptedBank:
    """Both providers. `answers` and `calls` by the name of the port's method; `verdicts` by our id of a record."""

    capabilities: Capabilities = FOR_EVER
    answers: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    calls: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    verdicts: defaultdict[str, list[CustomerStatus]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Of the business (`business`) and of persons (`person`), in the order in which they are verified."""

    def _write(self, method: str, accepted: AnswerT) -> ScriptedWrite[AnswerT]:
        return ScriptedWrite(
            accepted, self.answers[method], self.capabilities, method, self.calls[method]
        )

    def _verdict(self, kind: str) -> Verification:
        given = self.verdicts[kind]
        status = given.pop(0) if given else CustomerStatus.APPROVED
        return Verification(f"idn_{uuid4().hex}", status, 1)

    def verify_business(self, customer_id: UUID, business: Business) -> ScriptedWrite[Verification]:
        return self._write("verify_business", self._verdict("business"))

    def verify_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails
    ) -> ScriptedWrite[Verification]:
        return self._write("verify_person", self._verdict("person"))

    def update(self, identity_id: str, changes: Mapping[str, Any]) -> ScriptedWrite[Verification]:
        answer = Verification(identity_id, CustomerStatus.APPROVED, 1)
        return self._write("update", answer)

    def cancel(self, identity_id: str) -> ScriptedWrite[Verification]:
        answer = Verification(identity_id, CustomerStatus.CANCELED, 2)
        return self._write("cancel", answer)

    def create_business(self, customer_id: UUID, business: Business) -> ScriptedWrite[CoreCustomer]:
        return self._write("create_business", CoreCustomer(f"cor_{uuid4().hex}"))

    def create_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails
    ) -> ScriptedWrite[CoreCustomer]:
        return self._write("create_person", CoreCustomer(f"cor_{uuid4().hex}"))

    def update_customer(
        self, core_id: str, changes: Mapping[str, Any]
    ) -> ScriptedWrite[CoreCustomer]:
        return self._write("update_customer", CoreCustomer(core_id))

    def close_customer(self, core_id: str) -> ScriptedWrite[Closed]:
        return self._write("close_customer", Closed("closed"))

    def link_external_account(
        self, core_id: str, account: ExternalBankAccount
    ) -> ScriptedWrite[LinkedAccount]:
        return self._write("link_external_account", LinkedAccount(f"ext_{uuid4().hex}"))

    def close_external_account(self, external_account_id: str) -> ScriptedWrite[Closed]:
        return self._write("close_external_account", Closed("closed"))

    def open_account(self, core_id: str, title: str) -> ScriptedWrite[OpenedAccount]:
        return self._write("open_account", OpenedAccount(f"acc_{uuid4().hex}", "7000000001"))
