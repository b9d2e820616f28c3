"""Log-in at the console: the one-time password, the first log-in, the authenticator's codes, the way out."""

from __future__ import annotations

import pytest

from libs.contracts.principal import Role
from tests.e2e.console.hands import Desk, enrol, log_in, seats_are_fine

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_operator_enrols_and_then_logs_in_with_password_and_code(desk: Desk) -> None:
    async with seats_are_fine(await desk.newcomer(Role.OPERATOR)) as seat:
        page, one_time = seat.page, seat.password
        assert await seat.opened("/wires") == 200
        assert page.url == f"{desk.url}/login?next=%2Fwires"

        await log_in(seat)
        await page.wait_for_url("**/login/enrol")
        assert await seat.opened("/wires") == 200
        assert page.url.endswith("/login/enrol")  # nothing else, until it is enrolled
        await enrol(seat, "correct horse battery staple")
        assert seat.name in await seat.text("#operator")
        await page.locator("#log-out").click()
        await page.locator("#log-in").wait_for()
        cookies = await seat.context.cookies()
        assert not any(cookie["name"].endswith("-session") for cookie in cookies)

        wrong_code = "000000" if seat.code(1) != "000000" else "000001"
        for password, code in ((one_time, ""), (seat.password, ""), (seat.password, wrong_code)):
            right, seat.password = seat.password, password
            await log_in(seat, code)
            assert "not right" in await seat.text("#failure")
            seat.password = right
        await log_in(seat, seat.code(1))
        await page.locator("#log-out").wait_for()
        (session,) = [c for c in await seat.context.cookies() if c["name"].endswith("-session")]
        assert (session["httpOnly"], session["sameSite"]) == (True, "Strict")
        assert await seat.opened("/wires") == 200
        assert page.url == f"{desk.url}/wires"
