"""The Partner API as a whole; every single operation is tested in `tests/reference`."""


async def test_health_returns_ok(world):
    answer = await world.client.http.get("/health")
    assert (answer.status_code, answer.text) == (200, "OK")
