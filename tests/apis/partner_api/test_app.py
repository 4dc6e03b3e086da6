"""The Partner API as a whole; what holds for each of its operations is tried in `tests/reference`."""


async def test_the_bank_says_that_it_is_there(world):
    answer = await world.client.http.get("/health")
    assert (answer.status_code, answer.text) == (200, "OK")
