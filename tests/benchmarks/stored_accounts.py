"""A partner's accounts stored in bulk: at the bank, and at onboarding as accounts of customers of the partner's.

They have no application, so that nothing but their lists can be read of them.
"""

from __future__ import annotations

from tests.benchmarks.stored_rows import FILL_SECONDS, connected
from tests.support.infrastructure import Environment

_CUSTOMERS = """
    INSERT INTO customers (customer_id, tenant, saga_id, status, business, ein_last_four, core_id)
    SELECT md5($1 || n)::uuid, $1, md5($1 || n)::uuid, 'approved', '{}', '0000', 'core_' || md5($1 || n)
    FROM generate_series(1, $2::int) AS n
"""
_OWNED = """
    INSERT INTO accounts (account_id, tenant, customer_id, account_number, status)
    SELECT 'acc_' || md5($1) || lpad(n::text, 8, '0'), $1, md5($1 || n)::uuid, ($3::bigint + n)::text, 'open'
    FROM generate_series(1, $2::int) AS n
"""
_CORE_CUSTOMERS = """
    INSERT INTO core_customer (core_id, customer_id, kind, fields)
    SELECT 'core_' || md5($1 || n), md5($1 || n)::uuid::text, 'business',
        jsonb_build_object('business_name', 'Anvil Works ' || n, 'dba', 'Anvils')
    FROM generate_series(1, $2::int) AS n
"""
_LEDGER_ACCOUNTS = """
    INSERT INTO ledger_account (ledger_account_id, owner)
    SELECT 'acc_' || md5($1) || lpad(n::text, 8, '0'), 'customer' FROM generate_series(1, $2::int) AS n
"""
_ACCOUNTS = """
    INSERT INTO account (account_id, account_number, core_id, account_group, account_title)
    SELECT 'acc_' || md5($1) || lpad(n::text, 8, '0'), ($3::bigint + n)::text, 'core_' || md5($1 || n), 'deposit',
        'Anvil Works ' || n
    FROM generate_series(1, $2::int) AS n
"""
_OLDEST = "SELECT min(account_id) FROM accounts WHERE tenant = $1"


async def fill_accounts(
    environment: Environment, tenant: str, count: int, *, first_number: int
) -> str:
    """One account for each of `count` customers; the id of the oldest, which is the last of the partner's list.

    Args:
        first_number: account numbers go up from here; those of the bank's own sequence are not in the way.
    """
    urls = environment.database_urls
    async with connected(urls["provider_sandbox_owner"]) as bank:
        await bank.execute(_CORE_CUSTOMERS, tenant, count)
        await bank.execute(_LEDGER_ACCOUNTS, tenant, count)
        await bank.execute(_ACCOUNTS, tenant, count, first_number)
        await bank.execute(
            "VACUUM ANALYZE core_customer, ledger_account, account", timeout=FILL_SECONDS
        )
    async with connected(urls["onboarding_owner"]) as onboarding:
        await onboarding.execute(_CUSTOMERS, tenant, count)
        await onboarding.execute(_OWNED, tenant, count, first_number)
        await onboarding.execute("VACUUM ANALYZE customers, accounts", timeout=FILL_SECONDS)
        return str(await onboarding.fetchval(_OLDEST, tenant))
