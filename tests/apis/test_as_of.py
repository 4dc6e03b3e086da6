"""Each read of both APIs takes `as_of`, or is listed here with the reason why it does not."""

from tests.reference.documents import DOCUMENTS

_PARTY = "/api/v1/business-applications/{application_id}/related-party-applications/{related_party_application_id}/"
WITHOUT = {
    "it never changes once it is there, and carries its own time": {
        "/api/v1/events/",
        "/api/v1/events/{event_id}/",
        "/api/v1/events/stream/",
        "/api/v1/team/audit-logs.csv",
        "/api/v1/team/audit-logs/",
        "/api/v1/team/members/{member_id}/audit-logs/",
        "/api/v1/customers/{customer_id}/proofs/{day}/",
        "/api/v1/proofs/{day}/",
        "/api/v1/accounts/{account_id}/trades/{trade_id}/confirmation/",
        "/api/v1/service-accounts/{account_id}/trades/{trade_id}/confirmation/",
        "/api/v1/report/{report_id}",
        "/api/v1/reports/{report_id}/",
        "/api/v2/request-log/",
        "/api/v2/request-log/errors/",
        "/api/v2/request-log/{trace_id}/",
        "/api/v2/request-log/{trace_id}/explain/",
    },
    "it says how something is done from now on": {
        "/api/v1/agreements/",
        "/api/v1/events/types/",
        "/api/v1/public-keys/",
        "/api/v1/routing-numbers/{number}/",
        "/api/v1/transfer-requests/reviewers/",
        "/api/v1/transfer-requests/{transfer_id}/upcoming-runs/",
        "/api/v2/pocket-configurations/",
        "/api/v2/pockets/{pocket_id}/portals/{portal_id}/funding-instructions/",
        "/api/v2/trading-strategies/",
    },
    "it takes the days or the instant that it is about": {
        "/api/v1/calendar/",
        "/api/v2/securities/{cusip}/explain/",
    },
    "it is the work of a moment: a report or a batch being made": {
        "/api/v1/report-requests/",
        "/api/v1/report-requests/{report_request_id}/",
        "/api/v1/batches/",
        "/api/v1/batches/{batch_id}/",
        "/api/v1/batches/{batch_id}/rows/",
    },
    "it belongs to a person or a program that reads it now": {
        "/api/v1/user/",
        "/api/v1/user/memberships/",
        "/api/v1/notifications/",
        "/api/v1/notifications/unread/",
        "/api/v1/notifications/{notification_id}/",
        "/api/v1/notification-audiences/",
        "/api/v1/notification-audiences/{notification_type}/",
        "/api/v1/subscriptions/",
        "/api/v1/subscriptions/{subscription_id}/",
        "/api/v1/subscriptions/{subscription_id}/attempts/",
        "/api/v1/team/service-users/{member_id}/",
        "/api/v1/team/service-users/{member_id}/keys/",
    },
    "an application precedes the customer; its changes are in the audit log": {
        "/api/v1/applications/",
        "/api/v1/applications/{application_id}/",
        "/api/v1/applications/{application_id}/explain/",
        "/api/v1/applications/{application_id}/note/",
        "/api/v1/business-applications/",
        "/api/v1/business-applications/{application_id}/",
        "/api/v1/business-applications/{application_id}/documents/",
        "/api/v1/business-applications/{application_id}/explain/",
        "/api/v1/business-applications/{application_id}/related-party-applications/",
        _PARTY,
        f"{_PARTY}documents/",
        "/api/v1/customers/{customer_id}/beneficial-owners/",
        "/api/v1/documents/{document_id}/",
        "/api/v2/business-applications/",
        "/api/v2/business-applications/{application_id}/",
        "/api/v2/business-applications/{application_id}/documents/",
        "/api/v2/business-applications/{application_id}/explain/",
        "/api/v2/business-applications/{application_id}/invites/",
        "/api/v2/business-applications/{application_id}/note/",
        "/api/v2/business-applications/{application_id}/related-parties/",
        "/api/v2/business-applications/{application_id}/related-parties/{related_party_id}/documents/",
        "/api/v2/documents/{document_id}/",
    },
    "its former states are not kept: events and the audit log have its changes": {
        "/api/v1/customer/",
        "/api/v1/customers/",
        "/api/v1/customers/{customer_id}/",
        "/api/v1/customers/{customer_id}/limits/",
        "/api/v1/customers/{customer_id}/limits/explain/",
        "/api/v1/limits/",
        "/api/v1/limits/explain/",
        "/api/v1/authorization-requests/",
        "/api/v1/authorization-requests/{request_id}/",
        "/api/v1/transfer-requests/",
        "/api/v1/transfer-requests/{transfer_id}/",
        "/api/v1/transfer-requests/{transfer_id}/explain/",
    },
    "it names the lots, holds and payments of now: the read that it explains takes as_of": {
        "/api/v1/service-accounts/{account_id}/cards/{card_id}/explain/",
        "/api/v2/pockets/{pocket_id}/explain/",
    },
}
"""Reasons, and the paths of the reads that they are for."""
SANDBOX = "/api/v1/sandbox/"


def test_every_read_of_both_documents_takes_as_of_or_is_listed_with_a_reason():
    takes: set[str] = set()
    without: set[str] = set()
    for document in DOCUMENTS.values():
        for path, methods in document["paths"].items():
            if "get" in methods and path.startswith("/api/") and not path.startswith(SANDBOX):
                named = [each.get("name") for each in methods["get"].get("parameters", [])]
                (takes if "as_of" in named else without).add(path)
    listed = [path for paths in WITHOUT.values() for path in paths]
    assert len(listed) == len(set(listed))
    assert without == set(listed)
    assert not takes & without
    assert len(takes) > len(without)
