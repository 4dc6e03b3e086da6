"""Requests no operation can take, and HEAD, on every host."""

HOSTS = [
    ("acme", "/api/v1/customers/"),
    ("acme", "/docs/"),
    ("auth", "/sign-in"),
    ("auth", "/.well-known/jwks.json"),
    ("api", "/api/v2/pockets/"),
    ("acme", "/nothing/"),
]
CHANGES = {"x-service-trace-id", "x-ratelimit-remaining", "set-cookie", "x-ratelimit-reset"}


async def test_head_returns_the_headers_of_get_without_a_body(send):
    for host, path in (*HOSTS, ("acme", "/health")):
        head, get = await send("HEAD", host, path), await send("GET", host, path)
        shown, expected = ({k: v for k, v in each.headers.items() if k not in CHANGES} for each in (head, get))
        assert (head.status_code, shown, head.content) == (get.status_code, expected, b""), path
        assert int(head.headers["content-length"]) > 0
    stream = await send("HEAD", "acme", "/api/v1/events/stream/")
    assert (stream.status_code, stream.headers["content-type"], stream.content) == (200, "text/event-stream", b"")
    answer = await send("HEAD", "acme", "/api/v1/login/")
    assert (answer.status_code, answer.headers["allow"], answer.content) == (405, "POST", b"")


async def test_options_lists_the_methods_of_a_path_without_authentication(send):
    for host, path, methods in (
        ("acme", "/api/v1/subscriptions/", "GET, HEAD, OPTIONS, POST"),
        ("acme", "/api/v1/login/", "OPTIONS, POST"),
        ("api", "/api/v2/pockets/0d1c2b3a-4f5e-4697-8877-665544332211/", "GET, HEAD, OPTIONS, PATCH"),
        ("api", "/api/v1/notification-audiences/PAYMENT_RECEIVED/", "DELETE, GET, HEAD, OPTIONS, PUT"),
        ("auth", "/api/oauth2/authorize", "GET, HEAD, OPTIONS, POST"),
        ("auth", "/sign-in", "GET, HEAD, OPTIONS, POST"),
        ("auth", "/account", "GET, HEAD, OPTIONS"),
    ):
        answer = await send("OPTIONS", host, path)
        assert (answer.status_code, answer.headers["allow"], answer.content) == (204, methods, b""), path


async def test_a_body_with_a_content_encoding_is_refused_after_authentication(send):
    for host, path, status in (
        ("acme", "/api/v1/login/", 415),
        ("acme", "/token/", 415),
        ("auth", "/api/oauth2/token", 415),
        ("auth", "/sign-in", 415),
        ("api", "/api/v2/pockets/", 401),
    ):
        for encoding in ("gzip", "br", "gzip, identity"):
            answer = await send("POST", host, path, headers={"content-encoding": encoding}, body=b"{}")
            assert answer.status_code == status, path
        taken = await send("POST", host, path, headers={"content-encoding": "identity"}, body=b"{}")
        assert taken.status_code != 415


async def test_control_characters_in_a_path_or_query_never_cause_a_500(send):
    for host, path in HOSTS:
        for control in ("%00", "%1b", "%C2%85", "%0d%0a", "%EF%BF%BE", "%E2%80%AE"):
            in_path = await send("GET", host, f"{path}a{control}b/")
            assert in_path.status_code in {404, 401, 400}, in_path.text
            for query in (f"limit={control}", f"{control}=1", f"cursor=a{control}", f"link={control}&next={control}"):
                answer = await send("GET", host, f"{path}?{query}")
                assert answer.status_code < 500, answer.text
                if answer.status_code == 422:
                    assert answer.json()["detail"][0]["loc"][0] == "query"


async def test_a_query_with_too_many_parameters_is_refused_briefly(send):
    query = "&".join(f"{number:x}=" for number in range(8_000))
    for host, path in (*HOSTS, ("acme", "/docs/errors/not-found")):
        answer = await send("GET", host, f"{path}?{query}")
        assert (answer.status_code in {200, 400, 401, 404, 422}, len(answer.content) < 5_000) == (True, True), path
