"""The texts that come with the bank."""

from billfold.onboarding.agreements.texts import current_agreement


def test_every_text_has_a_name_of_its_own_and_something_to_say():
    documents = current_agreement().documents
    assert len({each.slug for each in documents}) == len(documents) == 20
    assert all(each.title and each.paragraphs and all(each.paragraphs) for each in documents)


def test_a_text_is_addressed_by_its_type():
    slugs = {each.type: each.slug for each in current_agreement().documents}
    assert slugs["FORM_CRS"] == "form-crs"
