/** The operations of the interface. Made by `python -m libs.specs.clients` of the interface's document: do not edit. */

import type { operations } from "./api.js";

export interface Operation {
  method: string;
  path: string;
  /** How a list goes on: by `page`, by `after` (an event's id), or not at all. */
  pages?: "page" | "after";
  /** Without values its body is `{}`; that of the others is empty. */
  takesBody?: true;
  /** Those values that travel as headers. */
  headers?: readonly string[];
}

export const OPERATIONS: Record<keyof operations, Operation> = {
  onboardCustomer: { method: "POST", path: "/partner/reseller/customers", takesBody: true },
  listCustomers: { method: "GET", path: "/partner/reseller/customers", pages: "page" },
  updateBusiness: { method: "PATCH", path: "/partner/reseller/customers/business/{customer_id}", takesBody: true },
  updatePerson: { method: "PATCH", path: "/partner/reseller/customers/person/{person_id}", takesBody: true },
  addExternalBankAccount: { method: "POST", path: "/partner/reseller/customers/external_bank_account/{external_bank_account_id}", takesBody: true },
  getCustomer: { method: "GET", path: "/partner/reseller/customers/{customer_id}" },
  listPartnerAccounts: { method: "GET", path: "/partner/reseller/accounts" },
  getAccount: { method: "GET", path: "/partner/reseller/accounts/{account_id}" },
  getBalance: { method: "GET", path: "/partner/reseller/accounts/balance/{account_id}" },
  getExternalAccount: { method: "GET", path: "/partner/reseller/accounts/external/{account_id}" },
  listCustomerAccounts: { method: "GET", path: "/customer/accounts" },
  listExternalAccounts: { method: "GET", path: "/customer/external-accounts" },
  listStatements: { method: "GET", path: "/partner/reseller/accounts/statements/{account_id}" },
  listAchRequests: { method: "GET", path: "/partner/reseller/ach/{account_id}" },
  listTransactions: { method: "GET", path: "/customer/accounts/transactions/{account_id}", pages: "page" },
  listDepositLocations: { method: "GET", path: "/customer/accounts/deposit-locations/{account_id}", pages: "page" },
  listSettlementCalculations: { method: "GET", path: "/customer/accounts/settlement-calculations/{account_id}", headers: ["source"] },
  sendWire: { method: "POST", path: "/customer/wire", takesBody: true },
  listWires: { method: "GET", path: "/customer/wires", pages: "page" },
  getWire: { method: "GET", path: "/customer/wires/{transaction_id}" },
  cancelWire: { method: "POST", path: "/customer/wires/{transaction_id}/cancel" },
  approveWire: { method: "POST", path: "/customer/wires/{transaction_id}/approve" },
  declineWire: { method: "POST", path: "/customer/wires/{transaction_id}/decline", takesBody: true },
  getWirePolicy: { method: "GET", path: "/partner/reseller/customers/{customer_id}/wire-policy" },
  setWirePolicy: { method: "PUT", path: "/partner/reseller/customers/{customer_id}/wire-policy", takesBody: true },
  getOwnWirePolicy: { method: "GET", path: "/customer/wire-policy" },
  createCustomerSubscription: { method: "POST", path: "/customer/webhooks/subscriptions", takesBody: true },
  listCustomerSubscriptions: { method: "GET", path: "/customer/webhooks/subscriptions" },
  createPartnerSubscription: { method: "POST", path: "/partner/reseller/webhooks/subscriptions", takesBody: true },
  listPartnerSubscriptions: { method: "GET", path: "/partner/reseller/webhooks/subscriptions" },
  getCustomerSubscription: { method: "GET", path: "/customer/webhooks/subscriptions/{subscription_id}" },
  updateCustomerSubscription: { method: "PATCH", path: "/customer/webhooks/subscriptions/{subscription_id}", takesBody: true },
  deleteCustomerSubscription: { method: "DELETE", path: "/customer/webhooks/subscriptions/{subscription_id}" },
  getPartnerSubscription: { method: "GET", path: "/partner/reseller/webhooks/subscriptions/{subscription_id}" },
  updatePartnerSubscription: { method: "PATCH", path: "/partner/reseller/webhooks/subscriptions/{subscription_id}", takesBody: true },
  deletePartnerSubscription: { method: "DELETE", path: "/partner/reseller/webhooks/subscriptions/{subscription_id}" },
  getCustomerSubscriptionHealth: { method: "GET", path: "/customer/webhooks/subscriptions/{subscription_id}/health" },
  getPartnerSubscriptionHealth: { method: "GET", path: "/partner/reseller/webhooks/subscriptions/{subscription_id}/health" },
  getCustomerSubscriptionSecret: { method: "GET", path: "/customer/webhooks/subscriptions/{subscription_id}/secret" },
  getPartnerSubscriptionSecret: { method: "GET", path: "/partner/reseller/webhooks/subscriptions/{subscription_id}/secret" },
  rotateCustomerSubscriptionSecret: { method: "POST", path: "/customer/webhooks/subscriptions/{subscription_id}/secret/rotate" },
  rotatePartnerSubscriptionSecret: { method: "POST", path: "/partner/reseller/webhooks/subscriptions/{subscription_id}/secret/rotate" },
  testCustomerSubscription: { method: "POST", path: "/customer/webhooks/subscriptions/{subscription_id}/test" },
  testPartnerSubscription: { method: "POST", path: "/partner/reseller/webhooks/subscriptions/{subscription_id}/test" },
  listCustomerDeliveries: { method: "GET", path: "/customer/webhooks/subscriptions/{subscription_id}/deliveries", pages: "page" },
  listPartnerDeliveries: { method: "GET", path: "/partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries", pages: "page" },
  getCustomerDelivery: { method: "GET", path: "/customer/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}" },
  getPartnerDelivery: { method: "GET", path: "/partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}" },
  resendCustomerDelivery: { method: "POST", path: "/customer/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}/resend" },
  resendPartnerDelivery: { method: "POST", path: "/partner/reseller/webhooks/subscriptions/{subscription_id}/deliveries/{delivery_id}/resend" },
  recoverCustomerSubscription: { method: "POST", path: "/customer/webhooks/subscriptions/{subscription_id}/recover", takesBody: true },
  recoverPartnerSubscription: { method: "POST", path: "/partner/reseller/webhooks/subscriptions/{subscription_id}/recover", takesBody: true },
  listCustomerEvents: { method: "GET", path: "/customer/events", pages: "after" },
  listPartnerEvents: { method: "GET", path: "/partner/reseller/events", pages: "after" },
  getCustomerEvent: { method: "GET", path: "/customer/events/{event_id}" },
  getPartnerEvent: { method: "GET", path: "/partner/reseller/events/{event_id}" },
};
