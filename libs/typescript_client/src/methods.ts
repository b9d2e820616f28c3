/** The methods of the client: every operation. Made by `python -m libs.specs.clients` of the interface's document: do not edit. */

import type { Answer, Page } from "./answers.js";
import type { components, operations } from "./api.js";
import type { Event } from "./events.js";
import { type Operation, OPERATIONS } from "./operations.js";

type Schemas = components["schemas"];
type Parameters<K extends keyof operations> = operations[K]["parameters"];
type Query<K extends keyof operations> = NonNullable<Parameters<K>["query"]>;
type Header<K extends keyof operations> = NonNullable<Parameters<K>["header"]>;
type Headers<K extends keyof operations> = Omit<Header<K>, "Idempotency-Key">;

export type Values = Record<string, unknown> | object;

/** `idempotencyKey`: of a write; a fresh one unless set. A call that repeats it has its effect once. */
export interface Options {
  idempotencyKey?: string;
}

/** Every method rejects with a BanksideError, or with a TypeError where nothing can be sent. */
export abstract class Methods {
  protected abstract call<T>(operation: Operation, pathValues: readonly string[], values: Values, options?: Options): Promise<Answer<T>>;

  protected abstract list<T>(operation: Operation, pathValues: readonly string[], values: Values): Promise<Page<T>>;

  /** Onboard a business with its persons and one external bank account: `POST /partner/reseller/customers`. */
  onboardCustomer(values: Schemas["OnboardCustomer"], options?: Options): Promise<Answer<Schemas["OnboardingResult"]>> {
    return this.call(OPERATIONS.onboardCustomer, [], values, options);
  }

  /** List customers, newest first: `GET /partner/reseller/customers`. */
  listCustomers(values: Query<"listCustomers"> = {}): Promise<Page<Schemas["Customer"]>> {
    return this.list(OPERATIONS.listCustomers, [], values);
  }

  /** Update a business customer: `PATCH /partner/reseller/customers/business/{customer_id}`. */
  updateBusiness(customer_id: string, values: Schemas["UpdateBusiness"], options?: Options): Promise<Answer<null>> {
    return this.call(OPERATIONS.updateBusiness, [customer_id], values, options);
  }

  /** Update a person: `PATCH /partner/reseller/customers/person/{person_id}`. */
  updatePerson(person_id: string, values: Schemas["UpdatePerson"] = {}, options?: Options): Promise<Answer<null>> {
    return this.call(OPERATIONS.updatePerson, [person_id], values, options);
  }

  /** Add an external bank account, which becomes the primary one: `POST /partner/reseller/customers/external_bank_account/{external_bank_account_id}`. */
  addExternalBankAccount(external_bank_account_id: string, values: Schemas["AddExternalBankAccount"], options?: Options): Promise<Answer<Schemas["ExternalBankAccountAdded"]>> {
    return this.call(OPERATIONS.addExternalBankAccount, [external_bank_account_id], values, options);
  }

  /** Get a customer: status, issues, persons, accounts, external bank accounts: `GET /partner/reseller/customers/{customer_id}`. */
  getCustomer(customer_id: string): Promise<Answer<Schemas["Customer"]>> {
    return this.call(OPERATIONS.getCustomer, [customer_id], {});
  }

  /** List every account of the partner's customers: `GET /partner/reseller/accounts`. */
  listPartnerAccounts(): Promise<Answer<Schemas["PartnerAccountList"]>> {
    return this.call(OPERATIONS.listPartnerAccounts, [], {});
  }

  /** Get an account: `GET /partner/reseller/accounts/{account_id}`. */
  getAccount(account_id: string): Promise<Answer<Schemas["Account"]>> {
    return this.call(OPERATIONS.getAccount, [account_id], {});
  }

  /** Get the balance of an account: `GET /partner/reseller/accounts/balance/{account_id}`. */
  getBalance(account_id: string): Promise<Answer<Schemas["Balance"]>> {
    return this.call(OPERATIONS.getBalance, [account_id], {});
  }

  /** Get the primary external account linked to an account: `GET /partner/reseller/accounts/external/{account_id}`. */
  getExternalAccount(account_id: string): Promise<Answer<Schemas["ExternalAccount"]>> {
    return this.call(OPERATIONS.getExternalAccount, [account_id], {});
  }

  /** List the customer's accounts: `GET /customer/accounts`. */
  listCustomerAccounts(): Promise<Answer<Schemas["AccountList"]>> {
    return this.call(OPERATIONS.listCustomerAccounts, [], {});
  }

  /** List the customer's linked external accounts, primary first: `GET /customer/external-accounts`. */
  listExternalAccounts(): Promise<Page<Schemas["LinkedExternalAccount"]>> {
    return this.list(OPERATIONS.listExternalAccounts, [], {});
  }

  /** List an account's statements, newest first, each with a signed download URL: `GET /partner/reseller/accounts/statements/{account_id}`. */
  listStatements(account_id: string, values: Query<"listStatements"> = {}): Promise<Page<Schemas["Statement"]>> {
    return this.list(OPERATIONS.listStatements, [account_id], values);
  }

  /** List an account's ACH requests, newest first: `GET /partner/reseller/ach/{account_id}`. */
  listAchRequests(account_id: string, values: Query<"listAchRequests"> = {}): Promise<Page<Schemas["AchRequest"]>> {
    return this.list(OPERATIONS.listAchRequests, [account_id], values);
  }

  /** List an account's transactions, newest first: `GET /customer/accounts/transactions/{account_id}`. */
  listTransactions(account_id: string, values: Query<"listTransactions"> = {}): Promise<Page<Schemas["Transaction"]>> {
    return this.list(OPERATIONS.listTransactions, [account_id], values);
  }

  /** List the program banks that hold an account's swept deposits: `GET /customer/accounts/deposit-locations/{account_id}`. */
  listDepositLocations(account_id: string, values: Query<"listDepositLocations"> = {}): Promise<Page<Schemas["DepositLocation"]>> {
    return this.list(OPERATIONS.listDepositLocations, [account_id], values);
  }

  /** List an account's settlement calculations from a day on; null without a reserve account: `GET /customer/accounts/settlement-calculations/{account_id}`. */
  listSettlementCalculations(account_id: string, values: Query<"listSettlementCalculations"> & Headers<"listSettlementCalculations">): Promise<Answer<Schemas["SettlementCalculation"][] | null>> {
    return this.call(OPERATIONS.listSettlementCalculations, [account_id], values);
  }

  /** Send money from an account to a linked external account: `POST /customer/wire`. */
  sendWire(values: Schemas["SendWire"], options?: Options): Promise<Answer<Schemas["WireResult"]>> {
    return this.call(OPERATIONS.sendWire, [], values, options);
  }

  /** List the customer's wires, newest first: `GET /customer/wires`. */
  listWires(values: Query<"listWires"> = {}): Promise<Page<Schemas["Wire"]>> {
    return this.list(OPERATIONS.listWires, [], values);
  }

  /** Get a wire: its state and how it came there: `GET /customer/wires/{transaction_id}`. */
  getWire(transaction_id: string): Promise<Answer<Schemas["Wire"]>> {
    return this.call(OPERATIONS.getWire, [transaction_id], {});
  }

  /** Cancel a wire of which no send has begun: `POST /customer/wires/{transaction_id}/cancel`. */
  cancelWire(transaction_id: string, options?: Options): Promise<Answer<Schemas["Wire"]>> {
    return this.call(OPERATIONS.cancelWire, [transaction_id], {}, options);
  }

  /** Approve a wire that waits for it, and send it: `POST /customer/wires/{transaction_id}/approve`. */
  approveWire(transaction_id: string, options?: Options): Promise<Answer<Schemas["WireResult"]>> {
    return this.call(OPERATIONS.approveWire, [transaction_id], {}, options);
  }

  /** Decline a wire that waits for approval: `POST /customer/wires/{transaction_id}/decline`. */
  declineWire(transaction_id: string, values: Schemas["DeclineWire"], options?: Options): Promise<Answer<Schemas["Wire"]>> {
    return this.call(OPERATIONS.declineWire, [transaction_id], values, options);
  }

  /** Get the wire policy of a customer: `GET /partner/reseller/customers/{customer_id}/wire-policy`. */
  getWirePolicy(customer_id: string): Promise<Answer<Schemas["WirePolicy"]>> {
    return this.call(OPERATIONS.getWirePolicy, [customer_id], {});
  }

  /** Set the limits of a customer's wires, and which of them wait for approval: `PUT /partner/reseller/customers/{customer_id}/wire-policy`. */
  setWirePolicy(customer_id: string, values: Schemas["SetWirePolicy"], options?: Options): Promise<Answer<Schemas["WirePolicy"]>> {
    return this.call(OPERATIONS.setWirePolicy, [customer_id], values, options);
  }

  /** Get the policy of one's own wires: `GET /customer/wire-policy`. */
  getOwnWirePolicy(): Promise<Answer<Schemas["WirePolicy"]>> {
    return this.call(OPERATIONS.getOwnWirePolicy, [], {});
  }

  /** Subscribe a callback URL to a kind of event: `POST /customer/webhooks/subscriptions`. */
  createCustomerSubscription(values: Schemas["CreateSubscription"], options?: Options): Promise<Answer<Schemas["Subscription"]>> {
    return this.call(OPERATIONS.createCustomerSubscription, [], values, options);
  }

  /** List the subscriptions, newest first: `GET /customer/webhooks/subscriptions`. */
  listCustomerSubscriptions(): Promise<Page<Schemas["Subscription"]>> {
    return this.list(OPERATIONS.listCustomerSubscriptions, [], {});
  }

  /** Subscribe a callback URL to a kind of event: `POST /partner/reseller/webhooks/subscriptions`. */
  createPartnerSubscription(values: Schemas["CreateSubscription"], options?: Options): Promise<Answer<Schemas["Subscription"]>> {
    return this.call(OPERATIONS.createPartnerSubscription, [], values, options);
  }

  /** List the subscriptions, newest first: `GET /partner/reseller/webhooks/subscriptions`. */
  listPartnerSubscriptions(): Promise<Page<Schemas["Subscription"]>> {
    return this.list(OPERATIONS.listPartnerSubscriptions, [], {});
  }

  /** Get a subscription: `GET /customer/webhooks/subscriptions/{subscription_id}`. */
  getCustomerSubscription(subscription_id: string): Promise<Answer<Schemas["Subscription"]>> {
    return this.call(OPERATIONS.getCustomerSubscription, [subscription_id], {});
  }

  /** Change a subscription, disable it, or make it active again: `PATCH /customer/webhooks/subscriptions/{subscription_id}`. */
  updateCustomerSubscription(subscription_id: string, values: Schemas["UpdateSubscription"] = {}, options?: Options): Promise<Answer<Schemas["Subscription"]>> {
    return this.call(OPERATIONS.updateCustomerSubscription, [subscription_id], values, options);
  }

  /** Delete a subscription, with the deliveries that it still waits for: `DELETE /customer/webhooks/subscriptions/{subscription_id}`. */
  deleteCustomerSubscription(subscription_id: string, options?: Options): Promise<Answer<null>> {
    return this.call(OPERATIONS.deleteCustomerSubscription, [subscription_id], {}, options);
  }

  /** Get a subscription: `GET /partner/reseller/webhooks/subscriptions/{subscription_id}`. */
  getPartnerSubscription(subscription_id: string): Promise<Answer<Schemas["Subscription"]>> {
    return this.call(OPERATIONS.getPartnerSubscription, [subscription_id], {});
  }

  /** Change a subscription, disable it, or make it active again: `PATCH /partner/reseller/webhooks/subscriptions/{subscription_id}`. */
  updatePartnerSubscription(subscription_id: string, values: Schemas["UpdateSubscription"] = {}, options?: Options): Promise<Answer<Schemas["Subscription"]>> {
    return this.call(OPERATIONS.updatePartnerSubscription, [subscription_id], values, options);
  }

  /** Delete a subscription, with the deliveries that it still waits for: `DELETE /partner/reseller/webhooks/subscriptions/{subscription_id}`. */
  deletePartnerSubscription(subscription_id: string, options?: Options): Promise<Answer<null>> {
    return this.call(OPERATIONS.deletePartnerSubscription, [subscription_id], {}, options);
  }

  /** Get how the endpoint of a subscription is doing, and what waits for it: `GET /customer/webhooks/subscriptions/{subscription_id}/health`. */
  getCustomerSubscriptionHealth(subscription_id: string): Promise<Answer<Schemas["SubscriptionHealth"]>> {
    return this.call(OPERATIONS.getCustomerSubscriptionHealth, [subscription_id], {});
  }

  /** Get how the endpoint of a subscription is doing, and what waits for it: `GET /partner/reseller/webhooks/subscriptions/{subscription_id}/health`. */
  getPartnerSubscriptionHealth(subscription_id: string): Promise<Answer<Schemas["SubscriptionHealth"]>> {
    return this.call(OPERATIONS.getPartnerSubscriptionHealth, [subscription_id], {});
  }

  /** Get the secret that deliveries are signed with: `GET /customer/webhooks/subscriptions/{subscription_id}/secret`. */
  getCustomerSubscriptionSecret(subscription_id: string): Promise<Answer<Schemas["SubscriptionSecret"]>> {
    return this.call(OPERATIONS.getCustomerSubscriptionSecret, [subscription_id], {});
  }

  /** Get the secret that deliveries are signed with: `GET /partner/reseller/webhooks/subscriptions/{subscription_id}/secret`. */
  getPartnerSubscriptionSecret(subscription_id: string): Promise<Answer<Schemas["SubscriptionSecret"]>> {
    return this.call(OPERATIONS.getPartnerSubscriptionSecret, [subscription_id], {});
  }

  /** Make a new secret; the one before goes on signing beside it for a while: `POST /customer/webhooks/subscriptions/{subscription_id}/secret/rotate`. */
  rotateCustomerSubscriptionSecret(subscription_id: string, options?: Options): Promise<Answer<Schemas["SubscriptionSecret"]>> {
    return this.call(OPERATIONS.rotateCustomerSubscriptionSecret, [subscription_id], {}, options);
  }

  /** Make a new secret; the one before goes on signing beside it for a while: `POST /partner/reseller/webhooks/subscriptions/{subscription_id}/secret/rotate`. */
  rotatePartnerSubscriptionSecret(subscription_id: string, options?: Options): Promise<Answer<Schemas["SubscriptionSecret"]>> {
    return this.call(OPERATIONS.rotatePartnerSubscriptionSecret, [subscription_id], {}, options);
  }

  /** Record a test event that is delivered to this subscription only: `POST /customer/webhooks/subscriptions/{subscription_id}/test`. */
  testCustomerSubscription(subscription_id: string, options?: Options): Promise<Answer<Schemas["Delivery"]>> {
    return this.call(OPERATIONS.testCustomerSubscription, [subscription_id], {}, options);
  }

  /** Record a test event that is delivered to this subscription only: `POST /partner/reseller/webhooks/subscriptions/{subscription_id}/test`. */
  testPartnerSubscription(subscription_id: string, options?: Options): Promise<Answer<Schemas["Delivery"]>> {
    return this.call(OPERATIONS.testPartnerSubscription, [subscription_id], {}, options);
  }

  /** List a subscription's deliveries, newest first: `GET /customer/webhooks/subscriptions/{subscription_id}/deliveries`. */
  listCustomerDeliveries(subscription_id: string, values: Query<"listCustomerDeliveries"> = {}): Promise<Page<Schemas["Delivery"]>> {
    return this.list(OPERATIONS.listCustomerDeliveries, [subscription_id], values);
  }

  /** List a subscription's deliveries, newest first: `GET /partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries`. */
  listPartnerDeliveries(subscription_id: string, values: Query<"listPartnerDeliveries"> = {}): Promise<Page<Schemas["Delivery"]>> {
    return this.list(OPERATIONS.listPartnerDeliveries, [subscription_id], values);
  }

  /** Get a delivery with its attempts: `GET /customer/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}`. */
  getCustomerDelivery(subscription_id: string, delivery_id: string): Promise<Answer<Schemas["DeliveryDetail"]>> {
    return this.call(OPERATIONS.getCustomerDelivery, [subscription_id, delivery_id], {});
  }

  /** Get a delivery with its attempts: `GET /partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}`. */
  getPartnerDelivery(subscription_id: string, delivery_id: string): Promise<Answer<Schemas["DeliveryDetail"]>> {
    return this.call(OPERATIONS.getPartnerDelivery, [subscription_id, delivery_id], {});
  }

  /** Deliver an event to a subscription once more: `POST /customer/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}/resend`. */
  resendCustomerDelivery(subscription_id: string, delivery_id: string, options?: Options): Promise<Answer<Schemas["Delivery"]>> {
    return this.call(OPERATIONS.resendCustomerDelivery, [subscription_id, delivery_id], {}, options);
  }

  /** Deliver an event to a subscription once more: `POST /partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}/resend`. */
  resendPartnerDelivery(subscription_id: string, delivery_id: string, options?: Options): Promise<Answer<Schemas["Delivery"]>> {
    return this.call(OPERATIONS.resendPartnerDelivery, [subscription_id, delivery_id], {}, options);
  }

  /** Deliver every event that failed or was held in a time once more: `POST /customer/webhooks/subscriptions/{subscription_id}/recover`. */
  recoverCustomerSubscription(subscription_id: string, values: Schemas["RecoverSubscription"], options?: Options): Promise<Answer<Schemas["Recovery"]>> {
    return this.call(OPERATIONS.recoverCustomerSubscription, [subscription_id], values, options);
  }

  /** Deliver every event that failed or was held in a time once more: `POST /partner/reseller/webhooks/subscriptions/{subscription_id}/recover`. */
  recoverPartnerSubscription(subscription_id: string, values: Schemas["RecoverSubscription"], options?: Options): Promise<Answer<Schemas["Recovery"]>> {
    return this.call(OPERATIONS.recoverPartnerSubscription, [subscription_id], values, options);
  }

  /** List the events that are kept, oldest first; ask for those after the last one seen to miss none: `GET /customer/events`. */
  listCustomerEvents(values: Query<"listCustomerEvents"> = {}): Promise<Page<Event>> {
    return this.list(OPERATIONS.listCustomerEvents, [], values);
  }

  /** List the events that are kept, oldest first; ask for those after the last one seen to miss none: `GET /partner/reseller/events`. */
  listPartnerEvents(values: Query<"listPartnerEvents"> = {}): Promise<Page<Event>> {
    return this.list(OPERATIONS.listPartnerEvents, [], values);
  }

  /** Get an event, as it was delivered: `GET /customer/events/{event_id}`. */
  getCustomerEvent(event_id: string): Promise<Answer<Event>> {
    return this.call(OPERATIONS.getCustomerEvent, [event_id], {});
  }

  /** Get an event, as it was delivered: `GET /partner/reseller/events/{event_id}`. */
  getPartnerEvent(event_id: string): Promise<Answer<Event>> {
    return this.call(OPERATIONS.getPartnerEvent, [event_id], {});
  }
}
