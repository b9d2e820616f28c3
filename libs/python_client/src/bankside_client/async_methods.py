"""The methods of a client: every operation as a coroutine.

Made by `python -m libs.specs.clients` of the interface's document: do not edit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar, Unpack
from uuid import UUID

from bankside_client import operations
from bankside_client.answers import Answer, AsyncPage
from bankside_client.events import Event
from bankside_client.exchange import Operation
from bankside_client.models import (
    Account,
    AccountList,
    AchRequest,
    Balance,
    Customer,
    Delivery,
    DeliveryDetail,
    DepositLocation,
    ExternalAccount,
    ExternalBankAccountAdded,
    LinkedExternalAccount,
    OnboardingResult,
    PartnerAccountList,
    Recovery,
    SettlementCalculation,
    Statement,
    Subscription,
    SubscriptionHealth,
    SubscriptionSecret,
    Transaction,
    Wire,
    WirePolicy,
    WireResult,
)
from bankside_client.params import (
    AddExternalBankAccount,
    CreateSubscription,
    DeclineWire,
    ListAchRequests,
    ListCustomerDeliveries,
    ListCustomerEvents,
    ListCustomers,
    ListDepositLocations,
    ListPartnerDeliveries,
    ListPartnerEvents,
    ListSettlementCalculations,
    ListStatements,
    ListTransactions,
    ListWires,
    OnboardCustomer,
    RecoverSubscription,
    SendWire,
    SetWirePolicy,
    UpdateBusiness,
    UpdatePerson,
    UpdateSubscription,
)

T = TypeVar("T")


class AsyncMethods(ABC):
    """The operations; a write without an idempotency key gets a fresh one.

    Raises:
        BanksideError: of every method, see `bankside_client.errors`.
        ValueError, TypeError: an argument has no form in a request; nothing was sent.
        RuntimeError: the client is closed; nothing was sent.
    """

    @abstractmethod
    async def _call(
        self,
        operation: Operation[T],
        path_values: tuple[str | UUID, ...],
        values: Mapping[str, Any],
        idempotency_key: str | None = None,
    ) -> Answer[T]: ...

    @abstractmethod
    async def _list(
        self,
        operation: Operation[list[T]],
        path_values: tuple[str | UUID, ...],
        values: Mapping[str, Any],
    ) -> AsyncPage[T]: ...

    async def onboard_customer(
        self, *, idempotency_key: str | None = None, **values: Unpack[OnboardCustomer]
    ) -> Answer[OnboardingResult]:
        """Onboard a business with its persons and one external bank account.

        `POST /partner/reseller/customers`
        """
        return await self._call(operations.ONBOARD_CUSTOMER, (), values, idempotency_key)

    async def list_customers(self, **values: Unpack[ListCustomers]) -> AsyncPage[Customer]:
        """List customers, newest first.

        `GET /partner/reseller/customers`
        """
        return await self._list(operations.LIST_CUSTOMERS, (), values)

    async def update_business(
        self,
        customer_id: str | UUID,
        *,
        idempotency_key: str | None = None,
        **values: Unpack[UpdateBusiness],
    ) -> Answer[None]:
        """Update a business customer.

        `PATCH /partner/reseller/customers/business/{customer_id}`
        """
        return await self._call(operations.UPDATE_BUSINESS, (customer_id,), values, idempotency_key)

    async def update_person(
        self,
        person_id: str | UUID,
        *,
        idempotency_key: str | None = None,
        **values: Unpack[UpdatePerson],
    ) -> Answer[None]:
        """Update a person.

        `PATCH /partner/reseller/customers/person/{person_id}`
        """
        return await self._call(operations.UPDATE_PERSON, (person_id,), values, idempotency_key)

    async def add_external_bank_account(
        self,
        external_bank_account_id: str | UUID,
        *,
        idempotency_key: str | None = None,
        **values: Unpack[AddExternalBankAccount],
    ) -> Answer[ExternalBankAccountAdded]:
        """Add an external bank account, which becomes the primary one.

        `POST /partner/reseller/customers/external_bank_account/{external_bank_account_id}`
        """
        return await self._call(
            operations.ADD_EXTERNAL_BANK_ACCOUNT,
            (external_bank_account_id,),
            values,
            idempotency_key,
        )

    async def get_customer(self, customer_id: str | UUID) -> Answer[Customer]:
        """Get a customer: status, issues, persons, accounts, external bank accounts.

        `GET /partner/reseller/customers/{customer_id}`
        """
        return await self._call(operations.GET_CUSTOMER, (customer_id,), {})

    async def list_partner_accounts(self) -> Answer[PartnerAccountList]:
        """List every account of the partner's customers.

        `GET /partner/reseller/accounts`
        """
        return await self._call(operations.LIST_PARTNER_ACCOUNTS, (), {})

    async def get_account(self, account_id: str | UUID) -> Answer[Account]:
        """Get an account.

        `GET /partner/reseller/accounts/{account_id}`
        """
        return await self._call(operations.GET_ACCOUNT, (account_id,), {})

    async def get_balance(self, account_id: str | UUID) -> Answer[Balance]:
        """Get the balance of an account.

        `GET /partner/reseller/accounts/balance/{account_id}`
        """
        return await self._call(operations.GET_BALANCE, (account_id,), {})

    async def get_external_account(self, account_id: str | UUID) -> Answer[ExternalAccount]:
        """Get the primary external account linked to an account.

        `GET /partner/reseller/accounts/external/{account_id}`
        """
        return await self._call(operations.GET_EXTERNAL_ACCOUNT, (account_id,), {})

    async def list_customer_accounts(self) -> Answer[AccountList]:
        """List the customer's accounts.

        `GET /customer/accounts`
        """
        return await self._call(operations.LIST_CUSTOMER_ACCOUNTS, (), {})

    async def list_external_accounts(self) -> AsyncPage[LinkedExternalAccount]:
        """List the customer's linked external accounts, primary first.

        `GET /customer/external-accounts`
        """
        return await self._list(operations.LIST_EXTERNAL_ACCOUNTS, (), {})

    async def list_statements(
        self, account_id: str | UUID, **values: Unpack[ListStatements]
    ) -> AsyncPage[Statement]:
        """List an account's statements, newest first, each with a signed download URL.

        `GET /partner/reseller/accounts/statements/{account_id}`
        """
        return await self._list(operations.LIST_STATEMENTS, (account_id,), values)

    async def list_ach_requests(
        self, account_id: str | UUID, **values: Unpack[ListAchRequests]
    ) -> AsyncPage[AchRequest]:
        """List an account's ACH requests, newest first.

        `GET /partner/reseller/ach/{account_id}`
        """
        return await self._list(operations.LIST_ACH_REQUESTS, (account_id,), values)

    async def list_transactions(
        self, account_id: str | UUID, **values: Unpack[ListTransactions]
    ) -> AsyncPage[Transaction]:
        """List an account's transactions, newest first.

        `GET /customer/accounts/transactions/{account_id}`
        """
        return await self._list(operations.LIST_TRANSACTIONS, (account_id,), values)

    async def list_deposit_locations(
        self, account_id: str | UUID, **values: Unpack[ListDepositLocations]
    ) -> AsyncPage[DepositLocation]:
        """List the program banks that hold an account's swept deposits.

        `GET /customer/accounts/deposit-locations/{account_id}`
        """
        return await self._list(operations.LIST_DEPOSIT_LOCATIONS, (account_id,), values)

    async def list_settlement_calculations(
        self, account_id: str | UUID, **values: Unpack[ListSettlementCalculations]
    ) -> Answer[list[SettlementCalculation] | None]:
        """List an account's settlement calculations from a day on; null without a reserve account.

        `GET /customer/accounts/settlement-calculations/{account_id}`
        """
        return await self._call(operations.LIST_SETTLEMENT_CALCULATIONS, (account_id,), values)

    async def send_wire(
        self, *, idempotency_key: str | None = None, **values: Unpack[SendWire]
    ) -> Answer[WireResult]:
        """Send money from an account to a linked external account.

        `POST /customer/wire`
        """
        return await self._call(operations.SEND_WIRE, (), values, idempotency_key)

    async def list_wires(self, **values: Unpack[ListWires]) -> AsyncPage[Wire]:
        """List the customer's wires, newest first.

        `GET /customer/wires`
        """
        return await self._list(operations.LIST_WIRES, (), values)

    async def get_wire(self, transaction_id: str | UUID) -> Answer[Wire]:
        """Get a wire: its state and how it came there.

        `GET /customer/wires/{transaction_id}`
        """
        return await self._call(operations.GET_WIRE, (transaction_id,), {})

    async def cancel_wire(
        self, transaction_id: str | UUID, *, idempotency_key: str | None = None
    ) -> Answer[Wire]:
        """Cancel a wire of which no send has begun.

        `POST /customer/wires/{transaction_id}/cancel`
        """
        return await self._call(operations.CANCEL_WIRE, (transaction_id,), {}, idempotency_key)

    async def approve_wire(
        self, transaction_id: str | UUID, *, idempotency_key: str | None = None
    ) -> Answer[WireResult]:
        """Approve a wire that waits for it, and send it.

        `POST /customer/wires/{transaction_id}/approve`
        """
        return await self._call(operations.APPROVE_WIRE, (transaction_id,), {}, idempotency_key)

    async def decline_wire(
        self,
        transaction_id: str | UUID,
        *,
        idempotency_key: str | None = None,
        **values: Unpack[DeclineWire],
    ) -> Answer[Wire]:
        """Decline a wire that waits for approval.

        `POST /customer/wires/{transaction_id}/decline`
        """
        return await self._call(operations.DECLINE_WIRE, (transaction_id,), values, idempotency_key)

    async def get_wire_policy(self, customer_id: str | UUID) -> Answer[WirePolicy]:
        """Get the wire policy of a customer.

        `GET /partner/reseller/customers/{customer_id}/wire-policy`
        """
        return await self._call(operations.GET_WIRE_POLICY, (customer_id,), {})

    async def set_wire_policy(
        self,
        customer_id: str | UUID,
        *,
        idempotency_key: str | None = None,
        **values: Unpack[SetWirePolicy],
    ) -> Answer[WirePolicy]:
        """Set the limits of a customer's wires, and which of them wait for approval.

        `PUT /partner/reseller/customers/{customer_id}/wire-policy`
        """
        return await self._call(operations.SET_WIRE_POLICY, (customer_id,), values, idempotency_key)

    async def get_own_wire_policy(self) -> Answer[WirePolicy]:
        """Get the policy of one's own wires.

        `GET /customer/wire-policy`
        """
        return await self._call(operations.GET_OWN_WIRE_POLICY, (), {})

    async def create_customer_subscription(
        self, *, idempotency_key: str | None = None, **values: Unpack[CreateSubscription]
    ) -> Answer[Subscription]:
        """Subscribe a callback URL to a kind of event.

        `POST /customer/webhooks/subscriptions`
        """
        return await self._call(
            operations.CREATE_CUSTOMER_SUBSCRIPTION, (), values, idempotency_key
        )

    async def list_customer_subscriptions(self) -> AsyncPage[Subscription]:
        """List the subscriptions, newest first.

        `GET /customer/webhooks/subscriptions`
        """
        return await self._list(operations.LIST_CUSTOMER_SUBSCRIPTIONS, (), {})

    async def create_partner_subscription(
        self, *, idempotency_key: str | None = None, **values: Unpack[CreateSubscription]
    ) -> Answer[Subscription]:
        """Subscribe a callback URL to a kind of event.

        `POST /partner/reseller/webhooks/subscriptions`
        """
        return await self._call(operations.CREATE_PARTNER_SUBSCRIPTION, (), values, idempotency_key)

    async def list_partner_subscriptions(self) -> AsyncPage[Subscription]:
        """List the subscriptions, newest first.

        `GET /partner/reseller/webhooks/subscriptions`
        """
        return await self._list(operations.LIST_PARTNER_SUBSCRIPTIONS, (), {})

    async def get_customer_subscription(self, subscription_id: str | UUID) -> Answer[Subscription]:
        """Get a subscription.

        `GET /customer/webhooks/subscriptions/{subscription_id}`
        """
        return await self._call(operations.GET_CUSTOMER_SUBSCRIPTION, (subscription_id,), {})

    async def update_customer_subscription(
        self,
        subscription_id: str | UUID,
        *,
        idempotency_key: str | None = None,
        **values: Unpack[UpdateSubscription],
    ) -> Answer[Subscription]:
        """Change a subscription, disable it, or make it active again.

        `PATCH /customer/webhooks/subscriptions/{subscription_id}`
        """
        return await self._call(
            operations.UPDATE_CUSTOMER_SUBSCRIPTION, (subscription_id,), values, idempotency_key
        )

    async def delete_customer_subscription(
        self, subscription_id: str | UUID, *, idempotency_key: str | None = None
    ) -> Answer[None]:
        """Delete a subscription, with the deliveries that it still waits for.

        `DELETE /customer/webhooks/subscriptions/{subscription_id}`
        """
        return await self._call(
            operations.DELETE_CUSTOMER_SUBSCRIPTION, (subscription_id,), {}, idempotency_key
        )

    async def get_partner_subscription(self, subscription_id: str | UUID) -> Answer[Subscription]:
        """Get a subscription.

        `GET /partner/reseller/webhooks/subscriptions/{subscription_id}`
        """
        return await self._call(operations.GET_PARTNER_SUBSCRIPTION, (subscription_id,), {})

    async def update_partner_subscription(
        self,
        subscription_id: str | UUID,
        *,
        idempotency_key: str | None = None,
        **values: Unpack[UpdateSubscription],
    ) -> Answer[Subscription]:
        """Change a subscription, disable it, or make it active again.

        `PATCH /partner/reseller/webhooks/subscriptions/{subscription_id}`
        """
        return await self._call(
            operations.UPDATE_PARTNER_SUBSCRIPTION, (subscription_id,), values, idempotency_key
        )

    async def delete_partner_subscription(
        self, subscription_id: str | UUID, *, idempotency_key: str | None = None
    ) -> Answer[None]:
        """Delete a subscription, with the deliveries that it still waits for.

        `DELETE /partner/reseller/webhooks/subscriptions/{subscription_id}`
        """
        return await self._call(
            operations.DELETE_PARTNER_SUBSCRIPTION, (subscription_id,), {}, idempotency_key
        )

    async def get_customer_subscription_health(
        self, subscription_id: str | UUID
    ) -> Answer[SubscriptionHealth]:
        """Get how the endpoint of a subscription is doing, and what waits for it.

        `GET /customer/webhooks/subscriptions/{subscription_id}/health`
        """
        return await self._call(operations.GET_CUSTOMER_SUBSCRIPTION_HEALTH, (subscription_id,), {})

    async def get_partner_subscription_health(
        self, subscription_id: str | UUID
    ) -> Answer[SubscriptionHealth]:
        """Get how the endpoint of a subscription is doing, and what waits for it.

        `GET /partner/reseller/webhooks/subscriptions/{subscription_id}/health`
        """
        return await self._call(operations.GET_PARTNER_SUBSCRIPTION_HEALTH, (subscription_id,), {})

    async def get_customer_subscription_secret(
        self, subscription_id: str | UUID
    ) -> Answer[SubscriptionSecret]:
        """Get the secret that deliveries are signed with.

        `GET /customer/webhooks/subscriptions/{subscription_id}/secret`
        """
        return await self._call(operations.GET_CUSTOMER_SUBSCRIPTION_SECRET, (subscription_id,), {})

    async def get_partner_subscription_secret(
        self, subscription_id: str | UUID
    ) -> Answer[SubscriptionSecret]:
        """Get the secret that deliveries are signed with.

        `GET /partner/reseller/webhooks/subscriptions/{subscription_id}/secret`
        """
        return await self._call(operations.GET_PARTNER_SUBSCRIPTION_SECRET, (subscription_id,), {})

    async def rotate_customer_subscription_secret(
        self, subscription_id: str | UUID, *, idempotency_key: str | None = None
    ) -> Answer[SubscriptionSecret]:
        """Make a new secret; the one before goes on signing beside it for a while.

        `POST /customer/webhooks/subscriptions/{subscription_id}/secret/rotate`
        """
        return await self._call(
            operations.ROTATE_CUSTOMER_SUBSCRIPTION_SECRET, (subscription_id,), {}, idempotency_key
        )

    async def rotate_partner_subscription_secret(
        self, subscription_id: str | UUID, *, idempotency_key: str | None = None
    ) -> Answer[SubscriptionSecret]:
        """Make a new secret; the one before goes on signing beside it for a while.

        `POST /partner/reseller/webhooks/subscriptions/{subscription_id}/secret/rotate`
        """
        return await self._call(
            operations.ROTATE_PARTNER_SUBSCRIPTION_SECRET, (subscription_id,), {}, idempotency_key
        )

    async def test_customer_subscription(
        self, subscription_id: str | UUID, *, idempotency_key: str | None = None
    ) -> Answer[Delivery]:
        """Record a test event that is delivered to this subscription only.

        `POST /customer/webhooks/subscriptions/{subscription_id}/test`
        """
        return await self._call(
            operations.TEST_CUSTOMER_SUBSCRIPTION, (subscription_id,), {}, idempotency_key
        )

    async def test_partner_subscription(
        self, subscription_id: str | UUID, *, idempotency_key: str | None = None
    ) -> Answer[Delivery]:
        """Record a test event that is delivered to this subscription only.

        `POST /partner/reseller/webhooks/subscriptions/{subscription_id}/test`
        """
        return await self._call(
            operations.TEST_PARTNER_SUBSCRIPTION, (subscription_id,), {}, idempotency_key
        )

    async def list_customer_deliveries(
        self, subscription_id: str | UUID, **values: Unpack[ListCustomerDeliveries]
    ) -> AsyncPage[Delivery]:
        """List a subscription's deliveries, newest first.

        `GET /customer/webhooks/subscriptions/{subscription_id}/deliveries`
        """
        return await self._list(operations.LIST_CUSTOMER_DELIVERIES, (subscription_id,), values)

    async def list_partner_deliveries(
        self, subscription_id: str | UUID, **values: Unpack[ListPartnerDeliveries]
    ) -> AsyncPage[Delivery]:
        """List a subscription's deliveries, newest first.

        `GET /partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries`
        """
        return await self._list(operations.LIST_PARTNER_DELIVERIES, (subscription_id,), values)

    async def get_customer_delivery(
        self, subscription_id: str | UUID, delivery_id: str | UUID
    ) -> Answer[DeliveryDetail]:
        """Get a delivery with its attempts.

        `GET /customer/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}`
        """
        return await self._call(
            operations.GET_CUSTOMER_DELIVERY,
            (
                subscription_id,
                delivery_id,
            ),
            {},
        )

    async def get_partner_delivery(
        self, subscription_id: str | UUID, delivery_id: str | UUID
    ) -> Answer[DeliveryDetail]:
        """Get a delivery with its attempts.

        `GET /partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}`
        """
        return await self._call(
            operations.GET_PARTNER_DELIVERY,
            (
                subscription_id,
                delivery_id,
            ),
            {},
        )

    async def resend_customer_delivery(
        self,
        subscription_id: str | UUID,
        delivery_id: str | UUID,
        *,
        idempotency_key: str | None = None,
    ) -> Answer[Delivery]:
        """Deliver an event to a subscription once more.

        `POST /customer/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}/resend`
        """
        return await self._call(
            operations.RESEND_CUSTOMER_DELIVERY,
            (
                subscription_id,
                delivery_id,
            ),
            {},
            idempotency_key,
        )

    async def resend_partner_delivery(
        self,
        subscription_id: str | UUID,
        delivery_id: str | UUID,
        *,
        idempotency_key: str | None = None,
    ) -> Answer[Delivery]:
        """Deliver an event to a subscription once more.

        `POST /partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}/resend`
        """
        return await self._call(
            operations.RESEND_PARTNER_DELIVERY,
            (
                subscription_id,
                delivery_id,
            ),
            {},
            idempotency_key,
        )

    async def recover_customer_subscription(
        self,
        subscription_id: str | UUID,
        *,
        idempotency_key: str | None = None,
        **values: Unpack[RecoverSubscription],
    ) -> Answer[Recovery]:
        """Deliver every event that failed or was held in a time once more.

        `POST /customer/webhooks/subscriptions/{subscription_id}/recover`
        """
        return await self._call(
            operations.RECOVER_CUSTOMER_SUBSCRIPTION, (subscription_id,), values, idempotency_key
        )

    async def recover_partner_subscription(
        self,
        subscription_id: str | UUID,
        *,
        idempotency_key: str | None = None,
        **values: Unpack[RecoverSubscription],
    ) -> Answer[Recovery]:
        """Deliver every event that failed or was held in a time once more.

        `POST /partner/reseller/webhooks/subscriptions/{subscription_id}/recover`
        """
        return await self._call(
            operations.RECOVER_PARTNER_SUBSCRIPTION, (subscription_id,), values, idempotency_key
        )

    async def list_customer_events(self, **values: Unpack[ListCustomerEvents]) -> AsyncPage[Event]:
        """List the events that are kept, oldest first; ask for those after the last one seen to miss none.

        `GET /customer/events`
        """
        return await self._list(operations.LIST_CUSTOMER_EVENTS, (), values)

    async def list_partner_events(self, **values: Unpack[ListPartnerEvents]) -> AsyncPage[Event]:
        """List the events that are kept, oldest first; ask for those after the last one seen to miss none.

        `GET /partner/reseller/events`
        """
        return await self._list(operations.LIST_PARTNER_EVENTS, (), values)

    async def get_customer_event(self, event_id: str | UUID) -> Answer[Event]:
        """Get an event, as it was delivered.

        `GET /customer/events/{event_id}`
        """
        return await self._call(operations.GET_CUSTOMER_EVENT, (event_id,), {})

    async def get_partner_event(self, event_id: str | UUID) -> Answer[Event]:
        """Get an event, as it was delivered.

        `GET /partner/reseller/events/{event_id}`
        """
        return await self._call(operations.GET_PARTNER_EVENT, (event_id,), {})
