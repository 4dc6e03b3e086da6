import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.support.events import WebhookScenario, add_customer, receiving
from tests.support.whole_bank import close_bank, open_bank
from tests.support.world import PartnerClient, new_partner

from billfold.http.edge import observed
from billfold.platform.database.pool import create_pool
from billfold.platform.telemetry.tracing import tracing
from billfold.wiring.server import make_host_router

_TRACE = "0af7651916cd43dd8448eb211c80319c"
_SECRET = "canary-77aa"


@pytest.fixture
def spans():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.start(provider)
    yield exporter.get_finished_spans
    tracing.stop()


async def test_a_request_its_command_and_its_batch_share_one_trace(bank_dsn, spans):
    bank = await open_bank(bank_dsn)
    router = make_host_router(bank)
    caller = PartnerClient(observed(router, bank.settings), await new_partner(bank))
    sent = {"traceparent": f"00-{_TRACE}-b7ad6b7169203331-01", "user-agent": _SECRET}
    caller.http.headers.update(sent)

    answer = await caller.http.get(f"/api/v2/customers/?secret={_SECRET}")
    path = f"/api/v2/customers/{caller.partner.own_customer_id}/pockets/"
    created = await caller.send("POST", path, {"pocket_name": f"Pocket {_SECRET}", "trading_strategy_id": "UST-4W"})
    assert (answer.headers["x-service-trace-id"], created.status_code) == (_TRACE, 201), created.text
    await caller.close()
    async with router.lifespan():
        pass
    await close_bank(bank)

    by_name = {span.name: span for span in spans()}
    request = by_name["POST /api/v2/customers/{customer_id}/pockets"]
    command = by_name["command OpenPocket"]
    assert request.attributes["http.response.status_code"] == 201
    assert command.parent.span_id == request.context.span_id
    assert f"{request.context.trace_id:032x}" == _TRACE
    linked = [link.context.span_id for span in spans() if span.name == "ledger batch" for link in span.links]
    assert command.context.span_id in linked
    assert _SECRET not in json.dumps([span.to_json() for span in spans()])


async def test_a_webhook_delivery_carries_its_trace_context(spans, database_dsn):
    pool = await create_pool(database_dsn, min_size=2)
    scenario = WebhookScenario(pool, await add_customer(pool))
    async with receiving() as receiver:
        await scenario.subscribe(receiver)
        await scenario.happen()
        await scenario.work()
        (request,) = receiver.requests
    await pool.close()
    (span,) = spans()
    assert (span.name, span.attributes["server.address"]) == ("webhook POST", "localhost")
    assert span.attributes["http.response.status_code"] == 200
    sent = f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-"
    assert request.headers["traceparent"].startswith(sent)
