"""The operations of the interface.

Made by `python -m libs.specs.clients` of the interface's document: do not edit.
"""

from __future__ import annotations

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

ONBOARD_CUSTOMER: Operation[OnboardingResult] = Operation(
    "POST", "/partner/reseller/customers", OnboardingResult, takes_body=True
)
LIST_CUSTOMERS: Operation[list[Customer]] = Operation(
    "GET", "/partner/reseller/customers", list[Customer], pages="page"
)
UPDATE_BUSINESS: Operation[None] = Operation(
    "PATCH", "/partner/reseller/customers/business/{customer_id}", None, takes_body=True
)
UPDATE_PERSON: Operation[None] = Operation(
    "PATCH", "/partner/reseller/customers/person/{person_id}", None, takes_body=True
)
ADD_EXTERNAL_BANK_ACCOUNT: Operation[ExternalBankAccountAdded] = Operation(
    "POST",
    "/partner/reseller/customers/external_bank_account/{external_bank_account_id}",
    ExternalBankAccountAdded,
    takes_body=True,
)
GET_CUSTOMER: Operation[Customer] = Operation(
    "GET", "/partner/reseller/customers/{customer_id}", Customer
)
LIST_PARTNER_ACCOUNTS: Operation[PartnerAccountList] = Operation(
    "GET", "/partner/reseller/accounts", PartnerAccountList
)
GET_ACCOUNT: Operation[Account] = Operation(
    "GET", "/partner/reseller/accounts/{account_id}", Account
)
GET_BALANCE: Operation[Balance] = Operation(
    "GET", "/partner/reseller/accounts/balance/{account_id}", Balance
)
GET_EXTERNAL_ACCOUNT: Operation[ExternalAccount] = Operation(
    "GET", "/partner/reseller/accounts/external/{account_id}", ExternalAccount
)
LIST_CUSTOMER_ACCOUNTS: Operation[AccountList] = Operation("GET", "/customer/accounts", AccountList)
LIST_EXTERNAL_ACCOUNTS: Operation[list[LinkedExternalAccount]] = Operation(
    "GET", "/customer/external-accounts", list[LinkedExternalAccount]
)
LIST_STATEMENTS: Operation[list[Statement]] = Operation(
    "GET", "/partner/reseller/accounts/statements/{account_id}", list[Statement]
)
LIST_ACH_REQUESTS: Operation[list[AchRequest]] = Operation(
    "GET", "/partner/reseller/ach/{account_id}", list[AchRequest]
)
LIST_TRANSACTIONS: Operation[list[Transaction]] = Operation(
    "GET", "/customer/accounts/transactions/{account_id}", list[Transaction], pages="page"
)
LIST_DEPOSIT_LOCATIONS: Operation[list[DepositLocation]] = Operation(
    "GET", "/customer/accounts/deposit-locations/{account_id}", list[DepositLocation], pages="page"
)
LIST_SETTLEMENT_CALCULATIONS: Operation[list[SettlementCalculation] | None] = Operation(
    "GET",
    "/customer/accounts/settlement-calculations/{account_id}",
    list[SettlementCalculation] | None,
    headers=("source",),
)
SEND_WIRE: Operation[WireResult] = Operation("POST", "/customer/wire", WireResult, takes_body=True)
LIST_WIRES: Operation[list[Wire]] = Operation("GET", "/customer/wires", list[Wire], pages="page")
GET_WIRE: Operation[Wire] = Operation("GET", "/customer/wires/{transaction_id}", Wire)
CANCEL_WIRE: Operation[Wire] = Operation("POST", "/customer/wires/{transaction_id}/cancel", Wire)
APPROVE_WIRE: Operation[WireResult] = Operation(
    "POST", "/customer/wires/{transaction_id}/approve", WireResult
)
DECLINE_WIRE: Operation[Wire] = Operation(
    "POST", "/customer/wires/{transaction_id}/decline", Wire, takes_body=True
)
GET_WIRE_POLICY: Operation[WirePolicy] = Operation(
    "GET", "/partner/reseller/customers/{customer_id}/wire-policy", WirePolicy
)
SET_WIRE_POLICY: Operation[WirePolicy] = Operation(
    "PUT", "/partner/reseller/customers/{customer_id}/wire-policy", WirePolicy, takes_body=True
)
GET_OWN_WIRE_POLICY: Operation[WirePolicy] = Operation("GET", "/customer/wire-policy", WirePolicy)
CREATE_CUSTOMER_SUBSCRIPTION: Operation[Subscription] = Operation(
    "POST", "/customer/webhooks/subscriptions", Subscription, takes_body=True
)
LIST_CUSTOMER_SUBSCRIPTIONS: Operation[list[Subscription]] = Operation(
    "GET", "/customer/webhooks/subscriptions", list[Subscription]
)
CREATE_PARTNER_SUBSCRIPTION: Operation[Subscription] = Operation(
    "POST", "/partner/reseller/webhooks/subscriptions", Subscription, takes_body=True
)
LIST_PARTNER_SUBSCRIPTIONS: Operation[list[Subscription]] = Operation(
    "GET", "/partner/reseller/webhooks/subscriptions", list[Subscription]
)
GET_CUSTOMER_SUBSCRIPTION: Operation[Subscription] = Operation(
    "GET", "/customer/webhooks/subscriptions/{subscription_id}", Subscription
)
UPDATE_CUSTOMER_SUBSCRIPTION: Operation[Subscription] = Operation(
    "PATCH", "/customer/webhooks/subscriptions/{subscription_id}", Subscription, takes_body=True
)
DELETE_CUSTOMER_SUBSCRIPTION: Operation[None] = Operation(
    "DELETE", "/customer/webhooks/subscriptions/{subscription_id}", None
)
GET_PARTNER_SUBSCRIPTION: Operation[Subscription] = Operation(
    "GET", "/partner/reseller/webhooks/subscriptions/{subscription_id}", Subscription
)
UPDATE_PARTNER_SUBSCRIPTION: Operation[Subscription] = Operation(
    "PATCH",
    "/partner/reseller/webhooks/subscriptions/{subscription_id}",
    Subscription,
    takes_body=True,
)
DELETE_PARTNER_SUBSCRIPTION: Operation[None] = Operation(
    "DELETE", "/partner/reseller/webhooks/subscriptions/{subscription_id}", None
)
GET_CUSTOMER_SUBSCRIPTION_HEALTH: Operation[SubscriptionHealth] = Operation(
    "GET", "/customer/webhooks/subscriptions/{subscription_id}/health", SubscriptionHealth
)
GET_PARTNER_SUBSCRIPTION_HEALTH: Operation[SubscriptionHealth] = Operation(
    "GET", "/partner/reseller/webhooks/subscriptions/{subscription_id}/health", SubscriptionHealth
)
GET_CUSTOMER_SUBSCRIPTION_SECRET: Operation[SubscriptionSecret] = Operation(
    "GET", "/customer/webhooks/subscriptions/{subscription_id}/secret", SubscriptionSecret
)
GET_PARTNER_SUBSCRIPTION_SECRET: Operation[SubscriptionSecret] = Operation(
    "GET", "/partner/reseller/webhooks/subscriptions/{subscription_id}/secret", SubscriptionSecret
)
ROTATE_CUSTOMER_SUBSCRIPTION_SECRET: Operation[SubscriptionSecret] = Operation(
    "POST", "/customer/webhooks/subscriptions/{subscription_id}/secret/rotate", SubscriptionSecret
)
ROTATE_PARTNER_SUBSCRIPTION_SECRET: Operation[SubscriptionSecret] = Operation(
    "POST",
    "/partner/reseller/webhooks/subscriptions/{subscription_id}/secret/rotate",
    SubscriptionSecret,
)
TEST_CUSTOMER_SUBSCRIPTION: Operation[Delivery] = Operation(
    "POST", "/customer/webhooks/subscriptions/{subscription_id}/test", Delivery
)
TEST_PARTNER_SUBSCRIPTION: Operation[Delivery] = Operation(
    "POST", "/partner/reseller/webhooks/subscriptions/{subscription_id}/test", Delivery
)
LIST_CUSTOMER_DELIVERIES: Operation[list[Delivery]] = Operation(
    "GET",
    "/customer/webhooks/subscriptions/{subscription_id}/deliveries",
    list[Delivery],
    pages="page",
)
LIST_PARTNER_DELIVERIES: Operation[list[Delivery]] = Operation(
    "GET",
    "/partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries",
    list[Delivery],
    pages="page",
)
GET_CUSTOMER_DELIVERY: Operation[DeliveryDetail] = Operation(
    "GET",
    "/customer/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}",
    DeliveryDetail,
)
GET_PARTNER_DELIVERY: Operation[DeliveryDetail] = Operation(
    "GET",
    "/partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}",
    DeliveryDetail,
)
RESEND_CUSTOMER_DELIVERY: Operation[Delivery] = Operation(
    "POST",
    "/customer/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}/resend",
    Delivery,
)
RESEND_PARTNER_DELIVERY: Operation[Delivery] = Operation(
    "POST",
    "/partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}/resend",
    Delivery,
)
RECOVER_CUSTOMER_SUBSCRIPTION: Operation[Recovery] = Operation(
    "POST", "/customer/webhooks/subscriptions/{subscription_id}/recover", Recovery, takes_body=True
)
RECOVER_PARTNER_SUBSCRIPTION: Operation[Recovery] = Operation(
    "POST",
    "/partner/reseller/webhooks/subscriptions/{subscription_id}/recover",
    Recovery,
    takes_body=True,
)
LIST_CUSTOMER_EVENTS: Operation[list[Event]] = Operation(
    "GET", "/customer/events", list[Event], pages="after"
)
LIST_PARTNER_EVENTS: Operation[list[Event]] = Operation(
    "GET", "/partner/reseller/events", list[Event], pages="after"
)
GET_CUSTOMER_EVENT: Operation[Event] = Operation("GET", "/customer/events/{event_id}", Event)
GET_PARTNER_EVENT: Operation[Event] = Operation("GET", "/partner/reseller/events/{event_id}", Event)
