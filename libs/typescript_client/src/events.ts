/** Every event. Made by `python -m libs.specs.clients` of the interface's document: do not edit. */

import type { components } from "./api.js";

type Schemas = components["schemas"];

/**
 * What happened to a resource; `type` says which form `data` has. A newer gateway may send other types.
 * Drop an `id` that you have seen, and a `sequence` below the one that you know of the resource.
 */
export type Event =
  | Schemas["AccountClosedEvent"]
  | Schemas["AccountOpenedEvent"]
  | Schemas["AccountRestrictedEvent"]
  | Schemas["AccountUnrestrictedEvent"]
  | Schemas["AchCreatedEvent"]
  | Schemas["AchReturnedEvent"]
  | Schemas["AchSettledEvent"]
  | Schemas["AchSubmittedEvent"]
  | Schemas["CustomerApprovedEvent"]
  | Schemas["CustomerCreatedEvent"]
  | Schemas["CustomerDeniedEvent"]
  | Schemas["CustomerDocumentsRequiredEvent"]
  | Schemas["CustomerPendingReviewEvent"]
  | Schemas["CustomerUpdatedEvent"]
  | Schemas["DepositLocationsUpdatedEvent"]
  | Schemas["ExternalAccountCreatedEvent"]
  | Schemas["ExternalAccountPrimaryChangedEvent"]
  | Schemas["PersonCreatedEvent"]
  | Schemas["PersonUpdatedEvent"]
  | Schemas["StatementAvailableEvent"]
  | Schemas["TransactionCreatedEvent"]
  | Schemas["WebhookSubscriptionTestEvent"]
  | Schemas["WebhookSubscriptionUnavailableEvent"]
  | Schemas["WireApprovalRequestedEvent"]
  | Schemas["WireApprovedEvent"]
  | Schemas["WireCanceledEvent"]
  | Schemas["WireCompletedEvent"]
  | Schemas["WireCreatedEvent"]
  | Schemas["WireRejectedEvent"]
  | Schemas["WireReturnedEvent"]
  | Schemas["WireSubmittedEvent"];
