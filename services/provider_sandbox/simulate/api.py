"""`/simulate`: makes things happen that in life happen by themselves. For tests, without token or key."""

from __future__ import annotations

from datetime import timedelta

from services.provider_sandbox.core.customers import UpdateCustomer, update_customer
from services.provider_sandbox.core.external_accounts import make_primary
from services.provider_sandbox.operations import Controls, Nothing, Write
from services.provider_sandbox.simulate import accounts, ach, differences, identity, money, wires
from services.provider_sandbox.simulate.runs import generate_statement, load_deposits
from services.provider_sandbox.statements.links import Links
from services.provider_sandbox.sweep import SweepTerms


def operations(links: Links, sweep: SweepTerms, wire_takes: timedelta) -> Controls:
    """`wire_takes`: until a wire is settled."""
    account, request = "/simulate/accounts/{id}", "/simulate/ach/{id}"
    wire = "/simulate/wires/{id}"
    return (
        Write(
            "decide_identity",
            "POST",
            "/simulate/identity/decisions",
            identity.decide,
            identity.Decide,
        ),
        Write("deposit", "POST", "/simulate/deposits", money.deposit, money.Deposit),
        Write("transact", "POST", "/simulate/transactions", money.transact, money.Transact),
        Write("fill", "POST", "/simulate/history", money.fill, money.Fill),
        Write("create_ach", "POST", "/simulate/ach", ach.create, ach.Request),
        Write("submit_ach", "POST", f"{request}/submit", ach.submit, Nothing),
        Write("settle_ach", "POST", f"{request}/settle", ach.settle, Nothing),
        Write("return_ach", "POST", f"{request}/return", ach.send_back, ach.SendBack),
        Write("complete_wire", "POST", f"{wire}/complete", wires.complete, Nothing),
        Write("reject_wire", "POST", f"{wire}/reject", wires.reject, wires.Why),
        Write("return_wire", "POST", f"{wire}/return", wires.send_back, wires.Why),
        generate_statement(links),
        load_deposits(sweep),
        Write(
            "calculate_settlement",
            "POST",
            "/simulate/settlement-calculations",
            accounts.calculate,
            accounts.Calculate,
        ),
        Write("restrict", "POST", f"{account}/restrict", accounts.restrict, Nothing),
        Write("unrestrict", "POST", f"{account}/unrestrict", accounts.unrestrict, Nothing),
        Write("close", "POST", f"{account}/close", accounts.close, Nothing),
        Write("open_reserve", "POST", f"{account}/reserve", accounts.open_reserve, Nothing),
        Write(
            "change_core_customer",
            "PATCH",
            "/simulate/core/customers/{id}",
            update_customer,
            UpdateCustomer,
        ),
        Write(
            "change_identity",
            "PATCH",
            "/simulate/identity/customers/{id}",
            differences.change_identity,
            differences.ChangeFields,
        ),
        Write(
            "make_primary",
            "POST",
            "/simulate/external-accounts/{id}/primary",
            make_primary,
            Nothing,
        ),
        Write(
            "open_account",
            "POST",
            "/simulate/accounts",
            differences.open_account,
            differences.OpenAccount,
        ),
        differences.send_wire(wire_takes),
    )
