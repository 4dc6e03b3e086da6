"""Sizes: the published ones, and fractions of them that still make sense."""

from benchmarks.sizes import sizes_at


def test_full_size_is_what_the_figures_are_published_for():
    sizes = sizes_at(1.0)
    assert sizes.runs == 5
    assert sizes.customers == 10_000
    assert sizes.history == 1_000_000
    assert sizes.day_ends == (1_000, 10_000, 100_000)


def test_customers_stay_even_when_scaled_since_they_are_paired():
    assert all(sizes_at(n / 997).customers % 2 == 0 for n in range(1, 100))
